"""What the page writes is what Python writes over the same graphs: texts, scores, attention, however it searches."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tiny
from cli_tools import works
from mirada.config.configfile import changed
from mirada.translator import load
from tiny import MODELS, SOURCES, SPECIAL
from web_tools import modules, needs_node, needs_runtime, node

pytestmark = [needs_node, needs_runtime]
SYSTEMS: dict[str, tuple[Any, ...]] = {**{name: (name,) for name in MODELS}, **SPECIAL}
MARIAN = Path(__file__).parents[1] / "importing" / "marian"
IMPORTED = "imported"  # tokens of SentencePiece
FEW = ["luong", "copied subwords", IMPORTED]
TEXTS = [*SOURCES[:3], "", "the the cat cat fox", "żółw ĥ, the fox the\tquick", "a"]
WAYS: list[dict[str, Any]] = [
    {"beam_size": 1},
    {"beam_size": 5},
    {"beam_size": 4, "n_best": 3, "alpha": 0.0},
    {"beam_size": 3, "alpha": 3.0},
    {"beam_size": 3, "alpha": 3.0, "exact_stop": True},
    {"beam_size": 40, "n_best": 2},
    {"no_repeat_ngram_size": 2, "beam_size": 3},
    {"min_output_length": 6, "beam_size": 1},
    {"max_output_length": 4, "beam_size": 3, "n_best": 3},
    {"replace_unk": True},
]
SCRIPT = """
import * as ort from "./runtime/ort.wasm.min.mjs";
import {open} from "./engine.js";
ort.env.wasm.numThreads = 1;
const plain = one => ({...one, attention: one.attention && one.attention.map(row => [...row])});
const found = [];
for (const folder of given.folders) {
  const about = JSON.parse(readFileSync(`${folder}/about.json`, "utf-8"));
  const model = await open(ort, about, async name => new Uint8Array(readFileSync(`${folder}/model/${name}`)));
  for (const way of given.ways) for (const text of given.texts) {
    const told = [];
    const {source, outputs} = await model.translate(text, way, made => { told.push(made.output.tokens.length); });
    found.push({source, told, outputs: outputs.map(plain)});
  }
}
console.log(JSON.stringify(found));
"""


EVERY = pytest.param([*SYSTEMS, IMPORTED], marks=pytest.mark.slow)


@pytest.mark.parametrize("names", [FEW, EVERY], ids=["few", "every"])
def test_the_page_writes_what_python_writes(tmp_path: Path, names: list[str]) -> None:
    """Every flow, copied words and letters, windows, coverage, parts; all in one process of Node."""
    for name in names:
        if name == IMPORTED:
            works("import", MARIAN, "--out", tmp_path / name)
        else:
            decoder, *changes = SYSTEMS[name]
            tiny.write_folder(tmp_path / name, decoder, *changes)
        works("export", tmp_path / name, "--to", "web", "--out", tmp_path / "pages" / name)
    folders = [str(tmp_path / "pages" / name) for name in names]
    page = modules(tmp_path / "pages" / "luong")
    found = iter(node(page, SCRIPT, {"folders": folders, "texts": TEXTS, "ways": WAYS}))
    for name in names:
        model = load(tmp_path / name, device="cpu")
        for way in WAYS:
            options = changed(model.config.search, way)
            outputs = model.search(TEXTS, options=options, with_attention=model.has_attention)
            for text, row in zip(TEXTS, outputs, strict=True):
                same(next(found), row, (name, way, text))


def same(made: dict[str, Any], row: list[Any], where: object) -> None:
    assert [one["text"] for one in made["outputs"]] == [one.text for one in row], where
    for one, other in zip(made["outputs"], row, strict=True):
        assert tuple(one["tokens"]) == other.tokens, where
        assert (tuple(made["source"]["tokens"]), one["finished"]) == (other.source_tokens, other.finished), where
        np.testing.assert_allclose(one["score"], other.score, atol=1e-4)
        np.testing.assert_allclose(one["logP"], other.token_log_probabilities, atol=1e-4)
        if other.attention is not None:
            np.testing.assert_allclose(one["attention"], other.attention, atol=3e-5)
    written = row[0].tokens != ("</s>",)
    assert made["told"] == list(range(1, len(made["told"]) + 1)), where
    assert bool(made["told"]) == written or len(row[0].tokens) == 1, where
