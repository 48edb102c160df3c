"""The clock of the drivers; rows are those of benchmarks/rows.py.

A training is cut into three windows after a warm-up. The drivers hook a toolkit's own update, so reading data, forward,
backward, clipping and optimiser are all inside.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from importlib.metadata import version
from itertools import pairwise
from pathlib import Path
from statistics import median, quantiles
from typing import NamedTuple

from benchmarks import machine, rows
from benchmarks.peers.workloads import Job, read_lines

WINDOWS = 3
SCORED = 200  # sentences from which BLEU says something
Translate = Callable[[list[str]], list[list[str]]]


class Mark(NamedTuple):
    """Where a window ends: the time, and what has been done by then."""

    clock: float
    load: machine.Reading | None
    tokens: int
    places: int


class Clock:
    """Is told of every update, and ends the process after the last window, unless the model is to be kept."""

    def __init__(self, job: Job, row: rows.Row):
        self._job, self._row = job, row
        self._first, self._updates = job.options.warmup, job.options.updates // WINDOWS
        self._marks: list[Mark] = []
        self._done = self._tokens = self._places = 0

    def tick(self, tokens: int, places: int) -> None:
        """An update has ended: its real target tokens (</s> counted), and with padding."""
        self._done, self._tokens, self._places = self._done + 1, self._tokens + tokens, self._places + places
        since = self._done - self._first
        if since < 0 or since % self._updates or len(self._marks) > WINDOWS:
            return
        machine.wait(self._job.options.device)
        self._marks.append(Mark(time.perf_counter(), machine.reading(), self._tokens, self._places))
        if len(self._marks) > WINDOWS:
            row = self._row | trained(self._marks, self._updates)
            rows.write(row | {"peak_mb": round(machine.peak_megabytes(self._job.options.device))}, results(self._job))
            if not self._job.options.keep:
                sys.exit(0)


def trained(marks: Sequence[Mark], updates: int) -> rows.Row:
    """The figures of a training."""
    windows = [(after.tokens - before.tokens) / (after.clock - before.clock) for before, after in pairwise(marks)]
    tokens, places = marks[-1].tokens - marks[0].tokens, marks[-1].places - marks[0].places
    return {
        "tokens_per_second": round(median(windows), 1),
        "windows": [round(window, 1) for window in windows],
        "updates": updates,
        "tokens_per_update": round(tokens / updates / WINDOWS, 1),
        "padding": round(places / tokens, 3),
        "others": others([mark.load for mark in marks]),
    }


def decode(job: Job, row: rows.Row, translate: Translate) -> None:
    """Time passes over the test lines, as many at a time as --batch says; with 1 a row is about single sentences."""
    lines = job.lines()
    translate(lines[:8])  # what is built at the first call is not timed
    figures = alone(translate, lines) if job.options.batch == 1 else together(job, translate, lines)
    row = row | {"beam": job.options.beam, "sentences": len(lines)} | figures
    rows.write(row | {"peak_mb": round(machine.peak_megabytes(job.options.device))}, results(job))


def together(job: Job, translate: Translate, lines: list[str]) -> rows.Row:
    """Passes over all lines."""
    clocks, loads, output = [time.perf_counter()], [machine.reading()], []
    for _ in range(job.options.repeat):
        output = translate(lines)
        clocks.append(time.perf_counter())
        loads.append(machine.reading())
    windows = [len(lines) / (after - before) for before, after in pairwise(clocks)]
    length = sum(len(pieces) + 1 for pieces in output) / len(lines)  # </s> too
    figures: rows.Row = {
        "kind": "decode",
        "batch_size": job.options.batch,
        "sentences_per_second": round(median(windows), 1),
        "windows": [round(window, 1) for window in windows],
        "tokens_per_second": round(median(windows) * length),
        "mean_length": round(length, 1),
        "others": others(loads),
    }
    return figures | ({"bleu": bleu(output, job)} if job.workload.data == "text" and len(lines) >= SCORED else {})


def alone(translate: Translate, lines: list[str]) -> rows.Row:
    """One call a sentence."""
    before, waits = machine.reading(), []
    for line in lines:
        begun = time.perf_counter()
        translate([line])
        waits.append((time.perf_counter() - begun) * 1000)
    figures: rows.Row = {"kind": "latency", "median_ms": round(median(waits), 1)}
    return figures | {"p90_ms": round(quantiles(waits, n=10)[-1], 1), "others": others([before, machine.reading()])}


def start(job: Job, row: rows.Row, command: Sequence[str], *, given: str = "") -> None:
    """Time whole processes that load a model and translate one sentence."""
    runs, loads = [], [machine.reading()]
    for _ in range(job.options.repeat):
        begun = time.perf_counter()
        done = subprocess.run(command, input=given, text=True, capture_output=True, check=False)
        runs.append(round(time.perf_counter() - begun, 3))
        loads.append(machine.reading())
        if done.returncode:
            sys.exit(f"{command[0]}: exit code {done.returncode}\n{done.stderr[-2000:]}")
    row = row | {"best_s": min(runs), "median_s": median(runs), "runs": runs, "beam": job.options.beam}
    rows.write(row | {"others": others(loads)}, results(job))


def others(loads: Sequence[machine.Reading | None]) -> list[float]:
    """Cores that other processes kept busy between readings."""
    between = [machine.load_between(before, after).others for before, after in pairwise(loads)]
    return [round(cores, 3) for cores in between if cores is not None]


def describe(job: Job, kind: str, system: str, package: str) -> rows.Row:
    """The start of a row; torch is set to the threads asked for, so that the facts tell them."""
    import torch

    torch.set_num_threads(job.options.threads)
    row: rows.Row = {"kind": kind, "system": system, "version": version(package), "work": job.workload.name}
    if job.workload.cell:
        row["cell"] = job.workload.cell
    device = job.options.device
    more: rows.Row = {} if device == "cpu" or kind != "train" else {"batch_size": job.workload.batch}
    return row | more | {"precision": "float32", "machine": machine.facts(device)}


def bleu(output: list[list[str]], job: Job) -> float:
    """SacreBLEU, to see that what was decoded is a model that has learnt something."""
    import sacrebleu

    text = ["".join(pieces).replace("▁", " ").strip() for pieces in output]
    score: float = sacrebleu.corpus_bleu(text, [read_lines(job.files.reference)[: len(text)]]).score
    return round(score, 1)


def results(job: Job) -> Path:
    """Where rows are added."""
    return job.folder / "results"
