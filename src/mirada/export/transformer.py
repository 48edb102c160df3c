"""The Transformer as three graphs: encode makes each layer's keys and values of the source, start an empty cache."""

from __future__ import annotations

import math

import numpy as np

from mirada.config.options import ModelConfig
from mirada.export.attention import MASKED, by_row, copies_name
from mirada.export.graph import BOOL, FLOAT, INT64, Graph, Precision
from mirada.export.layers import Weights, chosen_rows, read_lengths, real_positions, with_segments
from mirada.export.output import Copied, copying, predict, read_word


def memory_names(options: ModelConfig) -> list[str]:
    """What the decoder looks at."""
    copied = ["states", *copies_name(options)] if options.copy_attn else []
    return ["mask", *layer_names(options), *copied]


def layer_names(options: ModelConfig) -> list[str]:
    """Keys and values of the source, for each layer of the decoder."""
    return [f"{part}.{layer + 1}" for layer in range(options.dec_layers) for part in ("keys", "values")]


def state_names(options: ModelConfig) -> list[str]:
    """Keys and values of the words so far."""
    return [f"self_{name}" for name in layer_names(options)]


def graphs(weights: Weights, options: ModelConfig, precision: Precision) -> dict[str, Graph]:
    """The three graphs."""
    return {
        "encode": _encode(weights, options, precision),
        "start": _start(options),
        "step": _step(weights, options, precision),
    }


def _widths(options: ModelConfig) -> tuple[int, int]:
    """Heads, and the width of each."""
    return options.num_heads, options.embedding_dim // options.num_heads


def _encode(weights: Weights, options: ModelConfig, precision: Precision) -> Graph:
    graph = Graph("encode", precision)
    source = graph.read("source", INT64, ["sentences", "source"])
    lengths = read_lengths(graph, options)
    mask = real_positions(graph, source, lengths)  # [B, S]
    x = graph.add("Gather", graph.constant(weights["source_embedding.weight"]), source)
    width = graph.add("Gather", graph.add("Shape", source), graph.constant(1, np.int64))
    places = graph.add("Range", graph.constant(0, np.int64), width, graph.constant(1, np.int64))
    x = with_segments(graph, weights.get("source_embedding.segments"), source, x, 1)
    x = _placed(graph, options, x, places)  # [B, S, d]
    wide = graph.add("Unsqueeze", mask, graph.shape(1, 2))  # [B, 1, 1, S]
    for layer in range(options.enc_layers):
        x = _encoder_layer(graph, weights, options, f"encoder.{layer}.", (x, wide))
    x = _last_norm(graph, weights, options, "encoder_norm", x)
    graph.give("mask", mask, BOOL, ["sentences", "source"])
    if options.copy_attn:
        graph.give("states", x, FLOAT, ["sentences", "source", options.embedding_dim])
    for name in layer_names(options):
        part, number = name.split(".")
        [value] = _parts(graph, weights, options, (f"decoder.{int(number) - 1}.cross_heads.", part[0]), x)
        graph.give(name, value, FLOAT, _shape(options, "source"))
    return graph


def _shape(options: ModelConfig, positions: str) -> list[int | str]:
    heads, width = _widths(options)
    return ["sentences" if positions == "source" else "rows", heads, positions, width]


def _start(options: ModelConfig) -> Graph:
    graph = Graph("start")
    mask = graph.read("mask", BOOL, ["sentences", "source"])
    sentences = graph.add("Gather", graph.add("Shape", mask), graph.shape(0))
    heads, width = _widths(options)
    shape = graph.add("Concat", sentences, graph.shape(heads, 0, width), attributes={"axis": 0})
    empty = graph.add("Expand", graph.constant(0), shape)
    for name in state_names(options):
        graph.give(name, empty, FLOAT, ["sentences", heads, 0, width])
    return graph


def _step(weights: Weights, options: ModelConfig, precision: Precision) -> Graph:
    graph = Graph("step", precision)
    token, names = graph.read("token", INT64, ["rows"]), state_names(options)
    heads, width = _widths(options)
    past = chosen_rows(graph, names, [[heads, "words", width]] * len(names))  # [N, h, t, d_k]
    _read_memory(graph, options)
    x = read_word(graph, weights, options, token)  # [N, d]
    x = embedded = _placed(graph, options, x, graph.add("Gather", graph.add("Shape", past[0]), graph.shape(2)))
    kept, alpha = [], ""
    for layer in range(options.dec_layers):
        x, new, alpha = _decoder_layer(graph, weights, options, layer, (x, past[2 * layer], past[2 * layer + 1]))
        kept += new
    hidden = _last_norm(graph, weights, options, "decoder_norm", x)
    mean = graph.add("ReduceMean", alpha, attributes={"axes": [1], "keepdims": 0})  # [B, K, S] over the heads
    copied = _copying(graph, weights, options, (hidden, embedded), (alpha, mean)) if options.copy_attn else None
    predict(graph, weights, hidden, copied)
    graph.give("attention", by_row(graph, mean), FLOAT, ["rows", "source"])
    for name, value in zip(names, kept, strict=True):
        graph.give(f"new.{name}", value, FLOAT, ["rows", heads, "words_now", width])
    return graph


def _read_memory(graph: Graph, options: ModelConfig) -> None:
    graph.read("mask", BOOL, ["sentences", "source"])
    for name in layer_names(options):
        graph.read(name, FLOAT, _shape(options, "source"))
    if options.copy_attn:
        graph.read("states", FLOAT, ["sentences", "source", options.embedding_dim])
        for name, (kind, shape) in copies_name(options).items():
            graph.read(name, kind, shape)


def _copying(
    graph: Graph, weights: Weights, options: ModelConfig, read: tuple[str, str], seen: tuple[str, str]
) -> Copied:
    """By `copy_head` of the last layer or the mean of its heads: hidden and embedded `[N, d]`, α `[B, h, K, S]`."""
    (hidden, embedded), (alpha, chosen) = read, seen
    if options.copy_head is not None:
        head = graph.add("Gather", alpha, graph.shape(options.copy_head - 1), attributes={"axis": 1})
        chosen = graph.add("Squeeze", head, graph.shape(1))  # [B, K, S]
    context = graph.add("Reshape", graph.add("MatMul", chosen, "states"), graph.shape(-1, options.embedding_dim))
    return copying(graph, weights, (context, hidden, embedded), by_row(graph, chosen))


def _placed(graph: Graph, options: ModelConfig, x: str, places: str) -> str:
    """√d x + the sinusoids of `places` `[T]`; x is `[…, T, d]` or, for one place, `[N, d]`."""
    size = options.embedding_dim
    slowest = size - 2 if options.position_encoding == "tensor2tensor" else size
    exact = np.arange(0, size, 2, dtype=np.float32) * np.float32(-math.log(10000.0) / slowest)
    if options.first_position:
        places = graph.add("Add", places, graph.shape(options.first_position))
    numbers = graph.add("Unsqueeze", graph.add("Cast", places, attributes={"to": FLOAT}), graph.shape(1))
    angle = graph.add("Mul", numbers, graph.constant(np.exp(exact)))  # [T, ceil(d/2)]
    pair = [graph.add("Unsqueeze", graph.add(wave, angle), graph.shape(2)) for wave in ("Sin", "Cos")]
    waves = graph.add("Concat", *pair, attributes={"axis": 2})
    flat = graph.add("Reshape", waves, graph.shape(0, -1))
    if size % 2:
        flat = graph.add("Slice", flat, graph.shape(0), graph.shape(size), graph.shape(1))
    return graph.add("Add", graph.add("Mul", x, graph.constant(math.sqrt(size))), flat)


def _norm(graph: Graph, weights: Weights, options: ModelConfig, name: str, x: str) -> str:
    terms = [graph.constant(weights[f"{name}.{part}"]) for part in ("weight", "bias")]
    return graph.add("LayerNormalization", x, *terms, attributes={"axis": -1, "epsilon": options.norm_eps})


def _last_norm(graph: Graph, weights: Weights, options: ModelConfig, name: str, x: str) -> str:
    return _norm(graph, weights, options, name, x) if options.norm == "pre" else x


def _projected(
    graph: Graph, weights: Weights, options: ModelConfig, names: tuple[str, str], x: str, *, rank: int
) -> list[str]:
    """Some of q/√d_k, k and v: the letters of `names[1]`, of the heads `names[0]`. In 8 bits they are one product."""
    heads, parts = names
    scale = {"q": np.float32(1 / math.sqrt(_widths(options)[1]))}
    kept = [
        (weights[f"{heads}{part}.weight"], weights.get(f"{heads}{part}.bias"), scale.get(part, np.float32(1)))
        for part in parts
    ]
    scaled = [(w * by, np.zeros(len(w), np.float32) if b is None else b * by) for w, b, by in kept]
    if graph.precision == "float32" or len(parts) == 1:
        return [graph.linear(x, *one, rank=rank) for one in scaled]
    y = graph.linear(x, *(np.concatenate(part) for part in zip(*scaled, strict=True)), rank=rank)
    sizes = graph.shape(*[options.embedding_dim] * len(parts))
    return graph.add_many("Split", (y, sizes), len(parts), attributes={"axis": rank - 1})


def _parts(graph: Graph, weights: Weights, options: ModelConfig, names: tuple[str, str], x: str) -> list[str]:
    """The same of `[B, S, d]`, by heads: `[B, h, S, d_k]`."""
    shape, order = graph.shape(0, 0, *_widths(options)), {"perm": [0, 2, 1, 3]}
    parts = _projected(graph, weights, options, names, x, rank=3)
    return [graph.add("Transpose", graph.add("Reshape", part, shape), attributes=order) for part in parts]


def _looked(graph: Graph, query: str, pair: tuple[str, str], mask: str | None) -> tuple[str, str]:
    """softmax(QKᵀ) V and the weights: `[B, h, T, d_k]` and `[B, h, T, S]`; 1/√d_k is in Q."""
    scores = graph.add("MatMul", query, graph.add("Transpose", pair[0], attributes={"perm": [0, 1, 3, 2]}))
    if mask is not None:
        scores = graph.add("Where", mask, scores, graph.constant(MASKED))
    alpha = graph.add("Softmax", scores, attributes={"axis": -1})
    return graph.add("MatMul", alpha, pair[1]), alpha


def _residual(options: ModelConfig) -> tuple[bool, bool]:
    """Whether the norm stands before a part, and whether behind the sum."""
    return options.norm == "pre", options.norm == "post"


def _encoder_layer(graph: Graph, weights: Weights, options: ModelConfig, name: str, read: tuple[str, str]) -> str:
    x, mask = read
    before, behind = _residual(options)
    y = _norm(graph, weights, options, name + "norms.0", x) if before else x
    own = name + "self_heads."
    query, key, value = _parts(graph, weights, options, (own, "qkv"), y)
    seen, _ = _looked(graph, query, (key, value), mask)
    joined = graph.add("Transpose", seen, attributes={"perm": [0, 2, 1, 3]})
    joined = graph.add("Reshape", joined, graph.shape(0, 0, options.embedding_dim))
    x = graph.add("Add", x, graph.linear(joined, weights[own + "o.weight"], weights[own + "o.bias"], rank=3))
    x = _norm(graph, weights, options, name + "norms.0", x) if behind else x
    return _feed_forward(graph, weights, options, (name, "norms.1"), (x, 3))


def _feed_forward(
    graph: Graph, weights: Weights, options: ModelConfig, names: tuple[str, str], read: tuple[str, int]
) -> str:
    """x + W_2 f(W_1 x + b_1) + b_2, with its norm."""
    (name, norm), (x, rank) = names, read
    before, behind = _residual(options)
    y = _norm(graph, weights, options, name + norm, x) if before else x
    y = graph.linear(y, weights[name + "ff_in.weight"], weights[name + "ff_in.bias"], rank=rank)
    y = _activated(graph, options, y)
    y = graph.linear(y, weights[name + "ff_out.weight"], weights[name + "ff_out.bias"], rank=rank)
    x = graph.add("Add", x, y)
    return _norm(graph, weights, options, name + norm, x) if behind else x


def _activated(graph: Graph, options: ModelConfig, x: str) -> str:
    """max(0, u), u Φ(u) or u σ(u)."""
    if options.activation == "relu":
        return graph.add("Relu", x)
    if options.activation == "swish":
        return graph.add("Mul", x, graph.add("Sigmoid", x))
    erf = graph.add("Erf", graph.add("Mul", x, graph.constant(1 / math.sqrt(2))))
    return graph.add("Mul", graph.add("Mul", x, graph.constant(0.5)), graph.add("Add", erf, graph.constant(1)))


def _decoder_layer(
    graph: Graph, weights: Weights, options: ModelConfig, layer: int, read: tuple[str, str, str]
) -> tuple[str, list[str], str]:
    """One step on x `[N, d]` and what it remembers: the output, all keys and values, the attention over the source."""
    x, *past = read
    name, (heads, width) = f"decoder.{layer}.", _widths(options)
    before, behind = _residual(options)
    y = _norm(graph, weights, options, name + "norms.0", x) if before else x
    projected = _projected(graph, weights, options, (name + "self_heads.", "qkv"), y, rank=2)
    query, *new = (graph.add("Reshape", part, graph.shape(0, heads, 1, width)) for part in projected)  # [N, h, 1, d_k]
    kept = [graph.add("Concat", *pair, attributes={"axis": 2}) for pair in zip(past, new, strict=True)]
    seen, _ = _looked(graph, query, (kept[0], kept[1]), None)  # [N, h, 1, d_k]
    x = _joined(graph, weights, name + "self_heads.o", graph.add("Reshape", seen, graph.shape(0, heads * width)), x)
    x = _norm(graph, weights, options, name + "norms.0", x) if behind else x
    y = _norm(graph, weights, options, name + "norms.1", x) if before else x
    query = _query(graph, weights, options, name + "cross_heads.", y)  # [B, h, K, d_k]
    mask = graph.add("Unsqueeze", "mask", graph.shape(1, 2))
    seen, alpha = _looked(graph, query, (f"keys.{layer + 1}", f"values.{layer + 1}"), mask)
    flat = graph.add("Transpose", seen, attributes={"perm": [0, 2, 1, 3]})
    x = _joined(graph, weights, name + "cross_heads.o", graph.add("Reshape", flat, graph.shape(-1, heads * width)), x)
    x = _norm(graph, weights, options, name + "norms.1", x) if behind else x
    return _feed_forward(graph, weights, options, (name, "norms.2"), (x, 2)), kept, alpha


def _joined(graph: Graph, weights: Weights, name: str, seen: str, x: str) -> str:
    return graph.add("Add", x, graph.linear(seen, weights[name + ".weight"], weights[name + ".bias"]))


def _query(graph: Graph, weights: Weights, options: ModelConfig, name: str, x: str) -> str:
    """Queries of rows `[N, d]` at the source, by sentence: `[B, h, K, d_k]`."""
    heads, width = _widths(options)
    [y] = _projected(graph, weights, options, (name, "q"), x, rank=2)
    sentences = graph.add("Gather", graph.add("Shape", "mask"), graph.shape(0))
    shape = graph.add("Concat", sentences, graph.shape(-1, heads, width), attributes={"axis": 0})
    return graph.add("Transpose", graph.add("Reshape", y, shape), attributes={"perm": [0, 2, 1, 3]})
