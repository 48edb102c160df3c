"""Training on prepared corpora: the same model as from memory, bit for bit, gone on with, shared, and made unasked."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from cli_tools import ENVIRONMENT, flags, mirada, refusal, reversals, works, write_pairs
from mirada.data import batches, preparation
from mirada.data.batches import BatchSize, plan
from mirada.data.prepared import open_prepared
from mirada.data.shards import MappedIds
from mirada.errors import DataError
from training_tools import SMALL, assert_same, trains, write_data

QUICK = {"max-updates": 6, "valid-every": 3, "valid-metrics": "exact"}
FORMAT = ("tokenizer", "source-tokenizer", "target-tokenizer", "share-vocab", "vocab-size", "max-length")


@pytest.fixture
def small_shards(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files of sixteen pairs, and windows of two blocks of ten."""
    monkeypatch.setattr(preparation, "SHARD", 16)
    monkeypatch.setattr(batches, "BLOCK", 10)
    monkeypatch.setattr(batches, "WINDOW", 20)


def prepare(out: Path, *options: dict[str, object]) -> Path:
    given = {name: value for part in options for name, value in part.items()}
    ran = works("data", "prepare", *flags(given | {"out": out}))
    assert ran.lines == [str(out)]
    return out


def corpora(tmp_path: Path) -> dict[str, dict[str, object]]:
    """Ways to have pairs: with dev and without, with lines left out, with parts."""
    many = reversals(80, lengths=(2, 9), seed=5, symbols="abcde")
    blank = tmp_path / "blank.tsv"
    blank.write_text("".join(f"{s}\t{t}\n" for s, t in many[:70]) + "\t\n" + "a b\t\n")
    parts = tmp_path / "parts.tsv"
    parts.write_text("word\tform\tkind\n" + "".join(f"{s}\t{t}\tx;y\n" for s, t in many))
    sides = [tmp_path / "s.txt", tmp_path / "t.txt"]
    for side, path in enumerate(sides):
        path.write_text("".join(f"{pair[side]}\n" for pair in many))
    lines = tmp_path / "lines.jsonl"
    lines.write_text("".join(json.dumps({"source": s, "target": [t, t[::-1]]}) + "\n" for s, t in many))
    columns = {"source-column": "word,kind", "target-column": "form"}
    return {
        "dev": {**write_data(tmp_path), "tokenizer": "word"},
        "split": {"tsv": blank, "dev-size": 5, "max-length": 6, "tokenizer": "auto"},
        "parts": {"tsv": parts, **columns, "tokenizer": "char", "source-tokenizer": "char,features"},
        "shared": {"src": sides[0], "tgt": sides[1], "share-vocab": "true", "tokenizer": "bpe", "vocab-size": 20},
        "one language": {"src": sides[0], "tgt": sides[1], "tokenizer": "bpe", "vocab-size": 20},
        "lines": {"jsonl": lines, "tokenizer": "auto", "truncate-source": "first", "max-length": 7},
    }


@pytest.mark.parametrize("way", ["dev", "split", "parts", "shared", "one language", "lines"])
@pytest.mark.usefixtures("small_shards")
def test_prepared_pairs_train_the_same_model(way, tmp_path):
    data = corpora(tmp_path)[way]
    more = {"copy-attn": "false"} if way in ("parts", "one language") else {}
    memory, disk = tmp_path / "memory", tmp_path / "disk"
    said = trains(memory, data, QUICK, more)
    assert ("tied_embeddings true" in said) == (way == "one language")
    folder = prepare(tmp_path / "prepared", data)
    assert len(list(folder.glob("ids-*.arrow"))) > 2
    rest = {name: value for name, value in SMALL.items() if name not in FORMAT}
    ran = works("train", *flags(rest | QUICK | more | {"prepared": folder, "model-dir": disk}))
    assert sorted(ran.errors.splitlines()) == sorted(said.splitlines())
    assert_same(memory, disk)


@pytest.mark.usefixtures("small_shards")
def test_stopped_and_gone_on_is_never_stopped(tmp_path):
    folder = prepare(tmp_path / "prepared", corpora(tmp_path)["split"])
    given = {name: value for name, value in SMALL.items() if name not in FORMAT} | {"prepared": folder, "dropout": 0.3}
    for name, ends in (("whole", (11,)), ("parts", (4, 11))):
        for updates in ends:
            works("train", *flags(given | {"max-updates": updates, "valid-every": 4, "model-dir": tmp_path / name}))
    assert_same(tmp_path / "whole", tmp_path / "parts")


@pytest.mark.usefixtures("small_shards")
def test_what_was_begun_in_memory_goes_on_from_files(tmp_path):
    data, whole, parts = corpora(tmp_path)["dev"], tmp_path / "whole", tmp_path / "parts"
    trains(whole, data, QUICK)
    trains(parts, data, QUICK, {"max-updates": 3})
    folder = prepare(tmp_path / "prepared", data)
    works("train", *flags(SMALL | QUICK | {"prepared": folder, "model-dir": parts}))
    assert_same(whole, parts)


@pytest.mark.usefixtures("small_shards")
def test_large_text_is_prepared_unasked_and_only_once(tmp_path):
    data, memory, disk = corpora(tmp_path)["split"], tmp_path / "memory", tmp_path / "disk"
    trains(memory, data, QUICK)
    size = data["tsv"].stat().st_size
    said = trains(disk, data, QUICK, {"max-updates": 3, "prepare-above": size})
    place = disk / "prepared"
    assert f"{size:,} bytes of text are large (--prepare-above {size:,}): they are prepared in {place}, " in said
    before = (place / "prepared.json").stat().st_mtime_ns
    again = trains(disk, data, QUICK, {"prepare-above": size})
    assert "are prepared in" not in again
    assert f"pairs are read from {place}" in again
    assert (place / "prepared.json").stat().st_mtime_ns == before
    assert_same(memory, disk)
    data["tsv"].write_text(data["tsv"].read_text() + "a b c\tc b a\n")
    words = flags(SMALL | QUICK | data | {"prepare-above": size, "model-dir": disk, "max-updates": 9})
    assert refusal("train", *words).startswith(f"{disk} was trained on other pairs")
    assert (place / "prepared.json").stat().st_mtime_ns != before


def test_text_below_the_threshold_is_read_into_memory(tmp_path):
    data = corpora(tmp_path)["split"]
    size = data["tsv"].stat().st_size
    assert "prepared" not in trains(tmp_path / "m", data, QUICK, {"prepare-above": size + 1})
    assert not (tmp_path / "m" / "prepared").exists()


def test_what_cannot_be_prepared_is_said_and_read_into_memory(tmp_path):
    data = corpora(tmp_path)["shared"]
    said = trains(tmp_path / "m", data, {"max-updates": 1, "bpe-dropout": 0.1, "prepare-above": 0})
    assert "but bpe_dropout cuts them anew in every epoch: they are read into memory" in said


def test_epochs_are_planned_in_windows_of_blocks(monkeypatch):
    monkeypatch.setattr(batches, "BLOCK", 10)
    monkeypatch.setattr(batches, "WINDOW", 40)
    lengths = np.random.default_rng(0).integers(1, 9, (200, 2)).astype(np.int32)
    found = plan(lengths, BatchSize(4, by_tokens=False), seed=1, epoch=2)
    order = np.concatenate(found)
    assert sorted(order) == list(range(200))
    assert {tuple(batch) for batch in found} != {
        tuple(batch) for batch in plan(lengths, BatchSize(4, by_tokens=False), seed=1, epoch=3)
    }
    again = plan(lengths, BatchSize(4, by_tokens=False), seed=1, epoch=2)
    assert [batch.tolist() for batch in again] == [batch.tolist() for batch in found]
    windows = [{index // 10 for index in order[i : i + 40].tolist()} for i in range(0, 200, 40)]
    assert [len(blocks) for blocks in windows] == [4] * 5
    assert windows[0] not in ({0, 1, 2, 3}, {16, 17, 18, 19})


def test_updates_stay_whole_across_windows(monkeypatch):
    monkeypatch.setattr(batches, "BLOCK", 10)
    monkeypatch.setattr(batches, "WINDOW", 20)
    lengths = np.random.default_rng(0).integers(1, 9, (70, 2)).astype(np.int32)
    found = plan(lengths, BatchSize(4, by_tokens=False), seed=1, epoch=0, together=3)
    assert sorted(np.concatenate(found)) == list(range(70))
    blocks = [{i // 10 for i in np.concatenate(found[n : n + 3]).tolist()} for n in range(0, 9, 3)]
    assert all(len(own) <= 2 for own in blocks)


KILLED = """
import os, signal, sys
from mirada.data import preparation
from mirada.cli import main
preparation.SHARD = 1000
encoded = preparation.ShardSize
def tell(self, what, done, total):
    print(what, done, flush=True)
from mirada.cli.ticker import Ticker
Ticker.tell = tell
if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
"""


def test_killed_while_preparing_leaves_nothing_that_is_taken_for_whole(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(KILLED)
    pairs = write_pairs(tmp_path / "pairs.tsv", reversals(60, lengths=(2, 5), seed=3, symbols="abcde") * 100)
    out = tmp_path / "prepared"
    line = [sys.executable, str(program), "data", "prepare", "--tsv", str(pairs), "--out", str(out), "--workers", "2"]
    process = subprocess.Popen(line, stdout=subprocess.PIPE, text=True, env=ENVIRONMENT)
    assert process.stdout is not None
    for said in process.stdout:
        if said.startswith("cutting"):
            break
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=60)
    assert not out.exists()
    said = f"{out}: no such folder; make a prepared corpus with mirada data prepare"
    assert refusal("train", "--prepared", out, "--model-dir", tmp_path / "m") == said
    until = time.monotonic() + 30
    while any(Path(f"/proc/{child}/stat").exists() for child in children) and time.monotonic() < until:
        time.sleep(0.1)
    assert [child for child in children if Path(f"/proc/{child}/stat").exists()] == []
    works("data", "prepare", "--tsv", pairs, "--out", out)


def broken(folder: Path, name: str) -> Path:
    """A prepared corpus with a fault."""
    ids = folder / "ids-00000.arrow"
    manifest = folder / "prepared.json"
    if name == "cut off":
        ids.write_bytes(ids.read_bytes()[:-10])
    elif name == "altered":
        ids.write_bytes(b"\0" * ids.stat().st_size)
    elif name == "missing":
        ids.unlink()
    elif name == "no manifest":
        manifest.unlink()
    elif name == "no JSON":
        manifest.write_text("{")
    elif name == "newer":
        manifest.write_text(manifest.read_text().replace('"format": 1', '"format": 2'))
    elif name == "other pairs":
        manifest.write_text(manifest.read_text().replace('"kept": 50', '"kept": 49'))
    elif name == "no dev":
        (folder / "dev.json").unlink()
    return folder


FAULTS = {
    "cut off": "ids-00000.arrow: {less:,} bytes, expected {size:,}; prepare the corpus again",
    "altered": "ids-00000.arrow: cannot be read (",
    "missing": "ids-00000.arrow: not there; prepare the corpus again (mirada data prepare)",
    "no manifest": ": not a prepared corpus (prepared.json is missing); mirada data prepare makes one",
    "no JSON": "prepared.json: damaged (",
    "newer": "prepared.json: format: input should be 1 (got 2); prepare the corpus again",
    "other pairs": "ids-00000.arrow: does not hold the 49 pairs that it should; prepare the corpus again",
    "no dev": "dev.json: missing or damaged (FileNotFoundError); prepare the corpus again",
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_prepared_corpus_that_is_not_whole_is_refused(fault, tmp_path):
    folder = prepare(tmp_path / "prepared", write_data(tmp_path), {"tokenizer": "word"})
    size = (folder / "ids-00000.arrow").stat().st_size
    broken(folder, fault)
    said = refusal("train", "--prepared", folder, "--model-dir", tmp_path / "m", "--device", "cpu")
    assert FAULTS[fault].format(size=size, less=size - 10) in said
    assert not (tmp_path / "m").exists()


def test_options_that_contradict_are_refused(tmp_path):
    data = write_data(tmp_path)
    folder = prepare(tmp_path / "prepared", data, {"tokenizer": "word"})
    here = ("train", "--prepared", folder, "--model-dir", tmp_path / "m", "--device", "cpu")
    said = f"max_length 9 with prepared {folder}, which has 256; leave max_length out, or prepare again"
    assert refusal(*here, "--max-length", 9) == said
    assert refusal(*here, "--tsv", "other.tsv").startswith(f"tsv other.tsv with prepared {folder}, which has ")
    assert refusal(*here, "--bpe-dropout", "0.1").startswith("bpe_dropout 0.1 with prepared")
    copying = refusal(*here, "--copy-attn", "true", "--decoder", "luong")
    assert copying.startswith(f"copy_attn true with {folder}: a prepared corpus has no copies; give copy_attn false")
    assert refusal("data", "prepare", "--prepared", folder, "--out", tmp_path / "x").startswith("prepared ")
    bare = ("--tsv", data["tsv"], "--out", tmp_path / "x", "--tokenizer", "bpe", "--bpe-dropout", 0.1)
    assert refusal("data", "prepare", *bare).startswith("bpe_dropout cuts the texts anew in every epoch")
    assert refusal("data", "prepare", "--tsv", data["tsv"], "--out", folder).startswith(f"{folder}: is there already")
    assert not (tmp_path / "x").exists()


def test_a_model_of_other_tokens_does_not_go_on_with_a_prepared_corpus(tmp_path):
    data = write_data(tmp_path)
    other = write_pairs(tmp_path / "other", reversals(50, lengths=(2, 5), seed=4, symbols="vwxyz"))
    trains(tmp_path / "m", {"tsv": other, "dev-tsv": other}, {"max-updates": 2})
    folder = prepare(tmp_path / "prepared", data, {"tokenizer": "word"})
    words = flags({"prepared": folder, "init-from": tmp_path / "m", "model-dir": tmp_path / "n", "device": "cpu"})
    assert refusal("train", *words).startswith(f"{folder}: prepared with other tokenisers than the model's; ")


def test_ids_are_read_from_the_files(tmp_path):
    folder = prepare(tmp_path / "prepared", write_data(tmp_path), {"tokenizer": "word"})
    found = open_prepared(folder)
    assert isinstance(found.train.sources, MappedIds)
    assert found.train.sources[0].dtype == np.uint16
    texts = found.corpora[0].sources
    assert texts[:3] == list(texts)[:3]
    assert [*found.tokenizers[0].encode(texts[:1])[0], 3] == found.train.sources[0].tolist()
    with pytest.raises(IndexError):
        texts[50]


def test_a_dead_worker_is_said(tmp_path, monkeypatch):
    monkeypatch.setattr(preparation, "SHARD", 16)

    def dies(*_: object) -> None:
        raise preparation.BrokenProcessPool

    monkeypatch.setattr(preparation, "encode_shard", dies)
    data = write_data(tmp_path)
    said = refusal("data", "prepare", "--tsv", data["tsv"], "--out", tmp_path / "x", "--workers", 1)
    assert said == "a process that cuts texts into tokens has ended (too little memory?); lower --workers"


def test_unequal_files_are_refused_with_the_line(tmp_path):
    (tmp_path / "s").write_text("a\nb\nc\n")
    (tmp_path / "t").write_text("a\nb\n")
    said = refusal("data", "prepare", "--src", tmp_path / "s", "--tgt", tmp_path / "t", "--out", tmp_path / "x")
    assert said == f"{tmp_path / 't'} ends at line 2 but {tmp_path / 's'} goes on"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["s", "t"]


def test_every_command_reads_the_pairs_of_a_prepared_corpus(tmp_path):
    folder = prepare(tmp_path / "prepared", write_data(tmp_path), {"tokenizer": "word"})
    assert mirada("data", "check", "--prepared", folder).output.startswith("train: 50 pairs")


def test_the_error_names_the_folder(tmp_path):
    with pytest.raises(DataError, match="no such folder"):
        open_prepared(tmp_path / "nowhere")
