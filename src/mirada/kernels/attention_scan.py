"""Both flows over known targets as one loop with a hand-written backward: the twins of `_advance`, for training.

They hold for one decoder layer without recurrent dropout; the models use their plain loop otherwise. Read next to each
other, the two forward loops are again the difference between the two papers.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from mirada.kernels.products import Product, tanh_
from mirada.kernels.saved_activations import AttentionTape, GRUTape, LSTMTape, Source
from mirada.models.attention import Score
from mirada.models.base import Memory


class Recurrence(NamedTuple):
    """The decoder's cell, as plain tensors: its gates from the words, its first state, its weights."""

    y_gates: Tensor  # [T, B, G·D]
    h: Tensor  # [B, D]
    c: Tensor | None  # [B, D] the LSTM's cell
    w_h: Tensor  # [G·D, D]
    b_n: Tensor | None  # [D] the GRU's


class Attention(NamedTuple):
    """What a query is compared with, and how it is made from the state: `w_q` s (the score of attention.py)."""

    states: Tensor  # [B, S, H]
    keys: Tensor  # [B, S, A]
    mask: Tensor  # [B, S]
    w_q: Tensor | None  # [A, D]; None: the query is the state
    v: Tensor | None  # [A] of additive scores


class Scanned(NamedTuple):
    """All steps of a flow."""

    states: Tensor  # [T, B, D] s_t, or s̃_t for Luong
    contexts: Tensor  # [T, B, H]
    weights: Tensor  # [T, B, S], without gradient


def attention_parts(score: Score, memory: Memory) -> Attention:
    """A score and a memory as plain tensors."""
    parts = score.parts()
    keys = memory.keys if parts.scale == 1.0 else memory.keys * parts.scale
    return Attention(memory.states, keys, memory.mask, parts.w_q, parts.v)


def bahdanau_scan(cell: Recurrence, attention: Attention, w_c: Tensor) -> Scanned:
    """Attend with s_{t-1}, update with [c_t; y_{t-1}], for all t; `w_c` `[G·D, H]` brings c_t to the gates."""
    return Scanned(*_BahdanauScan.apply(*cell, *attention, w_c))  # type: ignore[no-untyped-call]


def luong_scan(cell: Recurrence, attention: Attention, w_feed: Tensor, w_out: Tensor) -> Scanned:
    """Update with [y_{t-1}; s̃_{t-1}], attend with s_t, s̃_t = tanh(W_c [c_t; s_t]), for all t.

    `w_feed` `[G·D, D]` brings s̃_{t-1} to the gates, `w_out` `[D, H + D]` is W_c.
    """
    return Scanned(*_LuongScan.apply(*cell, *attention, w_feed, w_out))  # type: ignore[no-untyped-call]


class _BahdanauScan(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, *args: Any) -> Any:
        cell, attention, (w_c,) = Recurrence(*args[:5]), Attention(*args[5:10]), args[10:]
        tape, looks = _tapes(cell, attention)
        w_s = cell.w_h if attention.w_q is None else torch.cat((attention.w_q, cell.w_h))  # all that multiplies s_{t-1}
        width = attention.keys.size(-1)
        from_s, from_c = (_product(w, tape) for w in (w_s, w_c))
        for t, y_gates in enumerate(cell.y_gates):
            s = tape.hs[t]
            both = from_s(s)
            query, h_gates = (s, both) if attention.w_q is None else (both[:, :width], both[:, width:])
            context = looks.forward(t, query)
            tape.forward(t, from_c.added(context, y_gates), h_gates)
        ctx.tapes, ctx.weights = (tape, looks), (w_s, w_c, attention.w_q)
        ctx.mark_non_differentiable(looks.weights)
        return tape.hs[1:].clone(), looks.contexts.clone(), looks.weights

    @staticmethod
    def backward(ctx: Any, d_states: Tensor, d_contexts: Tensor, _weights: Tensor) -> Any:
        (tape, looks), (w_s, w_c, w_q) = ctx.tapes, ctx.weights
        _start_back(tape, looks)
        dh = torch.zeros_like(tape.hs[0])
        to_s, to_c = (_product(w.T, tape) for w in (w_s, w_c))
        for t in reversed(range(len(d_states))):
            past = tape.backward(t, dh.add_(d_states[t]))
            d_query = looks.backward(t, to_c.added(tape.d_x[t], d_contexts[t]))
            back = tape.d_h[t] if w_q is None else torch.cat((d_query, tape.d_h[t]), 1)
            dh = to_s(back)
            for part in (past, d_query if w_q is None else None):
                dh = dh if part is None else dh.add_(part)
        d_w_c = _over_steps(tape.d_x, looks.contexts)
        return (*_shared_gradients(tape, looks, dh, w_q, tape.hs[:-1]), d_w_c)


class _LuongScan(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, *args: Any) -> Any:
        cell, attention, (w_feed, w_out) = Recurrence(*args[:5]), Attention(*args[5:10]), args[10:]
        tape, looks = _tapes(cell, attention)
        fed = torch.zeros_like(tape.hs)  # [T + 1, B, D] s̃, 0 at the start
        size = attention.states.size(-1)
        from_h, from_fed = (_product(w, tape) for w in (cell.w_h, w_feed))
        out_c, out_s = (_product(w, tape) for w in (w_out[:, :size], w_out[:, size:]))
        for t, y_gates in enumerate(cell.y_gates):
            s = tape.forward(t, from_fed.added(fed[t], y_gates), from_h(tape.hs[t]))
            context = looks.forward(t, s if attention.w_q is None else s @ attention.w_q.T)
            tanh_(fed[t + 1].copy_(out_c.added(context, out_s(s))))
        ctx.tapes, ctx.weights = (tape, looks, fed), (cell.w_h, attention.w_q, w_feed, w_out)
        ctx.mark_non_differentiable(looks.weights)
        return fed[1:].clone(), looks.contexts.clone(), looks.weights

    @staticmethod
    def backward(ctx: Any, d_states: Tensor, d_contexts: Tensor, _weights: Tensor) -> Any:
        (tape, looks, fed), (w_h, w_q, w_feed, w_out) = ctx.tapes, ctx.weights
        size = looks.contexts.size(-1)
        _start_back(tape, looks)
        dh, d_fed = torch.zeros_like(tape.hs[0]), torch.zeros_like(fed[0])
        d_out = torch.empty_like(d_states)  # before the tanh
        to_h, to_fed = (_product(w.T, tape) for w in (w_h, w_feed))
        to_c, to_s = (_product(w.T, tape) for w in (w_out[:, :size], w_out[:, size:]))
        for t in reversed(range(len(d_states))):
            torch.mul(d_fed.add_(d_states[t]), 1 - fed[t + 1] * fed[t + 1], out=d_out[t])
            d_query = looks.backward(t, to_c.added(d_out[t], d_contexts[t]))
            dh = to_s.added(d_out[t], dh)
            dh = dh.add_(d_query) if w_q is None else dh.addmm_(d_query, w_q)
            past = tape.backward(t, dh)
            d_fed = to_fed(tape.d_x[t])
            dh = to_h(tape.d_h[t])
            dh = dh if past is None else dh.add_(past)
        d_w_out = torch.cat((_over_steps(d_out, looks.contexts), _over_steps(d_out, tape.hs[1:])), 1)
        d_w_feed = _over_steps(tape.d_x, fed[:-1])
        return (*_shared_gradients(tape, looks, dh, w_q, tape.hs[1:]), d_w_feed, d_w_out)


def _tapes(cell: Recurrence, attention: Attention) -> tuple[LSTMTape | GRUTape, AttentionTape]:
    source = Source(attention.states, attention.keys, attention.mask, attention.v)
    looks = AttentionTape(source, len(cell.y_gates))
    if cell.c is not None:
        return LSTMTape(cell.y_gates, cell.h, cell.c), looks
    if cell.b_n is None:
        raise TypeError("a GRU needs b_n, an LSTM needs c")
    return GRUTape(cell.y_gates, cell.h, cell.b_n), looks


def _product(w: Tensor, tape: LSTMTape | GRUTape) -> Product:
    steps, rows, _ = tape.gates.shape
    return Product(w, rows=rows, uses=steps)


def _start_back(tape: LSTMTape | GRUTape, looks: AttentionTape) -> None:
    tape.start_back(None)
    looks.start_back()


def _shared_gradients(
    tape: LSTMTape | GRUTape, looks: AttentionTape, dh: Tensor, w_q: Tensor | None, asking: Tensor
) -> tuple[Tensor | None, ...]:
    """Gradients of Recurrence and Attention, field by field; `asking` `[T, B, D]` are the states that asked."""
    d_h, d_c = tape.first_gradients(dh)
    d_b = tape.d_h[:, :, 2 * tape.size :].sum((0, 1)) if isinstance(tape, GRUTape) else None
    d_source, d_keys, d_v = looks.gradients()
    d_w_q = None if w_q is None else _over_steps(looks.d_queries, asking)
    return tape.d_x, d_h, d_c, _over_steps(tape.d_h, tape.hs[:-1]), d_b, d_source, d_keys, None, d_w_q, d_v


def _over_steps(left: Tensor, right: Tensor) -> Tensor:
    """Σ_t left_tᵀ right_t in one product: `[T, B, X]`, `[T, B, Y]` → `[X, Y]`."""
    return left.flatten(0, 1).T @ right.flatten(0, 1)
