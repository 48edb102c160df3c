"""A product that every step of a loop makes with the same weight: laid out once, and its gradient made once.

A plain product of few rows lays the weight out anew at every step, forward and backward, and every step's backward adds
a gradient as large as the weight. Here oneDNN's own layouts of W and Wᵀ serve all steps, and the gradient of the weight
is one product over the rows of all steps. The reference is x Wᵀ.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import torch
from torch import Tensor

from mirada.kernels.private import PREPACKED, has_products, linear_prepacked, prepack

SMALLEST = 1 << 16  # numbers of a weight: fewer are as fast as they are
ROWS = 64  # a hint for the layout; it suits other numbers of rows as well

Product = Callable[[Tensor], Tensor]


def gains(weight: Tensor) -> bool:
    """Whether a loop over this weight is faster with it laid out: in training, on a CPU, in float32, and large."""
    able = weight.device.type == "cpu" and weight.dtype == torch.float32 and torch.backends.mkldnn.is_available()
    return able and torch.is_grad_enabled() and weight.numel() >= SMALLEST and has_products(*PREPACKED)


def product(weight: Tensor) -> Product:
    """x Wᵀ, `[N, I]` → `[N, O]`, for the steps of one loop; its backward is made once, after theirs."""
    steps = _Steps(weight)
    collected = cast(Tensor, _Collected.apply(weight, steps))  # type: ignore[no-untyped-call]
    return lambda x: cast(Tensor, _Product.apply(x, collected, steps))  # type: ignore[no-untyped-call]


class _Steps:
    """The weight in both layouts, and what the backward of each step leaves for the weight's own."""

    def __init__(self, weight: Tensor):
        weight = weight.detach()
        self.forward, self.backward = prepack(weight, ROWS), prepack(weight.T.contiguous(), ROWS)
        self.inputs: list[Tensor] = []  # each [N, I]
        self.grads: list[Tensor] = []  # each [N, O]


class _Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, collected: Tensor, steps: _Steps) -> Tensor:
        ctx.steps = steps
        ctx.save_for_backward(x)
        return linear_prepacked(x, steps.forward, None)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, None, None]:
        (x,), steps = ctx.saved_tensors, ctx.steps
        grad = grad.contiguous()
        if ctx.needs_input_grad[1]:  # the weight's own is made by _Collected
            steps.inputs.append(x.reshape(-1, x.size(-1)))
            steps.grads.append(grad.reshape(-1, grad.size(-1)))
        return linear_prepacked(grad, steps.backward, None) if ctx.needs_input_grad[0] else None, None, None


class _Collected(torch.autograd.Function):
    """The weight as the steps see it: its backward comes after theirs."""

    @staticmethod
    def forward(ctx: Any, weight: Tensor, steps: _Steps) -> Tensor:
        ctx.set_materialize_grads(False)
        ctx.steps = steps
        return weight.view_as(weight)

    @staticmethod
    def backward(ctx: Any, _: Tensor | None) -> tuple[Tensor | None, None]:
        steps = ctx.steps
        if not steps.grads:
            return None, None
        grad = torch.cat(steps.grads).T @ torch.cat(steps.inputs)  # [O, I]
        steps.inputs.clear()
        steps.grads.clear()
        return grad, None
