"""What is trained on and translated: tokens between blanks, from files that are given or from the embedded corpus.

A folder that is given (--pieces) holds, line by line: train.bpe.en, train.bpe.de, test_2016_flickr.bpe.en,
test_2016_flickr.de (the references, as text) and vocab.txt (all pieces, without the special ones) for translation;
g2p.train.g, g2p.train.p, g2p.dev.g, g2p.dev.p for spelling. Without one, both are made from the embedded corpus.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import NamedTuple

import numpy as np

from mirada.data.grammar import generate, tokens
from mirada.data.tokenizer import TokenizerOptions, train_tokenizer
from mirada.data.vocabulary import SPECIAL_TOKENS

ENTRIES = 8000  # of the vocabulary, the four special ones included
NAMES = {
    "translation": ("train.bpe.en", "train.bpe.de", "test_2016_flickr.bpe.en", "test_2016_flickr.de"),
    "spelling": ("g2p.train.g", "g2p.train.p", "g2p.dev.g", "g2p.dev.p"),
}
DEV = 20  # pairs that a training wants to validate on, outside of every window


class Pieces(NamedTuple):
    """Pairs for training in files, and lines for decoding with their references."""

    name: str
    files: dict[str, Path]  # train and dev, .source and .target
    lengths: np.ndarray  # [N, 2] of the training pairs, with </s>
    test: list[str]
    references: list[str]
    entries: int | None  # of the one list for both sides; None: each side has its own, of all its symbols
    shared: bool


class Lines(NamedTuple):
    """The same before it is written."""

    train: tuple[list[str], list[str]]
    test: list[str]
    references: list[str]
    vocabulary: list[str]  # empty: what the training lines hold


def prepare(task: str, given: Path | None, folder: Path, *, pairs: int = 12_000, longest: int = 250) -> Pieces:
    """Lay the files of a task into `folder`. `pairs` of the embedded corpus, where no files are given."""
    made = {"translation": _translation, "spelling": _spelling}[task](pairs) if given is None else _read(task, given)
    folder.mkdir(parents=True, exist_ok=True)
    sides = dict(zip(("source", "target"), made.train, strict=True))
    # A pair that is too long counts for the vocabulary and is left out of the training: so every piece has its entry.
    everything = " ".join(made.vocabulary * (1 + longest // max(1, len(made.vocabulary))))
    extra = [everything] if made.vocabulary else []
    for side, lines in sides.items():
        _write(folder / f"train.{side}", [*lines, *extra])
        _write(folder / f"dev.{side}", lines[:DEV])
    files = {f"{part}.{side}": folder / f"{part}.{side}" for part in ("train", "dev") for side in sides}
    lengths = np.array([[len(line.split()) + 1 for line in lines] for lines in sides.values()], dtype=np.int64).T
    entries = len(made.vocabulary) + len(SPECIAL_TOKENS) if made.vocabulary else None
    name = f"{len(lengths):,} pairs, {'embedded corpus' if given is None else 'given files'}"
    return Pieces(name, files, lengths, made.test, made.references, entries, task == "translation")


def text(line: Sequence[str]) -> str:
    """Subword pieces as text."""
    return "".join(line).replace("▁", " ").strip()


def _read(task: str, given: Path) -> Lines:
    source, target, test, references = (_lines(given / name) for name in NAMES[task])
    vocabulary = _lines(given / "vocab.txt") if task == "translation" else []
    return Lines((source, target), test, references, vocabulary)


def _translation(pairs: int) -> Lines:
    """Embedded sentences in subwords, with a vocabulary filled up to its size by pieces that never come."""
    drawn = generate(pairs + pairs // 10, seed=1, max_words=30)
    Random(1).shuffle(drawn)  # the later a pair is drawn, the likelier it is long
    sides = ([pair.source for pair in drawn], [pair.target for pair in drawn])
    tokenizer = train_tokenizer([*sides[0], *sides[1]], TokenizerOptions("bpe", ENTRIES))
    cut = [[" ".join(piece.text for piece in row) for row in tokenizer.pieces(side)] for side in sides]
    own = [tokenizer.token(i) for i in range(len(SPECIAL_TOKENS), len(tokenizer))]
    unused = [f"unused{i}" for i in range(ENTRIES - len(SPECIAL_TOKENS) - len(own))]
    return Lines((cut[0][:pairs], cut[1][:pairs]), cut[0][pairs:], sides[1][pairs:], own + unused)


def _spelling(pairs: int) -> Lines:
    """Letters of an English word to letters of the Spanish one: pairs of aligned words, as often as they come."""
    words: list[tuple[str, str]] = []
    for pair in generate(pairs // 4, seed=2, max_words=30):
        source, target = tokens(pair.source), tokens(pair.target)
        words += [(" ".join(source[i]), " ".join(target[j])) for i, j in pair.links if len(source[i]) > 1]
    Random(2).shuffle(words)
    train, test = words[:pairs], words[pairs : pairs + pairs // 10]
    sides = ([word for word, _ in train], [word for _, word in train])
    return Lines(sides, [word for word, _ in test], [word for _, word in test], [])


def _lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").removesuffix("\n").split("\n")


def _write(path: Path, lines: Sequence[str]) -> None:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8", newline="\n")
