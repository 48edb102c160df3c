"""Imported models say what their toolkits say, and every command takes them.

expected.json was written by the toolkit itself (benchmarks/peers/import_*.py): 50 pairs with tokens, log-probabilities
and greedy outputs.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cli_tools import works
from mirada.config.configfile import changed
from mirada.translator import Translator, load

HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def expected(toolkit: str) -> list[dict[str, Any]]:
    """What the toolkit says."""
    return list(json.loads((HERE / toolkit / "expected.json").read_text(encoding="utf-8"))["pairs"])


@pytest.fixture(scope="module")
def translator(model: Path) -> Translator:
    """The imported model."""
    return load(model, device="cpu")


def test_log_probabilities_are_the_toolkits(expected: list[dict[str, Any]], translator: Translator) -> None:
    assert len(expected) == 50
    scored = translator.score([pair["source"] for pair in expected], [pair["target"] for pair in expected])
    for pair, found in zip(expected, scored, strict=True):
        assert list(found.source_tokens) == pair["source_tokens"]
        assert list(found.tokens) == pair["target_tokens"]
        assert found.token_log_probabilities == pytest.approx(pair["log_probabilities"], abs=1e-4)


def test_greedy_outputs_are_the_toolkits(toolkit: str, expected: list[dict[str, Any]], translator: Translator) -> None:
    limit = json.loads((HERE / toolkit / "expected.json").read_text(encoding="utf-8")).get("limit", 20)
    options = changed(translator.config.search, {"beam_size": 1, "max_output_length": limit})
    found = translator.search([pair["source"] for pair in expected], options=options)
    assert [list(outputs[0].tokens) for outputs in found] == [pair["greedy"] for pair in expected]
    assert len({tuple(pair["greedy"]) for pair in expected}) > 10, "the outputs say nothing about the sources"


def test_every_command_takes_them(expected: list[dict[str, Any]], model: Path, tmp_path: Path) -> None:
    pairs = expected[:3]
    source, target = tmp_path / "source", tmp_path / "target"
    source.write_text("".join(f"{pair['source']}\n" for pair in pairs), encoding="utf-8")
    target.write_text("".join(f"{pair['target']}\n" for pair in pairs), encoding="utf-8")
    text = source.read_text(encoding="utf-8")
    outputs = works("translate", model, "--max-output-length", 20, given=text)
    assert len(outputs.lines) == 3
    assert len(works("score", model, "--src", source, "--tgt", target).lines) == 3
    if load(model, device="cpu").has_attention:
        assert len(works("align", model, "--src", source, "--tgt", target).lines) == 3
    traces = tmp_path / "how.json"
    given = [pairs[0]["source"], "--reference", pairs[0]["target"]]
    works("explain", model, *given, "--format", "json", "--output", traces)
    works("explain", "--verify", traces, model)
    exported = tmp_path / "onnx"
    works("export", model, "--to", "onnx", "--out", exported)
    assert works("translate", exported, "--max-output-length", 20, given=text).output == outputs.output
