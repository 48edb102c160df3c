"""Attention of the recurrent systems as operations: scores, windows, coverage, weights and the context.

Each says what models/attention.py and models/local.py say. Values are names in a graph; shapes stand beside them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from mirada.config.options import ModelConfig
from mirada.export.graph import BOOL, FLOAT, INT64, Graph
from mirada.export.layers import Weights

MASKED = float(np.finfo(np.float32).min)
Past = Mapping[str, str]  # what is known of earlier steps, by name: each [N, …]


class Attended(NamedTuple):
    """What attending to the source gives."""

    weights: str  # [N, S]
    context: str  # [N, H]
    past: list[str]  # the same of this step and the earlier ones


def memory_names(options: ModelConfig) -> dict[str, tuple[int, list[int | str]]]:
    """What a recurrent decoder may look at while it writes: kinds and shapes by name."""
    if not options.has_attention:
        return {}
    names: dict[str, tuple[int, list[int | str]]] = {
        "mask": (BOOL, ["sentences", "source"]),
        "states": (FLOAT, ["sentences", "source", options.memory_size]),
    }
    if options.score_name not in ("dot", "scaled_dot"):  # whose keys are the states
        sizes = {"general": options.hidden_size}
        wide = sizes.get(str(options.score_name), options.attention_size or options.hidden_size)
        names["keys"] = (FLOAT, ["sentences", "source", wide])
    return names | copies_name(options)


def copies_name(options: ModelConfig) -> dict[str, tuple[int, list[int | str]]]:
    """What a model that copies is told, rather than reads: the id that each source position would write."""
    return {"copies": (INT64, ["sentences", "source"])} if options.copy_attn else {}


def past_names(options: ModelConfig) -> dict[str, list[int | str]]:
    """What attention depends on of earlier steps: shapes behind the rows, by name."""
    names: dict[str, list[int | str]] = {}
    if options.attention_window == "local-m":
        names["steps"] = []
    if options.coverage:
        names["coverage"] = ["source"]
    return names


def no_past(graph: Graph, options: ModelConfig) -> list[str]:
    """The same before the first step, from the mask."""
    if not past_names(options):
        return []
    mask = graph.read("mask", BOOL, ["sentences", "source"])
    coverage = graph.add("Mul", graph.add("Cast", mask, attributes={"to": FLOAT}), graph.constant(0))  # [B, S]
    steps = graph.add("ReduceSum", coverage, graph.shape(1), attributes={"keepdims": 0})  # [B]
    zeros = {"steps": steps, "coverage": coverage}
    return [zeros[name] for name in past_names(options)]


def keys(graph: Graph, weights: Weights, options: ModelConfig, states: str) -> str:
    """What the score compares with, `[B, S, A]`, once a sentence."""
    if options.score_name == "additive":
        return graph.linear(states, weights["score.u_a.weight"], weights.get("score.u_a.bias"), rank=3)
    if options.score_name == "concat":
        w_a, bias = weights["score.w_a.weight"][:, options.hidden_size :], weights.get("score.w_a.bias")
        return graph.linear(states, w_a, bias, rank=3)
    return graph.linear(states, weights["score.w_a.weight"], rank=3)


def attend(graph: Graph, weights: Weights, options: ModelConfig, query: str, past: Past) -> Attended:
    """Scores of queries `[N, D]`, the softmax over the real positions, and the context; N rows are B × K."""
    scores = _scores(graph, weights, options, query, past)  # [B, K, S]
    mask, factor = _window(graph, weights, options, query, past)
    filled = graph.add("Where", mask, scores, graph.constant(MASKED))
    alpha = graph.add("Softmax", filled, attributes={"axis": -1})
    alpha = alpha if factor is None else graph.add("Mul", alpha, factor)
    context = graph.add("MatMul", alpha, "states")  # [B, K, H]
    flat = by_row(graph, alpha)
    after = {"steps": ("steps", graph.constant(1)), "coverage": ("coverage", flat)}
    new = [graph.add("Add", past[after[name][0]], after[name][1]) for name in past_names(options)]
    return Attended(flat, graph.add("Reshape", context, graph.shape(-1, options.memory_size)), new)


def _window(graph: Graph, weights: Weights, options: ModelConfig, query: str, past: Past) -> tuple[str, str | None]:
    """Where each query may look, `[B, 1 or K, S]`, and what multiplies its weights."""
    real = graph.add("Unsqueeze", "mask", graph.shape(1))  # [B, 1, S]
    if options.attention_window == "global":
        return real, None
    numbers = graph.add("Cast", real, attributes={"to": FLOAT})
    lengths = graph.add("ReduceSum", numbers, graph.shape(2), attributes={"keepdims": 1})  # [B, 1, 1]
    if options.attention_window == "local-m":
        last = graph.add("Sub", lengths, graph.constant(1))
        middle = graph.add("Min", by_sentence(graph, past["steps"], 1), last)  # [B, K, 1]
    else:
        inner = graph.add("Tanh", graph.linear(query, weights["window.w_p.weight"]))
        share = graph.add("Sigmoid", graph.linear(inner, weights["window.v_p.weight"]))  # [N, 1]
        middle = graph.add("Mul", by_sentence(graph, share, 1), lengths)
    places = graph.add("Range", graph.shape(0), source_width(graph), graph.shape(1))
    far = graph.add("Sub", graph.add("Cast", places, attributes={"to": FLOAT}), middle)  # [B, K, S] j − p_t
    near = graph.add("LessOrEqual", graph.add("Abs", far), graph.constant(options.window))
    mask = graph.add("And", real, near)
    return mask, _gaussian(graph, far, options.window) if options.attention_window == "local-p" else None


def _gaussian(graph: Graph, far: str, reach: int) -> str:
    """exp(−(j − p_t)² / 2σ²), σ = D/2."""
    part = graph.add("Div", far, graph.constant(reach))
    return graph.add("Exp", graph.add("Mul", graph.add("Mul", part, part), graph.constant(-2)))


def _scores(graph: Graph, weights: Weights, options: ModelConfig, query: str, past: Past) -> str:
    kind, v = options.score_name, weights.get("score.v_a")
    if kind == "additive":
        query = graph.linear(query, weights["score.w_a.weight"])
    if kind == "concat":
        query = graph.linear(query, weights["score.w_a.weight"][:, : options.hidden_size])
    if kind == "scaled_dot":
        query = graph.add("Mul", query, graph.constant(1 / math.sqrt(options.hidden_size)))
    query = by_sentence(graph, query, options.hidden_size if v is None else len(v))  # [B, K, A]
    compared = "states" if kind in ("dot", "scaled_dot") else "keys"
    if v is None:
        return graph.add("MatMul", query, graph.add("Transpose", compared, attributes={"perm": [0, 2, 1]}))
    pairs = graph.add(
        "Add", graph.add("Unsqueeze", query, graph.shape(2)), graph.add("Unsqueeze", compared, graph.shape(1))
    )
    if options.coverage:
        covered = graph.add("Unsqueeze", by_sentence(graph, past["coverage"]), graph.shape(3))  # [B, K, S, 1]
        pairs = graph.add("Add", pairs, graph.add("Mul", covered, graph.constant(weights["score.w_c"])))
    energy = graph.add("MatMul", graph.add("Tanh", pairs), graph.constant(v[:, None]))  # [B, K, S, 1]
    return graph.add("Squeeze", energy, graph.shape(3))


def source_width(graph: Graph) -> str:
    """S, as one whole number."""
    return graph.add("Gather", graph.add("Shape", "mask"), graph.shape(1))


def by_sentence(graph: Graph, rows: str, width: int | None = None) -> str:
    """`[N, D]` → `[B, K, D]`, or without a width `[N, S]` → `[B, K, S]`."""
    sentences = graph.add("Gather", graph.add("Shape", "mask"), graph.shape(0))
    last = source_width(graph) if width is None else graph.shape(width)
    return graph.add("Reshape", rows, graph.add("Concat", sentences, graph.shape(-1), last, attributes={"axis": 0}))


def by_row(graph: Graph, part: str) -> str:
    """`[B, K, S]` → `[N, S]`."""
    shape = graph.add("Concat", graph.shape(-1), source_width(graph), attributes={"axis": 0})
    return graph.add("Reshape", part, shape)
