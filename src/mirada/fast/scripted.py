"""What a step of a search computes, as plain functions of tensors that TorchScript compiles.

A step of a Transformer is some 250 calls from Python, and searches side by side wait for each other's at every one of
them: compiled, its layers are one. The same source runs as Python where it cannot be compiled, and says what the layers
of transformer.py and the cells of cells.py say; the reference implementations are there.

Weights come as lists: of a product [W, b], W laid out for oneDNN or plain, or [W, b, scales, zeros] in 8 bits; of a
norm [weight, bias]. A layer has nine: the products q·k·v, o, q, o, ff_in, ff_out, and the norms of its three parts.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import layer_norm, linear

from mirada.kernels.private import linear_added, linear_int8, linear_prepacked, may_fuse, without_fuser
from mirada.models.transformer import activated


class Compiled:
    """TorchScript's version of a function; the function itself where torch cannot make one."""

    def __init__(self, function: Callable[..., Any]):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # deprecated: some day torch will not have it, slower then
                self.run: Callable[..., Any] = torch.jit.script(function)
        except (AttributeError, OSError, RuntimeError):
            self.run = function

    def __call__(self, *arguments: Any) -> Any:
        """Call it as it is; a thread that is `without_fuser` already saves the time to say so at each call."""
        if not may_fuse():
            return self.run(*arguments)
        with without_fuser():
            return self.run(*arguments)


def to_bytes(x: Tensor, scale: Tensor) -> Tensor:
    """x / scale, rounded, as bytes where 128 stands for 0. Signed numbers come between, for torch is fast at those."""
    return (x / scale).round_().to(torch.int8).bitwise_xor_(-128).to(torch.uint8)


def row_scale(x: Tensor) -> Tensor:
    """What brings the largest number of each row to 127: `[…, I]` → `[…, 1]`."""
    least = 1.1754943508222875e-38  # of normal numbers, so that a row of zeros is divided by something
    return x.abs().amax([-1], keepdim=True).clamp_(min=least).div_(127)


def int8_product(x: Tensor, weights: list[Tensor], other: Tensor) -> Tensor:
    """x Wᵀ + other, where W is s_o W', x is s_n x', both rounded to 8 bits: s_n s_o (x' W'ᵀ) + other."""
    scale = row_scale(x)
    y = linear_int8(to_bytes(x, scale), weights[0], weights[2], weights[3])
    return torch.addcmul(other, y, scale, out=y)


def product(x: Tensor, weights: list[Tensor]) -> Tensor:
    """x Wᵀ + b: `[N, I]` → `[N, O]`."""
    if len(weights) == 4:
        return int8_product(x, weights, weights[1])
    if weights[0].is_mkldnn:
        return linear_prepacked(x, weights[0], weights[1])
    return linear(x, weights[0], weights[1])


def norm(x: Tensor, weights: list[Tensor], epsilon: float) -> Tensor:
    """The layer norm."""
    return layer_norm(x, (x.size(-1),), weights[0], weights[1], epsilon)


def attention(query: Tensor, keys: Tensor, values: Tensor, added: Tensor) -> tuple[Tensor, Tensor]:
    """softmax(QKᵀ + added) V of `[A, h, K, d_k]` over as many entries as `added` has: output `[N, d]` and weights."""
    count, heads, width, size = query.shape
    keys = keys[:count].flatten(0, 1)[:, : added.size(2)]  # [A·h, used, d_k]
    values = values[:count].flatten(0, 1)[:, : added.size(2)]
    query = query.reshape(count * heads, width, size)
    weights = torch.baddbmm(added, query, keys.transpose(1, 2)).softmax(-1)  # [A·h, K, used]
    output = torch.bmm(weights, values).view(count, heads, width, size)
    return output.transpose(1, 2).reshape(count * width, heads * size), weights


def self_attention(projected: Tensor, keys: Tensor, values: Tensor, places: Tensor, own: Tensor) -> Tensor:
    """Self-attention of the new words `[N, 3d]` over each one's own entries, the new ones written down: `[N, d]`."""
    heads, size = keys.size(1), keys.size(3)
    parts = projected.view(-1, own.size(1), 3, heads, size).permute(2, 0, 3, 1, 4)  # [3, A, h, K, d_k]
    keys.view(-1, size).index_copy_(0, places, parts[1].reshape(-1, size))
    values.view(-1, size).index_copy_(0, places, parts[2].reshape(-1, size))
    return attention(parts[0], keys, values, own)[0]


def cross_attention(query: Tensor, keys: Tensor, values: Tensor, unseen: Tensor) -> tuple[Tensor, Tensor]:
    """Attention of `[N, d]` over the source: output `[N, d]` and weights `[A·h, K, S]`."""
    query = query.view(keys.size(0), -1, keys.size(1), keys.size(3)).transpose(1, 2)  # [A, h, K, d_k]
    return attention(query, keys, values, unseen)


def layers(
    x: Tensor,
    weights: list[list[Tensor]],
    past: list[Tensor],
    source: list[Tensor],
    marks: tuple[Tensor, Tensor, Tensor],
    design: tuple[bool, str, float],
) -> tuple[Tensor, Tensor]:
    """All layers for new words `[N, d]`: output `[N, d]`, and the last one's weights over the source `[A·h, K, S]`.

    `past` and `source` are keys and values of each layer in turn, `[A, h, …, d_k]`. `marks`: where the new entries go
    `[A·h·K]`, what is added to the scores of the past `[A·h, K, used]` and of the source `[A·h, 1, S]`. `design`:
    whether norms stand before the parts, the activation, the norms' ε.
    """
    places, own, unseen = marks
    pre_norm, activation, epsilon = design
    seen = own
    for depth in range(len(past) // 2):
        layer = weights[9 * depth : 9 * (depth + 1)]
        keys, values = past[2 * depth], past[2 * depth + 1]
        y = norm(x, layer[6], epsilon) if pre_norm else x
        x = x + product(self_attention(product(y, layer[0]), keys, values, places, own), layer[1])
        x = x if pre_norm else norm(x, layer[6], epsilon)
        y = norm(x, layer[7], epsilon) if pre_norm else x
        y, seen = cross_attention(product(y, layer[2]), source[2 * depth], source[2 * depth + 1], unseen)
        x = x + product(y, layer[3])
        x = x if pre_norm else norm(x, layer[7], epsilon)
        y = norm(x, layer[8], epsilon) if pre_norm else x
        y = product(y, layer[4])
        y = y.relu_() if activation == "relu" else activated(y, activation)
        x = x + product(y, layer[5])
        x = x if pre_norm else norm(x, layer[8], epsilon)
    return x, seen


def added(x: Tensor, weights: list[Tensor], other: Tensor) -> Tensor:
    """x Wᵀ + other, without b."""
    if len(weights) == 4:
        return int8_product(x, weights, other)
    return linear_added(x, other, weights[0])


def energy(query: Tensor, keys: Tensor, v: Tensor, total: Tensor) -> Tensor:
    """vᵀ σ(query + key) − total for all pairs: `[B, T, A]`, `[B, S, A]`, `[A]`, one number → `[B, T, S]`."""
    scores = [torch.matmul((one.unsqueeze(1) + keys).sigmoid_(), v) for one in query.unbind(1)]
    return torch.stack(scores, 1).sub_(total)


def lstm(x_gates: Tensor, h: Tensor, c: Tensor, weights: list[Tensor]) -> tuple[Tensor, Tensor]:
    """h' and c' by `lstm_step` of cells.py, in place of the gates, which nobody else has."""
    size = c.size(-1)
    gates = added(h, weights, x_gates)
    gates[:, : 3 * size].sigmoid_()
    i, f, o, g = gates.split(size, 1)
    c = (f * c).addcmul_(i, g.tanh_())
    return c.tanh().mul_(o), c


def gru(x_gates: Tensor, h: Tensor, weights: list[Tensor]) -> Tensor:
    """h' by `gru_step`, in place of the state's part of the gates; b_n is in the product's b."""
    size = h.size(-1)
    h_gates = product(h, weights)
    r, z = h_gates[:, : 2 * size].add_(x_gates[:, : 2 * size]).sigmoid_().split(size, 1)
    n = torch.addcmul(x_gates[:, 2 * size :], h_gates[:, 2 * size :], r).tanh_()
    return torch.lerp(n, h, z)


def recurrent(gates: Tensor, state: list[Tensor], weights: list[Tensor]) -> list[Tensor]:
    """The new state of a layer, [h, c] or [h]."""
    if len(state) == 2:
        h, c = lstm(gates, state[0], state[1], weights)
        return [h, c]
    return [gru(gates, state[0], weights)]


def attend(
    query: Tensor, source: tuple[Tensor, Tensor, Tensor], score: list[list[Tensor]], scale: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Scores, weights and context `[N, …]` of queries `[N, D]`; `source` is keys, states and mask, `[A, S, …]`.

    `score`: W_a of an additive one, and [v, total] of `energy`; without it the keys are compared with scale · query.
    """
    keys, states, mask = source
    rows, sentences = query.size(0), keys.size(0)
    if len(score) > 0:
        scores = energy(product(query, score[0]).view(sentences, -1, keys.size(2)), keys, score[1][0], score[1][1])
    else:
        query = query.view(sentences, -1, keys.size(2))
        scores = torch.matmul(query if scale == 1.0 else query * scale, keys.transpose(1, 2))  # [A, K, S]
    seen = mask.unsqueeze(1)
    weights = scores.masked_fill(~seen, -3.4028234663852886e38).softmax(-1) * seen
    context = torch.matmul(weights, states)
    return scores.view(rows, -1), weights.view(rows, -1), context.view(rows, -1)


def bahdanau(
    y_gates: Tensor,
    state: list[Tensor],
    source: tuple[Tensor, Tensor, Tensor],
    score: list[list[Tensor]],
    weights: list[list[Tensor]],
    scale: float,
) -> tuple[tuple[Tensor, Tensor, Tensor], list[Tensor]]:
    """Attend with s_{t-1}, then update; `weights` are those of the context's gates and of the layer."""
    attended = attend(state[0], source, score, scale)
    return attended, recurrent(y_gates + product(attended[2], weights[0]), state, weights[1])


def luong(
    y_gates: Tensor,
    state: list[Tensor],
    source: tuple[Tensor, Tensor, Tensor],
    score: list[list[Tensor]],
    weights: list[list[Tensor]],
    design: tuple[float, bool],
) -> tuple[Tensor, tuple[Tensor, Tensor, Tensor], list[Tensor]]:
    """Update, attend with s_t, then s̃_t; `weights` are those of the layer, of W_c and, with s̃_{t-1} in state, its."""
    gates = y_gates
    if len(weights) > 2:
        gates = gates + product(state[-1], weights[2])
        state = state[:-1]
    new = recurrent(gates, state, weights[0])
    attended = attend(new[0], source, score, design[0])
    mixed = product(torch.cat((attended[2], new[0]), -1), weights[1])
    return mixed.tanh() if design[1] else mixed, attended, new


def lstm_scan(x_gates: Tensor, h: Tensor, c: Tensor, weights: list[Tensor]) -> tuple[Tensor, Tensor]:
    """All steps: `[T, N, 4H]` → every h and every c, `[T, N, H]`."""
    hidden, cells = [h], [c]
    for t in range(x_gates.size(0)):
        h, c = lstm(x_gates[t], h, c, weights)
        hidden.append(h)
        cells.append(c)
    return torch.stack(hidden[1:]), torch.stack(cells[1:])


def gru_scan(x_gates: Tensor, h: Tensor, weights: list[Tensor]) -> Tensor:
    """All steps: `[T, N, 3H]` → every h, `[T, N, H]`."""
    hidden = [h]
    for t in range(x_gates.size(0)):
        h = gru(x_gates[t], h, weights)
        hidden.append(h)
    return torch.stack(hidden[1:])
