"""Is every number of a file of traces what the weights give? All of it is computed again, in plain NumPy.

What the file says was read and written (the text, the output's ids, the edits) is taken as given; everything else,
strings too, is made again and must be the same. Only how the output was found is not: no search is made.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from math import inf, isnan
from pathlib import Path
from typing import Any, NamedTuple

from mirada.errors import DataError
from mirada.explain.recompute import recompute, weights_of
from mirada.explain.record import FORMAT, VERSION
from mirada.translator import Translator

TOLERANCE = 1e-4  # for float32 weights
GROUPED = ("model.", "legend.", "source.", "edits.")


class Leaf(NamedTuple):
    """One value of a file, and the one that the weights give."""

    path: tuple[str | int, ...]
    found: Any
    expected: Any

    @property
    def difference(self) -> float:
        """|a − b| of numbers, relative above 1; of anything else 0 where equal, and infinite where not."""
        if not (_is_number(self.found) and _is_number(self.expected)):
            return 0.0 if type(self.found) is type(self.expected) and self.found == self.expected else inf
        if isinstance(self.expected, int):
            return float(abs(self.found - self.expected))
        size = abs(self.found - self.expected) / max(1.0, abs(self.expected))
        return inf if isnan(size) else float(size)  # no number is as wrong as can be

    @property
    def name(self) -> str:
        """The tensor's name, or that of the field, without step and place."""
        return ".".join(part for part in self.path if isinstance(part, str) and part not in ("steps", "tensors"))

    @property
    def where(self) -> str:
        """Step, name and place, the two numbers counted from 1."""
        inside = list(self.path)
        step = f"step {int(inside.pop(1)) + 1}, " if inside[0] == "steps" and len(inside) > 1 else ""
        numbers = [str(part + 1) for part in inside if isinstance(part, int)]
        return f"{step}{self.name}" + (f"[{', '.join(numbers)}]" if numbers else "")


class Verdict(NamedTuple):
    """What came out for one trace: the worst leaf of each name, how many numbers each has."""

    worst: dict[str, Leaf]
    counts: dict[str, int]

    @property
    def faults(self) -> list[Leaf]:
        """The names that differ by more than the tolerance, worst first."""
        wrong = [leaf for leaf in self.worst.values() if leaf.difference > TOLERANCE]
        return sorted(wrong, key=lambda leaf: -leaf.difference)


class Row(NamedTuple):
    """A line of the summary: a tensor, or a group of fields."""

    name: str
    values: int
    difference: float


def summary(verdicts: Sequence[Verdict]) -> list[Row]:
    """How many values of each name there are in all traces, and by how much they differ at most; at last, of all."""
    rows: dict[str, Row] = {}
    for verdict in verdicts:
        for name, leaf in verdict.worst.items():
            group = name.split(".")[0] if name.startswith(GROUPED) else name
            before = rows.get(group, Row(group, 0, 0.0))
            size = max(before.difference, leaf.difference)
            rows[group] = Row(group, before.values + verdict.counts[name], size)
    every = list(rows.values())
    return [*every, Row("all", sum(row.values for row in every), max(row.difference for row in every))]


def read_traces(path: Path) -> list[dict[str, Any]]:
    """The traces of a file of `mirada explain --format json`. Raises DataError if it is none."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror})") from None
    except ValueError as error:
        raise DataError(f"{path}: not JSON ({error}); expected a file of `mirada explain --format json`") from None
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise DataError(f"{path}: no traces in it; expected a file of `mirada explain --format json`")
    if content.get("version") != VERSION:
        raise DataError(f"{path}: version {content.get('version')!r}, this mirada reads version {VERSION}")
    traces = content.get("traces")
    if not isinstance(traces, list) or not traces:
        raise DataError(f"{path}: it holds no traces")
    return traces


def verify(traces: Sequence[dict[str, Any]], translator: Translator) -> list[Verdict]:
    """Hold every trace against the weights. Raises DataError if one has not the shape of a trace."""
    verdicts, weights = [], weights_of(translator)
    for number, found in enumerate(traces, start=1):
        try:
            expected = recompute(found, _rank(traces[:number]), translator, weights)
        except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
            raise DataError(f"trace {number}: not a trace of this model ({type(error).__name__}: {error})") from None
        verdicts.append(_verdict(leaves(found, expected)))
    return verdicts


def _rank(traces: Sequence[dict[str, Any]]) -> int:
    """The place of the last trace among those of the same text and edits that stand right before it."""
    same = [(trace["source"]["text"], trace["edits"]) for trace in traces]
    return next(i for i in range(len(same) + 1) if i == len(same) or same[-1 - i] != same[-1])


def leaves(found: Any, expected: Any, path: tuple[str | int, ...] = ()) -> Iterator[Leaf]:
    """Walk two structures side by side; where they differ in shape, the place itself is a leaf."""
    if isinstance(expected, dict) and isinstance(found, dict) and found.keys() == expected.keys():
        for key, part in expected.items():
            yield from leaves(found[key], part, (*path, key))
    elif isinstance(expected, list) and isinstance(found, list) and len(found) == len(expected):
        for place, part in enumerate(expected):
            yield from leaves(found[place], part, (*path, place))
    else:
        yield Leaf(path, found, expected)


def _verdict(all_leaves: Iterator[Leaf]) -> Verdict:
    worst: dict[str, Leaf] = {}
    counts: dict[str, int] = {}
    for leaf in all_leaves:
        counts[leaf.name] = counts.get(leaf.name, 0) + 1
        if leaf.name not in worst or leaf.difference > worst[leaf.name].difference:
            worst[leaf.name] = leaf
    return Verdict(worst, counts)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
