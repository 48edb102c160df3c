"""What a report is made of. Numbers stand in it as text, formatted once, so all forms show the same."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class Grid(NamedTuple):
    """Rows of text under a header; the first column is a label, the others are right-aligned."""

    caption: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]


class Series(NamedTuple):
    """Points of one system, with the band between `low` and `high` where there is one."""

    name: str
    x: Sequence[float]
    y: Sequence[float]
    low: Sequence[float] = ()
    high: Sequence[float] = ()


class Plot(NamedTuple):
    """A figure of several series; `name` is the file's. `ticks` name the places 0, 1, 2, … of the x axis.

    Without `joined` the points stand alone, with bars from low to high.
    """

    name: str
    caption: str
    x_label: str
    y_label: str
    series: Sequence[Series]
    ticks: Sequence[str] = ()
    log_x: bool = False
    log_y: bool = False
    joined: bool = True


class Map(NamedTuple):
    """Attention: weights `[rows, columns]` between 0 and 1, and the tokens they belong to."""

    name: str
    caption: str
    weights: Sequence[Sequence[float]]
    rows: Sequence[str]
    columns: Sequence[str]


class Conclusion(NamedTuple):
    """The one sentence that a part comes down to."""

    text: str


Block = str | Conclusion | Grid | Plot | Map


class Section(NamedTuple):
    """A title, and under it paragraphs, tables and figures."""

    title: str
    blocks: Sequence[Block]


class StudyReport(NamedTuple):
    """A title, a line below it, and sections."""

    title: str
    subtitle: str
    sections: Sequence[Section]


class NumberRow(NamedTuple):
    """One number of results.csv: which part, which system, what it is about, and its 95 % interval where it has one."""

    part: str
    system: str
    item: str
    measure: str
    value: float | None
    low: float | None = None
    high: float | None = None
    items: int | None = None
