"""Attention as an alignment of given pairs: forced decoding, links between words, and how good they are.

The weights of a step are read as links in one of several ways (`Reading`). </s> takes no part: its column is dropped,
so that a target word whose largest weight lies on </s> is linked to its best real word, and the measures describe the
weights of the real words, brought back to a sum of 1.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import NamedTuple, Protocol

import numpy as np

from mirada.errors import ConfigError, DataError
from mirada.evaluation.alignment import (
    AlignmentScore,
    Link,
    LinkCounts,
    attention_links,
    count_links,
    coverage,
    entropy,
    monotonicity,
    parse_links,
    score_of,
)
from mirada.evaluation.metrics import FloatArray
from mirada.evaluation.units import Groups, Token, Units, count_units, split, token_units, unit_weights

MEAN = "mean"
LOOKAHEAD = 4  # batches scored together, so that similar lengths share a batch

Pairs = tuple[Sequence[str], Sequence[str]]  # sources, targets


class Splitter(Protocol):
    """A tokeniser, as far as aligning needs it."""

    def pieces(self, texts: Sequence[str], /) -> Sequence[Sequence[Token]]:
        """The tokens of each text."""


class Weighed(Protocol):
    """A pair with its attention; the last row and the last column are those of </s>."""

    @property
    def attention(self) -> np.ndarray | None:
        """`[T + 1, S + 1]`."""

    @property
    def heads(self) -> np.ndarray | None:
        """`[layers, heads, T + 1, S + 1]`, where there are several."""


class Forcer(Protocol):
    """A model that can be made to say a given output."""

    @property
    def source_tokenizer(self) -> Splitter:
        """Of the sources."""

    @property
    def target_tokenizer(self) -> Splitter:
        """Of the targets."""

    def score(
        self,
        sources: Sequence[str],
        targets: Sequence[str],
        /,
        *,
        batch_size: int,
        with_attention: bool,
        with_heads: bool,
    ) -> Sequence[Weighed]:
        """Force each target from its source."""


class Reading(NamedTuple):
    """How weights are read as links."""

    head: str  # MEAN: of the last layer's heads, or the only attention there is; or layer.head, from 1, such as "2.1"
    shift: int  # 0: the weights of step t align y_t; 1: those of step t + 1, when y_t has been read in

    def __str__(self) -> str:
        return f"heads {self.head}, shift {self.shift}"


class Options(NamedTuple):
    """What is linked, and how many pairs are forced together."""

    units: Units = "words"
    batch_size: int = 64


class Profile(NamedTuple):
    """What the weights of one pair are like, without gold (alignment.py), and how much of them lay on </s>."""

    entropy: float
    coverage: float
    monotonicity: float
    end: float


class Aligned(NamedTuple):
    """One pair under one reading; a pair with a blank side has no link and no profile."""

    links: frozenset[Link]
    profile: Profile | None


class Gold(NamedTuple):
    """Sure and possible links, one set a pair; the possible ones contain the sure."""

    sure: list[frozenset[Link]]
    possible: list[frozenset[Link]]


class Quality(NamedTuple):
    """Links against gold."""

    counts: LinkCounts
    score: AlignmentScore


NOTHING = Aligned(frozenset(), None)


def head_names(layers: int, heads: int) -> list[str]:
    """Name every head by layer and number, both from 1: `1.1`, `1.2`, …"""
    return [f"{layer}.{head}" for layer, head in product(range(1, layers + 1), range(1, heads + 1))]


def align(
    model: Forcer, pairs: Pairs, readings: Sequence[Reading], options: Options
) -> Iterator[dict[Reading, Aligned]]:
    """Force every pair and read its weights in each of several ways; n pairs give n results, in order.

    Raises DataError if the sides differ in number, and ConfigError if the model has no attention.
    """
    sources, targets = pairs
    if len(sources) != len(targets):
        raise DataError(f"{len(sources)} sources and {len(targets)} targets; line n of both must belong together")
    many = LOOKAHEAD * options.batch_size
    for start in range(0, len(sources), many):
        part = list(zip(sources[start : start + many], targets[start : start + many], strict=True))
        whole = [pair for pair in part if all(map(str.strip, pair))]
        found = _align_whole(model, whole, readings, options)
        yield from (next(found) if all(map(str.strip, pair)) else dict.fromkeys(readings, NOTHING) for pair in part)


def _align_whole(
    model: Forcer, pairs: Sequence[tuple[str, str]], readings: Sequence[Reading], options: Options
) -> Iterator[dict[Reading, Aligned]]:
    """Align pairs of which no side is blank."""
    sources, targets = ([pair[side] for pair in pairs] for side in (0, 1))
    heads = any(reading.head != MEAN for reading in readings)
    forced = model.score(sources, targets, batch_size=options.batch_size, with_attention=True, with_heads=heads)
    groups = [
        _groups(tokenizer, texts, options.units)
        for tokenizer, texts in ((model.source_tokenizer, sources), (model.target_tokenizer, targets))
    ]
    for pair, source, target in zip(forced, *groups, strict=True):
        yield {reading: read_links(_weights(pair, reading.head), source, target, reading.shift) for reading in readings}


def _groups(tokenizer: Splitter, texts: Sequence[str], units: Units) -> list[Groups]:
    rows = tokenizer.pieces(texts)
    return [token_units(tokens, text, units) for tokens, text in zip(rows, texts, strict=True)]


def _weights(pair: Weighed, head: str) -> FloatArray:
    if pair.attention is None:
        raise ConfigError("the model has no attention to align with")
    if head == MEAN:
        return np.asarray(pair.attention, dtype=np.float64)
    if pair.heads is None:
        raise ConfigError(f"heads {head}: the model has one attention, without heads; use {MEAN}")
    layer, number = map(int, head.split("."))
    return np.asarray(pair.heads[layer - 1, number - 1], dtype=np.float64)


def read_links(weights: FloatArray, source: Groups, target: Groups, shift: int) -> Aligned:
    """Read the weights `[T + 1, S + 1]` of a forced pair, </s> last on both sides, as links between units.

    Each target unit is linked to the source unit with the largest weight (of equal ones the first), however much </s>
    has. Row t + `shift` is taken for token t.
    """
    end = count_units(source)
    merged = unit_weights(weights[shift : shift + len(target)], [*source, (end,)], target)  # [units, units + 1]
    real, on_end = merged[:, :end], merged[:, end]
    return Aligned(attention_links(real), _profile(real, on_end))


def _profile(real: FloatArray, on_end: FloatArray) -> Profile:
    total = real.sum(axis=1, keepdims=True)
    shares = np.divide(real, total, where=total > 0, out=np.zeros_like(real))
    return Profile(float(entropy(shares).mean()), coverage(shares), monotonicity(shares), float(on_end.mean()))


def mean_profile(profiles: Sequence[Profile | None]) -> Profile | None:
    """Average over the pairs that have a profile; None if there is none."""
    rows = [profile for profile in profiles if profile is not None]
    return Profile(*(float(column) for column in np.mean(rows, axis=0))) if rows else None


def pair_sizes(model: Forcer, pairs: Pairs, units: Units) -> list[tuple[int, int]]:
    """Count the units of each source and each target."""
    if units != "tokens":
        return text_sizes(pairs, units)
    sides = [
        [count_units(groups) for groups in _groups(tokenizer, texts, units)]
        for tokenizer, texts in zip((model.source_tokenizer, model.target_tokenizer), pairs, strict=True)
    ]
    return list(zip(*sides, strict=True))


def text_sizes(pairs: Pairs, units: Units) -> list[tuple[int, int]]:
    """Count the units of each source and each target, of the kinds that need no tokeniser (words, punctuation)."""
    return list(zip(*([len(split(text, units)) for text in texts] for texts in pairs), strict=True))


def parse_gold(lines: Sequence[str], name: str, sizes: Sequence[tuple[int, int]]) -> Gold:
    """Read gold links, line n for pair n, whose units the sizes count.

    Raises DataError with `name:line` for a bad link and for one that is outside its pair.
    """
    if len(lines) != len(sizes):
        raise DataError(f"{name}: {len(lines)} lines of links, but there are {len(sizes)} pairs; line n is for pair n")
    parsed = [parse_links(line, f"{name}:{n}") for n, line in enumerate(lines, 1)]
    for n, ((_, possible), (source, target)) in enumerate(zip(parsed, sizes, strict=True), 1):
        outside = [(i, j) for i, j in sorted(possible) if i >= source or j >= target]
        if outside:
            raise DataError(
                f"{name}:{n}: link {outside[0][0]}-{outside[0][1]} is outside the pair, which has {source} source and "
                f"{target} target words; were they split in another way (--units)?"
            )
    return Gold([sure for sure, _ in parsed], [possible for _, possible in parsed])


def quality(links: Sequence[frozenset[Link]], gold: Gold) -> Quality:
    """Count and score the links of all pairs; raises DataError as `count_links`."""
    counts = count_links(links, gold.sure, gold.possible)
    return Quality(counts, score_of(counts))


def qualities(rows: Sequence[Mapping[Reading, Aligned]], gold: Gold) -> dict[Reading, Quality]:
    """Score every reading of the pairs."""
    return {reading: quality([row[reading].links for row in rows], gold) for reading in (rows[0] if rows else ())}


def best_reading(scores: Mapping[Reading, Quality]) -> Reading:
    """The reading with the lowest alignment error, of equal ones the first."""
    return min(scores, key=lambda reading: scores[reading].score.aer)
