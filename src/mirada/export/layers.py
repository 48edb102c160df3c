"""The pieces that the recurrent systems share, as operations: embeddings, cells, encoder, bridge, readout.

Each says what the file of the same name in models/ says. Values are names in a graph; shapes stand beside them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from mirada.config.options import ModelConfig
from mirada.data.vocabulary import SEP
from mirada.export.graph import FLOAT, INT64, Graph

Weights = Mapping[str, np.ndarray]
ONNX_ORDER = {"lstm": (0, 2, 1, 3), "gru": (1, 0, 2)}  # of the gates i f o g and r z n; ONNX has i o f c and z r h


class EncoderOutput(NamedTuple):
    """What the encoder read."""

    states: str  # [B, S, H] 0 on padding
    final: list[list[str]]  # for each layer h and, for the LSTM, c, each [B, H]


def layer_names(options: ModelConfig, layers: int, names: tuple[str, str] = ("s", "cell")) -> list[list[str]]:
    """s.1 and, for the LSTM, cell.1, for each layer."""
    kinds = names if options.rnn_type == "lstm" else names[:1]
    return [[f"{name}.{layer + 1}" for name in kinds] for layer in range(layers)]


def read_lengths(graph: Graph, options: ModelConfig) -> str:
    """How many tokens of each source are read `[B]`: all, or all but </s>."""
    lengths = graph.read("lengths", INT64, ["sentences"])
    if options.add_source_eos:
        return lengths
    return graph.add("Max", graph.add("Sub", lengths, graph.shape(1)), graph.shape(1))


def real_positions(graph: Graph, source: str, lengths: str) -> str:
    """True on real tokens: ids `[B, S]`, lengths `[B]` → `[B, S]`."""
    width = graph.add("Gather", graph.add("Shape", source), graph.constant(1, np.int64))
    places = graph.add("Range", graph.constant(0, np.int64), width, graph.constant(1, np.int64))
    return graph.add("Less", places, graph.add("Unsqueeze", lengths, graph.shape(1)))


def encode(graph: Graph, weights: Weights, options: ModelConfig, ids: tuple[str, str]) -> EncoderOutput:
    """h_j of ids `[B, S]` with their real lengths `[B]`, by ONNX's own LSTM and GRU, which know lengths."""
    source, lengths = ids
    sizes = graph.add("Cast", lengths, attributes={"to": 6})  # int32, as the recurrences want it
    words = graph.add("Transpose", source, attributes={"perm": [1, 0]})
    x = graph.add("Gather", graph.constant(weights["encoder.embedding.weight"]), words)  # [S, B, E]
    within = graph.add("Max", graph.add("Sub", lengths, graph.shape(1)), graph.shape(1))  # </s> stays at the end
    order = {"batch_axis": 1, "time_axis": 0}
    x = with_segments(graph, weights.get("encoder.embedding.segments"), words, x, 0)
    if options.reverse_source:
        x = graph.add("ReverseSequence", x, within, attributes=order)
    final = []
    for layer in range(options.enc_layers):
        x, last = _encoder_layer(graph, weights, options, layer, (x, sizes))
        final.append(last)
    if options.reverse_source:
        x = graph.add("ReverseSequence", x, within, attributes=order)
    return EncoderOutput(graph.add("Transpose", x, attributes={"perm": [1, 0, 2]}), final)


def with_segments(graph: Graph, segments: np.ndarray | None, ids: str, x: str, axis: int) -> str:
    """Add the embedding of each token's part, counted by <sep> along the axis of positions."""
    if segments is None:
        return x
    separators = graph.add("Cast", graph.add("Equal", ids, graph.constant(SEP, np.int64)), attributes={"to": INT64})
    counted = graph.add("CumSum", separators, graph.constant(axis, np.int64))
    part = graph.add("Min", counted, graph.constant(len(segments) - 1, np.int64))
    return graph.add("Add", x, graph.add("Gather", graph.constant(segments), part))


def _encoder_layer(
    graph: Graph, weights: Weights, options: ModelConfig, layer: int, read: tuple[str, str]
) -> tuple[str, list[str]]:
    """One layer on x `[S, B, I]` with lengths: its states `[S, B, H]`, 0 on padding, and its last state."""
    x, sizes = read
    kind, size, count = options.rnn_type, options.direction_size, 2 if options.both_directions else 1
    cells = [_onnx_cell(weights, f"encoder.layers.{layer}.{way}.", options) for way in range(count)]
    w_x, w_h, bias = (graph.constant(np.stack(part)) for part in zip(*cells, strict=True))
    attributes = {"hidden_size": size, "direction": "bidirectional" if count == 2 else "forward"}
    attributes |= {"linear_before_reset": 1} if kind == "gru" else {}
    parts = 2 if kind == "lstm" else 1
    states, *last = graph.add_many(kind.upper(), (x, w_x, w_h, bias, sizes), 1 + parts, attributes=attributes)
    states = graph.add("Transpose", states, attributes={"perm": [0, 2, 1, 3]})  # [S, B, directions, H]
    wide = graph.shape(0, 0, count * size)
    flat = [graph.add("Transpose", part, attributes={"perm": [1, 0, 2]}) for part in last]  # [B, directions, H]
    return (
        graph.add("Reshape", states, wide),
        [graph.add("Reshape", part, graph.shape(0, count * size)) for part in flat],
    )


def _onnx_cell(weights: Weights, name: str, options: ModelConfig) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """W, R and [b_W; b_R] of one direction in ONNX's order of gates."""
    order = ONNX_ORDER[options.rnn_type]
    w_x, w_h, b_x = (weights[name + part] for part in ("w_x", "w_h", "b_x"))
    b_h = np.zeros_like(b_x)
    if options.rnn_type == "gru":
        b_h[2 * w_h.shape[1] :] = weights[name + "b_n"]
    ordered = [np.concatenate([np.split(part, len(order))[i] for i in order]) for part in (w_x, w_h, b_x, b_h)]
    return ordered[0], ordered[1], np.concatenate(ordered[2:])


def bridge(graph: Graph, weights: Weights, options: ModelConfig, final: list[list[str]]) -> list[list[str]]:
    """The decoder's first state from the encoder's last, aligned at the top: that itself, or tanh(W h) and W' c.

    With the option `bridge` one function of h and c alike, with `bridge_from: top` of the top layer's h alone.
    """
    depths = (options.enc_layers, options.dec_layers)
    chosen = [final[max(0, depths[0] - depths[1] + layer)] for layer in range(depths[1])]
    if options.bridge_from == "top":
        chosen = [[final[-1][0]] * len(final[-1])] * depths[1]
    if "bridge.maps.0.weight" not in weights:
        return chosen
    width, number, states = weights["bridge.maps.0.weight"].shape[1], 0, []
    for state in chosen:
        mapped = []
        for part in state:
            name, half = f"bridge.maps.{number}.", part
            if width < options.memory_size:  # just the backward direction
                half = graph.add("Slice", part, graph.shape(width), graph.shape(options.memory_size), graph.shape(1))
            mapped.append(graph.linear(half, weights[name + "weight"], weights[name + "bias"]))
            number += 1
        function = {"tanh": "Tanh", "relu": "Relu"}.get(options.bridge or "")
        if options.bridge:
            states.append([graph.add(function, part) if function else part for part in mapped])
        else:
            states.append([graph.add("Tanh", mapped[0]), *mapped[1:]])
    return states


def stack_step(
    graph: Graph, weights: Weights, options: ModelConfig, x_gates: str, states: list[list[str]]
) -> list[list[str]]:
    """One step of all the decoder's layers from the first one's `x_gates` `[N, G·D]`."""
    new: list[list[str]] = []
    for layer, state in enumerate(states):
        name = f"stack.cells.{layer}."
        if layer:
            x_gates = graph.linear(new[-1][0], weights[name + "w_x"], weights[name + "b_x"])
        if options.rnn_type == "lstm":
            gates = graph.add("Add", x_gates, graph.linear(state[0], weights[name + "w_h"]))
            new.append(_lstm_step(graph, gates, state[1], options.hidden_size))
        else:
            bias = np.zeros(3 * options.hidden_size, np.float32)
            bias[2 * options.hidden_size :] = weights[name + "b_n"]
            h_gates = graph.linear(state[0], weights[name + "w_h"], bias)
            new.append([_gru_step(graph, x_gates, h_gates, state[0], options.hidden_size)])
    return new


def _lstm_step(graph: Graph, gates: str, c: str, size: int) -> list[str]:
    """c' = f·c + i·g, h' = o·tanh(c')."""
    squashed, fresh = graph.add_many("Split", (gates, graph.shape(3 * size, size)), 2, attributes={"axis": 1})
    i, f, o = graph.add_many(
        "Split", (graph.add("Sigmoid", squashed), graph.shape(*[size] * 3)), 3, attributes={"axis": 1}
    )
    c = graph.add("Add", graph.add("Mul", f, c), graph.add("Mul", i, graph.add("Tanh", fresh)))
    return [graph.add("Mul", o, graph.add("Tanh", c)), c]


def _gru_step(graph: Graph, x_gates: str, h_gates: str, h: str, size: int) -> str:
    """h' = n + z·(h − n), n = tanh(x_n + r·h_n)."""
    halves = graph.shape(2 * size, size)
    x_rz, x_n = graph.add_many("Split", (x_gates, halves), 2, attributes={"axis": 1})
    h_rz, h_n = graph.add_many("Split", (h_gates, halves), 2, attributes={"axis": 1})
    both = graph.add("Sigmoid", graph.add("Add", x_rz, h_rz))
    r, z = graph.add_many("Split", (both, graph.shape(size, size)), 2, attributes={"axis": 1})
    n = graph.add("Tanh", graph.add("Add", x_n, graph.add("Mul", r, h_n)))
    return graph.add("Add", n, graph.add("Mul", z, graph.add("Sub", h, n)))


def maxout(graph: Graph, weights: Weights, state: str, embedded: str, context: str) -> str:
    """t = max over pairs of U_o s + V_o E y + C_o c: `[N, R]`."""
    parts = [
        graph.linear(state, weights["readout.u_o.weight"], weights["readout.u_o.bias"]),
        graph.linear(embedded, weights["readout.v_o.weight"]),
        graph.linear(context, weights["readout.c_o.weight"]),
    ]
    pairs = graph.add("Add", graph.add("Add", parts[0], parts[1]), parts[2])
    pairs = graph.add("Reshape", pairs, graph.shape(0, -1, 2))
    return graph.add("ReduceMax", pairs, attributes={"axes": [2], "keepdims": 0})


def chosen_rows(graph: Graph, names: list[str], shapes: list[list[int | str]]) -> list[str]:
    """The state's tensors, each row taken from the row of the step before that it goes on from."""
    rows = graph.read("rows", INT64, ["rows"])
    return [
        graph.add("Gather", graph.read(name, FLOAT, ["rows_before", *shape]), rows)
        for name, shape in zip(names, shapes, strict=True)
    ]
