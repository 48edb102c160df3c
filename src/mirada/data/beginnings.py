"""How an output is to begin, where the given text may end inside a token.

Whole words are forced as they are cut. The last word may go on: after `¿C` a model that has learned the token `Cómo`
would never write `ómo` behind a token `C`. So the last word's own tokens are left open, and at each step those may
come that spell its rest, or the rest and more. A blank at the end of the text ends its last word.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

LONGEST = 48  # characters of a last word that stay open: some languages write without blanks
MOST_KNOWN = 10_000


class Piece(NamedTuple):
    """One token of a text."""

    id: int
    text: str  # as the vocabulary has it; for <unk> the surface form
    word: int  # index of the unit that links and maps join it into: a word for subwords, else the token itself
    span: tuple[int, int]  # where it stands in the text, [start, end) in characters, a blank that it carries included


class Spelling:
    """The tokens of a vocabulary by what they spell; with `whole` a word is one token, and nothing is put together."""

    def __init__(self, tokens: Sequence[str], *, first: int, whole: bool):
        self.tokens, self.whole = tokens, whole
        self._known: dict[str, tuple[int, ...]] = {}
        self._by_first: dict[str, list[int]] = {}
        for index in range(first, len(tokens)):
            self._by_first.setdefault(tokens[index][:1], []).append(index)

    def next(self, rest: str) -> tuple[int, ...]:
        """The tokens that may come next, so that an output begins with `rest`; none where it cannot be spelled."""
        known = self._known.get(rest)
        if known is None:
            if len(self._known) > MOST_KNOWN:
                self._known.clear()
            known = tuple(index for index in self._by_first.get(rest[:1], ()) if self._may(index, rest))
            self._known[rest] = known
        return known

    def _may(self, index: int, rest: str) -> bool:
        token = self.tokens[index]
        if token.startswith(rest):
            return True
        return not self.whole and rest.startswith(token) and bool(self.next(rest[len(token) :]))

    def left(self, rest: str, ids: Iterable[int]) -> str:
        """What these tokens leave of a rest that they spell."""
        for index in ids:
            rest = rest[len(self.tokens[index]) :] if index < len(self.tokens) else ""
        return rest


class Rest(NamedTuple):
    """What the tokens after the forced ones must spell."""

    text: str
    spelling: Spelling

    def count(self, ids: Iterable[int]) -> int:
        """How many of these tokens begin inside it."""
        left, count = self.text, 0
        for index in ids:
            if not left:
                break
            left, count = self.spelling.left(left, [index]), count + 1
        return count


class Beginning(NamedTuple):
    """How an output begins: tokens that are forced, and what the next ones must spell."""

    pieces: list[Piece]
    rest: Rest | None = None


def _open(piece: Piece, unknown: int) -> bool:
    """Whether a token may be spelled in another way; in a tensor of characters the first two stand for none."""
    return piece.id != unknown and min(piece.text) > "\x01"


def opened(pieces: Sequence[Piece], last: str, spelling: Spelling, *, unknown: int) -> Beginning:
    """Leave the tokens of the `last` word open, as far as the vocabulary spells it."""
    forced, text = list(pieces), ""
    if spelling.whole and forced and forced[-1].id == unknown and spelling.next(forced[-1].text):
        return Beginning(forced[:-1], Rest(forced[-1].text, spelling))  # the beginning of a word that is known
    while forced and _open(forced[-1], unknown) and len(text) + len(forced[-1].text) <= min(len(last), LONGEST):
        text = forced.pop().text + text
    return Beginning(forced, Rest(text, spelling) if text else None)
