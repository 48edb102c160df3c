"""A comparison in small: six pairs, two systems, a few updates."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import tiny
from mirada.study.bottleneck.settings import Settings
from mirada.study.compare import worker
from mirada.study.compare.plan import ComparisonRequest

SYSTEMS = ("classic-lstm", "luong-dot")
MODEL = {"embedding_dim": 8, "hidden_size": 40, "num_heads": 2, "ff_size": 8}
TRAINING = {"batch_size": 3, "learning_rate": 0.01, "warmup_steps": 1, "valid_every": 40, "device": "cpu"}
SEARCH = {"beam_size": 2, "max_output_length": 8}
TINY = Settings(  # of `mirada bottleneck`
    pairs=30,
    length=5,
    tested=6,
    updates=2,
    batch=8,
    embedding=8,
    classic_widths=(6, 10),
    attention_widths=(6,),
    vocabulary=90,
    symbols=4,
    sequence=6,
    sequences=60,
    sequence_width=8,
    sequence_updates=2,
    sequence_tests=9,
    cost_width=8,
    cost_batch=2,
    cost_vocabulary=20,
    cost_lengths=(3, 5),
    cost_repeats=3,
)


def write_pairs(folder: Path) -> dict[str, str]:
    """Six pairs as two files; returns them as a block of options."""
    paths = {name: folder / f"pairs.{name}" for name in ("src", "tgt")}
    for path, lines in zip(paths.values(), (tiny.SOURCES, tiny.TARGETS), strict=True):
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return {name: str(path) for name, path in paths.items()}


def request(folder: Path, **changes: Any) -> ComparisonRequest:
    """Train and test on the same six pairs."""
    pairs = write_pairs(folder)
    dev = {f"dev_{name}": path for name, path in pairs.items()}
    options = {"data": {**pairs, **dev, "vocab_size": 60}, "model": MODEL, "training": TRAINING, "search": SEARCH}
    values: dict[str, Any] = {
        "systems": SYSTEMS,
        "budget": "3updates",
        "quiet": True,
        "options": options,
        "test": pairs,
    }
    return ComparisonRequest(out=folder / "out", **{**values, **changes})


def in_this_process(folder: Path) -> int:
    """Do a job without the seconds that a process takes to start."""
    return worker.main(folder)


def timeless(results: Mapping[str, Any]) -> Any:
    """Results without what a clock or the machine says."""

    def plain(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: plain(inner) for key, inner in value.items() if key not in ("cost", "environment")}
        return [plain(inner) for inner in value] if isinstance(value, list) else value

    return plain(json.loads(json.dumps(results)))
