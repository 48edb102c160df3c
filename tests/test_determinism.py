"""The same command on the same machine makes the same model, bit for bit, with one thread and with two."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from cli_tools import reversals, write_pairs
from faults.commands import Command
from mirada.checkpoint import read_archive

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="starts processes as Linux does")

# Wide enough that PyTorch shares the work between threads: matrices of 128 × 1024, 32 sentences.
SIZES = {"embedding-dim": 64, "hidden-size": 128, "batch-size": 32, "max-updates": 6, "valid-every": 3}
SYSTEMS = {
    "classic": ["--decoder=classic", "--rnn-type=gru", "--dec-layers=2", "--enc-layers=2"],
    "bahdanau": ["--decoder=bahdanau", "--score=additive", "--readout=deep"],
    "luong": ["--decoder=luong", "--score=general", "--ema-decay=0.9"],
    "transformer": ["--decoder=transformer", "--num-heads=4", "--ff-size=256"],
}


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = reversals(250, lengths=(5, 16), seed=2)
    return write_pairs(tmp_path_factory.mktemp("pairs") / "pairs.tsv", found)


@pytest.mark.parametrize(("system", "threads"), [*((system, 2) for system in SYSTEMS), ("luong", 1)])
def test_the_same_weights_again(system, threads, pairs, tmp_path):
    flags = [f"--{name}={value}" for name, value in SIZES.items()]
    flags += [f"--tsv={pairs}", "--tokenizer=word", "--dropout=0.3", "--word-dropout=0.1", "--device=cpu"]
    for name in ("first", "second"):
        arguments = ["train", *flags, *SYSTEMS[system], f"--model-dir={tmp_path / name}"]
        command = Command(arguments, tmp_path / f"{name}.log", threads=threads)
        assert command.end() == 0, command.said()
    for name in ("model.safetensors", "validations.tsv", "metrics.json", "source.json", "target.json"):
        assert (tmp_path / "first" / name).read_bytes() == (tmp_path / "second" / name).read_bytes(), name
    assert read_archive(tmp_path / "first" / "model.safetensors").note["updates"] in (3, 6)
