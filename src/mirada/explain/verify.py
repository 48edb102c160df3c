"""Does a file of traces say what the model's weights give? Everything in it is made again, and must be the same.

Taken as given is what was asked: the text, the search's options, the tokens given, the edits, how many choices to list.
From it the search is made again and every number computed again; held against the file are how many outputs a text
has, every word, flag and type, and every number: to 2·10⁻⁸ of its size, below 0.001 to 2·10⁻¹¹. The file's fingerprint
tells any change of its content at all. The model's own numbers must agree, too (agreement.py).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from math import inf, isnan
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import ValidationError

from mirada.config.options import SearchConfig
from mirada.errors import DataError, MiradaError
from mirada.explain.agreement import Agreement, agreement
from mirada.explain.edits import edits_from
from mirada.explain.record import FORMAT, VERSION, Asked, Trace, fingerprint, plain
from mirada.explain.trace import explain
from mirada.files import read_regular, unpacked
from mirada.translator import Translator

TOLERANCE = 2e-8  # nine digits are written: the last may differ by one
SMALL = 1e-3  # smaller numbers are held to the tolerance of this one
GROUPED = ("model.", "legend.", "source.", "asked.")
KEYS = {"format", "version", "fingerprint", "traces"}
EXPECTED = "expected a file of `mirada explain --format json`"


class Leaf(NamedTuple):
    """One value of a file, and the one that it must be."""

    path: tuple[str | int, ...]
    found: Any
    expected: Any

    @property
    def difference(self) -> float:
        """|a − b| of fractions against their size; of anything else 0 where equal, and infinite where not."""
        if type(self.found) is not type(self.expected):
            return inf
        if not isinstance(self.expected, float):
            return 0.0 if self.found == self.expected else inf
        size = abs(self.found - self.expected) / max(SMALL, abs(self.expected))
        return inf if isnan(size) else size  # no number is as wrong as can be

    @property
    def name(self) -> str:
        """The tensor's name, or that of the field, without step and place."""
        return ".".join(part for part in self.path if isinstance(part, str) and part not in ("steps", "tensors"))

    @property
    def where(self) -> str:
        """Step, name and place, the two numbers counted from 1."""
        inside = list(self.path)
        step = f"step {int(inside.pop(1)) + 1}, " if inside[:1] == ["steps"] and len(inside) > 1 else ""
        numbers = [str(part + 1) for part in inside if isinstance(part, int)]
        return f"{step}{self.name}" + (f"[{', '.join(numbers)}]" if numbers else "")


class Verdict(NamedTuple):
    """What came out for one trace: the worst leaf of each name, how many values each has, and the model's own part."""

    worst: dict[str, Leaf]
    counts: dict[str, int]
    own: Agreement | None  # None: there is no such output

    @property
    def faults(self) -> list[Leaf]:
        """The names that differ by more than the tolerance, worst first."""
        wrong = [leaf for leaf in self.worst.values() if leaf.difference > TOLERANCE]
        return sorted(wrong, key=lambda leaf: -leaf.difference)


class Line(NamedTuple):
    """A line of the summary: a tensor, or a group of fields."""

    name: str
    values: int
    difference: float


class Content(NamedTuple):
    """What a file holds."""

    traces: list[Any]
    is_whole: bool  # it has the fingerprint that it names


def summary(verdicts: Sequence[Verdict]) -> list[Line]:
    """How many values of each name there are in all traces, and by how much they differ at most; at last, of all."""
    rows: dict[str, Line] = {}
    for verdict in verdicts:
        for name, leaf in verdict.worst.items():
            group = name.split(".")[0] if name.startswith(GROUPED) else name
            before = rows.get(group, Line(group, 0, 0.0))
            size = max(before.difference, leaf.difference)
            rows[group] = Line(group, before.values + verdict.counts[name], size)
    every = list(rows.values())
    return [*every, Line("all", sum(row.values for row in every), max(row.difference for row in every))]


def read_traces(path: Path) -> Content:
    """The traces of a file of `mirada explain --format json`. Raises DataError if it is none."""
    try:
        content = json.loads(unpacked(path, read_regular(path)).decode("utf-8"))
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror or error})") from None
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path}: not JSON ({error}); {EXPECTED}") from None
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise DataError(f"{path}: no traces in it; {EXPECTED}")
    if content.get("version") != VERSION:
        raise DataError(
            f"{path}: version {content.get('version')!r}, this mirada reads version {VERSION}; make the file anew"
        )
    if content.keys() != KEYS:
        wrong = sorted(content.keys() ^ KEYS)
        raise DataError(f"{path}: its fields are not {', '.join(sorted(KEYS))} (see {', '.join(wrong)}); {EXPECTED}")
    traces = content["traces"]
    if not isinstance(traces, list) or not traces:
        raise DataError(f"{path}: it holds no traces")
    return Content(traces, content["fingerprint"] == fingerprint(traces))


def verify(traces: Sequence[Any], translator: Translator) -> list[Verdict]:
    """Make every trace again from what was asked. Raises DataError if one has not the shape of a trace."""
    verdicts: list[Verdict] = []
    for group in _groups(traces):
        try:
            expected = explain(translator, group[0]["source"]["text"], _asked(group[0], translator))
        except (KeyError, TypeError, ValueError, AttributeError, MiradaError, ValidationError) as error:
            reason = str(error).split("\n")[0]
            raise DataError(
                f"trace {len(verdicts) + 1}: not a trace of this model ({type(error).__name__}: {reason})"
            ) from None
        verdicts += [_verdict(*pair, translator) for pair in zip_longest(group, expected)]
    return verdicts


def _groups(traces: Sequence[Any]) -> Iterator[list[Any]]:
    """The outputs of one text stand together, from rank 1 on."""
    group: list[Any] = []
    for number, found in enumerate(traces, start=1):
        if not isinstance(found, dict) or not {"source", "asked", "rank"} <= found.keys():
            raise DataError(f"trace {number}: not a trace; {EXPECTED}")
        same = group and all(found[name] == group[0][name] for name in ("source", "asked"))
        if group and (not same or found["rank"] == 1):
            yield group
            group = []
        group.append(found)
    yield group


def _asked(found: dict[str, Any], translator: Translator) -> Asked:
    """What a trace says was asked; raises ValueError, KeyError or TypeError for what cannot be asked."""
    asked = found["asked"]
    given, edits = asked["given"], asked["edits"]
    if not isinstance(found["source"]["text"], str) or type(asked["listed"]) is not int or asked["listed"] < 1:
        raise ValueError("source.text must be a text and asked.listed a number from 1 on")
    known = len(translator.target_tokenizer)
    if translator.config.model.copy_attn:  # from there on words of the source, of which `explain` knows more
        known += len(found["source"]["ids"])
    if not all(type(i) is int and 0 <= i < known for i in given):
        raise ValueError(f"asked.given {given}, expected numbers from 0 to {known - 1}")
    if edits is not None:
        edits = edits_from(edits)
    search = SearchConfig.model_validate(asked["search"])
    return Asked(search, tuple(given), bool(asked["whole"]), edits, asked["listed"])


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


def _verdict(found: Any, expected: Trace | None, translator: Translator) -> Verdict:
    """Compare one trace with that made again; either may be missing."""
    worst: dict[str, Leaf] = {}
    counts: dict[str, int] = {}
    if found is None or expected is None:
        lone = "a trace" if expected is None else None
        leaf = Leaf(("output",), lone, None if lone else "a trace")
        return Verdict({leaf.name: leaf}, {leaf.name: 1}, None)
    for leaf in leaves(found, plain(expected)):
        counts[leaf.name] = counts.get(leaf.name, 0) + 1
        if leaf.name not in worst or leaf.difference > worst[leaf.name].difference:
            worst[leaf.name] = leaf
    return Verdict(worst, counts, agreement(translator, expected))
