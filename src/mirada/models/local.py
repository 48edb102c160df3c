"""Local attention: Luong, Pham & Manning 2015, section 3.2. Only positions within D of a middle p_t are attended to.

    local-m: p_t = t        local-p: p_t = S σ(v_pᵀ tanh(W_p s_t)), and α_tj exp(−(j − p_t)² / 2σ²) with σ = D/2

Steps t and positions j are counted from 0, S is the sentence's own length. The Gaussian acts after the softmax over the
window and nothing is normalised again. Where a source is read backwards, j still counts its words as they stand. Past
the end of the source local-m stays at its last word.
"""

from __future__ import annotations

from typing import NamedTuple, cast

import torch
from torch import Tensor, nn


class Window(NamedTuple):
    """What steps may attend to."""

    mask: Tensor  # [B, T, S]
    factor: Tensor | None  # [B, T, S] what multiplies the weights: the Gaussian of local-p


class Monotonic(nn.Module):
    """local-m: the middle of the window moves on by one word a step."""

    def __init__(self, reach: int):
        super().__init__()
        self.reach = reach

    def forward(self, query: Tensor, mask: Tensor, steps: Tensor) -> Window:
        """Queries `[B, T, D]`, real positions `[B, S]`, steps made before `[B, T]`."""
        middle = torch.minimum(steps, mask.sum(1, keepdim=True) - 1)  # [B, T]
        return Window(mask[:, None] & (distance(middle, mask).abs() <= self.reach), None)


class Predictive(nn.Module):
    """local-p: the middle is predicted from the state (equations 9 and 10)."""

    def __init__(self, query_size: int, reach: int):
        super().__init__()
        self.reach = reach
        self.w_p = nn.Linear(query_size, query_size, bias=False)
        self.v_p = nn.Linear(query_size, 1, bias=False)

    def forward(self, query: Tensor, mask: Tensor, steps: Tensor | None) -> Window:
        """Queries `[B, T, D]`, real positions `[B, S]`; steps are not asked for."""
        share = cast(Tensor, self.v_p(self.w_p(query).tanh())).sigmoid()[..., 0]  # [B, T]
        far = distance(share * mask.sum(1, keepdim=True), mask)
        gaussian = (-2 * (far / self.reach) ** 2).exp()  # σ = D/2
        return Window(mask[:, None] & (far.abs() <= self.reach), gaussian)


def distance(middle: Tensor, mask: Tensor) -> Tensor:
    """j − p_t: middles `[B, T]` → `[B, T, S]`."""
    positions = torch.arange(mask.size(1), device=mask.device)
    return positions - middle[..., None]


def build_window(name: str, *, query_size: int, reach: int) -> nn.Module | None:
    """Make the window of this name: none for global, local-m or local-p."""
    if name == "global":
        return None
    return Monotonic(reach) if name == "local-m" else Predictive(query_size, reach)
