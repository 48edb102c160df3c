"""Every example in a docstring of a public name is run, on a tiny model of random weights."""

from __future__ import annotations

import doctest
import inspect
from functools import partial
from pathlib import Path

import pytest

import mirada
import tiny
from compare_tools import in_this_process
from mirada.notebook.training import train
from mirada.study.compare import comparison

NAMES = {
    **{f"Model.{name}": value for name, value in vars(mirada.Model).items() if inspect.isfunction(value)},
    "compare": mirada.compare,
    "load": mirada.load,
    "train": train,
}
NO_EXAMPLE = {"Model.torch_model"}  # for those who build on the class


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where examples find `runs/luong`."""
    folder = tmp_path_factory.mktemp("examples")
    tiny.write_folder(folder / "runs" / "luong", "luong")
    return folder


def examples(value: object, name: str) -> list[doctest.Example]:
    return doctest.DocTestParser().get_examples(inspect.getdoc(value) or "", name)


@pytest.mark.parametrize("name", [name for name in NAMES if "__" not in name and name not in NO_EXAMPLE])
def test_examples_are_true(name: str, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(place)
    monkeypatch.setattr(comparison, "compare", partial(comparison.compare, launch=in_this_process))
    pairs = list(zip(tiny.SOURCES, tiny.TARGETS, strict=True))
    held = {"mirada": mirada, "model": mirada.load("runs/luong", device="cpu"), "pairs": pairs}
    run = doctest.DocTestRunner(verbose=False)
    found = examples(NAMES[name], name)
    assert found, "a public name without an example"
    said: list[str] = []
    run.run(doctest.DocTest(found, held, name, None, 0, None), out=said.append)
    assert run.failures == 0, "".join(said)


def test_the_first_example_is_true(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(place)
    run, said = doctest.DocTestRunner(verbose=False), list[str]()
    run.run(doctest.DocTest(examples(mirada, "mirada"), {}, "mirada", None, 0, None), out=said.append)
    assert run.failures == 0, "".join(said)


def test_every_public_name_says_what_it_is() -> None:
    assert [name for name in mirada.__all__ if not inspect.getdoc(getattr(mirada, name))] == []
