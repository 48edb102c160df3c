"""Classic, Bahdanau and Luong as three graphs each: encode, start, step. The equations are those of models/."""

from __future__ import annotations

from typing import NamedTuple

from mirada.config.options import ModelConfig
from mirada.export.attention import Attended, attend, copies_name, keys, memory_names, no_past, past_names
from mirada.export.graph import FLOAT, INT64, Graph, Precision
from mirada.export.layers import (
    Weights,
    bridge,
    chosen_rows,
    encode,
    layer_names,
    maxout,
    read_lengths,
    real_positions,
    stack_step,
)
from mirada.export.output import copying, predict, read_word


def state_names(options: ModelConfig) -> dict[str, list[int | str]]:
    """What the decoder keeps from step to step: shapes behind the rows, by name."""
    names = [name for layer in layer_names(options, options.dec_layers) for name in layer]
    if options.feed_context:
        names.append("c")
    if options.feeds_input:
        names.append("s_tilde" if options.decoder == "luong" else "fed")
    wide: dict[str, list[int | str]] = {name: [options.hidden_size] for name in names}
    return wide | past_names(options)


def final_names(options: ModelConfig) -> list[str]:
    """What the decoder's first state is made from, but for the mask."""
    return [name for layer in layer_names(options, options.enc_layers, ("final", "final_cell")) for name in layer]


def graphs(weights: Weights, options: ModelConfig, precision: Precision) -> dict[str, Graph]:
    """The three graphs of a recurrent system."""
    return {
        "encode": _encode(weights, options, precision),
        "start": _start(weights, options, precision),
        "step": _step(weights, options, precision),
    }


def _encode(weights: Weights, options: ModelConfig, precision: Precision) -> Graph:
    graph = Graph("encode", precision)
    source = graph.read("source", INT64, ["sentences", "source"])
    lengths = read_lengths(graph, options)
    encoded = encode(graph, weights, options, (source, lengths))
    known = {"states": encoded.states, "mask": real_positions(graph, source, lengths)}
    for name, (kind, shape) in memory_names(options).items():
        if name not in copies_name(options):
            value = keys(graph, weights, options, encoded.states) if name == "keys" else known[name]
            graph.give(name, value, kind, shape)
    values = [part for layer in encoded.final for part in layer]
    for name, value in zip(final_names(options), values, strict=True):
        graph.give(name, value, FLOAT, ["sentences", options.memory_size])
    return graph


def _start(weights: Weights, options: ModelConfig, precision: Precision) -> Graph:
    graph = Graph("start", precision)
    for name in final_names(options):
        graph.read(name, FLOAT, ["sentences", options.memory_size])
    final = layer_names(options, options.enc_layers, ("final", "final_cell"))
    values = _summary(graph, weights, options, final[-1][0]) if options.feed_context else None
    if values is None:
        values = [part for layer in bridge(graph, weights, options, final) for part in layer]
        if options.feeds_input:
            values.append(graph.add("Mul", values[-len(final[0])], graph.constant(0)))  # s̃_0
    values += no_past(graph, options)
    for (name, shape), value in zip(state_names(options).items(), values, strict=True):
        graph.give(name, value, FLOAT, ["sentences", *shape])
    return graph


def _summary(graph: Graph, weights: Weights, options: ModelConfig, last: str) -> list[str]:
    """Cho's c = tanh(V h_T), s_0 = tanh(V' c), and c itself, which every step reads."""
    context = graph.add("Tanh", graph.linear(last, weights["summary.weight"], weights["summary.bias"]))
    values = []
    for layer in range(options.dec_layers):
        name = f"starts.{layer}."
        values.append(graph.add("Tanh", graph.linear(context, weights[name + "weight"], weights[name + "bias"])))
        values += [graph.add("Mul", context, graph.constant(0))] if options.rnn_type == "lstm" else []
    return [*values, context]


def _step(weights: Weights, options: ModelConfig, precision: Precision) -> Graph:
    graph = Graph("step", precision)
    token, shapes = graph.read("token", INT64, ["rows"]), state_names(options)
    state = dict(zip(shapes, chosen_rows(graph, list(shapes), list(shapes.values())), strict=True))
    for name, (kind, shape) in memory_names(options).items():
        graph.read(name, kind, shape)
    embedded = read_word(graph, weights, options, token)  # y_{t-1} [N, E]
    gates = graph.linear(embedded, weights["stack.cells.0.w_x"], weights["stack.cells.0.b_x"])
    layers = [[state[name] for name in layer] for layer in layer_names(options, options.dec_layers)]
    flow = {"classic": _classic, "bahdanau": _bahdanau, "luong": _luong}[options.decoder]
    found = flow(graph, weights, options, (embedded, gates), (layers, state))
    copied, new = None, [*(part for layer in found.layers for part in layer), *found.more]
    if found.attended is not None:
        attended, new = found.attended, [*new, *found.attended.past]
        if options.copy_attn:
            read = (attended.context, found.layers[-1][0], embedded)
            copied = copying(graph, weights, read, attended.weights)
        graph.give("attention", attended.weights, FLOAT, ["rows", "source"])
    predict(graph, weights, found.hidden, copied)
    for (name, shape), value in zip(shapes.items(), new, strict=True):
        graph.give(f"new.{name}", value, FLOAT, ["rows", *shape])
    return graph


Word = tuple[str, str]  # the embedding of y_{t-1} [N, E], and what it brings to the gates [N, G·D]
State = tuple[list[list[str]], dict[str, str]]  # the layers' states, and everything by name


class Flow(NamedTuple):
    """What a step of a decoder comes to."""

    hidden: str  # [N, R] what the output layer reads
    layers: list[list[str]]  # s_t of each layer
    more: list[str]  # what else it keeps
    attended: Attended | None


def _classic(graph: Graph, weights: Weights, options: ModelConfig, word: Word, state: State) -> Flow:
    (embedded, gates), (layers, named) = word, state
    if options.feed_context:
        gates = graph.add("Add", gates, graph.linear(named["c"], weights["context_gates.weight"]))
    if options.feeds_input:
        gates = graph.add("Add", gates, graph.linear(named["fed"], weights["feed_gates.weight"]))
    new = stack_step(graph, weights, options, gates, layers)
    if not options.feed_context:
        return Flow(new[-1][0], new, [new[-1][0]] if options.feeds_input else [], None)
    return Flow(maxout(graph, weights, new[-1][0], embedded, named["c"]), new, [named["c"]], None)


def _bahdanau(graph: Graph, weights: Weights, options: ModelConfig, word: Word, state: State) -> Flow:
    (embedded, gates), (layers, named) = word, state
    # 1. attend with s_{t-1}
    attended = attend(graph, weights, options, layers[-1][0], named)
    # 2. update with [c_t; y_{t-1}]
    gates = graph.add("Add", gates, graph.linear(attended.context, weights["context_gates.weight"]))
    new = stack_step(graph, weights, options, gates, layers)
    # 3. predict from s_t
    hidden = new[-1][0]
    if options.has_maxout:
        hidden = maxout(graph, weights, hidden, embedded, attended.context)
    return Flow(hidden, new, [], attended)


def _luong(graph: Graph, weights: Weights, options: ModelConfig, word: Word, state: State) -> Flow:
    (_, gates), (layers, named) = word, state
    # 1. update from y_{t-1} (and s̃_{t-1})
    if options.feeds_input:
        gates = graph.add("Add", gates, graph.linear(named["s_tilde"], weights["feed_gates.weight"]))
    new = stack_step(graph, weights, options, gates, layers)
    # 2. attend with s_t
    attended = attend(graph, weights, options, new[-1][0], named)
    # 3. the attentional state s̃_t, from which the word is predicted
    both = graph.add("Concat", attended.context, new[-1][0], attributes={"axis": 1})
    hidden = graph.linear(both, weights["w_c.weight"], weights.get("w_c.bias"))
    hidden = graph.add("Tanh", hidden) if options.attentional == "tanh" else hidden
    return Flow(hidden, new, [hidden] if options.feeds_input else [], attended)
