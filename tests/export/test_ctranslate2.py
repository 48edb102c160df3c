"""A Transformer in CTranslate2 says what it says here."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest

import tiny
from cli_tools import refusal, works
from mirada.config.configfile import changed
from mirada.translator import Translator, load

ctranslate2 = pytest.importorskip("ctranslate2")
TRANSFORMER = pytest.mark.parametrize("model_folder", ["transformer"], indirect=True)


def lines(count: int) -> list[str]:
    draw, words = random.Random(1), " ".join(tiny.SOURCES).split()
    return [" ".join(draw.choices(words, k=draw.randint(1, 12))) for _ in range(count)]


def assert_same(translator: Translator, folder: Path) -> None:
    texts = lines(100)
    options = changed(translator.config.search, {"beam_size": 1, "max_output_length": 12})
    expected = [outputs[0] for outputs in translator.search(texts, options=options)]
    engine = ctranslate2.Translator(str(folder), device="cpu", intra_threads=1)
    sources = [list(one.source_tokens[:-1]) for one in expected]
    found = engine.translate_batch(sources, beam_size=1, max_decoding_length=12)
    written = [list(one.tokens[: len(one.tokens) - one.finished]) for one in expected]
    assert [one.hypotheses[0] for one in found] == written
    scored = translator.score(tiny.SOURCES, tiny.TARGETS)
    pairs = ([list(one.source_tokens[:-1]) for one in scored], [list(one.tokens[:-1]) for one in scored])
    by_engine = engine.score_batch(*pairs)
    for one, other in zip(scored, by_engine, strict=True):
        np.testing.assert_allclose(other.log_probs, one.token_log_probabilities, atol=1e-4)


@TRANSFORMER
def test_the_same_outputs_pre_norm(model_folder: Path, translator: Translator, tmp_path: Path) -> None:
    ran = works("export", model_folder, "--to", "ctranslate2", "--out", tmp_path / "ct2")
    assert " MB for CTranslate2 in float32" in ran.errors
    assert_same(translator, tmp_path / "ct2")


@pytest.mark.parametrize("activation", ["gelu", "relu", "swish"])
def test_the_same_outputs_post_norm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, activation: str) -> None:
    """Two layers on one side, one on the other, nothing shared."""
    changes = {
        "norm": "post",
        "activation": activation,
        "enc_layers": 2,
        "tied_softmax": False,
        "tied_embeddings": False,
    }
    monkeypatch.setitem(tiny.MODELS, "transformer", {**tiny.MODELS["transformer"], **changes})
    model = tiny.write_folder(tmp_path / "model", "transformer")
    works("export", model, "--to", "ctranslate2", "--out", tmp_path / "ct2")
    assert_same(load(model, device="cpu"), tmp_path / "ct2")


def test_what_other_toolkits_transformers_have(tmp_path: Path) -> None:
    """Their ε, wavelengths and number of the first position, and sources without </s>."""
    places = {"position_encoding": "tensor2tensor", "first_position": 2}
    changes = {"model": {"norm_eps": 1e-3, "add_source_eos": False, **places}}
    model = tiny.write_folder(tmp_path / "model", "transformer", changes)
    works("export", model, "--to", "ctranslate2", "--out", tmp_path / "ct2")
    assert_same(load(model, device="cpu"), tmp_path / "ct2")


@TRANSFORMER
def test_8_bits_make_it_smaller(model_folder: Path, tmp_path: Path) -> None:
    for precision in ("float32", "int8"):
        works("export", model_folder, "--to", "ctranslate2", "--precision", precision, "--out", tmp_path / precision)
    sizes = [(tmp_path / precision / "model.bin").stat().st_size for precision in ("float32", "int8")]
    assert sizes[1] < sizes[0]


@pytest.mark.parametrize("model_folder", ["luong"], indirect=True)
def test_other_systems_are_refused(model_folder: Path, tmp_path: Path) -> None:
    line = refusal("export", model_folder, "--to", "ctranslate2", "--out", tmp_path / "x")
    assert line == "CTranslate2 runs Transformers only; this model's decoder is luong: use --to onnx"
    assert not list(tmp_path.iterdir())
