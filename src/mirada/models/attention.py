"""Every attention equation, in the order of the papers.

A score compares queries (decoder states) with keys made once a sentence; softmax over the real positions turns scores
into weights; the weights average the encoder's states into the context. Any flow takes any score:
`T` is the axis of queries of one sentence, be they steps of a known target or hypotheses of a beam.

    e_tj = score(s, h_j)        α_tj = exp(e_tj) / Σ_k exp(e_tk)        c_t = Σ_j α_tj h_j
"""

from __future__ import annotations

import math
from typing import NamedTuple, Protocol, cast

import torch
from torch import Tensor, nn

from mirada.kernels.energy import additive_energy
from mirada.models.base import Memory


class Score(Protocol):
    """A score function: `project` the encoder's states once, then compare queries with them."""

    def project(self, states: Tensor) -> Tensor:
        """Make keys `[B, S, A]` from states `[B, S, H]`."""
        ...

    def __call__(self, query: Tensor, keys: Tensor) -> Tensor:
        """Compare queries `[B, T, D]` with keys `[B, S, A]`: scores `[B, T, S]`."""
        ...


class Attended(NamedTuple):
    """What one look at the source gives."""

    scores: Tensor  # [B, T, S] e_tj
    weights: Tensor  # [B, T, S] α_tj, 0 on padding
    context: Tensor  # [B, T, H] c_t


def _initialised(size: int) -> Tensor:
    """v_a, uniform within ±1/√size; where only shapes are wanted (device meta) torch takes a second to divide."""
    weights = torch.empty(size).uniform_(-1, 1)
    return weights if weights.is_meta else weights / math.sqrt(size)


class AdditiveScore(nn.Module):
    """e_tj = v_aᵀ tanh(W_a s + U_a h_j), no bias (Bahdanau et al. 2015, appendix A.1.2)."""

    def __init__(self, query_size: int, memory_size: int, attention_size: int):
        super().__init__()
        self.w_a = nn.Linear(query_size, attention_size, bias=False)
        self.u_a = nn.Linear(memory_size, attention_size, bias=False)
        self.v_a = nn.Parameter(_initialised(attention_size))

    def project(self, states: Tensor) -> Tensor:
        """U_a h_j: `[B, S, H]` → `[B, S, A]`."""
        return cast(Tensor, self.u_a(states))

    def forward(self, query: Tensor, keys: Tensor) -> Tensor:
        """Scores `[B, T, S]`."""
        return additive_energy(self.w_a(query), keys, self.v_a)


class ConcatScore(nn.Module):
    """e_tj = v_aᵀ tanh(W_a [s; h_j]), no bias (Luong et al. 2015, equation 8).

    W_a's columns for h_j make the keys once a sentence, its columns for s meet them at each step: the same numbers as
    the product with the concatenation, without writing the concatenation out.
    """

    def __init__(self, query_size: int, memory_size: int, attention_size: int):
        super().__init__()
        self.query_size = query_size
        self.w_a = nn.Linear(query_size + memory_size, attention_size, bias=False)
        self.v_a = nn.Parameter(_initialised(attention_size))

    def project(self, states: Tensor) -> Tensor:
        """W_a's part for h_j: `[B, S, H]` → `[B, S, A]`."""
        return states @ self.w_a.weight[:, self.query_size :].T

    def forward(self, query: Tensor, keys: Tensor) -> Tensor:
        """Scores `[B, T, S]`."""
        return additive_energy(query @ self.w_a.weight[:, : self.query_size].T, keys, self.v_a)


class DotScore(nn.Module):
    """e_tj = sᵀ h_j (Luong et al. 2015, equation 8), or divided by √d (Vaswani et al. 2017, equation 1)."""

    def __init__(self, size: int, *, scaled: bool):
        super().__init__()
        self.scale = 1 / math.sqrt(size) if scaled else 1.0

    def project(self, states: Tensor) -> Tensor:
        """The keys are the states."""
        return states

    def forward(self, query: Tensor, keys: Tensor) -> Tensor:
        """Scores `[B, T, S]`."""
        return (query * self.scale) @ keys.transpose(1, 2)


class GeneralScore(nn.Module):
    """e_tj = sᵀ W_a h_j (Luong et al. 2015, equation 8); W_a h_j is made once, so that each step is a dot product."""

    def __init__(self, query_size: int, memory_size: int):
        super().__init__()
        self.w_a = nn.Linear(memory_size, query_size, bias=False)

    def project(self, states: Tensor) -> Tensor:
        """W_a h_j: `[B, S, H]` → `[B, S, D]`."""
        return cast(Tensor, self.w_a(states))

    def forward(self, query: Tensor, keys: Tensor) -> Tensor:
        """Scores `[B, T, S]`."""
        return query @ keys.transpose(1, 2)


def build_score(name: str, *, query_size: int, memory_size: int, attention_size: int) -> nn.Module:
    """Make the score function of this name: additive, concat, general, dot or scaled_dot."""
    if name == "additive":
        return AdditiveScore(query_size, memory_size, attention_size)
    if name == "concat":
        return ConcatScore(query_size, memory_size, attention_size)
    if name == "general":
        return GeneralScore(query_size, memory_size)
    return DotScore(query_size, scaled=name == "scaled_dot")


def masked_softmax(scores: Tensor, mask: Tensor) -> Tensor:
    """Softmax over the positions where `mask` is True; 0 elsewhere, and zeros (not NaN) in a wholly masked row.

    The mask acts before the softmax. `mask` broadcasts against `scores`.
    """
    filled = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
    return filled.softmax(-1) * mask


def attend(score: Score, query: Tensor, memory: Memory) -> Attended:
    """Look at the source with queries `[B, T, D]`: scores, weights and context of each."""
    scores = score(query, memory.keys)  # [B, T, S]
    weights = masked_softmax(scores, memory.mask[:, None])  # [B, T, S]
    if memory.forced is not None:
        weights = memory.forced.expand_as(weights)
    return Attended(scores, weights, weights @ memory.states)  # context [B, T, H]


def additive_energy_plain(query: Tensor, keys: Tensor, v: Tensor) -> Tensor:
    """vᵀ tanh(query + key) for all pairs, as written: `[B, T, A]`, `[B, S, A]`, `[A]` → `[B, T, S]`."""
    return (query[:, :, None] + keys[:, None]).tanh() @ v


class HeadsAttended(NamedTuple):
    """What every head saw."""

    output: Tensor  # [B, h, T, d_k]
    scores: Tensor  # [B, h, T, S]
    weights: Tensor  # [B, h, T, S]


def multi_head(
    query: Tensor, keys: Tensor, values: Tensor, mask: Tensor, forced: Tensor | None = None
) -> HeadsAttended:
    """softmax(QKᵀ/√d_k) V in each head (Vaswani et al. 2017, equation 1).

    `query` `[B, h, T, d_k]`; `keys`, `values` `[B, h, S, d_k]`; `mask` broadcasts to `[B, h, T, S]`.
    `forced` `[B, 1 or T, S]` replaces every head's weights.
    """
    scores = query @ keys.transpose(-2, -1) / math.sqrt(query.size(-1))  # [B, h, T, S]
    weights = masked_softmax(scores, mask)
    if forced is not None:
        weights = forced[:, None].expand_as(weights)
    return HeadsAttended(weights @ values, scores, weights)
