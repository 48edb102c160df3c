"""Both flows over known targets with a backward written by hand: the loops of models/bahdanau.py and luong.py, sooner.

What is saved: autograd's node for every operation of every step; weights are laid out once; gates are computed in
place; and the gradient of a weight is one product over all steps. Each piece keeps what its steps computed and runs
them back, once. Tensors are time first, so that a step is one piece of memory.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple, cast

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn.functional import pad

from mirada.kernels.energy import tanh_
from mirada.kernels.products import Product, over_steps

Gradients = tuple[Tensor | None, ...]


class Recurrence(NamedTuple):
    """The decoder's one recurrent layer."""

    y_gates: Tensor  # [T, B, G·D] the words' part of its gates
    h: Tensor  # [B, D] its first state
    c: Tensor | None  # [B, D] the LSTM's
    w_h: Tensor  # [G·D, D]
    b_n: Tensor | None  # [D] the GRU's
    drop: Tensor | None  # [B, D] recurrent dropout


class Attention(NamedTuple):
    """What is attended to. A query is s or `w_q` s; its score with a key k is their product or vᵀ tanh(query + k)."""

    states: Tensor  # [B, S, H]
    keys: Tensor  # [B, S, A]
    mask: Tensor  # [B, S]
    w_q: Tensor | None  # [A, D]
    v: Tensor | None  # [A]


class Mixing(NamedTuple):
    """What is fed, and what makes s̃_t of [c_t; s_t]."""

    w_feed: Tensor  # [G·D, D]
    w_c: Tensor  # [D, H + D]
    b: Tensor | None  # [D]
    squashed: bool


def bahdanau_scan(layer: Recurrence, source: Attention, w_c: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Attend with s_{t-1}, update with [c_t; y_{t-1}]: every s_t, c_t and α_t, `[B, T, …]`; `w_c` is `[G·D, H]`."""
    made = _Scan.apply(partial(_Bahdanau, layer, source, w_c), *layer, *source, w_c)  # type: ignore[no-untyped-call]
    return cast(tuple[Tensor, Tensor, Tensor], made)


def luong_scan(layer: Recurrence, source: Attention, mixing: Mixing) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Update with [y_{t-1}; s̃_{t-1}], attend with s_t, mix: every s̃_t, s_t, c_t and α_t, `[B, T, …]`."""
    made = _Scan.apply(partial(_Luong, layer, source, mixing), *layer, *source, *mixing)  # type: ignore[no-untyped-call]
    return cast(tuple[Tensor, Tensor, Tensor, Tensor], made)


class _Scan(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, make: Any, y_gates: Tensor, *_: Any) -> Any:
        ctx.set_materialize_grads(False)
        ctx.flow = flow = make()
        for t in range(len(y_gates)):
            flow.forward(t)
        return tuple(part.transpose(0, 1).clone(memory_format=torch.contiguous_format) for part in flow.outputs())

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor | None) -> Any:
        flow, ctx.flow = ctx.flow, None  # its memory is free when this ends
        if flow is None:
            raise RuntimeError("a scan is run back once; with retain_graph let the model run again")
        for t in reversed(range(len(flow.cell.d_x))):
            flow.backward(t, *(None if grad is None else grad[:, t] for grad in grads))
        return None, *flow.gradients()


class _Bahdanau:
    """Attend, update."""

    def __init__(self, layer: Recurrence, source: Attention, w_c: Tensor):
        self.cell, self.look, self.w_c = _Cell(layer), _Look(source, len(layer.y_gates)), Product(w_c)
        self.contexts = w_c.new_empty(*layer.y_gates.shape[:2], w_c.size(1))

    def forward(self, t: int) -> None:
        context = self.contexts[t].copy_(self.look.forward(t, self.cell.hs[t]))
        self.cell.forward(t, self.w_c(context, self.cell.layer.y_gates[t]))

    def outputs(self) -> tuple[Tensor, ...]:
        return self.cell.hs[1:], self.contexts, self.look.weights

    def backward(self, t: int, d_s: Tensor | None, d_context: Tensor | None, d_weights: Tensor | None) -> None:
        d_context = self.w_c.back(self.cell.backward(t, d_s), d_context)
        self.cell.dh = self.look.backward(t, d_context, d_weights, self.cell.dh)  # s_{t-1} asked

    def gradients(self) -> Gradients:
        d_source = self.look.gradients(self.cell.hs[:-1])
        return *self.cell.gradients(), *d_source, over_steps(self.cell.d_x, self.contexts)


class _Luong:
    """Update, attend, mix."""

    def __init__(self, layer: Recurrence, source: Attention, mixing: Mixing):
        self.cell, self.look = _Cell(layer), _Look(source, len(layer.y_gates))
        self.w_feed, self.w_c, self.mixing = Product(mixing.w_feed), Product(mixing.w_c, mixing.b), mixing
        self.both = layer.h.new_empty(*layer.y_gates.shape[:2], mixing.w_c.size(1))  # [c_t; s_t]
        self.fed = torch.zeros_like(self.cell.hs)  # [T + 1, B, D] s̃, 0 at the start
        self.d_fed, self.d_out = torch.zeros_like(layer.h), torch.empty_like(self.fed[1:])  # before the tanh

    def forward(self, t: int) -> None:
        s = self.cell.forward(t, self.w_feed(self.fed[t], self.cell.layer.y_gates[t]))
        both = torch.cat((self.look.forward(t, s), s), 1, out=self.both[t])
        fed = self.fed[t + 1].copy_(self.w_c(both))
        if self.mixing.squashed:
            tanh_(fed)

    def outputs(self) -> tuple[Tensor, ...]:
        return self.fed[1:], self.cell.hs[1:], self.both[..., : -self.fed.size(2)], self.look.weights

    def backward(self, t: int, d_fed: Tensor | None, d_s: Tensor | None, *d_look: Tensor | None) -> None:
        d_out = self.d_out[t].copy_(_sum(self.d_fed, d_fed))
        if self.mixing.squashed:
            _tanh_back(d_out, self.fed[t + 1])
        d_context, d_state = self.w_c.back(d_out).tensor_split((-d_out.size(1),), 1)
        d_s = self.look.backward(t, _sum(d_context, d_look[0]), d_look[1], _sum(d_state, d_s))
        self.d_fed = self.w_feed.back(self.cell.backward(t, d_s))

    def gradients(self) -> Gradients:
        d_source, d_b = self.look.gradients(self.cell.hs[1:]), None if self.w_c.b is None else self.d_out.sum((0, 1))
        d_feed, d_w_c = over_steps(self.cell.d_x, self.fed[:-1]), over_steps(self.d_out, self.both)
        return *self.cell.gradients(), *d_source, d_feed, d_w_c, d_b, None


class _Cell:
    """The layer: `hs`, `cs` `[T + 1, B, D]` begin with the first state; `dh`, `dc` go back from step to step."""

    def __init__(self, layer: Recurrence):
        self.layer, (steps, rows, _), size = layer, layer.y_gates.shape, layer.h.size(1)
        self.hs, self.cs = (layer.h.new_empty(steps + 1, rows, size) for _ in "hc")
        self.hs[0], self.cs[0] = layer.h, layer.h if layer.c is None else layer.c
        self.w_h = Product(layer.w_h, None if layer.b_n is None else pad(layer.b_n, (2 * size, 0)))
        self.saved = list[tuple[Tensor, Tensor]]()
        self.d_x = torch.empty_like(layer.y_gates)
        self.d_h = self.d_x if layer.b_n is None else torch.empty_like(self.d_x)  # an LSTM adds both parts of its gates
        self.dh, self.dc = torch.zeros_like(layer.h), torch.zeros_like(layer.h)

    def forward(self, t: int, x: Tensor) -> Tensor:
        """h_t from the input's part of the gates."""
        h = _dropped(self.hs[t], self.layer.drop)
        if self.layer.c is None:
            self.saved.append(_gru(x, self.w_h(h), self.hs[t], self.hs[t + 1]))
        else:
            self.saved.append(_lstm(self.w_h(h, x), self.cs[t], self.cs[t + 1], self.hs[t + 1]))
        return self.hs[t + 1]

    def backward(self, t: int, dh: Tensor | None) -> Tensor:
        """The gradient of `x` from that of h_t by other ways than h_{t+1}."""
        dh, past = _sum(self.dh, dh), None
        if self.layer.c is None:
            past = _gru_back(dh, self.saved[t], self.hs[t], self.d_x[t], self.d_h[t])
        else:
            _lstm_back(dh, self.dc, self.saved[t], self.cs[t], self.d_x[t])
        self.dh = _sum(_dropped(self.w_h.back(self.d_h[t]), self.layer.drop), past)
        return self.d_x[t]

    def gradients(self) -> Gradients:
        d_w_h = over_steps(self.d_h, _dropped(self.hs[:-1], self.layer.drop))
        if self.layer.c is None:
            return self.d_x, self.dh, None, d_w_h, self.d_h[..., -self.dh.size(1) :].sum((0, 1)), None
        return self.d_x, self.dh, self.dc, d_w_h, None, None


def _lstm(gates: Tensor, c: Tensor, new_c: Tensor, new_h: Tensor) -> tuple[Tensor, Tensor]:
    """`lstm_step` of cells.py in place; gives the gates and tanh c'."""
    size = 3 * c.size(1)
    gates[:, :size].sigmoid_()
    tanh_(gates[:, size:])
    i, f, o, g = gates.chunk(4, 1)
    tanh_c = tanh_(torch.mul(f, c, out=new_c).addcmul_(i, g).clone())
    torch.mul(o, tanh_c, out=new_h)
    return gates, tanh_c


def _lstm_back(dh: Tensor, dc: Tensor, saved: tuple[Tensor, Tensor], c: Tensor, d_gates: Tensor) -> None:
    (gates, tanh_c), size = saved, 3 * c.size(1)
    i, f, o, g = gates.chunk(4, 1)
    di, df, do, dg = d_gates.chunk(4, 1)
    torch.mul(dh, tanh_c, out=do)
    dc += _tanh_back(dh * o, tanh_c)
    for out, other in ((di, g), (df, c), (dg, i)):
        torch.mul(dc, other, out=out)
    _sigmoid_back(d_gates[:, :size], gates[:, :size])
    _tanh_back(dg, g)
    dc *= f


def _gru(x: Tensor, gates: Tensor, h: Tensor, new_h: Tensor) -> tuple[Tensor, Tensor]:
    """`gru_step` of cells.py in place; gives r, z and U_n h + b_n (where the state's gates were), and n."""
    size = 2 * h.size(1)
    r, z = gates[:, :size].add_(x[:, :size]).sigmoid_().chunk(2, 1)
    n = tanh_(torch.addcmul(x[:, size:], r, gates[:, size:]))
    torch.lerp(n, h, z, out=new_h)
    return gates, n


def _gru_back(dh: Tensor, saved: tuple[Tensor, Tensor], h: Tensor, d_x: Tensor, d_h: Tensor) -> Tensor:
    """Fill the gradients of both parts of the gates; gives what reaches h past them."""
    (gates, n), size = saved, 2 * h.size(1)
    r, z, u_n = gates.chunk(3, 1)
    dr, dz, dn = d_x.chunk(3, 1)
    past = dh * z
    _tanh_back(torch.sub(dh, past, out=dn), n)
    torch.mul(dh, h - n, out=dz)
    torch.mul(dn, u_n, out=dr)
    d_h[:, :size] = _sigmoid_back(d_x[:, :size], gates[:, :size])
    torch.mul(dn, r, out=d_h[:, size:])
    return past


class _Look:
    """Looks at the source.

    vᵀ tanh x is 2vᵀ σ(2x) − Σv, whose last term the softmax takes out. σ, `[B, S, A]` a step, is computed again in the
    backward; its slope is σ(1 − σ).
    """

    def __init__(self, source: Attention, steps: int):
        self.source, (rows, width, _) = source, source.states.shape
        self.weights, self.d_scores = (source.states.new_empty(steps, rows, width) for _ in range(2))
        self.queries, self.d_queries, self.d_contexts = list[Tensor](), list[Tensor](), list[Tensor]()
        self.padding, self.least = ~source.mask, torch.finfo(source.states.dtype).min
        self.w_q = None if source.w_q is None else Product(source.w_q)
        if source.v is not None:
            self.twice_keys, self.sigmoid = 2 * source.keys, torch.empty_like(source.keys)
            self.d_keys, self.d_v = torch.zeros_like(source.keys), torch.zeros_like(source.v)  # without 4v, without 2

    def forward(self, t: int, s: Tensor) -> Tensor:
        """c_t `[B, H]`."""
        v, keys = self.source.v, self.source.keys
        self.queries.append(s if self.w_q is None else self.w_q(s))
        # query · keysᵀ: on a CPU ten times as fast as keys · query
        scores = (self.queries[t][:, None] @ keys.mT)[:, 0] if v is None else self._sigmoid(t) @ (2 * v)
        self.weights[t] = scores.masked_fill_(self.padding, self.least).softmax(1)
        return (self.weights[t][:, None] @ self.source.states)[:, 0]

    def backward(self, t: int, d_context: Tensor, d_weights: Tensor | None, d_s: Tensor) -> Tensor:
        """`d_s` and what reaches s through the query."""
        self.d_contexts.append(d_context)
        part = self.weights[t] * _sum((d_context[:, None] @ self.source.states.mT)[:, 0], d_weights)
        d_scores = torch.addcmul(part, self.weights[t], part.sum(1, keepdim=True), value=-1, out=self.d_scores[t])
        if self.source.v is None:
            d_query = (d_scores[:, None] @ self.source.keys)[:, 0]
        else:
            d_query = self._additive_back(self._sigmoid(t), d_scores, self.source.v)
        self.d_queries.append(d_query)
        return d_s + d_query if self.w_q is None else self.w_q.back(d_query, d_s)

    def gradients(self, asking: Tensor) -> Gradients:
        """Of the source's parts; `asking` `[T, B, D]` are the states that asked."""
        d_states = self.weights.permute(1, 2, 0) @ torch.stack(self.d_contexts[::-1], 1)
        d_w_q = None if self.w_q is None else over_steps(torch.stack(self.d_queries[::-1]), asking)
        if self.source.v is None:
            return d_states, self.d_scores.permute(1, 2, 0) @ torch.stack(self.queries, 1), None, d_w_q, None
        return d_states, self.d_keys.mul_(4 * self.source.v), None, d_w_q, 2 * self.d_v

    def _sigmoid(self, t: int) -> Tensor:
        return torch.add(self.twice_keys, self.queries[t][:, None], alpha=2, out=self.sigmoid).sigmoid_()

    def _additive_back(self, sigmoid: Tensor, d_scores: Tensor, v: Tensor) -> Tensor:
        self.d_v += d_scores.reshape(-1) @ sigmoid.reshape(-1, v.numel())
        slope = sigmoid.addcmul_(sigmoid, sigmoid, value=-1)
        self.d_keys.addcmul_(slope, d_scores[..., None])
        return (d_scores[:, None] @ slope)[:, 0].mul_(4 * v)


def _sigmoid_back(grad: Tensor, y: Tensor) -> Tensor:
    return grad.mul_(y).addcmul_(grad, y, value=-1)  # grad · y(1 − y)


def _tanh_back(grad: Tensor, y: Tensor) -> Tensor:
    return grad.addcmul_(grad * y, y, value=-1)  # grad · (1 − y²)


def _sum(x: Tensor, other: Tensor | None) -> Tensor:
    return x if other is None else x + other


def _dropped(x: Tensor, mask: Tensor | None) -> Tensor:
    return x if mask is None else x * mask
