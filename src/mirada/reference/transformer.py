"""Attention alone: Vaswani et al. 2017. Every position is a vector, every sublayer a loop over positions and heads.

Nothing is cached and nothing is masked: a decoder position is simply handed the positions up to itself.
"""

from __future__ import annotations

from math import cos, sin, sqrt

import numpy as np

from mirada.reference import Array, Forced, Named, Run, Weights, numbered, predict, under
from mirada.reference.attention import forced_at, softmax


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
    return np.asarray((x - x.mean()) / sqrt(x.var() + 1e-5) * weights["weight"] + weights["bias"])


def affine(weights: Weights, x: Array) -> Array:
    """W x + b, where there is a b."""
    return np.asarray(weights["weight"] @ x + weights.get("bias", 0))


def by_head(weights: Weights, heads: int, xs: list[Array]) -> list[list[Array]]:
    """Each x projected and cut into the heads' parts."""
    return [np.split(affine(weights, x), heads) for x in xs]


def attend(weights: Weights, heads: int, query: Array, seen: list[Array], forced: Array | None = None) -> Named:
    """Section 3.2: head_i = softmax(q_i K_iᵀ / √d_k) V_i; MultiHead = W_o [head_1; …; head_h]."""
    q = by_head(under(weights, "q"), heads, [query])[0]
    keys, values = (by_head(under(weights, name), heads, seen) for name in ("k", "v"))
    scores, alpha = np.zeros((heads, len(seen))), np.zeros((heads, len(seen)))
    outputs = np.zeros((heads, len(q[0])))
    for i in range(heads):
        for j in range(len(seen)):
            scores[i, j] = q[i] @ keys[j][i] / sqrt(len(q[i]))
        alpha[i] = softmax(scores[i], len(seen)) if forced is None else forced
        for j in range(len(seen)):
            outputs[i] += alpha[i, j] * values[j][i]
    output = affine(under(weights, "o"), np.concatenate(list(outputs)))
    return {"e": scores, "alpha": alpha, "heads": outputs, "c": output}


def of_itself(looked: Named) -> Named:
    """The names of attention within one side."""
    return {f"self_{name}": value for name, value in looked.items()}


def together(looks: list[Named]) -> Named:
    """The looks of all positions side by side; the axis of positions stands behind that of the heads."""
    return {name: np.stack([look[name] for look in looks], axis=looks[0][name].ndim - 1) for name in looks[0]}


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

    def after(self, layer: Weights, norm: int, xs: list[Array], added: list[Array]) -> list[Array]:
        """Pre-norm: x + Sub(LN(x)); post-norm (the paper's): LN(x + Sub(x))."""
        sums = [x + add for x, add in zip(xs, added, strict=True)]
        return sums if self.pre_norm else [layer_norm(under(layer, f"norms.{norm}"), x) for x in sums]

    def last(self, name: str, x: Array) -> Array:
        """With pre-norm one more layer norm stands after the last layer."""
        return layer_norm(under(self.weights, name), x) if self.pre_norm else x

    def encoder_layer(self, layer: Weights, xs: list[Array]) -> tuple[list[Array], Named]:
        """Every position looks at every position, then goes through the feed-forward network."""
        ready = self.before(layer, 0, xs)
        looks = [attend(under(layer, "self_heads"), self.heads, x, ready) for x in ready]
        xs = self.after(layer, 0, xs, [look["c"] for look in looks])
        fed = [feed_forward(layer, x) for x in self.before(layer, 1, xs)]
        xs = self.after(layer, 1, xs, fed)
        named = {f"enc_{name}": value for name, value in of_itself(together(looks)).items()}
        return xs, {**named, "enc_ff": np.array(fed), "h": np.array(xs)}

    def decoder_layer(
        self, layer: Weights, xs: list[Array], memory: list[Array], forced: Forced
    ) -> tuple[list[Array], list[Named]]:
        """Position t looks at positions 1 … t, then at the source, then goes through the feed-forward network."""
        ready = self.before(layer, 0, xs)
        back = [attend(under(layer, "self_heads"), self.heads, x, ready[: t + 1]) for t, x in enumerate(ready)]
        xs = self.after(layer, 0, xs, [look["c"] for look in back])
        ready = self.before(layer, 1, xs)
        cross = under(layer, "cross_heads")
        looks = [attend(cross, self.heads, x, memory, forced_at(forced, t)) for t, x in enumerate(ready)]
        xs = self.after(layer, 1, xs, [look["c"] for look in looks])
        fed = [feed_forward(layer, x) for x in self.before(layer, 2, xs)]
        xs = self.after(layer, 2, xs, fed)
        named = [{**of_itself(back[t]), **looks[t], "ff": fed[t], "s": xs[t]} for t in range(len(xs))]
        return xs, named

    def encode(self, source: list[int], layers: int) -> tuple[list[Array], Named]:
        """h_1 … h_S, and everything on the way."""
        xs = embed(self.weights["source_embedding.weight"], source)
        named: Named = {"x": np.array(xs)}
        for number in range(layers):
            xs, seen = self.encoder_layer(under(self.weights, f"encoder.{number}"), xs)
            named |= numbered(seen, number)
        memory = [self.last("encoder_norm", x) for x in xs]
        return memory, {**named, "h": np.array(memory)}

    def keys(self, memory: list[Array], layer: int) -> Named:
        """A decoder layer's keys and values of the source, [head, S, d_k] each."""
        cross = under(self.weights, f"decoder.{layer}.cross_heads")
        pairs = {"keys": by_head(under(cross, "k"), self.heads, memory)}
        pairs["values"] = by_head(under(cross, "v"), self.heads, memory)
        return numbered({name: np.array(parts).transpose(1, 0, 2) for name, parts in pairs.items()}, layer)


def run(reader: Reader, source: list[int], target: list[int], *, layers: tuple[int, int], forced: Forced = ()) -> Run:
    """Encode, then decode all positions; alpha without a layer is the mean over the last layer's heads."""
    weights = reader.weights
    memory, encoder = reader.encode(source, layers[0])
    ys = embed(weights["embedding.weight"], target)
    steps: list[Named] = [{"y": y} for y in ys]
    for number in range(layers[1]):
        encoder |= reader.keys(memory, number)
        ys, seen = reader.decoder_layer(under(weights, f"decoder.{number}"), ys, memory, forced)
        for step, named in zip(steps, seen, strict=True):
            step.update(numbered(named, number))
    for step, y in zip(steps, ys, strict=True):
        step["s"] = reader.last("decoder_norm", y)
        step["alpha"] = step[f"alpha.{layers[1]}"].mean(0)
        step["logits"] = predict(weights, step["s"])
    return Run(encoder, {}, steps)
