"""What the characters of one side's lines show: control characters, two Unicode forms, odd blanks, other scripts."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Generic, NamedTuple, TypeVar

from mirada.data.checks.findings import Finding, Severity

EXAMPLES = 5
EXCERPT = 60
RARE = 3
LISTED = 20
CONTROL = frozenset(map(chr, [*range(13), *range(14, 32), *range(0x7F, 0xA0), 0x2028, 0x2029, 0x200B, 0x2060]))
WRONG = CONTROL | {"\ufeff", "\ufffd"}
# Used rightly in Persian, Hindi, emoji, Arabic and Hebrew, and invisible where they are not.
INVISIBLE = frozenset("\u00ad\u061c\u200c\u200d\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
NAMES = {"\0": "NUL", "\t": "TAB", "\n": "LF", "\v": "VT", "\f": "FF", "\r": "CR", "\x85": "NEL"}
BLANKS = re.compile(r"\A\s|\s\Z|\s\s")
# UTF-8 once read as Latin-1 or Windows-1252 and written again: "Ã©" for "é", "â€™" for "’". After Ã and Â the closing
# quotes and dashes are left out, as capitals do stand before them.
TWICE_ENCODED = re.compile(
    "[ÃÂ][\u0080-\u00bf€‚ƒ„†‡ˆ‰ŠŒŽ˜™šœžŸ]|â[\u0080-\u009f€‚„†‡ˆ‰][\u0080-\u00bf\u0152-\u0192\u02c6-\u02dc\u2013-\u2122]"
)
KINDS = {"M": "combining marks", "N": "digits", "P": "punctuation", "S": "symbols", "Z": "blanks", "C": "control"}
JAPANESE = ("CJK", "HIRAGANA", "KATAKANA", "KATAKANA-HIRAGANA", "HENTAIGANA")  # mixed in every sentence
NO_SCRIPT = ("MODIFIER", "MATHEMATICAL", "SUPERSCRIPT", "SUBSCRIPT", "FEMININE", "MASCULINE", "MICRO", "DOUBLE-STRUCK")


@dataclass(frozen=True)
class Side:
    """The lines of one side, with their numbers in the file."""

    label: str  # such as "train source"
    name: str  # the file
    lines: Sequence[str]
    numbers: Sequence[int]

    @cached_property
    def counts(self) -> Counter[str]:
        """How often each character stands in the lines."""
        counts: Counter[str] = Counter()
        for line in self.lines:
            counts.update(line)
        return counts

    def where(self, row: int) -> str:
        """Return `file:line` of a line, by its place from 0."""
        return f"{self.name}:{self.numbers[row]}"


class Hit(NamedTuple):
    """A place: which line, and which character of it, both from 0."""

    row: int
    column: int = 0


Item = TypeVar("Item")


@dataclass(frozen=True)
class Tally(Generic[Item]):
    """How many there are of something, and the first of them: that is all a report shows, however many there are."""

    count: int
    first: list[Item]


def counted(items: Iterable[Item]) -> Tally[Item]:
    """Go through them all, and keep the first."""
    rest = iter(items)
    first = list(islice(rest, EXAMPLES))
    return Tally(len(first) + sum(1 for _ in rest), first)


def excerpt(line: str, column: int = 0) -> str:
    """Cut the part of a line around `column`, with what cannot be seen written as \\uXXXX."""
    start = max(0, column - EXCERPT // 2)
    part = line[start : start + EXCERPT]
    seen = "".join(char if char.isprintable() else f"\\u{ord(char):04x}" for char in part)
    return f"{'…' if start else ''}{seen}{'…' if start + EXCERPT < len(line) else ''}"


def cite(side: Side, hits: Sequence[Hit]) -> tuple[str, ...]:
    """Cite places as `file:line: excerpt`."""
    return tuple(f"{side.where(row)}: {excerpt(side.lines[row], column)}" for row, column in hits)


def found(side: Side, kind: str, severity: Severity, hits: Tally[Hit], message: str) -> list[Finding]:
    """Make a finding on lines of a side, `N of M lines …` with `message` after it, or none if there are no hits."""
    total = len(side.lines)
    text = f"{side.label}: {hits.count} of {total} lines {message}"
    return [Finding(kind, severity, hits.count, total, text, cite(side, hits.first))] if hits.count else []


def script(char: str) -> str:
    """Name the script of a letter (by the first word of its Unicode name), or the kind of any other character."""
    category = unicodedata.category(char)[0]
    if category != "L":
        return KINDS[category]
    word = unicodedata.name(char, "OTHER").removeprefix("FULLWIDTH ").removeprefix("HALFWIDTH ").split()[0]
    if word in NO_SCRIPT:
        return "other letters"
    return "Han/Kana" if word in JAPANESE else word.capitalize()


def scripts(counts: Mapping[str, int]) -> dict[str, int]:
    """Add up an inventory by script or kind, most frequent first."""
    totals: Counter[str] = Counter()
    for char, count in counts.items():
        totals[script(char)] += count
    return dict(totals.most_common())


def check_characters(side: Side) -> list[Finding]:
    """Make the findings on the characters of a side, but for the rare ones."""
    return [
        *_listed(side, WRONG, "control", "warning", "with control characters or others that are no text"),
        *_listed(side, frozenset("\r"), "carriage_return", "warning", "with a carriage return inside"),
        *_listed(side, INVISIBLE, "invisible", "note", "with invisible joiners, hyphens or direction marks"),
        *_twice_encoded(side),
        *_forms(side),
        *_blanks(side),
        *_script_mix(side),
    ]


def check_rare(side: Side) -> list[Finding]:
    """Find the characters that a model can hardly learn, seen fewer than three times."""
    counts = side.counts
    rare = [char for char, count in counts.items() if count < RARE]
    seen = f"{len(rare)} of {len(counts)} characters seen fewer than {RARE} times"
    message = f"{side.label}: {seen}: {listing(rare, counts)}"
    examples = cite(side, list(islice(lines_with(side, rare), EXAMPLES)))
    return [Finding("rare_characters", "note", len(rare), len(counts), message, examples)] if rare else []


def describe(char: str) -> str:
    """Write a character as its code, itself where it can be seen, and its name."""
    name = unicodedata.name(char, NAMES.get(char, ""))
    shown = f" {char}" if char.isprintable() and char != " " else ""
    return f"U+{ord(char):04X}{shown}{f' {name}' if name else ''}"


def listing(chars: Iterable[str], counts: Mapping[str, int]) -> str:
    """List characters with their counts, the most frequent first, cut after twenty."""
    ordered = sorted(chars, key=lambda char: (-counts[char], char))
    more = f" and {len(ordered) - LISTED} more" if len(ordered) > LISTED else ""
    return ", ".join(f"{describe(char)} ×{counts[char]}" for char in ordered[:LISTED]) + more


def lines_with(side: Side, chars: Iterable[str]) -> Iterator[Hit]:
    """Find the lines that hold any of the characters, each at its first."""
    letters = "".join(map(re.escape, sorted(chars)))
    return lines_matching(side, re.compile(f"[{letters}]")) if letters else iter(())


def lines_matching(side: Side, pattern: re.Pattern[str]) -> Iterator[Hit]:
    """Find the lines in which the pattern occurs, each at its first occurrence."""
    matches = ((index, pattern.search(line)) for index, line in enumerate(side.lines))
    return (Hit(index, match.start()) for index, match in matches if match)


def _listed(side: Side, chars: frozenset[str], kind: str, severity: Severity, message: str) -> list[Finding]:
    present = chars & side.counts.keys()
    hits = counted(lines_with(side, present))
    return found(side, kind, severity, hits, f"{message}: {listing(present, side.counts)}")


def _twice_encoded(side: Side) -> list[Finding]:
    hits = counted(lines_matching(side, TWICE_ENCODED))
    return found(side, "twice_encoded", "warning", hits, "that look like UTF-8 read as Latin-1 and written again")


def _forms(side: Side) -> list[Finding]:
    """Find lines that are not in NFC: a mix if others hold composed characters, else a uniform habit of the file."""
    others = ((row, line) for row, line in enumerate(side.lines) if not line.isascii())
    apart = counted(Hit(row) for row, line in others if not unicodedata.is_normalized("NFC", line))
    not_apart = (line for line in side.lines if apart.count and not line.isascii())
    composed = sum(not unicodedata.is_normalized("NFD", line) for line in not_apart)
    mixed = f", while {composed} have composed characters: the same text may stand in two forms" if composed else ""
    severity: Severity = "warning" if composed else "note"
    message = f"not in Unicode form NFC{mixed} (normalize nfc, the default, makes them one)"
    return found(side, "unicode_form", severity, apart, message)


def _blanks(side: Side) -> list[Finding]:
    lines = ((row, line, BLANKS.search(line)) for row, line in enumerate(side.lines))
    hits = counted(Hit(row, match.start()) for row, line, match in lines if match and line.strip())
    return found(side, "blanks", "warning", hits, "with blanks at an end or several in a row")


def _script_mix(side: Side) -> list[Finding]:
    """Find lines most of whose letters are of another script than most of the side's."""
    by_script = {name: n for name, n in scripts(side.counts).items() if name not in (*KINDS.values(), "other letters")}
    if len(by_script) < 2:
        return []
    main = next(iter(by_script))
    names = {char: name for char in side.counts if (name := script(char)) in by_script}
    foreign = re.compile(f"[{''.join(re.escape(char) for char, name in sorted(names.items()) if name != main)}]")
    lines = ((row, line, foreign.search(line)) for row, line in enumerate(side.lines))
    leading: Counter[str] = Counter()
    first: list[Hit] = []
    for row, line, match in lines:
        name = _leading_script(line, names, main) if match else main
        if match and name != main:
            leading[name] += 1
            first += [Hit(row, match.start())] * (len(first) < EXAMPLES)
    hits = Tally(leading.total(), first)
    tally = ", ".join(f"{name} {n}" for name, n in leading.most_common())
    return found(side, "script_mix", "warning", hits, f"not mainly {main}, as the rest are: {tally}")


def _leading_script(line: str, names: Mapping[str, str], main: str) -> str:
    """Name the script with most letters in a line, `main` where it shares the first place."""
    tally = Counter(names[char] for char in line if char in names)
    name, count = tally.most_common(1)[0]
    return name if count > tally[main] else main
