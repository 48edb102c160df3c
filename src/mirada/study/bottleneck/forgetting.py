"""Experiment 3: which source positions survive the fixed vector? Copying and reversing random symbols.

Symbols are drawn evenly, so nothing but the source tells what to write. The decoder is forced along the right output,
so a position is judged by itself: was its symbol the likeliest when its turn came?
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any, NamedTuple

import numpy as np

from mirada.data.corpus import Corpus
from mirada.evaluation.bootstrap import SAMPLES, SEED, percentiles
from mirada.evaluation.compare import over_seeds
from mirada.evaluation.metrics import FloatArray
from mirada.study.bottleneck.settings import BottleneckRequest, Settings
from mirada.study.compare import items
from mirada.study.compare.jobs import state
from mirada.study.compare.runs import RunSettings, System, share, trained_system
from mirada.study.compare.stored import read_positions
from mirada.study.compare.systems import ENDLESS, system_config

TASKS = ("copy", "reverse")


class Condition(NamedTuple):
    """One system on one task, with the source read as written or last symbol first."""

    task: str
    system: str
    reversed_source: bool
    runs: System

    @property
    def name(self) -> str:
        """For tables and figures."""
        return f"{self.system}, source reversed" if self.reversed_source else self.system


def plan_forgetting(request: BottleneckRequest) -> list[Condition]:
    """Make the sequences and lay out the runs: the classic system twice, attention once a task."""
    conditions = []
    for number, task in enumerate(TASKS):
        out = request.out / f"forgetting-{task}"
        shared = share(out, _values(request), sequences(request.settings, task, seed=10 + number))
        place = RunSettings(out, request.seeds, 64, request.quiet)
        for system, backwards in (
            (f"classic-{request.cell}", False),
            (f"classic-{request.cell}", True),
            (request.attention, False),
        ):
            config = system_config(
                {**shared.values, "model": {**shared.values["model"], "reverse_source": backwards}}, system
            )
            name = f"{system}-reversed" if backwards else system
            conditions.append(
                Condition(task, system, backwards, trained_system(place, name, config, measure="positions"))
            )
    return conditions


def _values(request: BottleneckRequest) -> dict[str, Any]:
    settings = request.settings
    return {
        "data": {"tokenizer": "word"},
        "model": {
            "embedding_dim": 32,
            "hidden_size": settings.sequence_width,
            "rnn_type": request.cell,
            "bidirectional": False,
            "input_feeding": False,
            "dropout": 0.0,
        },
        "training": {
            "max_updates": settings.sequence_updates,
            "epochs": ENDLESS,
            "patience": ENDLESS,
            "learning_rate": 3e-3,
            "warmup_steps": min(100, settings.sequence_updates // 4),
            "valid_every": max(1, settings.sequence_updates // 4),
            "label_smoothing": 0.0,
            "device": request.device,
        },
    }


def sequences(settings: Settings, task: str, *, seed: int) -> items.Pairs:
    """Training and dev sequences of 1 to n symbols, test sequences of exactly n, none of which is trained on."""
    rng = Random(seed)
    names = [f"s{i}" for i in range(settings.symbols)]

    def draw(count: int, least: int) -> list[tuple[str, ...]]:
        sizes = (rng.randint(least, settings.sequence) for _ in range(count))
        return [tuple(rng.choices(names, k=size)) for size in sizes]

    test = draw(settings.sequence_tests, settings.sequence)
    known = set(test)
    train = [sequence for sequence in draw(settings.sequences, 1) if sequence not in known]
    corpora = [_corpus(rows, task) for rows in (train, draw(200, 1), test)]
    return items.Pairs(corpora[0], corpora[1], corpora[2], ())


def _corpus(rows: Sequence[tuple[str, ...]], task: str) -> Corpus:
    targets = rows if task == "copy" else [row[::-1] for row in rows]
    sides = [" ".join(row) for row in rows], [" ".join(row) for row in targets]
    return Corpus(*sides, list(range(1, len(rows) + 1)), [], task)


def forgetting_results(request: BottleneckRequest, conditions: Sequence[Condition]) -> dict[str, Any]:
    """Accuracy by source position in percent, and its first third against its last."""
    rows = []
    for condition in conditions:
        done = [task for task in condition.runs.tasks if state(task.folder) == "done"]
        if done:
            hits = [np.array(read_positions(task.folder)["hits"], dtype=np.float64) for task in done]
            by_output = np.stack(hits)  # [seeds, items, positions]
            by_source = by_output if condition.task == "copy" else by_output[:, :, ::-1]
            row = {"task": condition.task, "system": condition.system, "reversed_source": condition.reversed_source}
            rows.append({**row, "name": condition.name, **position_numbers(by_source)})
    settings = request.settings
    return {"length": settings.sequence, "symbols": settings.symbols, "width": settings.sequence_width, "systems": rows}


def position_numbers(hits: FloatArray, *, samples: int = SAMPLES) -> dict[str, Any]:
    """Accuracy of `[seeds, items, positions]` at each position, of the first and last third, and late − early.

    Intervals draw sequences and seeds again.
    """
    _, count, positions = hits.shape
    third = max(1, positions // 3)
    draws = np.random.default_rng(SEED).integers(count, size=(samples, count))
    curves = over_seeds(np.stack([hits[:, rows].mean(axis=1) for rows in draws], axis=1))  # [samples, positions]
    hits = hits.mean(axis=0)
    ends = [slice(0, third), slice(positions - third, positions)]
    means = [100 * float(hits[:, end].mean()) for end in ends]
    resampled = [100 * curves[:, end].mean(axis=1) for end in ends]
    by_position = zip(100 * hits.mean(axis=0), 100 * curves.T, strict=True)
    return {
        "positions": [_span(float(value), spread) for value, spread in by_position],
        "early": _span(means[0], resampled[0]),
        "late": _span(means[1], resampled[1]),
        "late_minus_early": _span(means[1] - means[0], resampled[1] - resampled[0]),
    }


def _span(value: float, resampled: FloatArray) -> dict[str, float]:
    low, high = percentiles(resampled)
    return {"value": value, "low": low, "high": high}
