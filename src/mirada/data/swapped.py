"""Whether the sides of pairs are swapped: then each is cut into fewer tokens by the tokeniser of the other."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice

from mirada.data.parts import Parts, SourceTokenizer
from mirada.data.tokenizer import Tokenizer
from mirada.data.vocabulary import UNK

SWAPPED = (
    "the sources read like targets of the training pairs, and the targets like their sources; are the sides swapped?"
)
SAMPLE = 200  # pairs
MORE = 1.15  # times as many tokens, which no two tokenisers of one language need
OUTSIDE = 4  # tokens that one outside the vocabulary counts as


def sides_swapped(
    sources: Sequence[str], targets: Sequence[str], tokenizers: tuple[SourceTokenizer, Tokenizer]
) -> bool:
    """Whether these sources are targets and these targets sources, as the first pairs tell.

    Of a vocabulary that both sides share, and of sources of several parts, nothing is told.
    """
    source, target = tokenizers
    if isinstance(source, Parts) or source is target:
        return False
    sides = list(islice(sources, SAMPLE)), list(islice(targets, SAMPLE))
    return all(
        _tokens(own, side) > MORE * _tokens(other, side)
        for side, own, other in ((sides[0], source, target), (sides[1], target, source))
    )


def _tokens(tokenizer: Tokenizer, texts: Iterable[str]) -> int:
    rows = tokenizer.encode(list(texts))
    return sum(len(row) + (OUTSIDE - 1) * row.count(UNK) for row in rows)
