"""`mirada.compare`: systems trained and tested under the same conditions, from pairs in memory or from files."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mirada.config.configfile import by_block
from mirada.data.corpus import split_dev
from mirada.errors import ConfigError
from mirada.escape import terminal
from mirada.files import expanded
from mirada.notebook import pairs
from mirada.notebook.tables import html
from mirada.notebook.training import in_memory, reading
from mirada.study.compare import comparison
from mirada.study.compare.items import Pairs
from mirada.study.compare.plan import ComparisonRequest
from mirada.study.compare.report import conclusion, make_report
from mirada.study.report.document import Grid

SYSTEMS = ("classic-lstm", "bahdanau", "luong-general", "transformer")


@dataclass(frozen=True, repr=False)
class Comparison:
    """What came out of a comparison: a notebook shows the table, `print` the one sentence that it comes down to."""

    folder: Path  # with report.html, report.md, results.csv, results.json, and the models in runs/
    results: dict[str, Any]  # the content of results.json

    @property
    def table(self) -> Grid:
        """The systems, a row each, with their metrics and what they cost: caption, header, rows of text."""
        blocks = make_report(self.results).sections[0].blocks
        return next(block for block in blocks if isinstance(block, Grid))

    def __repr__(self) -> str:
        names = ", ".join(system["name"] for system in self.results["systems"])
        return f"<mirada.Comparison of {names}; the report is {self.folder / 'report.html'}>"

    def __str__(self) -> str:
        return conclusion(self.results)

    def _repr_html_(self) -> str:
        return html(f"{self}; the report is {self.folder / 'report.html'}", self.table.header, self.table.rows)


def compare(
    data: Any = None,
    *,
    out: str | Path,
    systems: Sequence[str] = SYSTEMS,
    test: Any = None,
    dev: Any = None,
    budget: str = "10epochs",
    seeds: int = 1,
    **options: Any,
) -> Comparison:
    """Train systems on the same pairs, tokens, order and budget, test them, and write the report into `out`.

    `data`, `dev` and `test` are pairs, rows or tables as `mirada.train` takes them; without dev or test pairs some are
    split off. Without `data` the options name files, or the embedded English–Spanish corpus is taken. `systems`,
    `budget` (Nupdates, Nepochs or Nminutes of each run) and `options` are those of `mirada compare`. Run again with
    the same `out`, a comparison that was stopped goes on.

    >>> found = mirada.compare(pairs, out="compared", systems=["luong-general", "classic-gru"], budget="2updates")
    >>> found
    <mirada.Comparison of luong-general, classic-gru; the report is compared/report.html>

    Raises ConfigError, DataError or TrainingError: also for other pairs than `out` holds, or if every run failed.
    """
    named = [systems] if isinstance(systems, str) else list(systems)
    if strange := [name for name in named if not isinstance(name, str)]:
        raise ConfigError(
            f"systems are trained, by names such as luong-dot, not {type(strange[0]).__name__}; "
            "models that exist are compared by `mirada compare --models`"
        )
    values, given = by_block(options), None
    if data is not None:
        values, given = _pairs(values, data, test, dev)
    elif test is not None or dev is not None:
        raise ConfigError("dev or test pairs without pairs to train on; give those too")
    request = ComparisonRequest(
        expanded(out), tuple(named), options=values, budget=budget, seeds=seeds, given=given, quiet=True
    )
    return Comparison(request.out, comparison.compare(request, _tell, resume=True))


def _pairs(
    values: dict[str, dict[str, Any]], data: Any, test: Any, dev: Any
) -> tuple[dict[str, dict[str, Any]], Pairs]:
    """The options, and pairs to train, choose and test by."""
    values, (train, chosen_by) = in_memory(values, (data, None), dev)
    config = reading(values)
    notes = () if dev is not None else (f"dev: {len(chosen_by)} pairs split off the training pairs",)
    if test is not None:
        held_out, _ = pairs.read(test, None, config.data, "test pairs")
    else:
        train, held_out = split_dev(train, size=config.data.dev_size, seed=config.training.seed + 1)
        notes = (*notes, f"test: {len(held_out)} pairs split off the training pairs")
    return values, Pairs(train, chosen_by, held_out, notes)


def _tell(line: str) -> None:
    print(terminal(line), file=sys.stderr, flush=True)
