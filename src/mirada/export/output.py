"""What a search reads of a step, as operations: words' log-probabilities, and of models that copy the source's words.

The equations are those of models/copying.py.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mirada.config.options import ModelConfig
from mirada.data.vocabulary import BOS, PAD, UNK
from mirada.export.attention import by_row, by_sentence
from mirada.export.graph import FLOAT, INT64, Graph
from mirada.export.layers import Weights


class Copied(NamedTuple):
    """How a step copies."""

    gate: str  # [N, 1] p_gen before the sigmoid
    weights: str  # [N, S] α_t


def read_word(graph: Graph, weights: Weights, options: ModelConfig, token: str) -> str:
    """E[y_{t-1}] of ids `[N]`: `[N, E]`. What no entry has, a copied word, is read as <unk>."""
    table = weights["embedding.weight"]
    if options.copy_attn:
        known = graph.add("Less", token, graph.constant(len(table), np.int64))
        token = graph.add("Where", known, token, graph.constant(UNK, np.int64))
    return graph.add("Gather", graph.constant(table), token)


def copying(graph: Graph, weights: Weights, read: tuple[str, str, str], attention: str) -> Copied:
    """p_gen = σ(w_cᵀ c_t + w_sᵀ s_t + w_xᵀ x_t + b): contexts `[N, H]`, states `[N, D]` and words `[N, E]`."""
    both = graph.add("Concat", *read, attributes={"axis": 1})
    return Copied(graph.linear(both, weights["copy_gate.w.weight"], weights["copy_gate.w.bias"]), attention)


def predict(graph: Graph, weights: Weights, hidden: str, copied: Copied | None = None) -> None:
    """What a search reads: every word's log-probability, and of each row the `count` best continuations."""
    bias = weights["output.bias"].copy()
    bias[[PAD, BOS]] = -np.inf  # no output contains them
    logits, words = graph.linear(hidden, weights["output.weight"], bias), len(bias)  # [N, V]
    if copied is None:
        log_p = graph.add("LogSoftmax", logits, attributes={"axis": 1})
    else:
        log_p = _mixture(graph, logits, copied)
    best = graph.add_many("TopK", (log_p, graph.read("count", INT64, [1])), 2, attributes={"axis": 1})
    graph.give("log_probabilities", log_p, FLOAT, ["rows", words if copied is None else f"{words}+source"])
    graph.give("best", best[0], FLOAT, ["rows", "count"])
    graph.give("best_tokens", best[1], INT64, ["rows", "count"])


def _mixture(graph: Graph, logits: str, copied: Copied) -> str:
    """ln (p_gen P_vocab(w) + (1 − p_gen) Σ_{j: x_j = w} α_tj): `[N, V + S]`, −∞ for what no position holds."""
    # σ(g) and 1 − σ(g) as the softmax of g and 0: ONNX Runtime's Sigmoid has an error of 1e-7 however small the value.
    gates = graph.add("Concat", copied.gate, graph.add("Mul", copied.gate, graph.constant(0)), attributes={"axis": 1})
    shares = graph.add("Softmax", gates, attributes={"axis": 1})
    p_gen, p_copy = graph.add_many("Split", (shares, graph.shape(1, 1)), 2, attributes={"axis": 1})  # [N, 1]
    spoken = graph.add("Mul", graph.add("Softmax", logits, attributes={"axis": 1}), p_gen)
    room = graph.add("Mul", copied.weights, graph.constant(0))  # [N, S]
    lent = graph.add("Mul", copied.weights, p_copy)
    shape = graph.add("Shape", by_sentence(graph, copied.weights))  # B, K, S
    ids = by_row(graph, graph.add("Expand", graph.add("Unsqueeze", "copies", graph.shape(1)), shape))
    words = graph.add("Concat", spoken, room, attributes={"axis": 1})
    sums = graph.add("ScatterElements", words, ids, lent, attributes={"axis": 1, "reduction": "add"})
    return graph.add("Log", sums)
