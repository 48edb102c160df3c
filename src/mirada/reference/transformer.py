"""Attention alone: Vaswani et al. 2017. Every position is a vector, every sublayer a loop over positions and heads.

Nothing is cached and nothing is masked: a decoder position is simply handed the positions up to itself.
"""

from __future__ import annotations

from math import cos, erf, sin, sqrt
from typing import NamedTuple

import numpy as np

from mirada.reference import Array, Named, Replaced, Run, Weights, count_read, embedded, numbered, predict, under
from mirada.reference.attention import replaced_at, softmax
from mirada.reference.copying import Copies, copied, read_word


class Design(NamedTuple):
    """What a Transformer is made of, apart from its weights."""

    heads: int
    pre_norm: bool  # where the layer norms stand
    activation: str = "relu"  # of the feed-forward layers
    norm_eps: float = 1e-5
    shorter: bool = False  # sinusoids with d − 2 in the place of d, as tensor2tensor has them
    first: int = 0  # the number of a sentence's first position
    source_end: bool = True  # whether the </s> of a source is read


def position(place: int, size: int, *, shorter: bool = False) -> Array:
    """PE(pos, 2i) = sin(pos / 10000^(2i/d)), PE(pos, 2i+1) = cos(pos / 10000^(2i/d)) (section 3.5)."""
    d = size - 2 if shorter else size
    return np.array(
        [sin(place / 10000 ** (k / d)) if k % 2 == 0 else cos(place / 10000 ** ((k - 1) / d)) for k in range(size)]
    )


def layer_norm(weights: Weights, x: Array, epsilon: float) -> Array:
    """(x − mean) / √(variance + ε) · gain + bias (Ba et al. 2016)."""
    return np.asarray((x - x.mean()) / sqrt(x.var() + epsilon) * weights["weight"] + weights["bias"])


def affine(weights: Weights, x: Array) -> Array:
    """W x + b, where there is a b."""
    return np.asarray(weights["weight"] @ x + weights.get("bias", 0))


def by_head(weights: Weights, heads: int, xs: list[Array]) -> list[list[Array]]:
    """Each x projected and cut into the heads' parts."""
    return [np.split(affine(weights, x), heads) for x in xs]


class KeyValue(NamedTuple):
    """Keys and values of the positions that may be attended to, each cut into the heads' parts."""

    keys: list[list[Array]]
    values: list[list[Array]]

    def up_to(self, place: int) -> KeyValue:
        """Those of positions 0 to `place`."""
        return KeyValue(self.keys[: place + 1], self.values[: place + 1])


def key_value(weights: Weights, heads: int, xs: list[Array]) -> KeyValue:
    """K and V of every position."""
    return KeyValue(by_head(under(weights, "k"), heads, xs), by_head(under(weights, "v"), heads, xs))


def attend(weights: Weights, query: Array, seen: KeyValue, size: int, replaced: Array | None = None) -> Named:
    """Section 3.2: head_i = softmax(q_i K_iᵀ / √d_k) V_i over `size` keys; MultiHead = W_o [head_1; …; head_h]."""
    (keys, values), heads = seen, len(seen.keys[0])
    q = by_head(under(weights, "q"), heads, [query])[0]
    scores, alpha = np.zeros((heads, len(keys))), np.zeros((heads, len(keys)))
    outputs = np.zeros((heads, len(q[0])))
    for i in range(heads):
        for j in range(len(keys)):
            scores[i, j] = q[i] @ keys[j][i] / sqrt(len(q[i]))
        alpha[i] = softmax(scores[i], size) if replaced is None else replaced
        for j in range(len(keys)):
            outputs[i] += alpha[i, j] * values[j][i]
    output = affine(under(weights, "o"), np.concatenate(list(outputs)))
    return {"e": scores, "alpha": alpha, "heads": outputs, "c": output}


def of_itself(attended: Named) -> Named:
    """The names of attention within one side."""
    return {f"self_{name}": value for name, value in attended.items()}


def together(each: list[Named]) -> Named:
    """The attention of all positions side by side; the axis of positions stands behind that of the heads."""
    return {name: np.stack([one[name] for one in each], axis=each[0][name].ndim - 1) for name in each[0]}


def activated(name: str, inner: Array) -> Array:
    """relu max(0, u); gelu u Φ(u), Φ the normal distribution; swish u / (1 + e^−u)."""
    if name == "gelu":
        return np.array([u * (1 + erf(u / sqrt(2))) / 2 for u in inner])
    return np.asarray(inner / (1 + np.exp(-inner)) if name == "swish" else np.maximum(0, inner))


def feed_forward(weights: Weights, x: Array, activation: str) -> Array:
    """W_2 f(W_1 x + b_1) + b_2, in the paper f(u) = max(0, u) (equation 2)."""
    return affine(under(weights, "ff_out"), activated(activation, affine(under(weights, "ff_in"), x)))


class Reader:
    """A Transformer's weights and its design."""

    def __init__(self, weights: Weights, design: Design):
        self.weights, self.design, self.heads = weights, design, design.heads

    def placed(self, words: list[Array]) -> list[Array]:
        """E[word] · √d_model + PE(position) (sections 3.4 and 3.5)."""
        first, shorter = self.design.first, self.design.shorter
        return [
            word * sqrt(len(word)) + position(first + place, len(word), shorter=shorter)
            for place, word in enumerate(words)
        ]

    def count_read(self, tokens: int) -> int:
        """How many of a source's tokens are read."""
        return count_read(tokens, end=self.design.source_end)

    def norm(self, weights: Weights, x: Array) -> Array:
        """The layer norm."""
        return layer_norm(weights, x, self.design.norm_eps)

    def before(self, layer: Weights, norm: int, xs: list[Array]) -> list[Array]:
        """Pre-norm: a sublayer reads LN(x); post-norm: it reads x."""
        return [self.norm(under(layer, f"norms.{norm}"), x) if self.design.pre_norm else x for x in xs]

    def after(self, layer: Weights, norm: int, xs: list[Array], added: list[Array]) -> list[Array]:
        """Pre-norm: x + Sub(LN(x)); post-norm (the paper's): LN(x + Sub(x))."""
        sums = [x + add for x, add in zip(xs, added, strict=True)]
        return sums if self.design.pre_norm else [self.norm(under(layer, f"norms.{norm}"), x) for x in sums]

    def last(self, name: str, x: Array) -> Array:
        """With pre-norm one more layer norm stands after the last layer."""
        return self.norm(under(self.weights, name), x) if self.design.pre_norm else x

    def encoder_layer(self, layer: Weights, xs: list[Array]) -> tuple[list[Array], Named]:
        """Every position attends to every position, then goes through the feed-forward network."""
        ready = self.before(layer, 0, xs)
        own = under(layer, "self_heads")
        seen = key_value(own, self.heads, ready)
        size = self.count_read(len(xs))
        around = [attend(own, x, seen, size) for x in ready]
        xs = self.after(layer, 0, xs, [one["c"] for one in around])
        fed = [feed_forward(layer, x, self.design.activation) for x in self.before(layer, 1, xs)]
        xs = self.after(layer, 1, xs, fed)
        named = {f"enc_{name}": value for name, value in of_itself(together(around)).items()}
        return xs, {**named, "enc_ff": np.array(fed), "h": np.array(xs)}

    def decoder_layer(
        self, layer: Weights, xs: list[Array], source: KeyValue, replaced: Replaced
    ) -> tuple[list[Array], list[Named]]:
        """Position t attends to positions 1 … t, then to the source, then goes through the feed-forward network."""
        ready, own, cross = self.before(layer, 0, xs), under(layer, "self_heads"), under(layer, "cross_heads")
        seen = key_value(own, self.heads, ready)
        back = [attend(own, x, seen.up_to(t), t + 1) for t, x in enumerate(ready)]
        xs = self.after(layer, 0, xs, [one["c"] for one in back])
        ready = self.before(layer, 1, xs)
        size = self.count_read(len(source.keys))
        over = [attend(cross, x, source, size, replaced_at(replaced, t)) for t, x in enumerate(ready)]
        xs = self.after(layer, 1, xs, [one["c"] for one in over])
        fed = [feed_forward(layer, x, self.design.activation) for x in self.before(layer, 2, xs)]
        xs = self.after(layer, 2, xs, fed)
        named = [{**of_itself(back[t]), **over[t], "ff": fed[t], "s": xs[t]} for t in range(len(xs))]
        return xs, named

    def encode(self, source: list[int], layers: int) -> tuple[list[Array], Named]:
        """h_1 … h_S, and everything on the way; h is 0 where nothing is read."""
        xs = self.placed(embedded(under(self.weights, "source_embedding"), source))
        named: Named = {"x": np.array(xs)}
        for number in range(layers):
            xs, seen = self.encoder_layer(under(self.weights, f"encoder.{number}"), xs)
            named |= numbered(seen, number)
        memory = [self.last("encoder_norm", x) for x in xs]
        if self.count_read(len(xs)) < len(xs):
            memory[-1] = 0 * memory[-1]
        return memory, {**named, "h": np.array(memory)}

    def source(self, memory: list[Array], layer: int) -> KeyValue:
        """A decoder layer's keys and values of the source."""
        return key_value(under(self.weights, f"decoder.{layer}.cross_heads"), self.heads, memory)


def run(
    reader: Reader,
    source: list[int],
    target: list[int],
    *,
    layers: tuple[int, int],
    replaced: Replaced = (),
    copies: Copies = (),
    copy_head: int | None = None,
) -> Run:
    """Encode, then decode all positions; alpha without a layer is the mean over the last layer's heads.

    Words are copied by that mean, or by one of the heads, counted from 1.
    """
    weights = reader.weights
    memory, encoder = reader.encode(source, layers[0])
    words = ys = reader.placed([read_word(weights, word) for word in target])
    steps: list[Named] = [{"y": y} for y in ys]
    for number in range(layers[1]):
        source_seen = reader.source(memory, number)
        parts = {name: np.array(part).transpose(1, 0, 2) for name, part in source_seen._asdict().items()}  # [h, S, d_k]
        encoder |= numbered(parts, number)
        ys, seen = reader.decoder_layer(under(weights, f"decoder.{number}"), ys, source_seen, replaced)
        for step, named in zip(steps, seen, strict=True):
            step.update(numbered(named, number))
    for step, y, word in zip(steps, ys, words, strict=True):
        step["s"] = reader.last("decoder_norm", y)
        step["alpha"] = step[f"alpha.{layers[1]}"].mean(0)
        step["logits"] = predict(weights, step["s"])
        alpha = step["alpha"] if copy_head is None else step[f"alpha.{layers[1]}"][copy_head - 1]
        context = np.asarray(sum(weight * h for weight, h in zip(alpha, memory, strict=True)))
        step.update({"copy_context": context} if copies else {})
        step.update(copied(weights, (context, step["s"], word), alpha, step["logits"], copies))
    return Run(encoder, {}, steps)
