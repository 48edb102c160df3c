"""A model folder gives back exactly the model that was written, or one line that says why not."""

from __future__ import annotations

import ast
import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

import mirada
import tiny
from mirada.errors import ModelFolderError
from mirada.store import checkpoint
from mirada.store.checkpoint import Archive, Loaded, checksum, load_model, read_archive, weights_of, write_archive

CPU = torch.device("cpu")
WEIGHTS = checkpoint.WEIGHTS


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of one's own, to spoil: two vocabularies of the same size, tied output layer."""
    return tiny.write_folder(tmp_path / "model", "luong")


def load(folder: Path) -> Loaded:
    return load_model(folder, CPU)


def refuses(message: str) -> pytest.RaisesExc[ModelFolderError]:
    return pytest.raises(ModelFolderError, match=f"^{re.escape(message)}")


def rewrite(folder: Path, change: Callable[[dict[str, torch.Tensor]], object]) -> None:
    """Change the weights of a folder, with a checksum that is right."""
    archive = read_archive(folder / WEIGHTS)
    change(archive.tensors)
    write_archive(folder / WEIGHTS, archive)


# Round trip


def test_what_is_written_comes_back(model_folder):
    config = tiny.options(model_folder.name)
    loaded = load(model_folder)
    assert loaded.config == config
    assert loaded.metrics == tiny.METRICS
    expected = tiny.random_model(config, (len(loaded.source), len(loaded.target)))
    found = dict(loaded.model.named_parameters())
    assert found.keys() == dict(expected.named_parameters()).keys()
    assert all(torch.equal(found[name], weights) for name, weights in expected.named_parameters())
    assert not loaded.model.training


def test_shared_weights_are_written_once_and_stay_shared(tmp_path):
    folder = tiny.write_folder(tmp_path, "transformer")
    model = load(folder).model
    tables = [module.weight for module in model.modules() if type(module).__name__ in ("Embedding", "OutputLayer")]
    assert len(tables) == 2  # one embedding for both sides, and the output layer
    assert tables[0] is tables[1]
    stored = load_file(folder / WEIGHTS)
    assert sum(weights.shape == tables[0].shape for weights in stored.values()) == 1
    assert stored.keys() == weights_of(model).keys()


def test_loading_leaves_the_random_state_alone(model_folder):
    torch.manual_seed(5)
    before = torch.get_rng_state()
    load(model_folder)
    assert torch.equal(torch.get_rng_state(), before)


def test_every_type_and_shape_of_tensor_comes_back(tmp_path):
    tensors = {
        "half": torch.tensor([1.5, -2.0], dtype=torch.bfloat16),
        "double": torch.tensor(0.1, dtype=torch.float64),
        "bytes": torch.arange(256, dtype=torch.uint8),
        "nothing": torch.zeros(0, 3),
        "turned": torch.arange(6.0).view(2, 3).T,
        "flag": torch.tensor([True, False]),
    }
    note = {"progress": {"epoch": 3, "metrics": {"loss": 0.1}}, "text": "ñ 漢"}
    write_archive(tmp_path / "a", Archive(tensors, note))
    found = read_archive(tmp_path / "a")
    assert found.metadata == note
    assert found.tensors.keys() == tensors.keys()
    for name, tensor in tensors.items():
        assert found.tensors[name].dtype == tensor.dtype
        assert torch.equal(found.tensors[name], tensor)


def test_the_checksum_sees_names_types_shapes_and_bytes():
    base = {"a": torch.zeros(2, 3), "b": torch.ones(1)}
    others = [
        {"a": torch.zeros(3, 2), "b": torch.ones(1)},
        {"a": torch.zeros(2, 3, dtype=torch.int32), "b": torch.ones(1)},
        {"c": torch.zeros(2, 3), "b": torch.ones(1)},
        {"a": torch.full((2, 3), -0.0), "b": torch.ones(1)},
        {"a": torch.zeros(2, 3)},
    ]
    assert len({checksum(one) for one in [base, *others]}) == 6
    assert checksum(dict(reversed(base.items()))) == checksum(base)


# Damage


@pytest.mark.parametrize("place", [-1, -1000])
def test_one_flipped_bit(folder, place):
    content = bytearray((folder / WEIGHTS).read_bytes())
    content[place] ^= 1
    (folder / WEIGHTS).write_bytes(content)
    with refuses(f"{folder / WEIGHTS}: its checksum does not match; the file was altered or damaged"):
        load(folder)


@pytest.mark.parametrize("kept", [0, 5, 100, -1])
def test_a_truncated_file(folder, kept):
    (folder / WEIGHTS).write_bytes((folder / WEIGHTS).read_bytes()[:kept])
    with refuses(f"{folder / WEIGHTS}: damaged or not a safetensors file ("):
        load(folder)


@pytest.mark.parametrize("content", [b"\xff" * 100, b"PK\x03\x04" + bytes(60), b"\x10" + bytes(7) + b"{]garbage" * 5])
def test_a_header_of_garbage(folder, content):
    (folder / WEIGHTS).write_bytes(content)
    with refuses(f"{folder / WEIGHTS}: damaged or not a safetensors file ("):
        load(folder)


@pytest.mark.parametrize(("header", "shown"), [({"format": "3"}, "3"), ({}, "unknown")])
def test_a_file_of_another_version(folder, header, shown):
    save_file(load_file(folder / WEIGHTS), folder / WEIGHTS, metadata=header)
    message = f"format {shown}, this mirada reads formats up to 2; use the version that wrote it"
    with refuses(f"{folder / WEIGHTS}: {message}"):
        load(folder)


@pytest.mark.parametrize("note", ["", "{", "[1]"])
def test_a_damaged_note(folder, note):
    tensors = load_file(folder / WEIGHTS)
    header = {"format": "1", "checksum": checksum(tensors), "note": note}
    save_file(tensors, folder / WEIGHTS, metadata=header)
    with refuses(f"{folder / WEIGHTS}: the metadata in its header is damaged"):
        load(folder)


# Weights that do not belong to the options


def test_missing_weights(folder):
    rewrite(folder, lambda tensors: tensors.pop("output.bias"))
    with refuses(f"{folder / WEIGHTS}: lacks weights output.bias; it does not belong to this config.yaml"):
        load(folder)


def test_unknown_weights(folder):
    rewrite(folder, lambda tensors: tensors.update({f"more.{i}": torch.zeros(1) for i in range(4)}))
    message = "has the unknown weights more.0, more.1, more.2; it does not belong to this config.yaml"
    with refuses(f"{folder / WEIGHTS}: {message}"):
        load(folder)


def test_weights_of_another_shape(folder):
    rewrite(folder, lambda tensors: tensors.update({"output.bias": torch.zeros(7)}))
    message = "weights output.bias are [7], options and vocabularies need [60]; config.yaml or a tokeniser is from"
    with refuses(f"{folder / WEIGHTS}: {message} another model"):
        load(folder)


def test_weights_that_are_whole_numbers(folder):
    rewrite(folder, lambda tensors: tensors.update({"output.bias": torch.zeros(60, dtype=torch.int64)}))
    with refuses(f"{folder / WEIGHTS}: weights output.bias are torch.int64, expected floating point"):
        load(folder)


def test_options_of_another_model(folder):
    text = (folder / "config.yaml").read_text(encoding="utf-8")
    (folder / "config.yaml").write_text(text.replace("decoder: luong", "decoder: bahdanau"), encoding="utf-8")
    with pytest.raises(ModelFolderError, match=r"lacks weights .*; it does not belong to this config\.yaml$"):
        load(folder)


def test_a_tokenizer_of_another_size(folder):
    path = folder / "target.json"
    content = json.loads(path.read_text(encoding="utf-8"))
    content["model"]["vocab"]["more"] = 60
    path.write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(
        ModelFolderError, match=r"need \[61(, 12)?\]; config\.yaml or a tokeniser is from another model$"
    ):
        load(folder)


# Folders that are none


def test_no_folder(tmp_path):
    with refuses(f"{tmp_path / 'none'}: no such model folder"):
        load(tmp_path / "none")
    (tmp_path / "file").touch()
    with refuses(f"{tmp_path / 'file'}: a file, expected a model folder; texts to translate are read from"):
        load(tmp_path / "file")


def test_a_folder_of_something_else(tmp_path):
    with refuses(f"{tmp_path}: not a model folder (config.yaml is missing)"):
        load(tmp_path)


def test_a_training_that_has_not_validated_yet(folder):
    (folder / WEIGHTS).unlink()
    message = "missing; the folder holds no complete model (has its training validated yet?)"
    with refuses(f"{folder / WEIGHTS}: {message}"):
        load(folder)


@pytest.mark.parametrize("name", ["source.json", "target.json"])
def test_a_missing_tokenizer(folder, name):
    (folder / name).unlink()
    with refuses(f"{folder / name}: missing; the folder holds no complete model"):
        load(folder)


def test_options_that_are_none(folder):
    (folder / "config.yaml").write_text("model: {hiden_size: 3}\n", encoding="utf-8")
    with refuses(f"{folder / 'config.yaml'}: unknown option 'model.hiden_size'; did you mean 'hidden_size'?"):
        load(folder)


def test_a_folder_can_be_copied(folder, tmp_path):
    shutil.copytree(folder, tmp_path / "copy")
    left, right = (weights_of(load(one).model) for one in (folder, tmp_path / "copy"))
    assert all(torch.equal(left[name], right[name]) for name in left)


# Trust


def test_nothing_in_the_package_can_run_a_stored_program():
    """No pickle, and nothing that unpickles, neither imported nor called, but torch's reader of bare weights.

    What processes of one command send each other (mirada.scaling) is pickled, and never stored.
    """
    forbidden = {"pickle", "cPickle", "dill", "cloudpickle", "shelve", "marshal", "joblib"}
    calls = {"torch.load", "torch.save", "numpy.load", "np.load", "yaml.load", "yaml.unsafe_load", "eval", "exec"}
    found = []
    for path in sorted(Path(mirada.__file__).parent.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names: list[str] = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                names = [str(node.module), *(f"{node.module}.{alias.name}" for alias in node.names)]
            elif isinstance(node, ast.Call):
                names = [ast.unparse(node.func)]
                if names == ["torch.load"] and "weights_only=True" in map(ast.unparse, node.keywords):
                    continue
            banned = forbidden - ({"pickle"} if path.parent.name == "scaling" else set())
            found += [f"{path.name}: {name}" for name in names if name in calls or name.split(".")[0] in banned]
    assert found == []
