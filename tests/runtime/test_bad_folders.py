"""Folders that hold no exported model, or one that was tampered with: one clear line."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import onnx.numpy_helper
import pytest

from cli_tools import refusal
from mirada import loading, runtime
from mirada.errors import ConfigError, DataError, ModelFolderError
from mirada.runtime.folder import MANIFEST, digest

pytestmark = pytest.mark.parametrize("model_folder", ["bahdanau"], indirect=True)


@pytest.fixture
def folder(exported_folder: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(exported_folder, tmp_path / "copy"))


def error(folder: Path) -> str:
    with pytest.raises(ModelFolderError) as caught:
        runtime.load(folder)
    text = str(caught.value)
    assert "\n" not in text
    assert refusal("translate", folder) == text if (folder / MANIFEST).is_file() else True
    return text.replace(str(folder), "DIR")


def change_manifest(folder: Path, change: Callable[[dict], object]) -> None:
    manifest = json.loads((folder / MANIFEST).read_text())
    change(manifest)
    (folder / MANIFEST).write_text(json.dumps(manifest))


def known(folder: Path, name: str) -> None:
    """Let export.json name a file as it is now."""
    change_manifest(folder, lambda manifest: manifest["files"].update({name: digest((folder / name).read_bytes())}))


@pytest.mark.parametrize("name", ["encode.onnx", "step.onnx", "config.yaml", "source.json"])
def test_missing_and_altered_files(folder: Path, name: str) -> None:
    (folder / name).write_bytes((folder / name).read_bytes() + b" ")
    assert error(folder) == f"DIR/{name}: not the file that export.json names; it was altered, or is of another export"
    (folder / name).unlink()
    assert error(folder) == f"DIR/{name}: missing; the folder holds no complete exported model"


def test_a_note_that_is_none(folder: Path) -> None:
    for text in ("{", "[]", "", "[" * 100_000):
        (folder / MANIFEST).write_text(text)
        assert error(folder) == "DIR/export.json: damaged; export the model again"
    (folder / MANIFEST).write_text('{"format": 99}')
    assert error(folder) == "DIR/export.json: format 99, this mirada reads format 1; export the model again"
    (folder / MANIFEST).write_text('{"format": 1, "memory": [1]}')
    assert error(folder) == "DIR/export.json: damaged; export the model again"
    (folder / MANIFEST).unlink()
    assert error(folder).startswith("DIR/export.json: missing; not the folder of an exported model")


def test_graphs_that_are_none(folder: Path) -> None:
    (folder / "step.onnx").write_bytes(b"no graph")
    known(folder, "step.onnx")
    assert error(folder).startswith("DIR/step.onnx: not a graph that ONNX Runtime can run (")


def test_a_graph_of_an_opset_to_come(folder: Path) -> None:
    model = onnx.load(folder / "start.onnx")
    model.opset_import[0].version = 999
    onnx.save(model, folder / "start.onnx")
    known(folder, "start.onnx")
    assert error(folder).startswith("DIR/start.onnx: not a graph that ONNX Runtime can run (")


def test_graphs_that_do_not_fit_the_note(folder: Path) -> None:
    change_manifest(folder, lambda manifest: manifest["state"].append("more"))
    assert "takes or gives other values than export.json says" in error(folder)


def test_a_graph_of_another_system(folder: Path) -> None:
    shutil.copyfile(folder / "start.onnx", folder / "encode.onnx")
    known(folder, "encode.onnx")
    assert error(folder).startswith("DIR/encode.onnx: takes or gives other values than export.json says (")


@pytest.mark.parametrize("name", ["source.json", "target.json"])
def test_tokenisers_of_another_vocabulary(folder: Path, name: str) -> None:
    content = json.loads((folder / name).read_text())
    size = len(content["model"]["vocab"])
    content["model"]["vocab"]["x" * 9] = size
    (folder / name).write_text(json.dumps(content))
    known(folder, name)
    assert error(folder) == f"DIR/{name}: {size + 1} entries, but the graphs have {size}; it is of another model"
    place = ("source.json", "target.json").index(name)
    change_manifest(folder, lambda manifest: manifest["entries"].__setitem__(place, size + 1))
    if name == "target.json":
        assert error(folder) == f"DIR/step.onnx: {size} words, but the tokeniser has {size + 1}; it is of another model"
    change_manifest(folder, lambda manifest: manifest.update(entries=[size]))
    assert error(folder) == "DIR/export.json: damaged; export the model again"


def spoil(folder: Path, graph: str, change: Callable[[np.ndarray], np.ndarray]) -> None:
    """Change the largest weights of a graph, and let export.json name it as it is now."""
    model = onnx.load(folder / f"{graph}.onnx")
    largest = max(model.graph.initializer, key=lambda weights: len(weights.raw_data))
    changed = change(onnx.numpy_helper.to_array(largest))
    largest.CopyFrom(onnx.numpy_helper.from_array(np.ascontiguousarray(changed), largest.name))
    onnx.save(model, folder / f"{graph}.onnx")
    known(folder, f"{graph}.onnx")


@pytest.mark.parametrize("beam", [1, 3])
def test_weights_that_are_no_numbers(folder: Path, beam: int) -> None:
    spoil(folder, "step", lambda weights: weights * np.float32(np.nan))
    line = refusal("translate", folder, "--beam-size", beam, given="the red fox\n")
    assert line == f"{folder}/step.onnx: gives values that are no numbers (NaN); export the model again"


def test_weights_of_another_shape(folder: Path) -> None:
    """ONNX Runtime sees it when it loads the graph or, of an embedding with too few rows, when it looks for one."""
    spoil(folder, "encode", lambda weights: weights[:1])
    with pytest.raises(ModelFolderError) as caught:
        runtime.load(folder).translate(["the red fox"])
    assert re.match(rf"{folder}/encode\.onnx: (not a graph that|ONNX Runtime failed \()", str(caught.value))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "size", "said"),
    [(MANIFEST, 1 << 21, "2,097,152 bytes, more than any export has"), ("step.onnx", 3 << 30, "more than a graph can")],
)
def test_a_file_far_too_large_is_not_even_opened(folder: Path, name: str, size: int, said: str) -> None:
    os.truncate(folder / name, size)  # with holes: it takes no room
    assert said in error(folder)


def test_what_an_exported_model_cannot_be_asked_for(exported_folder: Path) -> None:
    with pytest.raises(ConfigError, match="an exported model runs on a CPU, not on device 'cuda'"):
        loading.load(exported_folder, device="cuda")
    with pytest.raises(ConfigError, match="exported in float32; export the model with --precision int8"):
        loading.load(exported_folder, precision="int8")
    model = runtime.load(exported_folder)
    with pytest.raises(DataError, match="expected a list of texts, got one text"):
        model.translate("text")  # type: ignore[arg-type]
    with pytest.raises(DataError, match="2 texts and 1 prefixes"):
        model.search(["a", "b"], prefixes=["c"])
    with pytest.raises(DataError, match="1 sources and 2 targets"):
        model.score(["a"], ["b", "c"])
