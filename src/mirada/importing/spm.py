"""SentencePiece's model files (one protocol-buffer message), read without the library that writes them."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from mirada.data.recipes import SPACE
from mirada.data.sentencepiece import normalizer, pre_tokenizer
from mirada.data.tokenizer import Tokenizer, checked_inner
from mirada.data.vocabulary import UNK
from mirada.errors import ModelFolderError
from mirada.importing.files import read_bytes

MOST_BYTES = 1 << 26
NORMAL, USER_DEFINED, UNIGRAM = 1, 4, 1  # the file's own numbers of kinds of pieces, and of a kind of model
UNWANTED = 10_000.0  # how much less likely than any piece of the model an entry is that its text may not become
Field = tuple[int, "int | memoryview"]


class Pieces(NamedTuple):
    """What a model file holds: log-probabilities of its pieces, and its table of characters."""

    path: Path
    scores: Mapping[str, float]
    charsmap: bytes


def read_pieces(path: Path) -> Pieces:
    """Read a unigram model; raises ModelFolderError for what is none, and for settings that mirada has not."""
    content = read_bytes(path, MOST_BYTES)
    try:
        pieces = _read(path, memoryview(content))
    except (ValueError, IndexError, struct.error) as error:
        raise ModelFolderError(f"{path}: not a SentencePiece model ({error})") from None
    if not pieces.scores:
        raise ModelFolderError(f"{path}: not a SentencePiece model (it holds no pieces)")
    return pieces


def _read(path: Path, content: memoryview) -> Pieces:
    scores: dict[str, float] = {}
    trainer: dict[int, int | memoryview] = {}
    normal: dict[int, int | memoryview] = {}
    for number, value in fields(content):
        if number == 1:
            piece = dict(fields(_part(value)))
            if piece.get(3, NORMAL) in (NORMAL, USER_DEFINED):  # the latter cost nothing, so they are always taken
                scores[str(_part(piece[1]), "utf-8")] = struct.unpack("<f", _part(piece.get(2, memoryview(bytes(4)))))[
                    0
                ]
        elif number in (2, 3):
            (trainer if number == 2 else normal).update(fields(_part(value)))
    for wrong, what in (
        (trainer.get(3, UNIGRAM) != UNIGRAM, "a model that is not unigram (--model_type)"),
        (trainer.get(35, 0), "byte_fallback"),
        (trainer.get(24, 0), "treat_whitespace_as_suffix"),
        (not normal.get(3, 1), "add_dummy_prefix false"),
        (not normal.get(4, 1), "remove_extra_whitespaces false"),
        (not normal.get(5, 1), "escape_whitespaces false"),
    ):
        if wrong:
            raise ModelFolderError(f"{path}: {what}, which mirada's tokenisers have not")
    return Pieces(path, scores, bytes(_part(normal.get(2, memoryview(b"")))))


def fields(message: memoryview) -> Iterator[Field]:
    """The fields of a message by number; raises ValueError where it is cut off or none."""
    place = 0
    while place < len(message):
        key, place = _varint(message, place)
        wire, size = key & 7, 0
        if wire == 0:
            value, place = _varint(message, place)
            yield key >> 3, value
            continue
        if wire == 2:
            size, place = _varint(message, place)
        else:
            size = {1: 8, 5: 4}.get(wire, 0)
        if not (size or wire == 2) or place + size > len(message):
            raise ValueError("damaged or cut off")
        yield key >> 3, message[place : place + size]
        place += size


def _varint(message: memoryview, place: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        if place >= len(message):
            raise ValueError("damaged or cut off")
        byte = message[place]
        place += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, place
    raise ValueError("damaged or cut off")


def _part(value: int | memoryview) -> memoryview:
    if isinstance(value, int):
        raise ValueError("damaged or cut off")
    return value


def tokenizer(pieces: Pieces, entries: Sequence[str]) -> Tokenizer:
    """The model as a tokeniser whose entries are these, in this order, the special tokens first.

    An entry that the model has no piece for is taken only for what no pieces can write: SentencePiece gives such text
    as it is, and the toolkits then look it up in their vocabulary. `>>fra<<`, a language, is an entry as it is.
    """
    from tokenizers import Tokenizer as Inner
    from tokenizers import models

    least = min(pieces.scores.values()) - UNWANTED
    inner = Inner(models.Unigram([_entry(entry, pieces.scores.get(entry, least)) for entry in entries], UNK, False))
    try:
        inner.normalizer = normalizer(pieces.charsmap)
        inner.pre_tokenizer = pre_tokenizer()
        return Tokenizer(checked_inner(json.loads(inner.to_str()), "unigram"), "unigram")
    except ValueError as error:
        raise ModelFolderError(f"{pieces.path}: {error}") from None


def is_language(entry: str) -> bool:
    """Whether an entry names the language that a source is to be translated into."""
    return entry.startswith(">>") and entry.endswith("<<") and len(entry) > 4


def _entry(entry: str, score: float) -> tuple[str, float]:
    return (SPACE + entry, 0.0) if is_language(entry) else (entry, score)
