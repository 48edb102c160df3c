"""Which tokens suit a side, from what its lines show: how many words, how often each, and whether dev's are known."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

MOST_LINES = 50_000  # looked at, evenly spread: more tell nothing new
SYMBOL_TYPES = 2000  # at most so many words are a closed set
OFTEN = 10  # times each is seen, on average, in a closed set
OFTEN_ALONE = 50  # the same where lines are single words: answers and tags, but no lemmas in all their forms
UNSEEN = 0.005  # share of words outside a closed set, at most
SHORT_LINE = 2.0  # words a line: names, lemmas, forms, or a writing without blanks
WORDS_AN_ENTRY = 45  # running words for each entry of a subword vocabulary
ONE_LANGUAGE = 0.5  # of the target's words stand in sources where both sides are of one language
FEATURES = re.compile(r"[^\s;]+(;[^\s;]+)+")
ATTACHED = re.compile(r"\w[.,!?;:…](\s|$)")  # punctuation as running text has it


class Choice(NamedTuple):
    """A kind of tokens and why it suits."""

    kind: str
    reason: str


class Words(NamedTuple):
    """What the words (by blanks) of some lines show."""

    lines: int
    total: int
    types: int
    unseen: float  # share of dev's words that train never shows; without dev of words seen once (Good 1953)
    short: float  # share of words of at most two characters
    attached: float  # share of lines with punctuation at a word
    features: float  # share of lines such as V;IND;PST

    @property
    def a_line(self) -> float:
        """Words a line."""
        return self.total / max(1, self.lines)

    @property
    def each(self) -> float:
        """Times a word is seen, on average."""
        return self.total / max(1, self.types)


def choose_tokens(lines: Sequence[str], dev: Sequence[str] | None = None) -> Choice:
    """The kind of tokens for lines of training, with the reason in words; `dev` tells whether new words come up."""
    words = measure(lines, dev)
    about = f"{words.types:,} different words, each seen {words.each:,.1f} times"
    asked = "dev words" if dev else "new words"
    known = (
        f"{words.types:,} different words, each seen {words.each:,.1f} times, {1 - words.unseen:.1%} of {asked} known"
    )
    closed = words.types <= SYMBOL_TYPES and words.unseen <= UNSEEN
    if words.features >= 0.5:
        return Choice("features", f"{words.features:.0%} of the lines are features joined by semicolons")
    if words.a_line <= SHORT_LINE or (words.a_line <= 1.5 * SHORT_LINE and words.each < 3):
        if closed and words.each >= OFTEN_ALONE:
            return Choice("word", f"single words out of a closed set: {about}")
        return Choice("char", f"{words.a_line:.1f} words a line: {known}")
    if words.attached < 0.1 and words.each >= OFTEN and (closed or words.short > 0.8):
        return Choice("word", f"sequences of symbols out of a closed set: {known}")
    return Choice("bpe", f"text: {words.a_line:.1f} words a line, {known}")


def measure(lines: Sequence[str], dev: Sequence[str] | None = None) -> Words:
    """Count what a choice is made from."""
    looked_at, held_out = some(lines), some(dev or [])
    counts = Counter(_words(looked_at))
    total = counts.total()
    new = [word not in counts for word in _words(held_out)]
    once = sum(count == 1 for count in counts.values())
    return Words(
        len(looked_at),
        total,
        len(counts),
        sum(new) / len(new) if new else once / max(1, total),
        sum(count for word, count in counts.items() if len(word) <= 2) / max(1, total),
        _share(bool(ATTACHED.search(line)) for line in looked_at),
        _share(bool(FEATURES.fullmatch(line.strip())) for line in looked_at),
    )


def known_share(sources: Sequence[str], targets: Sequence[str]) -> float:
    """How many of the targets' running words stand in some source.

    0.69 and 0.95 in two sets whose sides are of one language (dialogue acts and their sentences, descriptions and
    their synopses), 0.08 to 0.15 between English and German, French or Spanish.
    """
    known = set(_words(some(sources)))
    return _share(word in known for word in _words(some(targets)))


def count_words(lines: Iterable[str]) -> int:
    """Running words, by blanks."""
    return sum(len(line.split()) for line in lines)


def choose_vocab_size(words: int) -> int:
    """Entries for subwords where none are asked for, by the running words of a side.

    Fewer for little text (Ding et al. 2019): so many that an entry is seen some fifty times, from 500 to 8,000. A line
    may be a word or a page, so lines are not what counts.
    """
    return max(500, min(8000, words // WORDS_AN_ENTRY))


def some(lines: Sequence[str]) -> Sequence[str]:
    """At most MOST_LINES of some lines, evenly spread."""
    return lines[:: -(-len(lines) // MOST_LINES)] if len(lines) > MOST_LINES else lines


def _words(lines: Sequence[str]) -> Iterable[str]:
    return (word for line in lines for word in line.split())


def _share(hits: Iterable[bool]) -> float:
    found = list(hits)
    return sum(found) / max(1, len(found))
