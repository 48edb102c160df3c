"""From the tokens of a model to the words of a line: which stands for which, by their places in the text.

A gold alignment counts the words of a line, a model looks at tokens: parts of words, single characters, or words with
their punctuation. Places in the text, [start, end) in characters, relate the two whatever the tokeniser is.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from typing import Literal, Protocol, get_args

import numpy as np

from mirada.evaluation.alignment import word_weights
from mirada.evaluation.metrics import FloatArray

Span = tuple[int, int]
Groups = list[tuple[int, ...]]  # for each token the units that it stands for
Units = Literal["words", "punctuation", "tokens"]
UNITS: tuple[Units, ...] = get_args(Units)
WORD = re.compile(r"\S+")


class Token(Protocol):
    """What is asked of a token: its place in the text, and the unit that its tokeniser gives it."""

    @property
    def span(self) -> Span:
        """Where it stands, [start, end) in characters."""

    @property
    def word(self) -> int:
        """Its unit, from 0."""


def split(text: str, units: Units) -> list[Span]:
    """Places of the words of a line: what stands between blanks.

    With `punctuation` the marks at both ends of a word (¿ ? . , % …) are units of their own; those inside (o'clock,
    3.5) are not. `tokens` depends on the tokeniser and not on the text alone: see `token_units`.
    """
    words = [match.span() for match in WORD.finditer(text)]
    return [span for word in words for span in _parted(text, word)] if units == "punctuation" else words


def token_units(tokens: Sequence[Token], text: str, units: Units) -> Groups:
    """Say for each token which units of its text it stands for: those that share a character with it, mostly one.

    A token of nothing but a blank belongs to the word after it, as subwords carry the blank before them. A unit of
    which normalisation left no token shares its neighbour's. With `tokens` the tokeniser's own units are taken.
    """
    if units == "tokens":
        return [(token.word,) for token in tokens]
    places = split(text, units)
    spans = [token.span for token in tokens]
    groups = [_touched(span, places) for span in spans]
    for unit in sorted(set(range(len(places))).difference(*groups)):
        nearest = _nearest(places[unit], spans)
        groups[nearest] = tuple(sorted((*groups[nearest], unit)))
    return groups


def count_units(groups: Groups) -> int:
    """Count the units that tokens stand for."""
    return 1 + max((max(group) for group in groups), default=-1)


def unit_weights(weights: FloatArray, source: Groups, target: Groups) -> FloatArray:
    """Merge the weights of tokens `[T, S]` into those of units `[target units, source units]`; rows keep their sum.

    A source unit gets the sum of its tokens' weights (a token of several units gives each the same share), a target
    unit the mean of its tokens' rows.
    """
    rows = [t for t, group in enumerate(target) for _ in group]
    columns = [j for j, group in enumerate(source) for _ in group]
    shares = np.array([1 / len(group) for group in source for _ in group])
    flat = [[unit for group in side for unit in group] for side in (source, target)]
    return word_weights(weights[np.ix_(rows, columns)] * shares, flat[0], flat[1])


def _parted(text: str, word: Span) -> list[Span]:
    start, end = word
    first, last = start, end
    while first < end and _is_mark(text[first]):
        first += 1
    while last > first and _is_mark(text[last - 1]):
        last -= 1
    marks = [(at, at + 1) for at in (*range(start, first), *range(last, end))]
    return sorted([*marks, *([(first, last)] if first < last else [])])


def _is_mark(char: str) -> bool:
    return unicodedata.category(char)[0] in "PS"


def _touched(span: Span, places: Sequence[Span]) -> tuple[int, ...]:
    start, end = span
    touched = tuple(unit for unit, (first, last) in enumerate(places) if first < end and start < last)
    later = (unit for unit, (first, _) in enumerate(places) if first >= end)
    return touched or (next(later, len(places) - 1),)


def _nearest(place: Span, spans: Sequence[Span]) -> int:
    """The last token that begins no later than a place, else the first token."""
    return max((t for t, (start, _) in enumerate(spans) if start <= place[0]), default=0)
