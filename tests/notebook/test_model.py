"""`mirada.load` and what is done with a model, as it is typed in a notebook."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path

import numpy as np
import pytest

import mirada
import tiny
from cli_tools import works, write
from mirada.translator import load as load_translator

TEXTS = ["the red fox sees the cat", "a cat", ""]
LUONG = pytest.mark.parametrize("model_folder", ["luong"], indirect=True)


@pytest.fixture
def model(model_folder: Path) -> mirada.Model:
    return mirada.load(model_folder, device="cpu")


def test_one_text_is_a_text_and_many_are_a_list(model: mirada.Model, model_folder: Path) -> None:
    expected = works("translate", model_folder, given="".join(f"{text}\n" for text in TEXTS)).lines
    assert model.translate(TEXTS) == expected
    assert [model.translate(text) for text in TEXTS] == expected
    assert model.translate(text for text in TEXTS) == expected
    assert model.translate(np.array(TEXTS)) == expected
    assert [found[0].text for found in model.stream(iter(TEXTS))] == expected


@LUONG
def test_n_best_gives_so_many_best_first(model: mirada.Model) -> None:
    one = model.translate(TEXTS[0], n_best=3, beam_size=4)
    assert len(one) == 3
    assert one[0] == model.translate(TEXTS[0], beam_size=4)
    assert model.translate(TEXTS[:2], n_best=3, beam_size=4)[0] == one
    assert model.translate(TEXTS[0], n_best=1) == [model.translate(TEXTS[0])]


@LUONG
@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (None, "expected a list of texts, got NoneType"),
        (7, "expected a list of texts, got int"),
        (Path("a.txt"), "expected a list of texts, got PosixPath"),
        (b"a", "expected a list of texts, got bytes"),
        ({"a": 1}, "expected a list of texts, got dict"),
        (["a", None], "text 2 is NoneType, not a string"),
        ((part for part in ["a", Path("b")]), "text 2 is PosixPath, not a string"),
    ],
)
def test_what_is_no_text_is_refused_in_one_line(model: mirada.Model, texts: object, message: str) -> None:
    with pytest.raises(mirada.DataError) as caught:
        model.translate(texts)
    assert str(caught.value) == message


@LUONG
def test_numbers_that_do_not_fit_are_refused(model: mirada.Model) -> None:
    with pytest.raises(mirada.ConfigError, match=r"^n_best 9 is larger than beam_size 3; n_best must be 1 to beam_"):
        model.translate("a", n_best=9)
    with pytest.raises(mirada.ConfigError, match=r"^beam_size: input should be greater than or equal to 1 \(got 0\)$"):
        model.translate("a", beam_size=0)


@pytest.mark.parametrize(("name", "kind"), [(None, "NoneType"), (3, "int"), ([b"a"], "bytes")])
def test_what_names_no_model_is_refused(name: object, kind: str) -> None:
    with pytest.raises(mirada.ConfigError) as caught:
        mirada.load(name)
    assert str(caught.value) == f"a model is named by its folder or as USER/NAME, not by {kind}"


@LUONG
def test_scores_are_those_of_the_command(model: mirada.Model, model_folder: Path, tmp_path: Path) -> None:
    pairs = list(zip(tiny.SOURCES, tiny.TARGETS, strict=True))[:3]
    lines = works("score", model_folder, "--tsv", write(tmp_path / "p.tsv", ["\t".join(pair) for pair in pairs])).lines
    found = model.score(*zip(*pairs, strict=True))
    assert [one.log_probability for one in found] == pytest.approx([float(line) for line in lines], abs=1e-3)
    assert model.score(*pairs[0]).log_probability == pytest.approx(found[0].log_probability, abs=1e-5)
    with pytest.raises(mirada.DataError, match="1 sources and 2 targets"):
        model.score(["a"], ["b", "c"])


@LUONG
def test_links_are_those_of_the_command(model: mirada.Model, model_folder: Path, tmp_path: Path) -> None:
    pairs = [*zip(tiny.SOURCES, tiny.TARGETS, strict=True), ("a", " ")]
    file = write(tmp_path / "p.tsv", ["\t".join(pair) for pair in pairs])
    found = model.align(*zip(*pairs, strict=True))
    assert [" ".join(f"{i}-{j}" for i, j in links) for links in found] == works(
        "align", model_folder, "--tsv", file
    ).lines
    assert model.align(*pairs[0]) == found[0]
    assert found[-1] == []


@LUONG
def test_evaluation_is_that_of_the_command(model: mirada.Model, model_folder: Path, tmp_path: Path) -> None:
    import json

    file = write(tmp_path / "p.tsv", ["\t".join(pair) for pair in zip(tiny.SOURCES, tiny.TARGETS, strict=True)])
    report = json.loads(works("evaluate", model_folder, "--tsv", file, "--metrics", "chrf,exact", "--json").output)
    found = model.evaluate(tiny.SOURCES, tiny.TARGETS, metrics=["chrf", "exact"])
    assert found.report == report
    assert found["chrf"].value == report["metrics"][0]["value"]
    assert found.outputs == model.translate(tiny.SOURCES)
    assert repr(found) == f"<mirada.Evaluation of 6 items: chrf {found['chrf'].value:.2f}, exact 0.00>"
    assert str(found).startswith("6 items; 95 % intervals by bootstrap over items\nchrf")
    assert f"{found['chrf'].low:.2f}</td>" in found._repr_html_()


@LUONG
def test_a_target_may_be_several_references(model: mirada.Model) -> None:
    output = model.translate("a cat")
    alone, beside = ("exact", [["no"]]), ("exact", [["no", output]])
    values = [model.evaluate(["a cat"], targets, metrics=[name])[name].value for name, targets in (alone, beside)]
    assert values == [0, 100]
    with pytest.raises(mirada.DataError, match=r"^target 1, reference 2 is NoneType, not a string$"):
        model.evaluate(["a"], [["b", None]])
    with pytest.raises(mirada.DataError, match=r"^expected a list of references of target 1, got NoneType$"):
        model.evaluate(["a"], [None])
    with pytest.raises(mirada.DataError, match=r"^no pair to measure; give at least one source and its target$"):
        model.evaluate([], [])


def test_saved_models_are_the_same_and_whole(model: mirada.Model, tmp_path: Path) -> None:
    where = model.save(tmp_path / "copied")
    assert {file.name for file in where.iterdir()} == {"config.yaml", "model.safetensors", "source.json", "target.json"}
    assert mirada.load(where).translate(TEXTS) == model.translate(TEXTS)
    with pytest.raises(mirada.MiradaError, match="is there already"):
        model.save(where)


@LUONG
def test_a_model_whose_folder_is_gone_says_so(model: mirada.Model, tmp_path: Path) -> None:
    gone = mirada.load(model.save(tmp_path / "m"))
    for file in (tmp_path / "m").iterdir():
        file.unlink()
    with pytest.raises(mirada.MiradaError, match=r"no model stands there any more, so there is nothing to copy$"):
        gone.save(tmp_path / "n")
    assert not (tmp_path / "n").exists()


@LUONG
def test_moving_keeps_what_it_does_and_refuses_what_is_not_there(model: mirada.Model) -> None:
    before = model.translate(TEXTS)
    assert model.to("cpu") is model
    assert model.translate(TEXTS) == before
    with pytest.raises(mirada.ConfigError, match="device"):
        model.to("gpu")


@LUONG
def test_it_says_in_a_line_what_it_is(model: mirada.Model, model_folder: Path) -> None:
    assert repr(model) == f"<mirada.Model luong (general), on cpu, from {model_folder}>"
    assert model.metrics == tiny.METRICS
    assert model.has_attention


@LUONG
def test_copies_and_pickles_do_the_same(model: mirada.Model) -> None:
    expected = model.translate(TEXTS)
    assert copy.deepcopy(model).translate(TEXTS) == expected
    assert pickle.loads(pickle.dumps(model)).translate(TEXTS) == expected


@LUONG
def test_an_exported_model_translates_scores_and_refuses_the_rest(exported_folder: Path, model: mirada.Model) -> None:
    exported = mirada.load(exported_folder)
    assert exported.translate(TEXTS) == model.translate(TEXTS)
    assert exported.score("a", "un").log_probability == pytest.approx(model.score("a", "un").log_probability, abs=1e-4)
    for what, call in {"explain": lambda: exported.explain("a"), "to": lambda: exported.to("cpu")}.items():
        with pytest.raises(mirada.ConfigError, match=f"^{what} needs the model that was trained; an exported one only"):
            call()
    assert "on cpu" in repr(exported)


@LUONG
def test_an_ensemble_is_one_model(model: mirada.Model, model_folder: Path, tmp_path: Path) -> None:
    both = mirada.load([model_folder, model.save(tmp_path / "m")], device="cpu")
    assert both.translate(TEXTS) == load_translator([model_folder, tmp_path / "m"], device="cpu").translate(TEXTS)
    assert "luong (general) and 1 more, on cpu" in repr(both)
    with pytest.raises(mirada.ConfigError, match=r"^explain shows one model; load one of the ensemble's alone"):
        both.explain("a")
    with pytest.raises(mirada.ConfigError, match=r"^an ensemble of 2 models is no folder; save each of them$"):
        both.save(tmp_path / "n")
