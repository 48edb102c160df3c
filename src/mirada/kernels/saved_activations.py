"""The pieces of a hand-written backward: each keeps what its steps computed and runs them back, one step at a time.

What makes them fast: no autograd node a step, gates in place, and every gradient of a weight (and of keys and states)
is one product over all steps at the end, made by the scans in scan.py and attentive.py. Tensors are time first, so that
a step is one piece of memory. Their twins are `lstm_step`, `gru_step` and `attend`.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from mirada.kernels.products import tanh_
from mirada.models.attention import masked_softmax


class LSTMTape:
    """Steps of an LSTM: `hs`, `cs` `[T + 1, N, H]` with the first state in place 0; gates in the order i, f, o, g."""

    def __init__(self, x_gates: Tensor, h: Tensor, c: Tensor):
        steps, (rows, size) = x_gates.size(0), h.shape
        self.size, self.gates = size, torch.empty_like(x_gates)  # [T, N, 4H] activated
        self.hs, self.cs = x_gates.new_empty(steps + 1, rows, size), x_gates.new_empty(steps + 1, rows, size)
        self.hs[0], self.cs[0] = h, c

    def forward(self, t: int, x: Tensor, h_gates: Tensor) -> Tensor:
        """h_t from the input's and the state's part of the gates `[N, 4H]`."""
        size, a = self.size, torch.add(x, h_gates, out=self.gates[t])
        a[:, : 3 * size].sigmoid_()
        tanh_(a[:, 3 * size :])
        i, f, o, g = a.split(size, 1)
        c = torch.mul(f, self.cs[t], out=self.cs[t + 1]).addcmul_(i, g)
        return tanh_(self.hs[t + 1].copy_(c)).mul_(o)

    def start_back(self, d_c: Tensor | None) -> None:
        """Prepare to run back; `d_c` `[T, N, H]` is the gradient of the cells."""
        self.d_x = self.d_h = torch.empty_like(self.gates)  # the two parts of the gates have one gradient
        self._d_cs, self._dc = d_c, torch.zeros_like(self.cs[0])

    def backward(self, t: int, dh: Tensor) -> Tensor | None:
        """Fill `d_x[t]` and `d_h[t]` from h_t's gradient; nothing reaches h_{t-1} past the gates."""
        size, d_gates = self.size, self.d_x[t]
        i, f, o, g = self.gates[t].split(size, 1)
        di, df, do, dg = d_gates.split(size, 1)
        tanh_c = tanh_(self.cs[t + 1].clone())
        torch.mul(dh, tanh_c, out=do)
        dc = self._dc.addcmul_(dh * o, tanh_c.mul_(tanh_c).neg_().add_(1))
        if self._d_cs is not None:
            dc += self._d_cs[t]
        torch.mul(dc, g, out=di)
        torch.mul(dc, self.cs[t], out=df)
        torch.mul(dc, i, out=dg).mul_(1 - g * g)
        sigmoids = self.gates[t][:, : 3 * size]
        d_gates[:, : 3 * size].mul_(sigmoids * (1 - sigmoids))
        dc *= f
        return None

    def first_gradients(self, dh: Tensor) -> tuple[Tensor, Tensor]:
        """Gradients of the first h and c."""
        return dh, self._dc


class GRUTape:
    """Steps of a GRU: `hs` `[T + 1, N, H]`; gates in the order r, z, n; `b_n` stands inside the reset."""

    def __init__(self, x_gates: Tensor, h: Tensor, b_n: Tensor):
        steps, (rows, size) = x_gates.size(0), h.shape
        self.size, self.b_n, self.gates = size, b_n, torch.empty_like(x_gates)  # [T, N, 3H] activated
        self._u_n = x_gates.new_empty(steps, rows, size)  # U_n h + b_n, which r multiplies
        self.hs = x_gates.new_empty(steps + 1, rows, size)
        self.hs[0] = h

    def forward(self, t: int, x: Tensor, h_gates: Tensor) -> Tensor:
        """h_t from the input's and the state's part of the gates `[N, 3H]`."""
        size, gates = self.size, self.gates[t]
        u_n = torch.add(h_gates[:, 2 * size :], self.b_n, out=self._u_n[t])
        r_z = torch.add(x[:, : 2 * size], h_gates[:, : 2 * size], out=gates[:, : 2 * size]).sigmoid_()
        r, z = r_z.split(size, 1)
        n = tanh_(torch.addcmul(x[:, 2 * size :], r, u_n, out=gates[:, 2 * size :]))
        return torch.lerp(n, self.hs[t], z, out=self.hs[t + 1])

    def start_back(self, d_c: Tensor | None) -> None:
        """Prepare to run back; a GRU has no cells."""
        self.d_x, self.d_h = torch.empty_like(self.gates), torch.empty_like(self.gates)

    def backward(self, t: int, dh: Tensor) -> Tensor | None:
        """Fill `d_x[t]` and `d_h[t]` from h_t's gradient; returns what reaches h_{t-1} past the gates."""
        size, d_h = self.size, self.d_h[t]
        r, z, n = self.gates[t].split(size, 1)
        dr, dz, dn = self.d_x[t].split(size, 1)
        torch.mul(dh, 1 - z, out=dn).mul_(1 - n * n)
        torch.mul(dh, self.hs[t] - n, out=dz).mul_(z * (1 - z))
        torch.mul(dn, self._u_n[t], out=dr).mul_(r * (1 - r))
        d_h[:, : 2 * size] = self.d_x[t][:, : 2 * size]
        torch.mul(dn, r, out=d_h[:, 2 * size :])
        return torch.mul(dh, z)

    def first_gradients(self, dh: Tensor) -> tuple[Tensor, None]:
        """Gradient of the first h."""
        return dh, None


class Source(NamedTuple):
    """What a loop of attention looks at."""

    states: Tensor  # [B, S, H]
    keys: Tensor  # [B, S, A]
    mask: Tensor  # [B, S]
    v: Tensor | None  # [A] of an additive score; None: the score is a product


class AttentionTape:
    """Looks at the source: `weights` `[T, B, S]`, `contexts` `[T, B, H]`, from queries `[B, A]`.

    Additive scores are vᵀ tanh(x) = 2vᵀ σ(2x) − Σv with x = query + key. The last term is the same for all positions,
    which the softmax takes out, and the slope 1 − tanh² is 4σ(1 − σ).
    """

    def __init__(self, source: Source, steps: int):
        (batch, width, size), like = source.states.shape, source.states
        self.source = source
        self.weights, self.contexts = like.new_empty(steps, batch, width), like.new_empty(steps, batch, size)
        self.queries = like.new_empty(steps, batch, source.keys.size(-1))
        self._twice = 2 * source.keys if source.v is not None else source.keys

    def forward(self, t: int, query: Tensor) -> Tensor:
        """c_t `[B, H]`."""
        states, keys, mask, v = self.source
        self.queries[t] = query
        # query · keysᵀ: on a CPU ten times as fast as keys · query
        scores = torch.bmm(query[:, None], keys.mT)[:, 0] if v is None else self._sigmoid(t) @ (2 * v)
        self.weights[t] = masked_softmax(scores, mask)
        return torch.bmm(self.weights[t][:, None], states, out=self.contexts[t][:, None])[:, 0]

    def start_back(self) -> None:
        """Prepare to run back."""
        self.d_queries, self.d_contexts = torch.empty_like(self.queries), torch.empty_like(self.contexts)
        self._d_scores = torch.empty_like(self.weights)
        additive = self.source.v is not None
        self._d_keys = torch.zeros_like(self.source.keys) if additive else None  # without the factor 4v
        self._d_v = torch.zeros_like(self.source.v) if self.source.v is not None else None  # Σ d_score σ

    def backward(self, t: int, d_context: Tensor) -> Tensor:
        """The query's gradient `[B, A]` from c_t's."""
        states, keys, _, v = self.source
        self.d_contexts[t] = d_context
        weights = self.weights[t]
        d_weights = torch.bmm(d_context[:, None], states.mT)[:, 0]  # [B, S]
        d_scores = torch.mul(weights, d_weights - (weights * d_weights).sum(1, keepdim=True), out=self._d_scores[t])
        if v is None or self._d_keys is None or self._d_v is None:
            return torch.bmm(d_scores[:, None], keys, out=self.d_queries[t][:, None])[:, 0]
        sigmoid = self._sigmoid(t)  # [B, S, A]
        self._d_v += d_scores.reshape(-1) @ sigmoid.view(-1, v.numel())
        slope = torch.addcmul(sigmoid, sigmoid, sigmoid, value=-1, out=sigmoid)  # σ(1 − σ)
        self._d_keys.addcmul_(slope, d_scores[..., None])
        return torch.bmm(d_scores[:, None], slope, out=self.d_queries[t][:, None])[:, 0].mul_(4 * v)

    def _sigmoid(self, t: int) -> Tensor:
        """σ(2 (query + key)) `[B, S, A]`, computed again in the backward rather than kept."""
        return torch.add(self._twice, self.queries[t][:, None], alpha=2).sigmoid_()

    def gradients(self) -> tuple[Tensor, Tensor, Tensor | None]:
        """Gradients of states, keys and v, over all steps."""
        d_states = torch.bmm(self.weights.permute(1, 2, 0), self.d_contexts.transpose(0, 1))
        v = self.source.v
        if v is not None and self._d_keys is not None and self._d_v is not None:
            return d_states, self._d_keys.mul_(4 * v), 2 * self._d_v - self._d_scores.sum()
        return d_states, torch.bmm(self._d_scores.permute(1, 2, 0), self.queries.transpose(0, 1)), None
