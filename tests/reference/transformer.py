"""Attention alone: Vaswani et al. 2017. Every position is a vector, every sublayer a loop over positions and heads.

Nothing is cached and nothing is masked: a decoder position is simply handed the positions up to itself.
"""

from __future__ import annotations

from math import cos, sin, sqrt

import numpy as np

from reference import Array, Moment, Run, Weights, predict, under
from reference.attention import softmax


def position(place: int, size: int) -> Array:
    """PE(pos, 2i) = sin(pos / 10000^(2i/d)), PE(pos, 2i+1) = cos(pos / 10000^(2i/d)) (section 3.5)."""
    return np.array(
        [
            sin(place / 10000 ** (k / size)) if k % 2 == 0 else cos(place / 10000 ** ((k - 1) / size))
            for k in range(size)
        ]
    )


def embed(table: Array, words: list[int]) -> list[Array]:
    """E[word] · √d_model + PE(position) (sections 3.4 and 3.5)."""
    size = table.shape[1]
    return [table[word] * sqrt(size) + position(place, size) for place, word in enumerate(words)]


def layer_norm(weights: Weights, x: Array) -> Array:
    """(x − mean) / √(variance + ε) · gain + bias (Ba et al. 2016)."""
    return (x - x.mean()) / sqrt(x.var() + 1e-5) * weights["weight"] + weights["bias"]


def affine(weights: Weights, x: Array) -> Array:
    return weights["weight"] @ x + weights.get("bias", 0)


class Looked:
    """What one query saw: scores and weights `[head, S]`, and the output after W_o."""

    def __init__(self, weights: Weights, heads: int, query: Array, seen: list[Array]):
        """Section 3.2: head_i = softmax(q_i K_iᵀ / √d_k) V_i; MultiHead = W_o [head_1; …; head_h]."""
        q = np.split(affine(under(weights, "q"), query), heads)
        keys = [np.split(affine(under(weights, "k"), x), heads) for x in seen]
        values = [np.split(affine(under(weights, "v"), x), heads) for x in seen]
        self.scores = np.zeros((heads, len(seen)))
        self.weights = np.zeros((heads, len(seen)))
        outputs = []
        for i in range(heads):
            for j in range(len(seen)):
                self.scores[i, j] = q[i] @ keys[j][i] / sqrt(len(q[i]))
            self.weights[i] = softmax(self.scores[i], len(seen))
            outputs.append(sum(self.weights[i, j] * values[j][i] for j in range(len(seen))))
        self.output = affine(under(weights, "o"), np.concatenate(outputs))


def feed_forward(weights: Weights, x: Array) -> Array:
    """W_2 max(0, W_1 x + b_1) + b_2 (equation 2)."""
    return affine(under(weights, "ff_out"), np.maximum(0, affine(under(weights, "ff_in"), x)))


class Reader:
    """A Transformer's weights, its heads, and where its layer norms stand."""

    def __init__(self, weights: Weights, heads: int, *, pre_norm: bool):
        self.weights, self.heads, self.pre_norm = weights, heads, pre_norm

    def before(self, layer: Weights, norm: int, xs: list[Array]) -> list[Array]:
        """Pre-norm: a sublayer reads LN(x); post-norm: it reads x."""
        return [layer_norm(under(layer, f"norms.{norm}"), x) if self.pre_norm else x for x in xs]

    def after(self, layer: Weights, norm: int, x: Array, added: Array) -> Array:
        """Pre-norm: x + Sub(LN(x)); post-norm (the paper's): LN(x + Sub(x))."""
        return x + added if self.pre_norm else layer_norm(under(layer, f"norms.{norm}"), x + added)

    def last(self, name: str, x: Array) -> Array:
        """With pre-norm one more layer norm stands after the last layer."""
        return layer_norm(under(self.weights, name), x) if self.pre_norm else x

    def encoder_layer(self, layer: Weights, xs: list[Array]) -> list[Array]:
        """Every position looks at every position, then goes through the feed-forward network."""
        ready = self.before(layer, 0, xs)
        added = [Looked(under(layer, "self_heads"), self.heads, x, ready).output for x in ready]
        xs = [self.after(layer, 0, x, add) for x, add in zip(xs, added, strict=True)]
        added = [feed_forward(layer, x) for x in self.before(layer, 1, xs)]
        return [self.after(layer, 1, x, add) for x, add in zip(xs, added, strict=True)]

    def decoder_layer(self, layer: Weights, xs: list[Array], memory: list[Array]) -> tuple[list[Array], list[Looked]]:
        """Position t looks at positions 1 … t, then at the source, then goes through the feed-forward network."""
        ready = self.before(layer, 0, xs)
        added = [Looked(under(layer, "self_heads"), self.heads, x, ready[: t + 1]).output for t, x in enumerate(ready)]
        xs = [self.after(layer, 0, x, add) for x, add in zip(xs, added, strict=True)]
        looks = [Looked(under(layer, "cross_heads"), self.heads, x, memory) for x in self.before(layer, 1, xs)]
        xs = [self.after(layer, 1, x, look.output) for x, look in zip(xs, looks, strict=True)]
        added = [feed_forward(layer, x) for x in self.before(layer, 2, xs)]
        return [self.after(layer, 2, x, add) for x, add in zip(xs, added, strict=True)], looks


def run(
    weights: Weights, source: list[int], target: list[int], *, layers: tuple[int, int], heads: int, pre_norm: bool
) -> Run:
    """Encode, then decode all positions; scores and context of a step are the last layer's, averaged over heads."""
    reader = Reader(weights, heads, pre_norm=pre_norm)
    xs = embed(weights["source_embedding.weight"], source)
    for number in range(layers[0]):
        xs = reader.encoder_layer(under(weights, f"encoder.{number}"), xs)
    memory = [reader.last("encoder_norm", x) for x in xs]
    ys, looks = embed(weights["embedding.weight"], target), []
    for number in range(layers[1]):
        ys, seen = reader.decoder_layer(under(weights, f"decoder.{number}"), ys, memory)
        looks.append(seen)
    moments = []
    for t, y in enumerate(ys):
        hidden, last = reader.last("decoder_norm", y), looks[-1][t]
        moments.append(
            Moment(
                last.scores.mean(0),
                last.weights.mean(0),
                last.output,
                [],
                hidden,
                predict(weights, hidden),
                heads=np.array([seen[t].weights for seen in looks]),
            )
        )
    return Run(memory, [], moments)
