"""Dropout whose masks are made from random bits: on a CPU several times faster than drawing a number for each."""

from __future__ import annotations

import torch
from torch import Tensor, nn

LEVELS = 1 << 16  # a rate is a number of 65,536ths


def dropout(x: Tensor, rate: float, training: bool) -> Tensor:
    """In training, zero each number with probability `rate` and divide the rest by 1 − rate (Srivastava et al. 2014).

    On a CPU the rate is rounded to 1/65,536 and the division is by what is then kept.
    """
    if not training or rate == 0:
        return x
    return x * mask(x, rate) if x.device.type == "cpu" else nn.functional.dropout(x, rate)


def mask(like: Tensor, rate: float) -> Tensor:
    """0 with probability `rate`, else what makes the mean 1: shape, dtype and device of `like`, a number below 1."""
    if like.device.type != "cpu":
        return torch.empty_like(like).bernoulli_(1 - rate).div_(1 - rate)
    dropped = min(round(rate * LEVELS), LEVELS - 1)
    count = like.numel()
    # One call of the generator gives 64 bits: four numbers.
    words = torch.empty((count + 3) // 4, dtype=torch.int64).random_(-(1 << 63), None)
    bits = words.view(torch.int16)[:count].view(like.shape)  # −32,768 … 32,767
    return (bits >= dropped - LEVELS // 2).to(like.dtype).mul_(LEVELS / (LEVELS - dropped))
