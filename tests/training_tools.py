"""Small trainings by the command line, and what is in their folders."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from cli_tools import flags, reversals, works, write_pairs
from mirada.config.model import applicable
from mirada.store import checkpoint
from mirada.store.checkpoint import read_archive
from mirada.train import loop

Tensors = dict[str, torch.Tensor]
TIMES = ("seconds", "validated_at", "validation_seconds")  # of which no two trainings have the same
PAIRS = reversals(60, lengths=(2, 5), seed=3, symbols="abcde")
SMALL = {
    "device": "cpu",
    "tokenizer": "word",
    "batch-size": 10,
    "warmup-steps": 3,
    "learning-rate": 0.01,
    "embedding-dim": 8,
    "hidden-size": 8,
    "valid-metrics": "",  # none
}


def write_data(folder: Path) -> dict[str, object]:
    """Write fifty pairs to train on, five batches, and ten to validate on; returns the options that name them."""
    files = {"tsv": PAIRS[:50], "dev-tsv": PAIRS[50:]}
    return {name: write_pairs(folder / name, pairs) for name, pairs in files.items()}


def trains(folder: Path, *options: dict[str, object]) -> str:
    """Train into a folder; returns what was said meanwhile."""
    given = {name.replace("-", "_"): value for part in (SMALL, *options) for name, value in part.items()}
    ran = works("train", *flags(applicable(given) | {"model-dir": folder}))
    assert ran.lines == [str(folder)]
    return ran.errors


def progress(folder: Path) -> dict[str, Any]:
    """Where the training in a folder stands."""
    return dict(read_archive(folder / checkpoint.RESUME).metadata["progress"])


def weights(folder: Path, kind: str = "model") -> Tensors:
    """The weights as training left them, or with `average` their moving average."""
    tensors = read_archive(folder / checkpoint.RESUME).tensors
    return {name.partition(".")[2]: tensor for name, tensor in tensors.items() if name.startswith(f"{kind}.")}


def best(folder: Path) -> Tensors:
    """The weights that were kept."""
    return read_archive(folder / checkpoint.WEIGHTS).tensors


def losses_rise(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let dev losses be the size of the weights, which grow from update to update: no validation is better."""

    def size(model: torch.nn.Module, *_: object) -> dict[str, float]:
        return {
            "loss": sum(float(part.detach().abs().sum()) for part in model.parameters()),
            "ppl": 1.0,
            "accuracy": 0.0,
        }

    monkeypatch.setattr(loop, "dev_loss", size)


def different(first: Tensors, second: Tensors) -> list[str]:
    """The names under which two sets of tensors are not equal, bit by bit."""
    assert first.keys() == second.keys()
    return [name for name in first if not torch.equal(first[name], second[name])]


def distance(first: Tensors, second: Tensors) -> float:
    """The largest difference between two sets of tensors."""
    return max(float((first[name] - second[name]).abs().max()) for name in first)


def assert_same(first: Path, second: Path) -> None:
    """Two trainings are the same: best and last weights, optimiser, random state, place, and the log."""
    for name in (checkpoint.WEIGHTS, checkpoint.RESUME):
        archives = read_archive(first / name), read_archive(second / name)
        assert different(archives[0].tensors, archives[1].tensors) == []
        for archive in archives:
            for measured in TIMES:
                archive.metadata.get("progress", {}).pop(measured, None)
        assert archives[0].metadata == archives[1].metadata
    for name in ("validations.tsv", "metrics.json", *checkpoint.TOKENIZERS):
        assert (first / name).read_bytes() == (second / name).read_bytes()
