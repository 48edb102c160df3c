"""Whole recurrent layers by torch's own LSTM and GRU, which a CPU and a GPU compute faster than a loop of steps.

Their reference is `Cell.scan_plain`. torch orders an LSTM's gates i, f, g, o and has two biases.
"""

from __future__ import annotations

import torch
from torch import Tensor

HOLD = 1e4  # what a sigmoid needs to be 1 or 0 exactly, in half precision too


def lstm_scan(
    x: Tensor, state: tuple[Tensor, Tensor], weights: tuple[Tensor, Tensor, Tensor], padding: Tensor | None
) -> tuple[Tensor, Tensor]:
    """Every h `[T, N, H]` and the last c `[N, H]` of inputs `[T, N, I]`; `weights`: w_x, w_h, b, gates i, f, o, g.

    `padding` `[T, N]` marks where a sequence has ended: its c stays as it was (torch gives no c but the last). One more
    input, 1 on padding, holds the forget gate open and the input gate closed there.
    """
    w_x, w_h, b = (_in_torchs_order(part) for part in weights)
    if padding is not None:
        size = w_h.size(1)
        hold = torch.cat((w_x.new_full((size, 1), -HOLD), w_x.new_full((size, 1), HOLD), w_x.new_zeros(2 * size, 1)))
        x, w_x = torch.cat((x, padding[..., None].to(x)), -1), torch.cat((w_x, hold), 1)
    start = (state[0][None], state[1][None])
    weighed = (w_x, w_h, b, torch.zeros_like(b))
    output, _, c = torch.lstm(x, start, weighed, True, 1, 0.0, torch.is_grad_enabled(), False, False)
    return output, c[0]


def gru_scan(x: Tensor, h: Tensor, weights: tuple[Tensor, Tensor, Tensor, Tensor]) -> Tensor:
    """Every h `[T, N, H]` of inputs `[T, N, I]`; `weights` are w_x, w_h, b and b_n, which stands inside the reset."""
    w_x, w_h, b, b_n = weights
    b_h = torch.cat((torch.zeros_like(b[: 2 * b_n.numel()]), b_n))
    return torch.gru(x, h[None], (w_x, w_h, b, b_h), True, 1, 0.0, torch.is_grad_enabled(), False, False)[0]


def _in_torchs_order(part: Tensor) -> Tensor:
    i, f, o, g = part.chunk(4)
    return torch.cat((i, f, g, o))
