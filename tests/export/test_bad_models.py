"""A model folder that is not whole is no export: one clear line, whatever it is to become, and nothing is written."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor

import tiny
from cli_tools import refusal
from mirada.store.checkpoint import WEIGHTS, read_archive, write_archive

Change = Callable[[dict[str, Tensor]], object]
BIAS = "output.bias"
SPOILT: dict[str, tuple[Change, str]] = {
    "missing": (lambda found: found.pop(BIAS), f"lacks weights {BIAS}; it does not belong"),
    "renamed": (lambda found: found.update(bias=found.pop(BIAS)), f"lacks weights {BIAS}; it does not belong"),
    "more": (lambda found: found.update(more=torch.ones(1)), "has the unknown weights more; it does not belong"),
    "misshapen": (lambda found: found.update({BIAS: torch.ones(2)}), f"weights {BIAS} are [2], options and"),
    "no numbers": (lambda found: found[BIAS].fill_(torch.nan), f"weights {BIAS} hold values that are no numbers"),
}


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny.write_folder(tmp_path_factory.mktemp("good") / "m", "transformer")


@pytest.fixture
def folder(good: Path, tmp_path: Path) -> Path:
    """A copy of it, to spoil."""
    return Path(shutil.copytree(good, tmp_path / "m"))


def refused(folder: Path, target: str) -> str:
    """What `export` says; nothing comes to stand beside the folder."""
    line = refusal("export", folder, "--to", target, "--out", folder.parent / "out")
    assert [path.name for path in folder.parent.iterdir()] == [folder.name]
    return line.removeprefix(f"{folder}/")


@pytest.mark.parametrize("harm", SPOILT)
@pytest.mark.parametrize("target", ["onnx", "ctranslate2"])
def test_weights_that_are_not_the_models(folder: Path, target: str, harm: str) -> None:
    change, said = SPOILT[harm]
    archive = read_archive(folder / WEIGHTS)
    change(archive.tensors)
    write_archive(folder / WEIGHTS, archive)
    line = refused(folder, target)
    assert line.startswith(f"{WEIGHTS}: ")
    assert said in line


@pytest.mark.parametrize("name", ["source.json", "target.json"])
def test_a_tokeniser_of_another_model(folder: Path, name: str) -> None:
    """This model has one embedding for both sides."""
    content = json.loads((folder / name).read_text())
    content["model"]["vocab"]["x" * 9] = size = len(content["model"]["vocab"])
    (folder / name).write_text(json.dumps(content))
    sizes = (size + 1, size) if name == "source.json" else (size, size + 1)
    said = "source.json: {} entries, target.json has {}; with tied_embeddings both are one vocabulary".format(*sizes)
    assert refused(folder, "onnx") == said


def test_a_page_asks_for_nothing_before_the_model_is_whole(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mirada.export.web.runtime_files", lambda *given, **named: pytest.fail("asked for the library"))
    (folder / WEIGHTS).write_bytes(b"no weights")
    assert refused(folder, "web").startswith(f"{WEIGHTS}: ")
