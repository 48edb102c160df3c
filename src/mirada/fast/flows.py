"""The part of a step in which the flows of bahdanau.py and luong.py differ, each as one compiled call.

A search with few rows spends a sixth of a step between the calls from Python of which `_advance` is made. What is
computed is the same, number for number, by the functions of scripted.py.
"""

from __future__ import annotations

from typing import Any, cast

import torch
from torch import Tensor, nn

from mirada.fast import scripted
from mirada.fast.scripted import Compiled
from mirada.models.attention import Attended, DotScore, GeneralScore
from mirada.models.bahdanau import Bahdanau, BahdanauState
from mirada.models.base import Memory
from mirada.models.luong import Luong, LuongState


def fuse(model: Bahdanau | Luong, score: list[list[Tensor]] | None, weights: list[Tensor]) -> None:
    """Put the fused part in the place of `_advance`, where attention depends on the query and the keys alone.

    `score` holds the weights of an additive one, `weights` those of the only layer's recurrent product.
    """
    scale = 1.0
    if isinstance(model.score, DotScore | GeneralScore):
        scale, score = getattr(model.score, "scale", 1.0), []
    if model.window is not None or score is None:
        return
    fused = FusedLuong if isinstance(model, Luong) else FusedBahdanau
    cast(Any, model)._advance = fused(cast(Any, model), score, scale, weights)


class FusedBahdanau:
    """Attend, update: what Bahdanau._advance gives."""

    def __init__(self, model: Bahdanau, score: list[list[Tensor]], scale: float, weights: list[Tensor]):
        self.plain, self.score, self.scale = model._advance, score, scale
        self.weights = [tensors(model.context_gates), weights]
        self.run = Compiled(scripted.bahdanau)

    def __call__(
        self, y_gates: Tensor, state: BahdanauState, memory: Memory, masks: list[Tensor | None]
    ) -> tuple[Attended, BahdanauState]:
        """The same as the plain one."""
        if memory.replaced is not None:
            return self.plain(y_gates, state, memory, masks)
        source = (memory.keys, memory.states, memory.mask)
        attended, layer = self.run(y_gates, list(state.layers[0]), source, self.score, self.weights, self.scale)
        return Attended(*attended), BahdanauState((tuple(layer),), state.past)


class FusedLuong:
    """Update, attend, mix: what Luong._advance gives."""

    def __init__(self, model: Luong, score: list[list[Tensor]], scale: float, weights: list[Tensor]):
        self.plain, self.score = model._advance, score
        fed = [] if model.feed_gates is None else [tensors(model.feed_gates)]
        self.weights, self.feeding = [weights, tensors(model.w_c), *fed], bool(fed)
        self.design = (scale, bool(model.squashed))
        self.run = Compiled(scripted.luong)

    def __call__(
        self, y_gates: Tensor, state: LuongState, memory: Memory, masks: list[Tensor | None]
    ) -> tuple[Tensor, Attended, LuongState]:
        """The same as the plain one."""
        if memory.replaced is not None:
            return self.plain(y_gates, state, memory, masks)
        layer = [*state.layers[0], *([] if state.fed is None else [state.fed])]
        source = (memory.keys, memory.states, memory.mask)
        hidden, attended, new = self.run(y_gates, layer, source, self.score, self.weights, self.design)
        fed = hidden if self.feeding else None
        return hidden, Attended(*attended), LuongState((tuple(new),), fed, state.past)


def tensors(module: nn.Module) -> list[Tensor]:
    """Weight and bias (zeros where there is none), and what belongs to 8 bits."""
    weight, bias = cast(Tensor, module.weight), cast(Tensor | None, module.bias)
    if bias is None:
        bias = torch.zeros(weight.size(0))
    more = [cast(Tensor, module.scales), cast(Tensor, module.zeros)] if hasattr(module, "scales") else []
    return [tensor.detach() if isinstance(tensor, nn.Parameter) else tensor for tensor in (weight, bias)] + more
