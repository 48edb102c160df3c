"""A decoder as the loop over its steps uses it: the same module and the same weights, its large products laid out."""

from __future__ import annotations

import copy
from typing import TypeVar

from torch import nn

from mirada.kernels.loops import gains, product
from mirada.models.cells import Cell

Decoder = TypeVar("Decoder", bound=nn.Module)


def in_loop(module: Decoder, *names: str) -> Decoder:
    """A view of a module for one loop: `names` are its parts that every step uses; the others are the module's own."""
    view = copy.copy(module)
    view._modules = dict(module._modules)
    for name in names:
        if (part := module._modules.get(name)) is not None:
            view._modules[name] = _laid_out(part)
    return view


def _laid_out(module: nn.Module) -> nn.Module:
    """A view of a module in which its own linear layers and cells, and those of its parts, are laid out."""
    view = in_loop(module, *module._modules)
    if isinstance(module, nn.Linear) and getattr(module, "bias", None) is None and gains(module.weight):
        setattr(view, "forward", product(module.weight))  # noqa: B010 - a method, as far as types know
    if isinstance(module, Cell) and gains(module.w_h):
        setattr(view, "recurrent", product(module.w_h))  # noqa: B010
    return view
