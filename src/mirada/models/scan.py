"""Recurrent scans with a hand-written backward: the twins of `Cell.scan_plain`, for training.

What makes them fast: the state's product is the only matrix product in the loop; its weight gradient is one product
over all steps at the end; gates are computed in place. Tensors are time first, so that a step is one piece of memory.
"""

from __future__ import annotations

from typing import Any, cast

import torch
from torch import Tensor


def lstm_scan(x_gates: Tensor, h: Tensor, c: Tensor, w_h: Tensor, drop: Tensor | None) -> tuple[Tensor, Tensor]:
    """Every h and c of an LSTM: `[T, N, 4H]`, `[N, H]` twice, `[4H, H]` → `[T, N, H]` twice."""
    return cast(tuple[Tensor, Tensor], _LSTMScan.apply(x_gates, h, c, w_h, drop))  # type: ignore[no-untyped-call]


def gru_scan(x_gates: Tensor, h: Tensor, w_h: Tensor, b_n: Tensor, drop: Tensor | None) -> Tensor:
    """Every h of a GRU: `[T, N, 3H]`, `[N, H]`, `[3H, H]`, `[H]` → `[T, N, H]`."""
    return cast(Tensor, _GRUScan.apply(x_gates, h, w_h, b_n, drop))  # type: ignore[no-untyped-call]


class _LSTMScan(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x_gates: Tensor, h: Tensor, c: Tensor, w_h: Tensor, drop: Tensor | None) -> Any:
        steps, rows, size = x_gates.size(0), h.size(0), h.size(1)
        gates = torch.empty_like(x_gates)  # [T, N, 4H] activated, kept for the backward
        hs, cs = x_gates.new_empty(steps + 1, rows, size), x_gates.new_empty(steps + 1, rows, size)
        hs[0], cs[0] = h, c
        for t in range(steps):
            a = torch.addmm(x_gates[t], _dropped(hs[t], drop), w_h.T, out=gates[t])
            a[:, : 3 * size].sigmoid_()
            a[:, 3 * size :].tanh_()
            i, f, o, g = a.split(size, 1)
            torch.mul(f, cs[t], out=cs[t + 1]).addcmul_(i, g)
            torch.tanh(cs[t + 1], out=hs[t + 1]).mul_(o)
        ctx.save_for_backward(gates, hs, cs, w_h, drop)
        return hs[1:].clone(), cs[1:].clone()

    @staticmethod
    def backward(ctx: Any, d_hs: Tensor, d_cs: Tensor) -> Any:
        gates, hs, cs, w_h, drop = ctx.saved_tensors
        steps, rows, size = d_hs.shape
        d_gates = torch.empty_like(gates)
        dh, dc = d_hs.new_zeros(rows, size), d_hs.new_zeros(rows, size)
        for t in reversed(range(steps)):
            i, f, o, g = gates[t].split(size, 1)
            di, df, do, dg = d_gates[t].split(size, 1)
            dh = dh + d_hs[t]
            tanh_c = cs[t + 1].tanh()
            torch.mul(dh, tanh_c, out=do)
            dc = dc + d_cs[t] + dh * o * (1 - tanh_c * tanh_c)
            torch.mul(dc, g, out=di)
            torch.mul(dc, cs[t], out=df)
            torch.mul(dc, i, out=dg).mul_(1 - g * g)
            sigmoids = gates[t][:, : 3 * size]
            d_gates[t][:, : 3 * size].mul_(sigmoids * (1 - sigmoids))
            dc = dc * f
            dh = _dropped(d_gates[t] @ w_h, drop)
        d_w = d_gates.view(-1, 4 * size).T @ _dropped(hs[:-1], drop).reshape(-1, size)
        return d_gates, dh, dc, d_w, None


class _GRUScan(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x_gates: Tensor, h: Tensor, w_h: Tensor, b_n: Tensor, drop: Tensor | None) -> Any:
        steps, rows, size = x_gates.size(0), h.size(0), h.size(1)
        gates = torch.empty_like(x_gates)  # [T, N, 3H] r, z, n activated
        u_n = x_gates.new_empty(steps, rows, size)  # U_n h + b_n, which r multiplies
        hs = x_gates.new_empty(steps + 1, rows, size)
        hs[0] = h
        for t in range(steps):
            h_gates = _dropped(hs[t], drop) @ w_h.T
            torch.add(h_gates[:, 2 * size :], b_n, out=u_n[t])
            r_z = torch.add(x_gates[t][:, : 2 * size], h_gates[:, : 2 * size], out=gates[t][:, : 2 * size]).sigmoid_()
            r, z = r_z.split(size, 1)
            n = torch.addcmul(x_gates[t][:, 2 * size :], r, u_n[t], out=gates[t][:, 2 * size :]).tanh_()
            torch.lerp(n, hs[t], z, out=hs[t + 1])
        ctx.save_for_backward(gates, u_n, hs, w_h, drop)
        return hs[1:].clone()

    @staticmethod
    def backward(ctx: Any, d_hs: Tensor) -> Any:
        gates, u_n, hs, w_h, drop = ctx.saved_tensors
        steps, rows, size = d_hs.shape
        d_x, d_h_gates = torch.empty_like(gates), torch.empty_like(gates)
        dh = d_hs.new_zeros(rows, size)
        for t in reversed(range(steps)):
            r, z, n = gates[t].split(size, 1)
            dr, dz, dn = d_x[t].split(size, 1)
            dh = dh + d_hs[t]
            torch.mul(dh, 1 - z, out=dn).mul_(1 - n * n)
            torch.mul(dh, hs[t] - n, out=dz).mul_(z * (1 - z))
            torch.mul(dn, u_n[t], out=dr).mul_(r * (1 - r))
            d_h_gates[t][:, : 2 * size] = d_x[t][:, : 2 * size]
            torch.mul(dn, r, out=d_h_gates[t][:, 2 * size :])
            dh = torch.addcmul(_dropped(d_h_gates[t] @ w_h, drop), dh, z)
        d_w = d_h_gates.view(-1, 3 * size).T @ _dropped(hs[:-1], drop).reshape(-1, size)
        d_b = d_h_gates[:, :, 2 * size :].sum((0, 1))
        return d_x, dh, d_w, d_b, None


def _dropped(h: Tensor, drop: Tensor | None) -> Tensor:
    return h if drop is None else h * drop
