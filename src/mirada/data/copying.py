"""What a source can lend to its output: for each source token the target's entry of the same text, or one of its own.

A target vocabulary of `V` entries is longer by one for each source position j: id `V` + j is the text that stands there
first and that no entry holds. So ids of a sentence's own need no list beside its tokens.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mirada.data.tokenizer import Piece, Tokenizer
from mirada.data.vocabulary import EOS, UNK


def copy_ids(source: Sequence[Piece], target: Tokenizer) -> list[int]:
    """The ids that the tokens of a source, and its </s>, would write; equal texts have one id."""
    first: dict[str, int] = {}
    return [*(_copied(first, place, piece.text, target) for place, piece in enumerate(source)), EOS]


def _copied(first: dict[str, int], place: int, text: str, target: Tokenizer) -> int:
    entry = target.find(text)
    return first.setdefault(text, len(target) + place) if entry is None else entry


def written_ids(output: Sequence[Piece], source: Sequence[Piece], copies: Sequence[int]) -> list[int]:
    """The ids of an output: what the vocabulary does not hold, but the source has, is the source's."""
    own = {piece.text: copy for piece, copy in zip(source, copies, strict=False)}
    return [own.get(piece.text, UNK) if piece.id == UNK else piece.id for piece in output]


def own_words(source: Sequence[Piece], copies: Sequence[int], target: Tokenizer) -> dict[int, str]:
    """The texts of the ids that only this source has."""
    return {copy: piece.text for copy, piece in zip(copies, source, strict=False) if copy >= len(target)}


def written_token(index: int, own: Mapping[int, str], target: Tokenizer) -> str:
    """The text of an id of an output: an entry of the vocabulary, or one of the source's own words."""
    return target.token(index) if index < len(target) else own[index]
