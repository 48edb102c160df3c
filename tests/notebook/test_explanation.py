"""`model.explain`: the numbers of one output, and what a notebook shows of them."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

import mirada
from cli_tools import works
from mirada.explain.edits import Edits

TEXT = "the red fox <b>"
LUONG = pytest.mark.parametrize("model_folder", ["luong"], indirect=True)


@pytest.fixture
def model(model_folder: Path) -> mirada.Model:
    return mirada.load(model_folder, device="cpu")


def test_it_is_what_the_command_shows(model: mirada.Model, model_folder: Path, tmp_path: Path) -> None:
    found = model.explain(TEXT)
    assert found.output == model.translate(TEXT)
    assert (found.text, found.source_tokens[-1]) == (TEXT, "</s>")
    shown = works("explain", model_folder, TEXT, "--format", "json").output
    assert found.save(tmp_path / "how.json").read_text() == shown
    assert len(found.steps) == len(found.tokens)


@LUONG
def test_attention_is_an_array_with_labels(model: mirada.Model) -> None:
    found = model.explain(TEXT)
    assert isinstance(found.attention, np.ndarray)
    assert found.attention.shape == (len(found.tokens), len(found.source_tokens))
    assert found.attention.sum(1) == pytest.approx(1)


@LUONG
def test_it_draws_itself_as_a_table_of_the_weights(model: mirada.Model) -> None:
    found = model.explain(TEXT)
    html = found._repr_html_()
    shades = [float(shade) for shade in re.findall(r"rgba\(61,127,208,([\d.]+)\)", html)]
    assert np.array(shades).reshape(found.attention.shape) == pytest.approx(found.attention, abs=0.006)
    assert "<b>" not in html
    assert "&lt;b&gt;" in html


@pytest.mark.parametrize("model_folder", ["classic"], indirect=True)
def test_without_attention_the_table_has_the_steps_alone(model: mirada.Model, tmp_path: Path) -> None:
    found = model.explain(TEXT)
    assert found.attention is None
    assert found._repr_html_().count("<th ") == 2
    with pytest.raises(mirada.ConfigError, match=r"^a classic model has no attention to draw; print the explanation"):
        found.plot()
    with pytest.raises(mirada.ConfigError, match="no attention"):
        found.save(tmp_path / "how.svg")
    assert list(tmp_path.iterdir()) == []


@LUONG
def test_every_kind_of_file(model: mirada.Model, model_folder: Path, tmp_path: Path) -> None:
    found = model.explain("a cat")
    assert found.save(tmp_path / "how.html").read_text() == found.page()
    assert found.page().startswith("<!DOCTYPE html>") or found.page().lower().startswith("<!doctype html>")
    assert (
        found.save(tmp_path / "how.svg").read_bytes()
        == works("explain", model_folder, "a cat", "--format", "svg").output.encode()
    )
    assert found.save(tmp_path / "how.png").read_bytes().startswith(b"\x89PNG")
    assert found.save(tmp_path / "how.txt").read_text() == str(found)
    assert len(found.plot().axes) == 1
    with pytest.raises(mirada.ConfigError, match=r"how.pdf: expected a name that ends in .html, .json, .svg, .png or"):
        found.save(tmp_path / "how.pdf")


@LUONG
def test_given_outputs_beginnings_and_edits(model: mirada.Model) -> None:
    assert model.explain("a cat", reference="el gato").output == "el gato"
    assert model.explain("a cat", prefix="el gato").output.startswith("el gato")
    found = model.explain("a cat", edits=Edits(attention="uniform"))
    assert found.attention == pytest.approx(1 / len(found.source_tokens))
    assert len(model.explain("a cat", top=2).steps[0].top) == 2
    assert model.explain("a cat", beam_size=1).output == model.translate("a cat", beam_size=1)


@LUONG
def test_mistakes_are_told_in_a_line(model: mirada.Model) -> None:
    for text, message in {
        None: "expected one text to explain, got NoneType",
        ("a", "b"): "expected one text to explain, got tuple",
        "": "the text is empty, so there is nothing to look into; give a sentence",
    }.items():
        with pytest.raises(mirada.DataError) as caught:
            model.explain(text)
        assert str(caught.value) == message
    with pytest.raises(mirada.ConfigError, match=r"^reference and prefix exclude each other: one is the whole output"):
        model.explain("a", reference="b", prefix="c")
    with pytest.raises(mirada.ConfigError, match=r"^top 0: expected 1 or more$"):
        model.explain("a", top=0)


@LUONG
def test_it_says_in_a_line_what_it_is(model: mirada.Model) -> None:
    found = model.explain("a cat")
    assert repr(found) == f"<mirada.Explanation 'a cat' → {found.output!r}, {len(found.steps)} steps>"
    assert json.loads(found._content("json"))["format"] == "mirada-trace"
