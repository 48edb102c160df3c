"""Every system as graphs: the same numbers as its encode, start and step."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnxruntime
import pytest
import torch

from mirada.config.options import ModelConfig
from mirada.data.vocabulary import SEP
from mirada.export.graph import MOST, Graph, in_bytes
from mirada.export.onnx_folder import graphs_of, names_of, weights_of
from mirada.search.step import log_probabilities
from mirada.trees import select_rows
from systems import ATTENTIVE, COPIED, COPIES, FAMILIES, LENGTHS, SOURCE, TARGET, Options, build, some_systems

BEAMS = 2
SIZES: Options = {"embedding_dim": 4, "hidden_size": 6, "segments": 2}
PARTS: list[Options] = [
    {"decoder": "luong", "reverse_source": True, **SIZES},
    {"decoder": "transformer", "embedding_dim": 4, "segments": 2},
]
COPYING = [{**options, "copy_attn": True} for family in ATTENTIVE for options in some_systems(*family)[1::5]]
COPYING.append({"decoder": "transformer", "embedding_dim": 4, "num_heads": 2, "copy_attn": True, "copy_head": 2})
NEAR: list[Options] = [
    {"decoder": "luong", "attention_window": "local-m", "window": 1, "copy_attn": True},
    {"decoder": "bahdanau", "attention_window": "local-m", "window": 2, "reverse_source": True, "coverage": True},
    {"decoder": "luong", "attention_window": "local-p", "window": 2, "score": "dot"},
    {"decoder": "bahdanau", "attention_window": "local-p", "window": 1, "coverage": True, "rnn_type": "gru"},
    {"decoder": "bahdanau", "coverage": True, "copy_attn": True, "attention_size": 5},
    {"decoder": "luong", "coverage": True, "score": "concat", "input_feeding": False, "dec_layers": 2},
]
WHOLE = [options for family in FAMILIES for options in some_systems(*family)[::4]]
SYSTEMS = [*WHOLE, *PARTS, *COPYING, *({**SIZES, **options} for options in NEAR)]


def name(options: Options) -> str:
    return "-".join(str(value) for value in options.values())


def run(graph: Graph, feeds: dict[str, Any]) -> dict[str, np.ndarray]:
    session = onnxruntime.InferenceSession(graph.model().SerializeToString(), providers=["CPUExecutionProvider"])
    names = [node.name for node in session.get_outputs()]
    wanted = {node.name for node in session.get_inputs()}
    return dict(zip(names, session.run(names, {key: feeds[key] for key in wanted}), strict=True))


@pytest.mark.parametrize("options", SYSTEMS, ids=name)
def test_graphs_say_what_the_model_says(options: Options) -> None:
    """Three sentences of different lengths, two hypotheses each that cross over, four steps."""
    model, config = build(options, dtype=torch.float32), ModelConfig(**options)
    graphs, names = graphs_of(weights_of(model), config, "float32"), names_of(config)
    source = SOURCE.where(SOURCE != 9, SEP)
    rows = torch.arange(3).repeat_interleave(BEAMS)
    copies, target = (COPIES, COPIED) if config.copy_attn else (None, TARGET)
    with torch.inference_mode():
        memory = model.encode(source, LENGTHS, copies)
        state = select_rows(model.start(memory), rows)
        values = run(graphs["encode"], {"source": source.numpy(), "lengths": LENGTHS.numpy()})
        values |= run(graphs["start"], values) | ({} if copies is None else {"copies": copies.numpy()})
        assert set(names.memory) | set(names.final) | set(names.state) <= set(values)
        for t in range(4):
            token = target[:, t].repeat_interleave(BEAMS)
            step = model.step(token, state, memory)
            feeds = {"token": token.numpy(), "rows": rows.numpy(), "count": np.array([3])}
            found = run(graphs["step"], {**values, **feeds})
            same(found, step)
            rows = torch.tensor([1, 0, 3, 2, 4, 4])  # beams that cross over, one that two go on from
            state = select_rows(step.state, rows)
            values |= {part: found[f"new.{part}"] for part in names.state}


def same(found: dict[str, np.ndarray], step: Any) -> None:
    expected = log_probabilities(step.logits.clone())
    best = expected.topk(3)
    np.testing.assert_allclose(found["log_probabilities"], expected.numpy(), atol=1e-5)
    np.testing.assert_allclose(found["best"], best.values.numpy(), atol=1e-5)
    np.testing.assert_array_equal(found["best_tokens"], best.indices.numpy())
    assert ("attention" in found) == (step.attention is not None)
    if step.attention is not None:
        np.testing.assert_allclose(found["attention"], step.attention.numpy(), atol=1e-5)


def test_products_in_8_bits_are_whole_numbers_times_two_scales() -> None:
    """By hand: whole numbers to 64; a product that equals its own arithmetic in float64, alone and beside others."""
    draw = np.random.default_rng(1)
    weight, bias, x = (draw.normal(size=size).astype(np.float32) for size in ((64, 70), (64,), (5, 70)))
    scales, rounded = in_bytes(weight)
    assert (np.abs(rounded).max(1) == MOST).all()
    assert 2 * 255 * MOST < 1 << 15
    assert np.abs(scales[:, None] * rounded.astype(float) - weight).max() <= scales.max() / 2 + 1e-7
    graph = Graph("product", "int8")
    graph.give("y", graph.linear(graph.read("x", 1, ["rows", 70]), weight, bias), 1, ["rows", 64])
    own = np.abs(x).max(1, keepdims=True) / np.float32(127)
    sums = np.rint(x / own).astype(np.int64) @ rounded.astype(np.int64).T
    found = run(graph, {"x": x})["y"]
    np.testing.assert_allclose(found, sums * own.astype(float) * scales + bias, rtol=1e-5, atol=1e-5)
    assert np.abs(found - (x @ weight.T + bias)).max() < 0.5
    np.testing.assert_array_equal(run(graph, {"x": x[2:3]})["y"], found[2:3])


def test_a_row_of_zeros_is_nothing_in_8_bits() -> None:
    graph = Graph("product", "int8")
    weight = np.ones((64, 64), np.float32)
    graph.give("y", graph.linear(graph.read("x", 1, ["rows", 64]), weight), 1, ["rows", 64])
    assert not run(graph, {"x": np.zeros((1, 64), np.float32)})["y"].any()
