"""What pairs show: blank sides, repeats, lengths that do not fit, and what dev and test share with train."""

from __future__ import annotations

import re
from array import array
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import compress

import numpy as np
import numpy.typing as npt

from mirada.data.checks.characters import (
    EXAMPLES,
    Hit,
    Side,
    Tally,
    cite,
    counted,
    excerpt,
    found,
    lines_with,
    listing,
)
from mirada.data.checks.findings import Finding, Severity
from mirada.data.rows import is_blank

LEAST_SPREAD = 0.35  # of log lengths: within a factor of e^(3 · 0.35) ≈ 3 of the quartiles nothing is far out
UNKNOWN_WARNING = 0.01  # share of unknown tokens from which the finding is a warning
NUMBER = re.compile(r"\d+")

UnknownRate = Callable[[str], tuple[int, int]]  # text → tokens outside a vocabulary, all tokens
Sizes = npt.NDArray[np.int32]  # also rows, from 0
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class PairSet:
    """One set as read: both sides line by line, blank lines included, and what reading found."""

    name: str  # train, dev or test
    source: Side
    target: Side
    findings: tuple[Finding, ...]

    @property
    def parallel(self) -> bool:
        """Whether both sides have as many lines; if not, nothing says which belong together."""
        return len(self.source.lines) == len(self.target.lines)

    @cached_property
    def whole(self) -> Mask:
        """Which rows have text on both sides: `[rows]`; none if the sides are not parallel."""
        if not self.parallel:
            return np.zeros(len(self.source.lines), dtype=bool)
        return np.fromiter((not (is_blank(source) or is_blank(target)) for source, target in self.texts()), bool)

    def kept(self) -> Sizes:
        """Return the rows with text on both sides, none if the sides are not parallel."""
        return np.flatnonzero(self.whole).astype(np.int32)

    def texts(self) -> Iterator[tuple[str, str]]:
        """Go through the pairs, blank ones included; the sides must be parallel."""
        return zip(self.source.lines, self.target.lines, strict=True)

    def pairs(self) -> Iterator[tuple[int, str, str]]:
        """Go through the pairs with text on both sides, with their rows."""
        if self.parallel:
            rows = ((row, source, target) for row, (source, target) in enumerate(self.texts()))
            yield from compress(rows, self.whole)


def counted_rows(rows: Sizes) -> Tally[int]:
    """How many rows, and the first."""
    return Tally(len(rows), rows[:EXAMPLES].tolist())


def found_pairs(pairs: PairSet, kind: str, severity: Severity, rows: Tally[int], message: str) -> list[Finding]:
    """Make a finding on rows of a set, `N of M pairs …` with `message` after it, or none if there are no rows."""
    first = [(pairs.source.where(row), pairs.source.lines[row], pairs.target.lines[row]) for row in rows.first]
    examples = tuple(f"{where}: {excerpt(source)} → {excerpt(target)}" for where, source, target in first)
    total = len(pairs.source.lines)
    text = f"{pairs.name}: {rows.count} of {total} pairs {message}"
    return [Finding(kind, severity, rows.count, total, text, examples)] if rows.count else []


def check_blank(pairs: PairSet) -> list[Finding]:
    """Find pairs with a blank side, which training leaves out, and a set with no other pair."""
    if not pairs.parallel:
        return []
    total, left_out = len(pairs.source.lines), np.flatnonzero(~pairs.whole).astype(np.int32)
    sides = ((pairs.source.lines[row], pairs.target.lines[row]) for row in left_out.tolist())
    blank: Mask = np.fromiter((is_blank(source) == is_blank(target) for source, target in sides), np.bool_)
    rows = np.concatenate((left_out[~blank], left_out[blank]))  # cite first what lost a text
    message = f"with a blank side, left out ({np.count_nonzero(~blank)} with text on the other side)"
    findings = found_pairs(pairs, "blank_side", "warning", counted_rows(rows), message)
    if not pairs.whole.any():
        findings.append(Finding("no_pairs", "error", total, total, f"{pairs.name}: no pair has text on both sides", ()))
    return findings


def check_repeats(pairs: PairSet) -> list[Finding]:
    """Find pairs that stand more than once, and sources with several targets (each source cited once)."""
    both, sources = array("q"), array("q")  # 64 bits of each text
    for _, source, target in pairs.pairs():
        both.append(hash((source, target)))
        sources.append(hash(source))
    kept = pairs.kept()
    first = np.zeros(len(kept), dtype=bool)
    first[np.unique(np.frombuffer(both, np.int64), return_index=True)[1]] = True
    distinct = np.frombuffer(sources, np.int64)[first]
    _, begins, targets = np.unique(distinct, return_index=True, return_counts=True)
    several = counted_rows(kept[first][np.sort(begins[targets > 1])])
    message = f"{pairs.name}: {several.count} of {len(targets)} distinct sources with several targets"
    return [
        *found_pairs(pairs, "repeated_pairs", "warning", counted_rows(kept[~first]), "that repeat an earlier pair"),
        *(
            replace(finding, total=len(targets), message=message)
            for finding in found_pairs(pairs, "several_targets", "note", several, "")
        ),
    ]


def check_contents(pairs: PairSet) -> list[Finding]:
    """Find pairs whose sides are equal, and, where sides nearly always share their numbers, pairs that do not."""
    same = counted(row for row, source, target in pairs.pairs() if source == target)
    numbered, apart = 0, array("l")
    for row, source, target in pairs.pairs():
        numbers = NUMBER.findall(source), NUMBER.findall(target)
        numbered += any(numbers)
        if sorted(numbers[0]) != sorted(numbers[1]):
            apart.append(row)
    usual = f"with other numbers on the other side ({numbered} pairs have digits)"
    few = 4 * len(apart) < numbered
    return [
        *found_pairs(pairs, "same_sides", "note", same, "with the same text on both sides"),
        *found_pairs(pairs, "numbers", "note", counted(apart if few else []), usual),
    ]


def length_unit(lines: Iterable[str]) -> str:
    """Say what lengths count: tokens (by blanks) if at least half of the lines have more than one, else characters."""
    several = total = 0
    for line in lines:
        total += 1
        several += len(line.split(maxsplit=1)) > 1
    return "tokens" if several and 2 * several >= total else "characters"


def lengths(lines: Iterable[str], unit: str) -> Sizes:
    """Measure each line in tokens or characters."""
    return np.fromiter((len(line.split()) if unit == "tokens" else len(line) for line in lines), np.int32)


def fences(values: npt.NDArray[np.float64]) -> tuple[float, float]:
    """Return the bounds beyond which a value is far out: three quartile distances (Tukey 1977, chapter 2)."""
    low, high = np.percentile(values, [25, 75])
    spread = max(high - low, LEAST_SPREAD)
    return float(low - 3 * spread), float(high + 3 * spread)


def check_lengths(pairs: PairSet) -> list[Finding]:
    """Find lines far longer than the rest, and pairs with a far other ratio of lengths."""
    rows = pairs.kept()
    if not len(rows):
        return []
    source_unit, sources = _measure(pairs.source, pairs.whole)
    target_unit, targets = _measure(pairs.target, pairs.whole)
    return [
        *_long_lines(pairs.source, rows, sources, source_unit),
        *_long_lines(pairs.target, rows, targets, target_unit),
        *_ratios(pairs, rows, np.log(targets / sources), f"target {target_unit} per source {source_unit}"),
    ]


def _measure(side: Side, whole: Mask) -> tuple[str, Sizes]:
    unit = length_unit(compress(side.lines, whole))
    return unit, lengths(compress(side.lines, whole), unit)


def _long_lines(side: Side, rows: Sizes, sizes: Sizes, unit: str) -> list[Finding]:
    limit = np.exp(fences(np.log(sizes))[1])
    hits = counted_rows(rows[sizes > limit])
    places = Tally(hits.count, [Hit(row) for row in hits.first])
    return found(side, "long_lines", "warning", places, f"far longer than the rest (more than {limit:.0f} {unit})")


def _ratios(pairs: PairSet, rows: Sizes, ratios: npt.NDArray[np.float64], unit: str) -> list[Finding]:
    low, high = fences(ratios)
    hits = counted_rows(rows[(ratios < low) | (ratios > high)])
    usual = f"{np.exp(np.median(ratios)):.2f}, usual {np.exp(low):.2f} to {np.exp(high):.2f}"
    message = f"with an unusual ratio of lengths ({unit}: median {usual})"
    return found_pairs(pairs, "length_ratio", "warning", hits, message)


def check_overlap(train: PairSet, held_out: PairSet) -> list[Finding]:
    """Find pairs of dev or test that stand in train, exactly, and sources that stand there with another target."""
    texts = [(row, (source, target)) for row, source, target in held_out.pairs()]
    if not texts or not train.parallel:
        return []
    wanted, wanted_sources = {pair for _, pair in texts}, {source for _, (source, _) in texts}
    known: set[tuple[str, str]] = set()
    sources: set[str] = set()
    for pair in train.texts():
        if pair[0] in wanted_sources:
            sources.add(pair[0])
            known |= {pair} & wanted
    shared = counted(row for row, pair in texts if pair in known)
    partly = counted(row for row, pair in texts if pair[0] in sources and pair not in known)
    whole = "that stand in train too, so a score on them tells nothing about new text"
    half = "with a source that stands in train with another target"
    return [
        *found_pairs(held_out, "overlap_pairs", "error", shared, whole),
        *found_pairs(held_out, "overlap_sources", "warning", partly, half),
    ]


def check_unseen(train: Side, held_out: Side) -> list[Finding]:
    """Find characters, and words where lines have several, that a side of dev or test has and train never shows."""
    new = held_out.counts.keys() - train.counts.keys()
    hits = counted(lines_with(held_out, new))
    message = f"with characters that train never shows: {listing(new, held_out.counts)}"
    findings = found(held_out, "unseen_characters", "warning", hits, message)
    return findings + (_unseen_words(train, held_out) if length_unit(train.lines) == "tokens" else [])


def _unseen_words(train: Side, held_out: Side) -> list[Finding]:
    words = [(word, row) for row, line in enumerate(held_out.lines) for word in line.split()]
    unseen = {word for word, _ in words}
    for line in train.lines:
        unseen.difference_update(line.split())
    new = [(word, row) for word, row in words if word in unseen]
    share = f"{len(new)} of {len(words)} words (by blanks) that train never shows"
    examples = tuple(f"{held_out.where(row)}: {excerpt(word)}" for word, row in new[:EXAMPLES])
    finding = Finding("unseen_words", "note", len(new), len(words), f"{held_out.label}: {share}", examples)
    return [finding] if new else []


def check_unknown(side: Side, unknown_rate: UnknownRate | None) -> list[Finding]:
    """Find the tokens of a side outside a vocabulary; a warning from one in a hundred on."""
    rates = [unknown_rate(line) for line in side.lines] if unknown_rate else []
    unknown, total = (sum(rate[part] for rate in rates) for part in (0, 1))
    hits = counted(Hit(row) for row, rate in enumerate(rates) if rate[0])
    if not hits.count:
        return []
    severity: Severity = "warning" if unknown >= UNKNOWN_WARNING * total else "note"
    message = f"{side.label}: {unknown} of {total} tokens unknown to the vocabulary ({unknown / total:.1%})"
    return [Finding("unknown_tokens", severity, unknown, total, message, cite(side, hits.first))]
