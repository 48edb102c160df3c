"""`mirada export`: a folder that is whole or not there, and what it is checked for."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import pytest

from cli_tools import refusal, works
from mirada.errors import ConfigError, MiradaError
from mirada.export import checks, onnx_folder
from mirada.files import new_folder
from mirada.runtime.folder import FILES, MANIFEST, digest

ONE = pytest.mark.parametrize("model_folder", ["luong"], indirect=True)


def test_a_folder_holds_three_checked_graphs_and_says_what_is_in_it(exported_folder: Path) -> None:
    manifest = json.loads((exported_folder / MANIFEST).read_text())
    assert {path.name for path in exported_folder.iterdir()} == {*FILES, MANIFEST}
    assert manifest["files"] == {name: digest((exported_folder / name).read_bytes()) for name in FILES}
    for name in ("encode", "start", "step"):
        model = onnx.load(exported_folder / f"{name}.onnx")
        onnx.checker.check_model(model, full_check=True)
        assert [entry.version for entry in model.opset_import] == [manifest["opset"]]


@ONE
def test_the_same_model_gives_the_same_bytes(model_folder: Path, exported_folder: Path, tmp_path: Path) -> None:
    ran = works("export", model_folder, "--to", "onnx", "--out", tmp_path / "again")
    assert ran.output == ""
    assert "again: 0.0 MB of graphs in float32, checked: log-probabilities differ by " in ran.errors
    for name in (*FILES, MANIFEST):
        assert (tmp_path / "again" / name).read_bytes() == (exported_folder / name).read_bytes()


@ONE
def test_what_is_there_already_is_not_touched(model_folder: Path, tmp_path: Path) -> None:
    (tmp_path / "kept").write_text("mine")
    line = refusal("export", model_folder, "--to", "onnx", "--out", tmp_path)
    assert line == f"{tmp_path}: is there already; choose another --out, or remove it"
    assert [path.name for path in tmp_path.iterdir()] == ["kept"]
    line = refusal("export", tmp_path / "none", "--to", "onnx", "--out", tmp_path / "x")
    assert line == f"{tmp_path / 'none'}: no such model folder"


@ONE
@pytest.mark.parametrize("precision", ["float32", "int8"])
def test_a_graph_that_differs_is_not_written(
    model_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, precision: str
) -> None:
    """One weight changed on the way."""
    right = onnx_folder.weights_of

    def wrong(model):
        weights = dict(right(model))
        weights["output.bias"] = weights["output.bias"] + np.linspace(0, 9, len(weights["output.bias"]), dtype="f4")
        return weights

    monkeypatch.setattr(onnx_folder, "weights_of", wrong)
    line = refusal("export", model_folder, "--to", "onnx", "--precision", precision, "--out", tmp_path / "out")
    assert line.startswith("the exported model differs from torch's by ")
    assert not list(tmp_path.iterdir())


def test_options_that_no_graph_computes_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    from mirada.config.options import ModelConfig

    monkeypatch.setattr(onnx_folder, "KNOWN", tuple(name for name in onnx_folder.KNOWN if name != "reverse_source"))
    onnx_folder._refuse_unknown(ModelConfig())
    with pytest.raises(ConfigError, match="a model with reverse_source true cannot be exported to ONNX yet"):
        onnx_folder._refuse_unknown(ModelConfig(reverse_source=True))


@ONE
def test_dev_sentences_are_what_it_is_checked_on(translator, tmp_path: Path) -> None:
    from mirada.config.configfile import changed
    from mirada.store.checkpoint import Loaded
    from tiny import SOURCES, TARGETS

    for name, lines in (("dev.en", SOURCES), ("dev.es", TARGETS)):
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines))
    data = {"dev_src": str(tmp_path / "dev.en"), "dev_tgt": str(tmp_path / "dev.es")}
    config = translator.config.model_copy(update={"data": changed(translator.config.data, data)})
    loaded = Loaded(config, translator.model, translator.source_tokenizer, translator.target_tokenizer, {})
    assert [translator.source_tokenizer.decode(ids) for ids in checks.pairs_of(loaded).sources] == SOURCES
    missing = changed(config.data, {"dev_src": str(tmp_path / "gone")})
    drawn = checks.pairs_of(loaded._replace(config=config.model_copy(update={"data": missing})))
    assert len(drawn.sources) == checks.PAIRS


def test_a_new_folder_is_whole_or_not_there(tmp_path: Path) -> None:
    def fail(folder: Path) -> None:
        (folder / "part").write_text("half")
        raise ConfigError("no")

    with pytest.raises(ConfigError), new_folder(tmp_path / "made" / "out") as folder:
        fail(folder)
    assert not list((tmp_path / "made").iterdir())
    with pytest.raises(MiradaError, match="could not be written"), new_folder(tmp_path / "out") as folder:
        raise OSError(28, "No space left on device")
    assert [path.name for path in tmp_path.iterdir()] == ["made"]
