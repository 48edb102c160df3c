"""Parquet and saved Hugging Face datasets as corpora: every form gives the same pairs, every fault a line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cli_tools import flags, mirada, refusal, works
from mirada.config.configfile import parse
from mirada.data.corpus import Corpus, chosen_files, load_pairs, read_dataset, read_files
from mirada.errors import DataError
from training_tools import PAIRS, SMALL, assert_same, trains

ROWS = [{"en": s, "es": t} for s, t in PAIRS]
NESTED = pa.struct([("en", pa.string()), ("es", pa.string())])


def table(rows: list[Any], *, nested: bool) -> pa.Table:
    return pa.table(
        {"id": range(len(rows)), "translation": pa.array(rows, NESTED)} if nested else pa.Table.from_pylist(rows)
    )


def saved(folder: Path, rows: pa.Table, files: int = 2) -> Path:
    """A folder as datasets' `save_to_disk` writes it: Arrow streams, and what says which."""
    folder.mkdir(parents=True)
    names = [f"data-{n:05}-of-{files:05}.arrow" for n in range(files)]
    each = -(-rows.num_rows // files)
    for n, name in enumerate(names):
        with pa.ipc.new_stream(str(folder / name), rows.schema) as stream:
            stream.write_table(rows.slice(n * each, each), max_chunksize=7)
    (folder / "state.json").write_text(json.dumps({"_data_files": [{"filename": name} for name in names]}))
    (folder / "dataset_info.json").write_text("{}")
    return folder


def write(folder: Path, form: str, *, nested: bool) -> Path:
    rows = table(ROWS, nested=nested)
    if form == "saved":
        return saved(folder / "saved", rows)
    if form == "file":
        pq.write_table(rows, folder / "all.parquet")
        return folder / "all.parquet"
    (folder / "data").mkdir()
    for n in (0, 1):
        pq.write_table(rows.slice(n * 30, 30), folder / "data" / f"train-{n:05}-of-00002.parquet")
    return folder


@pytest.mark.parametrize("form", ["saved", "file", "folder"])
@pytest.mark.parametrize("nested", [True, False])
def test_all_forms_give_the_same_pairs(form, nested, tmp_path):
    path = write(tmp_path, form, nested=nested)
    keys = ("translation.en", "translation.es") if nested else ("en", "es")
    found = read_dataset(path, source_key=keys[0], target_key=keys[1])
    sides = [[pair[side] for pair in PAIRS] for side in (0, 1)]
    assert found == Corpus(*sides, list(range(1, 61)), [], str(path))


def test_lists_are_references_and_blank_sides_are_left_out(tmp_path):
    rows = [{"q": "a", "k": "x", "answers": ["b", "c"]}, {"q": "a", "k": "x", "answers": [" "]}]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "a.parquet")
    found = read_dataset(tmp_path / "a.parquet", source_key="q,k", target_key="answers")
    assert (found.sources, found.targets, found.references, found.skipped) == (["a\tx"], ["b"], [("c",)], [2])


def test_training_on_a_dataset_is_training_on_its_lines(tmp_path):
    path = saved(tmp_path / "saved", table(ROWS, nested=True))
    lines = tmp_path / "lines.jsonl"
    lines.write_text("".join(json.dumps({"translation": row}) + "\n" for row in ROWS))
    keys = {"source-key": "translation.en", "target-key": "translation.es", "max-updates": 3}
    trains(tmp_path / "lines", {"jsonl": lines}, keys)
    said = trains(tmp_path / "table", {"dataset": path, "dev-dataset": path}, keys)
    assert f"{path}: 60 pairs" in said
    trains(tmp_path / "split", {"dataset": path}, keys)
    assert_same(tmp_path / "lines", tmp_path / "split")
    words = {"tokenizer": "word", "source-key": "translation.en", "target-key": "translation.es"}
    works("data", "prepare", *flags({"dataset": path, "out": tmp_path / "prepared"} | words))
    trains(tmp_path / "disk", {"prepared": tmp_path / "prepared", "max-updates": 3})
    assert_same(tmp_path / "lines", tmp_path / "disk")


@pytest.mark.parametrize("model_folder", ["luong"], indirect=True)
def test_commands_that_take_pairs_take_a_dataset(tmp_path, model_folder):
    path = saved(tmp_path / "saved", table(ROWS[:4], nested=False))
    named = ("--dataset", path, "--source-key", "en", "--target-key", "es")
    assert len(works("score", model_folder, *named).lines) == 4
    ran = mirada("data", "check", *named, "--test-dataset", path)  # the test pairs stand in train: code 1
    assert (ran.code, ran.output.startswith("train: 4 pairs")) == (1, True)


def test_a_dev_set_of_its_own(tmp_path):
    path = saved(tmp_path / "saved", table(ROWS, nested=False))
    data = parse(
        {"data": {"dataset": str(path), "dev_dataset": str(path), "source_key": "en", "target_key": "es"}}
    ).data
    train, dev = load_pairs(data, seed=1)
    assert train == dev == read_files(chosen_files(data), data)


def fault(folder: Path, name: str) -> Path:
    """A dataset with a fault."""
    if name == "splits":
        saved(folder / "train", table(ROWS, nested=False))
        (folder / "dataset_dict.json").write_text("{}")
        return folder
    if name in ("no parquet", "a number", "null"):
        path = folder / "bad.parquet"
        if name == "no parquet":
            path.write_bytes(b"PAR1 it is not")
        else:
            pq.write_table(pa.table({"en": pa.array([None if name == "null" else 1]), "es": ["a"]}), path)
        return path
    if name == "nowhere":
        return folder / "nowhere"
    if name == "empty folder":
        return folder
    path = saved(folder / "saved", table(ROWS, nested=name == "no key"))
    if name == "cut off":
        file = path / "data-00001-of-00002.arrow"
        file.write_bytes(file.read_bytes()[:700])
    elif name == "file missing":
        (path / "data-00001-of-00002.arrow").unlink()
    elif name == "outside":
        (path / "state.json").write_text(json.dumps({"_data_files": [{"filename": "../x.arrow"}]}))
    elif name == "no state":
        (path / "state.json").write_text("[]")
    return path


FAULTS = {
    "splits": ": a dataset of the splits train; name one (DIR/train)",
    "no parquet": "bad.parquet: cannot be read as Parquet (",
    "a number": "bad.parquet:1: key 'en' holds a number, expected text",
    "null": "bad.parquet:1: key 'en' holds null, expected text",
    "nowhere": "nowhere: no such file or folder",
    "empty folder": ": neither Parquet files nor a dataset that save_to_disk wrote (state.json is missing)",
    "cut off": "data-00001-of-00002.arrow: cannot be read as Arrow (",
    "file missing": "saved: the dataset's file data-00001-of-00002.arrow is not there",
    "outside": "saved: the dataset's file ../x.arrow is not there",
    "no state": "state.json: not the state of a saved dataset (",
    "no key": "data-00000-of-00002.arrow: no column 'en' (columns: 'id', 'translation')",
}


@pytest.mark.parametrize("name", FAULTS)
def test_every_fault_is_one_line(name, tmp_path):
    path = fault(tmp_path, name)
    given = {"dataset": path, "source-key": "en", "target-key": "es", "model-dir": tmp_path / "m"}
    assert FAULTS[name] in refusal("train", *flags(SMALL | given))
    with pytest.raises(DataError):
        read_dataset(path, source_key="en", target_key="es")


def test_without_pyarrow_a_line_says_what_is_needed(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    said = "Arrow and Parquet files need pyarrow: pip install 'mirada[arrow]'"
    assert refusal("train", "--dataset", tmp_path, "--model-dir", tmp_path / "m") == said
