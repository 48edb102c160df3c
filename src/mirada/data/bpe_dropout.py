"""BPE dropout (Provilkov et al. 2020, algorithm 1): in training, words are cut in other ways each time.

The library drops merges too, but from a random state of its own, with which no training could be repeated or taken up
again; so this is that algorithm in plain Python. Without dropping anything it gives the library's own pieces.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping
from random import Random
from typing import Any, NamedTuple

from mirada.data.vocabulary import UNK


class Dropping(NamedTuple):
    """The share of merges to leave out, and the random source that says which."""

    share: float
    rng: Random


class Merges(NamedTuple):
    """What BPE has learned: the pairs that it merges, the most frequent ones first, and the ids of pieces."""

    ranks: Mapping[tuple[str, str], int]
    ids: Mapping[str, int]


def merges_of(inner: Any) -> Merges:
    """The merges of one of the library's BPE tokenisers."""
    state = json.loads(inner.model.__getstate__())
    pairs = (tuple(pair.split(" ") if isinstance(pair, str) else pair) for pair in state["merges"])
    return Merges({(left, right): rank for rank, (left, right) in enumerate(pairs)}, state["vocab"])


def cut_text(text: str, inner: Any, merges: Merges, dropping: Dropping) -> list[int]:
    """Ids of a text, each word of which is merged with some merges left out."""
    words = inner.pre_tokenizer.pre_tokenize_str(inner.normalizer.normalize_str(text))
    return [merges.ids.get(piece, UNK) for word, _ in words for piece in cut_word(word, merges, dropping)]


def cut_word(word: str, merges: Merges, dropping: Dropping) -> list[str]:
    """The pieces of a word: at each step possible merges are left out by chance, and the best other is made."""
    pieces = list(word)
    while len(pieces) > 1:
        found = [
            (merges.ranks[pair], place)
            for place, pair in enumerate(itertools.pairwise(pieces))
            if pair in merges.ranks and dropping.rng.random() >= dropping.share
        ]
        if not found:
            break
        _, place = min(found)
        pieces[place : place + 2] = [pieces[place] + pieces[place + 1]]
    return pieces
