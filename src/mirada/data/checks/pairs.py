"""What pairs show: blank sides, repeats, lengths that do not fit, and what dev and test share with train."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from mirada.data.checks.characters import EXAMPLES, Hit, Side, cite, excerpt, found, lines_with, listing
from mirada.data.checks.findings import Finding, Severity
from mirada.data.rows import is_blank

LEAST_SPREAD = 0.35  # of log lengths: within a factor of e^(3 · 0.35) ≈ 3 of the quartiles nothing is far out
UNKNOWN_WARNING = 0.01  # share of unknown tokens from which the finding is a warning
NUMBER = re.compile(r"\d+")

UnknownRate = Callable[[str], tuple[int, int]]  # text → tokens outside a vocabulary, all tokens
Sizes = npt.NDArray[np.int64]


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

    def kept(self) -> list[int]:
        """Return the rows with text on both sides, none if the sides are not parallel."""
        if not self.parallel:
            return []
        return [row for row, pair in enumerate(self.texts()) if not any(map(is_blank, pair))]

    def texts(self) -> list[tuple[str, str]]:
        """Return the pairs, blank ones included; the sides must be parallel."""
        return list(zip(self.source.lines, self.target.lines, strict=True))


def found_pairs(pairs: PairSet, kind: str, severity: Severity, rows: Sequence[int], message: str) -> list[Finding]:
    """Make a finding on rows of a set, `N of M pairs …` with `message` after it, or none if there are no rows."""
    first = [(pairs.source.where(row), pairs.source.lines[row], pairs.target.lines[row]) for row in rows[:EXAMPLES]]
    examples = tuple(f"{where}: {excerpt(source)} → {excerpt(target)}" for where, source, target in first)
    total = len(pairs.source.lines)
    text = f"{pairs.name}: {len(rows)} of {total} pairs {message}"
    return [Finding(kind, severity, len(rows), total, text, examples)] if rows else []


def check_blank(pairs: PairSet, kept: Sequence[int]) -> list[Finding]:
    """Find pairs with a blank side, which training leaves out, and a set with no other pair."""
    if not pairs.parallel:
        return []
    texts, total = pairs.texts(), len(pairs.source.lines)
    rows = sorted(set(range(total)).difference(kept))
    one = {row for row in rows if is_blank(texts[row][0]) != is_blank(texts[row][1])}
    rows.sort(key=lambda row: row not in one)  # cite first what lost a text, not blank lines on both sides
    message = f"with a blank side, left out ({len(one)} with text on the other side)"
    findings = found_pairs(pairs, "blank_side", "warning", rows, message)
    if not kept:
        findings.append(Finding("no_pairs", "error", total, total, f"{pairs.name}: no pair has text on both sides", ()))
    return findings


def check_repeats(pairs: PairSet, kept: Sequence[int]) -> list[Finding]:
    """Find pairs that stand more than once, and sources with several targets (each source cited once)."""
    texts = pairs.texts() if kept else []
    first: dict[tuple[str, str], int] = {}
    again = [row for row in kept if first.setdefault(texts[row], row) != row]
    targets = Counter(source for source, _ in first)
    rows: dict[str, int] = {}
    for (source, _), row in first.items():
        if targets[source] > 1:
            rows.setdefault(source, row)
    several = found_pairs(pairs, "several_targets", "note", list(rows.values()), "")
    message = f"{pairs.name}: {len(rows)} of {len(targets)} distinct sources with several targets"
    return [
        *found_pairs(pairs, "repeated_pairs", "warning", again, "that repeat an earlier pair"),
        *(replace(finding, total=len(targets), message=message) for finding in several),
    ]


def check_contents(pairs: PairSet, kept: Sequence[int]) -> list[Finding]:
    """Find pairs whose sides are equal, and, where sides nearly always share their numbers, pairs that do not."""
    texts = pairs.texts() if kept else []
    same = [row for row in kept if texts[row][0] == texts[row][1]]
    numbers = {row: [sorted(NUMBER.findall(side)) for side in texts[row]] for row in kept}
    numbered = [row for row in kept if any(numbers[row])]
    apart = [row for row in numbered if numbers[row][0] != numbers[row][1]]
    usual = f"with other numbers on the other side ({len(numbered)} pairs have digits)"
    return [
        *found_pairs(pairs, "same_sides", "note", same, "with the same text on both sides"),
        *found_pairs(pairs, "numbers", "note", apart if 4 * len(apart) < len(numbered) else [], usual),
    ]


def length_unit(lines: Sequence[str]) -> str:
    """Say what lengths count: tokens (by blanks) if at least half of the lines have more than one, else characters."""
    several = sum(len(line.split(maxsplit=1)) > 1 for line in lines)
    return "tokens" if several and 2 * several >= len(lines) else "characters"


def lengths(lines: Sequence[str], unit: str) -> Sizes:
    """Measure each line in tokens or characters."""
    sizes = (len(line.split()) if unit == "tokens" else len(line) for line in lines)
    return np.fromiter(sizes, dtype=np.int64, count=len(lines))


def fences(values: npt.NDArray[np.float64]) -> tuple[float, float]:
    """Return the bounds beyond which a value is far out: three quartile distances (Tukey 1977, chapter 2)."""
    low, high = np.percentile(values, [25, 75])
    spread = max(high - low, LEAST_SPREAD)
    return float(low - 3 * spread), float(high + 3 * spread)


def check_lengths(pairs: PairSet, kept: Sequence[int]) -> list[Finding]:
    """Find lines far longer than the rest, and pairs with a far other ratio of lengths."""
    if not kept:
        return []
    rows = np.array(kept)
    source_unit, sources = _measure(pairs.source, kept)
    target_unit, targets = _measure(pairs.target, kept)
    return [
        *_long_lines(pairs.source, rows, sources, source_unit),
        *_long_lines(pairs.target, rows, targets, target_unit),
        *_ratios(pairs, rows, np.log(targets / sources), f"target {target_unit} per source {source_unit}"),
    ]


def _measure(side: Side, kept: Sequence[int]) -> tuple[str, Sizes]:
    lines = [side.lines[row] for row in kept]
    unit = length_unit(lines)
    return unit, lengths(lines, unit)


def _long_lines(side: Side, rows: Sizes, sizes: Sizes, unit: str) -> list[Finding]:
    limit = np.exp(fences(np.log(sizes))[1])
    hits = [Hit(row) for row in rows[sizes > limit].tolist()]
    return found(side, "long_lines", "warning", hits, f"far longer than the rest (more than {limit:.0f} {unit})")


def _ratios(pairs: PairSet, rows: Sizes, ratios: npt.NDArray[np.float64], unit: str) -> list[Finding]:
    low, high = fences(ratios)
    hits: list[int] = rows[(ratios < low) | (ratios > high)].tolist()
    usual = f"{np.exp(np.median(ratios)):.2f}, usual {np.exp(low):.2f} to {np.exp(high):.2f}"
    message = f"with an unusual ratio of lengths ({unit}: median {usual})"
    return found_pairs(pairs, "length_ratio", "warning", hits, message)


def check_overlap(train: PairSet, held_out: PairSet) -> list[Finding]:
    """Find pairs of dev or test that stand in train, exactly, and sources that stand there with another target."""
    kept = held_out.kept()
    if not kept or not train.parallel:
        return []
    texts, known = held_out.texts(), set(train.texts())
    sources = set(train.source.lines)
    shared = [row for row in kept if texts[row] in known]
    partly = [row for row in kept if texts[row][0] in sources and texts[row] not in known]
    whole = "that stand in train too, so a score on them tells nothing about new text"
    half = "with a source that stands in train with another target"
    return [
        *found_pairs(held_out, "overlap_pairs", "error", shared, whole),
        *found_pairs(held_out, "overlap_sources", "warning", partly, half),
    ]


def check_unseen(train: Side, held_out: Side) -> list[Finding]:
    """Find characters, and words where lines have several, that a side of dev or test has and train never shows."""
    new = held_out.counts.keys() - train.counts.keys()
    hits = lines_with(held_out, new)
    message = f"with characters that train never shows: {listing(new, held_out.counts)}"
    findings = found(held_out, "unseen_characters", "warning", hits, message)
    return findings + (_unseen_words(train, held_out) if length_unit(train.lines) == "tokens" else [])


def _unseen_words(train: Side, held_out: Side) -> list[Finding]:
    known = {word for line in train.lines for word in line.split()}
    words = [(word, row) for row, line in enumerate(held_out.lines) for word in line.split()]
    new = [(word, row) for word, row in words if word not in known]
    share = f"{len(new)} of {len(words)} words (by blanks) that train never shows"
    examples = tuple(f"{held_out.where(row)}: {excerpt(word)}" for word, row in new[:EXAMPLES])
    finding = Finding("unseen_words", "note", len(new), len(words), f"{held_out.label}: {share}", examples)
    return [finding] if new else []


def check_unknown(side: Side, unknown_rate: UnknownRate | None) -> list[Finding]:
    """Find the tokens of a side outside a vocabulary; a warning from one in a hundred on."""
    rates = [unknown_rate(line) for line in side.lines] if unknown_rate else []
    unknown, total = (sum(rate[part] for rate in rates) for part in (0, 1))
    hits = [Hit(row) for row, rate in enumerate(rates) if rate[0]]
    if not hits:
        return []
    severity: Severity = "warning" if unknown >= UNKNOWN_WARNING * total else "note"
    message = f"{side.label}: {unknown} of {total} tokens unknown to the vocabulary ({unknown / total:.1%})"
    return [Finding("unknown_tokens", severity, unknown, total, message, cite(side, hits))]
