"""Products by oneDNN: on an AMD CPU with AVX-512 they are twice as fast in float32 as MKL's, which torch would take."""

from __future__ import annotations

from functools import cached_property

import torch
from torch import Tensor
from torch.nn.functional import linear

from mirada.kernels.private import PREPACKED, has_products, linear_added, linear_prepacked, prepack

SMALLEST = 1 << 15  # numbers in a weight that is worth laying out
ROWS = 64  # a hint for the layout; it suits other numbers of rows as well


class Product:
    """x Wᵀ + b at many steps, W `[O, I]` laid out once; four steps make up for it."""

    def __init__(self, w: Tensor, b: Tensor | None = None):
        self.w, self.b, self.laid_out = w, b, prepack(w, ROWS) if by_onednn(w) else None

    def __call__(self, x: Tensor, other: Tensor | None = None) -> Tensor:
        """`[N, I]` → `[N, O]`; `other` `[N, O]` is added instead of b."""
        if self.laid_out is None:
            return linear(x, self.w, self.b) if other is None else torch.addmm(other, x, self.w.T)
        return linear_prepacked(x, self.laid_out, self.b) if other is None else linear_added(x, other, self.laid_out)

    @cached_property
    def back(self) -> Product:
        """d ↦ d W, which brings a gradient back to x."""
        return Product(self.w.T)


def by_onednn(w: Tensor) -> bool:
    """Whether products with this weight are oneDNN's."""
    here = w.device.type == "cpu" and torch.backends.mkldnn.is_available()
    return here and w.dtype == torch.float32 and w.numel() >= SMALLEST and has_products(*PREPACKED)


def over_steps(left: Tensor, right: Tensor) -> Tensor:
    """Σ_t left_tᵀ right_t, a weight's gradient, in one product: `[T, N, O]`, `[T, N, I]` → `[O, I]`."""
    x, w = left.flatten(0, 1).T, right.flatten(0, 1).T
    return linear_prepacked(x, w, None) if by_onednn(w) else x @ w.T
