"""A sweep: trainings that differ in a few options, each a model folder, and a table of how good they are on dev."""

from __future__ import annotations

import csv
import hashlib
import io
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from math import isfinite
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import BaseModel

from mirada.config.configfile import parse
from mirada.config.sweep import SweepConfig, Values, combinations
from mirada.config.types import written
from mirada.errors import ConfigError, MiradaError, TrainingError
from mirada.escape import csv_cell
from mirada.files import locked, write_text
from mirada.scaling.engine import LOCAL, EngineChoice, workplace
from mirada.scaling.pool import Do, in_order
from mirada.store import checkpoint
from mirada.store.progress import sign_of
from mirada.study.compare.stored import read_json, write_json
from mirada.train.interrupts import InterruptedTrainingError
from mirada.train.loop import train
from mirada.train.progress import Monitor

TRIAL = "trial.json"


@dataclass(frozen=True)
class SweepRequest:
    """What to train, in a folder for each trial below `out`; `options` are those that all trials share, by block."""

    out: Path
    config: SweepConfig
    options: dict[str, Any]
    engine: EngineChoice = LOCAL
    quiet: bool = False


class Trial(NamedTuple):
    """A training; its folder is named by its options, so that it is found again in a sweep of more trials."""

    number: int
    values: Values
    folder: Path
    options: dict[str, Any]

    def __str__(self) -> str:
        """For messages."""
        return f"trial {self.number} ({said(self.values)})"


class TrialFile(BaseModel):
    """trial.json, in the folder of a finished trial."""

    metric: str
    metrics: dict[str, float]
    updates: int
    seconds: float


class TrialRow(NamedTuple):
    """A trial in the table: `value` of the metric on dev (None: it has none), or the line that says why it failed."""

    trial: Trial
    value: float | None
    updates: int | None
    seconds: float | None
    error: str | None


class SweepResult(NamedTuple):
    """The trials, best first, and the metric that says so."""

    metric: str
    rows: list[TrialRow]


def said(values: Values) -> str:
    """`hidden_size 64, dropout 0.1`."""
    return ", ".join(f"{name.partition('.')[2]} {written(value)}" for name, value in values.items())


def plan_trials(request: SweepRequest) -> list[Trial]:
    """Every trial; nothing is trained yet."""
    trials = []
    for number, values in enumerate(combinations(request.config), start=1):
        options = {block: dict(part or {}) for block, part in request.options.items()}
        for name, value in values.items():
            block, _, leaf = name.partition(".")
            options.setdefault(block, {})[leaf] = value
        lines = sorted(f"{block}.{leaf}={one!r}" for block, part in options.items() for leaf, one in part.items())
        folder = request.out / hashlib.sha256("\n".join(lines).encode()).hexdigest()[:10]
        trials.append(Trial(number, values, folder, {**options, "model_dir": str(folder)}))
    return trials


def sweep(request: SweepRequest, show: Callable[[str], None]) -> SweepResult:
    """Train every trial that is not finished, and write results.csv and results.json; the best comes first.

    A trial that fails is a row with its reason, and is tried again the next time. Raises ConfigError, TrainingError if
    all have failed, InterruptedTrainingError after a stop.
    """
    if request.config.metric:
        sign_of(request.config.metric)  # there is one of that name
    trials = plan_trials(request)
    _check(trials)
    if len(trials) < (request.config.trials or 0):
        show(f"{len(trials)} trials: there are no more combinations")
    request.out.mkdir(parents=True, exist_ok=True)
    with locked(request.out, option="--out"):
        found = _train_all(request, trials, show)
        metric = _metric(request, found)
        rows = _sorted(found, metric)
        _write(request.out, rows, metric)
    if rows[0].error is not None:
        raise TrainingError(f"every trial failed; the first: {rows[0].error}")
    return SweepResult(metric, rows)


def _check(trials: list[Trial]) -> None:
    """Raise ConfigError if no trial's options can be used: what is wrong is then wrong in the file."""
    first: ConfigError | None = None
    for trial in trials:
        try:
            parse(trial.options)
            return
        except ConfigError as error:
            first = first or error
    if first is not None:
        raise first


def _train_all(request: SweepRequest, trials: list[Trial], show: Callable[[str], None]) -> list[tuple[Trial, Any]]:
    """Each trial with its TrialFile's content, or the line that says why it failed."""
    here = request.engine.kind == "local"
    todo = [trial for trial in trials if not (trial.folder / TRIAL).exists()]
    if len(todo) < len(trials):
        show(f"{len(trials) - len(todo)} of {len(trials)} trials are finished already")
    failed: dict[int, str] = {}
    make = partial(make_training, request.quiet or not here)
    with workplace(request.engine, make, show, items=len(todo)) as place:
        for trial, done in in_order(place, _begun(todo, show, here), most=None if here else len(todo)):
            error = done.exception()
            if isinstance(error, InterruptedTrainingError):
                raise error
            if error is not None:
                failed[trial.number] = _line(error)
                show(f"{trial}: failed: {failed[trial.number]}")
            elif not here:
                show(f"{trial}: done")
    return [(trial, failed.get(trial.number) or read_json(trial.folder / TRIAL, TrialFile)) for trial in trials]


def _begun(trials: list[Trial], show: Callable[[str], None], here: bool) -> Iterator[Trial]:
    for trial in trials:
        show(f"{trial}: {'training' if here else 'queued'}")
        yield trial


def _line(error: BaseException) -> str:
    line = (str(error).splitlines() or [""])[0]
    return line if isinstance(error, MiradaError) else f"{type(error).__name__}: {line}"


def make_training(quiet: bool) -> Do:
    """What a worker does with a trial."""

    def run(trial: Trial) -> None:
        result = train(parse(trial.options), monitor=Monitor(quiet=quiet))
        judge = checkpoint.read_config(result.folder).training.early_stopping_metric
        content = TrialFile(metric=judge, metrics=result.metrics, updates=result.updates, seconds=result.seconds)
        write_json(result.folder / TRIAL, content.model_dump())

    return run


def _metric(request: SweepRequest, found: Sequence[tuple[Trial, Any]]) -> str:
    """What trials are sorted by: what was asked for, or what says which model is the best in the first of them."""
    metrics = {name for _, one in found if isinstance(one, dict) for name in one["metrics"]}
    asked = request.config.metric
    if asked and metrics and asked not in metrics:
        raise ConfigError(
            f"sweep.metric {asked} was not measured; add it to valid_metrics, or use {', '.join(metrics)}"
        )
    return asked or next((str(one["metric"]) for _, one in found if isinstance(one, dict)), "loss")


def _sorted(found: Sequence[tuple[Trial, Any]], metric: str) -> list[TrialRow]:
    """The best first; then those without the metric, then those that failed."""
    rows = []
    for trial, one in found:
        if isinstance(one, str):
            rows.append(TrialRow(trial, None, None, None, one))
        else:
            rows.append(TrialRow(trial, one["metrics"].get(metric), one["updates"], one["seconds"], None))
    sign = sign_of(metric)

    def place(row: TrialRow) -> tuple[bool, bool, float]:
        number = row.value if row.value is not None and isfinite(row.value) else None
        return row.error is not None, number is None, -sign * (number or 0.0)

    return sorted(rows, key=place)


def _write(out: Path, rows: Sequence[TrialRow], metric: str) -> None:
    """results.json and results.csv, a trial a line."""
    content = [
        {
            "trial": row.trial.number,
            "folder": str(row.trial.folder),
            metric: row.value,
            **row.trial.values,
            "updates": row.updates,
            "seconds": row.seconds,
            "error": row.error,
        }
        for row in rows
    ]
    write_json(out / "results.json", {"metric": metric, "trials": content})
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(content[0])
    cells = [[written(value) if isinstance(value, list) else value for value in row.values()] for row in content]
    writer.writerows([[csv_cell(value) if isinstance(value, str) else value for value in row] for row in cells])
    write_text(out / "results.csv", stream.getvalue())


def table(metric: str, rows: Sequence[TrialRow]) -> list[str]:
    """The trials as lines of text: the metric, what varies, and the folder, or why there is none."""
    cells = [
        [f"dev {metric}", *(name.partition(".")[2] for name in rows[0].trial.values), "updates", "seconds", "folder"]
    ]
    for row in rows:
        value = "–" if row.value is None else f"{row.value:.4g}"
        times = ["–", "–"] if row.updates is None else [str(row.updates), f"{row.seconds:.0f}"]
        cells.append([value, *map(written, row.trial.values.values()), *times, row.trial.folder.name])
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = ["  ".join(f"{cell:>{width}}" for cell, width in zip(row, widths, strict=True)) for row in cells]
    reasons = ["", *(f"  failed: {row.error}" if row.error else "" for row in rows)]
    return [line + reason for line, reason in zip(lines, reasons, strict=True)]
