"""Recurrent scans with a hand-written backward: the twins of `Cell.scan_plain`, for training."""

from __future__ import annotations

from typing import Any, cast

import torch
from torch import Tensor

from mirada.kernels.products import Product
from mirada.kernels.saved_activations import GRUTape, LSTMTape


def lstm_scan(x_gates: Tensor, h: Tensor, c: Tensor, w_h: Tensor, drop: Tensor | None) -> tuple[Tensor, Tensor]:
    """Every h and c of an LSTM: `[T, N, 4H]`, `[N, H]` twice, `[4H, H]` → `[T, N, H]` twice."""
    return cast(tuple[Tensor, Tensor], _LSTMScan.apply(x_gates, h, c, w_h, drop))  # type: ignore[no-untyped-call]


def gru_scan(x_gates: Tensor, h: Tensor, w_h: Tensor, b_n: Tensor, drop: Tensor | None) -> Tensor:
    """Every h of a GRU: `[T, N, 3H]`, `[N, H]`, `[3H, H]`, `[H]` → `[T, N, H]`."""
    return cast(Tensor, _GRUScan.apply(x_gates, h, w_h, b_n, drop))  # type: ignore[no-untyped-call]


class _LSTMScan(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x_gates: Tensor, h: Tensor, c: Tensor, w_h: Tensor, drop: Tensor | None) -> Any:
        tape = LSTMTape(x_gates, h, c)
        _run(tape, x_gates, w_h, drop)
        ctx.tape, ctx.w_h, ctx.drop = tape, w_h, drop
        return tape.hs[1:].clone(), tape.cs[1:].clone()

    @staticmethod
    def backward(ctx: Any, d_hs: Tensor, d_cs: Tensor) -> Any:
        dh, d_w = _run_back(ctx.tape, d_hs, d_cs, ctx.w_h, ctx.drop)
        return ctx.tape.d_x, *ctx.tape.first_gradients(dh), d_w, None


class _GRUScan(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x_gates: Tensor, h: Tensor, w_h: Tensor, b_n: Tensor, drop: Tensor | None) -> Any:
        tape = GRUTape(x_gates, h, b_n)
        _run(tape, x_gates, w_h, drop)
        ctx.tape, ctx.w_h, ctx.drop = tape, w_h, drop
        return tape.hs[1:].clone()

    @staticmethod
    def backward(ctx: Any, d_hs: Tensor) -> Any:
        tape = ctx.tape
        dh, d_w = _run_back(tape, d_hs, None, ctx.w_h, ctx.drop)
        return tape.d_x, dh, d_w, tape.d_h[:, :, 2 * tape.size :].sum((0, 1)), None


def _run(tape: LSTMTape | GRUTape, x_gates: Tensor, w_h: Tensor, drop: Tensor | None) -> None:
    from_h = Product(w_h, rows=x_gates.size(1), uses=len(x_gates))
    for t, gates in enumerate(x_gates):
        tape.forward(t, gates, from_h(_dropped(tape.hs[t], drop)))


def _run_back(
    tape: LSTMTape | GRUTape, d_hs: Tensor, d_cs: Tensor | None, w_h: Tensor, drop: Tensor | None
) -> tuple[Tensor, Tensor]:
    """Run all steps back: the first state's gradient `[N, H]` and that of `w_h`, one product over all steps."""
    tape.start_back(d_cs)
    dh, to_h = torch.zeros_like(d_hs[0]), Product(w_h.T, rows=d_hs.size(1), uses=len(d_hs))
    for t in reversed(range(len(d_hs))):
        past = tape.backward(t, dh.add_(d_hs[t]))
        dh = _dropped(to_h(tape.d_h[t]), drop)
        dh = dh if past is None else dh.add_(past)
    return dh, tape.d_h.flatten(0, 1).T @ _dropped(tape.hs[:-1], drop).flatten(0, 1)


def _dropped(h: Tensor, drop: Tensor | None) -> Tensor:
    return h if drop is None else h * drop
