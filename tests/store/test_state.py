"""A resumable state that no training of these options can have written is refused by one line; so are other options."""

from __future__ import annotations

import json
import math
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

import tiny
from cli_tools import flags, refusal, works
from mirada.store import checkpoint
from mirada.store.checkpoint import CONFIG, RESUME, WEIGHTS, Archive, read_archive, write_archive
from training_tools import SMALL, Tensors, trains, write_data

OPTIONS: dict[str, object] = {"ema-decay": 0.9, "valid-every": 2, "decoder": "luong"}


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, object], Path]:
    """The options of a training, and the folder that it left."""
    place = tmp_path_factory.mktemp("state")
    options = OPTIONS | write_data(place)
    trains(place / "m", options, {"max-updates": 4})
    return options, place / "m"


@pytest.fixture
def folder(trained: tuple[dict[str, object], Path], tmp_path: Path) -> Path:
    """A copy of it, to spoil."""
    return Path(shutil.copytree(trained[1], tmp_path / "m"))


def refused(folder: Path, options: dict[str, object]) -> str:
    """What `train` says when asked to go on; nothing is written then."""
    before = {path.name: path.stat().st_mtime_ns for path in folder.iterdir() if path.name != ".lock"}
    line = refusal("train", *flags(SMALL | options | {"max-updates": 6, "model-dir": folder}))
    assert {path.name: path.stat().st_mtime_ns for path in folder.iterdir() if path.name != ".lock"} == before
    return line


def spoil(folder: Path, change: Callable[[Tensors], object]) -> None:
    """Change the tensors, with a checksum that is right: what somebody who knows the format can do."""
    archive = read_archive(folder / RESUME)
    change(archive.tensors)
    write_archive(folder / RESUME, archive)


def becomes(name: str, change: Callable[[torch.Tensor], torch.Tensor]) -> Callable[[Tensors], object]:
    return lambda tensors: tensors.update({name: change(tensors[name])})


BIAS, MOMENT, MEAN, STEP = "model.output.bias", "optimizer.0.exp_avg_sq", "average.output.bias", "optimizer.0.step"
NO_NUMBERS = "holds values that are no numbers (NaN or infinite)"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (becomes(BIAS, torch.Tensor.bool), f"{BIAS} is torch.bool [9], expected torch.float32 [9]"),
        (becomes(MEAN, torch.Tensor.long), f"{MEAN} is torch.int64 [9], expected torch.float32 [9]"),
        (becomes(MOMENT, lambda part: part.to(torch.float8_e5m2)), f"{MOMENT} is torch.float8_e5m2 [9, 8], expected"),
        (becomes(MOMENT, torch.Tensor.double), f"{MOMENT} is torch.float64 [9, 8], expected torch.float32 [9, 8]"),
        (becomes(BIAS, lambda part: part[:4].clone()), f"{BIAS} is torch.float32 [4], expected torch.float32 [9]"),
        (becomes(BIAS, lambda part: part * math.nan), f"{BIAS} {NO_NUMBERS}"),
        (becomes(MEAN, lambda part: part + math.inf), f"{MEAN} {NO_NUMBERS}"),
        (becomes("optimizer.2.exp_avg", lambda part: part * math.nan), f"optimizer.2.exp_avg {NO_NUMBERS}"),
        (becomes(MOMENT, lambda part: part - 1), f"{MOMENT} holds negative values, which no mean of squares is"),
        (becomes(STEP, lambda part: part * 1e9), f"{STEP} is no number of updates up to 4"),
        (becomes(STEP, lambda part: part + 0.5 - 1), f"{STEP} is no number of updates up to 4"),
        (lambda tensors: tensors.pop(STEP), f"{STEP} is missing"),
        (lambda tensors: tensors.pop(MEAN), f"{MEAN} is missing"),
        (lambda tensors: tensors.pop("random"), "random is missing"),
        (lambda tensors: tensors.update(more=torch.zeros(1)), "more is of another training"),
        (becomes("random", lambda part: part[:16].clone()), "random is torch.uint8 [16], expected torch.uint8 [5056]"),
        (becomes("random", torch.Tensor.int), "random is torch.int32 [5056], expected torch.uint8 [5056]"),
    ],
)
def test_tensors_that_no_training_left(change, said, trained, folder):
    spoil(folder, change)
    line = refused(folder, trained[0])
    assert line.startswith(f"{RESUME}: {said}")
    assert line.endswith("; choose another model_dir")


def test_a_random_state_that_is_none(trained, folder):
    spoil(folder, becomes("random", torch.zeros_like))
    assert refused(folder, trained[0]).startswith(f"{RESUME}: its random state is none of PyTorch's (")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("epoch", value) for value in (10**7, -1)),
        *(("rate_factor", value) for value in (1e308, 0.0, -1.0)),
        *((name, -1) for name in ("position", "updates", "since_plateau", "without_improvement", "best_update")),
        *(("seconds", value) for value in (-1.0,)),
        *((name, 99) for name in ("best_update", "validated", "bad_updates", "without_improvement")),
        ("best_metrics", {"loss": 1.0, "bleu": 1.0}),
        ("best_metrics", {"accuracy": 1.0}),
        ("validations", [{"epoch": 1.0, "update": 2.0, "loss": 1.0}]),
        ("validations", [{"loss": 1.0, "bleu": 3.0}]),
    ],
)
def test_a_place_where_no_training_stood(name, value, trained, folder):
    archive = read_archive(folder / RESUME)
    progress = {**archive.metadata["progress"], name: value}
    write_archive(folder / RESUME, Archive(archive.tensors, {**archive.metadata, "progress": progress}))
    assert refused(folder, trained[0]) == (
        f"{folder / RESUME}: {name} is {str(value)[:60]}, which no training of these options has; altered?"
    )


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_a_rate_that_is_no_number(value, trained, folder):
    archive = read_archive(folder / RESUME)
    archive.metadata["progress"]["rate_factor"] = value
    write_archive(folder / RESUME, archive)
    assert refused(folder, trained[0]).startswith(f"{folder / RESUME}: ")


def test_a_changed_note_is_seen(trained, folder):
    """Even where nobody could tell that the number is wrong."""
    content = (folder / RESUME).read_bytes()
    (folder / RESUME).write_bytes(content.replace(b'\\"position\\": 4', b'\\"position\\": 3'))
    assert content != (folder / RESUME).read_bytes()
    assert refused(folder, trained[0]).endswith("its checksum does not match; the file was altered or damaged")


def test_a_file_far_too_large_says_so(trained, folder):
    """A terabyte that is not there (a sparse file): no batch size would help."""
    with (folder / RESUME).open("r+b") as stream:
        stream.truncate(10**12)
    said = rf"{re.escape(str(folder / RESUME))}: 1,000,000,000,000 bytes, but the options need [\d,]+ at most; it is of"
    assert re.match(said, refused(folder, trained[0]))


# Options beside the weights


def edit(folder: Path, old: str, new: str) -> None:
    text = (folder / CONFIG).read_text(encoding="utf-8")
    assert old in text
    (folder / CONFIG).write_text(text.replace(old, new), encoding="utf-8")


def made_with(folder: Path, name: str, now: object, before: object) -> str:
    said = f"{folder / CONFIG}: {name} is {now}, but the weights were made with {name} {before}; "
    return said + "the file was altered, or is of another model"


def test_options_are_bound_to_the_weights(trained, folder):
    """Weights of the same shapes, and another model: garbage, if nobody looked."""
    edit(folder, "reverse_source: false", "reverse_source: true")
    said = made_with(folder, "reverse_source", True, False)
    assert refusal("translate", folder, "--device", "cpu", given="a b\n") == said
    assert refusal("train", folder / CONFIG, "--model-dir", folder, "--max-updates", 6) == said


def test_heads_are_bound_to_the_weights(tmp_path):
    folder = tiny.write_folder(tmp_path / "m", "transformer")
    loaded = checkpoint.load_model(folder, torch.device("cpu"))
    checkpoint.write_model(folder, loaded.model, {}, loaded.config)
    edit(folder, "num_heads: 2", "num_heads: 4")
    assert refusal("translate", folder, given="a cat\n") == made_with(folder, "num_heads", 4, 2)


def test_what_only_training_reads_may_be_changed(trained, folder):
    edit(folder, "\n  dropout: 0.3", "\n  dropout: 0.4")
    works("translate", folder, "--device", "cpu", given="a b\n")


# Older folders


def as_format_1(path: Path, more: Callable[[dict[str, Any]], object] = lambda note: None) -> None:
    """Write a file as mirada did before format 2: the checksum covers the tensors only, the note names no options."""
    note = read_archive(path).metadata
    note.pop("model")
    more(note)
    tensors = load_file(path)
    header = {"format": "1", "checksum": checkpoint.checksum(tensors), "note": json.dumps(note)}
    save_file(tensors, path, metadata=header)


def test_a_folder_of_format_1_loads_and_goes_on(trained, folder, tmp_path):
    options = trained[0]
    expected = works("translate", folder, "--device", "cpu", given="a b c\n").lines
    other = Path(shutil.copytree(folder, tmp_path / "new"))
    for name in (WEIGHTS, RESUME):
        as_format_1(folder / name)
    assert works("translate", folder, "--device", "cpu", given="a b c\n").lines == expected
    for place in (folder, other):
        assert "going on after update 4\n" in trains(place, options, {"max-updates": 6})
    assert (folder / WEIGHTS).read_bytes() == (other / WEIGHTS).read_bytes()


def test_a_damaged_folder_of_format_1_is_refused(folder):
    as_format_1(folder / WEIGHTS)
    content = bytearray((folder / WEIGHTS).read_bytes())
    content[-1] ^= 1
    (folder / WEIGHTS).write_bytes(content)
    said = f"{folder / WEIGHTS}: its checksum does not match; the file was altered or damaged"
    assert refusal("translate", folder, given="a\n") == said
