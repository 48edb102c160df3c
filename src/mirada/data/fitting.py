"""Which pairs are short enough to train on: the one place that knows, for training and for the check before it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple, TypeVar

from mirada.data.encoded import Encoded

Truncation = Literal["none", "first", "last", "both"]
Token = TypeVar("Token")


class Fitted(NamedTuple):
    """Pairs that are short enough: which they are, their ids, and how many sources were cut."""

    kept: list[int]
    pairs: Encoded
    cut: int


def truncate(tokens: Sequence[Token], most: int, how: Truncation) -> list[Token]:
    """At most `most` tokens of a source: the first, the last, or both ends (of an odd number more at the front)."""
    if how == "none" or len(tokens) <= most:
        return list(tokens)
    head = {"first": most, "last": 0, "both": most - most // 2}[how]
    return [*tokens[:head], *tokens[len(tokens) - (most - head) :]]


def fit(pairs: Encoded, most: int, how: Truncation) -> Fitted:
    """Leave out pairs with more than `most` tokens on a side (</s> not counted), sources cut first if they may be."""
    sources = [[*truncate(source[:-1], most, how), source[-1]] for source in pairs.sources]
    sizes = zip(sources, pairs.targets, strict=True)
    kept = [i for i, (source, target) in enumerate(sizes) if len(source) <= most + 1 and len(target) <= most]
    cut = sum(len(sources[i]) < len(pairs.sources[i]) for i in kept)
    return Fitted(kept, Encoded([sources[i] for i in kept], [pairs.targets[i] for i in kept]), cut)
