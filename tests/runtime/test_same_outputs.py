"""Exported models give what torch gives: texts, scores, attention, in every way of searching."""

from __future__ import annotations

from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from cli_tools import works
from mirada import runtime
from mirada.config.configfile import changed
from mirada.config.options import SearchConfig
from mirada.runtime.sampling import uniforms
from mirada.translator import Translator
from tiny import MODELS, SOURCES, SPECIAL, TARGETS

EVERY = pytest.mark.parametrize("model_folder", [*MODELS, *SPECIAL], indirect=True, scope="session")
TEXTS = [*SOURCES, "", "the the cat cat fox", "a", SOURCES[1], "żółw ĥ, the fox the\tquick"]
PREFIXES = ["el zorro", "", "un", "el gato y el perro que ve la casa vieja", "", "", "", "", "ñ", "la", "żó"]
WAYS: list[dict[str, Any]] = [
    {"beam_size": 1},
    {"beam_size": 5},
    {"beam_size": 5, "n_best": 4, "alpha": 0.0},
    {"beam_size": 3, "alpha": 3.0},
    {"beam_size": 3, "alpha": 3.0, "exact_stop": True},
    {"beam_size": 100, "n_best": 3},
    {"sample": True, "n_best": 3},
    {"sample": True, "sample_seed": 2**40 + 7, "top_k": 5, "top_p": 0.8, "temperature": 1.5},
    {"no_repeat_ngram_size": 2},
    {"no_repeat_ngram_size": 1, "beam_size": 1},
    {"min_output_length": 6},
    {"max_output_length": 4, "n_best": 2},
    {"min_output_length": 3, "max_output_length": 3, "sample": True},
    {"replace_unk": True},
]
SAMPLED = SearchConfig(sample=True, n_best=5)


@pytest.fixture(scope="module")
def exported(exported_folder: Path) -> runtime.Translator:
    return runtime.load(exported_folder)


@EVERY
@pytest.mark.parametrize("way", WAYS, ids=str)
def test_the_same_outputs(translator: Translator, exported: runtime.Translator, way: dict[str, Any]) -> None:
    options = changed(translator.config.search, way)
    expected = translator.search(TEXTS, options=options, with_attention=True)
    same(exported.search(TEXTS, options=options, with_attention=True), expected)


@EVERY
def test_the_same_beginnings(translator: Translator, exported: runtime.Translator) -> None:
    for way in ({}, {"beam_size": 1}, {"sample": True}):
        options = changed(translator.config.search, way)
        expected = translator.search(TEXTS, options=options, prefixes=PREFIXES)
        same(exported.search(TEXTS, options=options, prefixes=PREFIXES), expected)


def same(found: list[list[Any]], expected: list[list[Any]]) -> None:
    assert [[one.text for one in row] for row in found] == [[one.text for one in row] for row in expected]
    for one, other in zip(chain.from_iterable(found), chain.from_iterable(expected), strict=True):
        assert (one.tokens, one.finished, one.source_tokens, one.source_words) == (
            other.tokens,
            other.finished,
            other.source_tokens,
            other.source_words,
        )
        np.testing.assert_allclose(one.score, other.score, atol=1e-4)
        np.testing.assert_allclose(one.token_log_probabilities, other.token_log_probabilities, atol=1e-4)
        assert (one.attention is None) == (other.attention is None)
        if one.attention is not None and other.attention is not None:
            np.testing.assert_allclose(one.attention, other.attention, atol=1e-5)


@EVERY
def test_a_sentence_alone_is_what_it_is_in_any_batch(exported: runtime.Translator) -> None:
    together = exported.search(TEXTS, batch_size=4)
    alone = [exported.search([text])[0] for text in TEXTS]
    assert [[one.text for one in row] for row in together] == [[one.text for one in row] for row in alone]
    assert [row[0].text for row in exported.stream(iter(TEXTS), batch_size=2)] == [row[0].text for row in together]


@EVERY
def test_the_same_scores(translator: Translator, exported: runtime.Translator) -> None:
    sources, targets = [*SOURCES, TEXTS[-1], ""], [*TARGETS, "el zorro, żółw ĥ ĥ que", "la"]
    expected = translator.score(sources, targets, with_attention=True)
    for found, one in zip(exported.score(sources, targets, batch_size=4, with_attention=True), expected, strict=True):
        assert (found.tokens, found.source_tokens) == (one.tokens, one.source_tokens)
        np.testing.assert_allclose(found.token_log_probabilities, one.token_log_probabilities, atol=1e-4)
        if one.attention is not None:
            np.testing.assert_allclose(np.asarray(found.attention), one.attention, atol=1e-5)


@pytest.mark.parametrize("seed", [0, 1, 12345, 2**32 + 5, 2**62 + 3])
def test_random_numbers_are_torchs(seed: int) -> None:
    expected = torch.rand(7, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    np.testing.assert_array_equal(uniforms(seed, 7, 3), expected.numpy())


@EVERY
def test_commands_take_an_exported_model_for_a_model(model_folder: Path, exported_folder: Path, tmp_path: Path) -> None:
    given = "".join(f"{text}\n" for text in TEXTS)
    flags = ["--n-best", "2"] + (["--alignment", "hard"] if model_folder.name != "classic" else [])
    given = given.replace("\t", " ") if model_folder.name != "two parts" else given
    outputs = [works("translate", folder, *flags, given=given).lines for folder in (exported_folder, model_folder)]
    rows = [[line.split(" ||| ") for line in lines] for lines in outputs]  # number, text, score, and links if asked for
    assert [row[:2] + row[3:] for row in rows[0]] == [row[:2] + row[3:] for row in rows[1]]
    np.testing.assert_allclose(*([float(row[2]) for row in lines] for lines in rows), atol=1e-3)
    pairs = tmp_path / "pairs.tsv"
    pairs.write_text("".join(f"{source}\t{target}\n" for source, target in zip(SOURCES, TARGETS, strict=True)))
    scores = [works("score", folder, "--tsv", pairs).lines for folder in (exported_folder, model_folder)]
    np.testing.assert_allclose(*(np.array(lines, float) for lines in scores), atol=1e-3)


@pytest.mark.parametrize("model_folder", ["copied words", "copied letters", "copied subwords"], indirect=True)
def test_what_no_vocabulary_holds_is_copied(exported: runtime.Translator) -> None:
    outputs = [found.text for row in exported.search(["żółw ĥ żółw"] * 9, options=SAMPLED) for found in row]
    assert any("ż" in text or "ĥ" in text for text in outputs)
