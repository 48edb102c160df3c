"""Rows that belong together: the same thing measured several times, and who measured it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from statistics import median
from typing import Any

from benchmarks.machine import BUSY
from benchmarks.rows import Row
from benchmarks.workloads import WORKLOADS

OURS = "mirada"
SAME = ("kind", "work", "beam", "batch_size", "precision", "workers", "task", "axis", "value", "threads")


def label(row: Row) -> str:
    """The system, with its recurrent cell where that is another than the work's."""
    workload = WORKLOADS.get(row["work"])
    own = None if workload is None else workload.model.get("rnn_type", "")
    cell = str(row.get("cell") or "").lower()
    return str(row["system"]) if not cell or cell == own else f"{row['system']} ({cell.upper()})"


def threads(row: Row) -> Any:
    """Threads at work: those of torch, which a row of scaling tells itself, or of workers with so many each."""
    each = row.get("intra_threads")
    return row.get("threads") or (each * row["workers"] if each else row.get("machine", {}).get("threads"))


def work_name(row: Row) -> str:
    """The workload, and with how many threads."""
    number = threads(row)
    return f"{row['work']}, {number} thread{'' if number == 1 else 's'}"


def key(row: Row) -> tuple[Any, ...]:
    """Rows with the same key measured the same thing."""
    return (label(row), *(row.get(name) for name in SAME), threads(row))


def newest(rows: Iterable[Row]) -> list[list[Row]]:
    """Rows by key, in the order in which keys first came; of each system's versions only the last one measured."""
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(key(row), []).append(row)
    return [[row for row in group if row.get("version") == group[-1].get("version")] for group in groups.values()]


def middle(group: Sequence[Row], name: str) -> float | None:
    """The median of a figure over the rows of a group; None where no row has it."""
    known = [row[name] for row in group if row.get(name) is not None]
    return median(known) if known else None


def extremes(group: Sequence[Row], name: str = "windows") -> tuple[float, float] | None:
    """The least and the greatest of all windows of a group."""
    known = [value for row in group for value in row.get(name) or []]
    return (min(known), max(known)) if known else None


def disturbed(group: Sequence[Row]) -> float | None:
    """The most cores that others kept busy in a window; None where nobody could tell."""
    known = [cores for row in group for cores in row.get("others") or [] if cores is not None]
    return max(known) if known else None


def ratio(ours: Sequence[Row], theirs: Sequence[Row], name: str) -> float | None:
    """How many times a peer's figure ours is: the median over rounds that both measured, else of the medians."""
    rounds = [{row["round"]: row[name] for row in group if row.get("round") is not None} for group in (ours, theirs)]
    common = sorted(rounds[0].keys() & rounds[1].keys())
    if common:
        return float(median(rounds[0][number] / rounds[1][number] for number in common))
    first, second = middle(ours, name), middle(theirs, name)
    return first / second if first is not None and second else None


def mark(group: Sequence[Row]) -> str:
    """A sign for figures that others disturbed, or whose disturbance nobody could tell."""
    busy = disturbed(group)
    return " (?)" if busy is None else " (!)" if busy >= BUSY else ""


def figure(group: Sequence[Row], name: str, form: Callable[[float], str] = "{:,.0f}".format) -> str:
    """Median, and the least and greatest window in brackets."""
    value, span = middle(group, name), extremes(group)
    if value is None:
        return "–"
    around = "" if span is None else f" [{form(span[0])}–{form(span[1])}]"
    return form(value) + around + mark(group)
