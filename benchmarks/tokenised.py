"""What is trained on and translated: tokens between blanks, from files that are given or from the embedded corpus.

A folder that is given (--tokenised) is what peers/prepare.py writes: text.train.source, text.train.target,
text.test.source, text.test.reference (as text) and text.vocabulary for translation; g2p.train.source and so on for
spelling. Other names are known too (NAMES). Without a folder, both are made from the embedded corpus.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import NamedTuple

import numpy as np

from mirada.corpora.grammar import generate, tokens
from mirada.data.tokenizer import TokenizerOptions, train_tokenizer
from mirada.data.vocabulary import SPECIAL_TOKENS
from mirada.errors import DataError

ENTRIES = 8000  # of the vocabulary, the four special ones included
# Train source and target, test source and its references, and the vocabulary without the special tokens.
NAMES = {
    "translation": (
        ("text.train.source", "text.train.target", "text.test.source", "text.test.reference", "text.vocabulary"),
        ("train.bpe.en", "train.bpe.de", "test_2016_flickr.bpe.en", "test_2016_flickr.de", "vocab.txt"),
    ),
    "spelling": (
        ("g2p.train.source", "g2p.train.target", "g2p.test.source", "g2p.test.reference"),
        ("g2p.train.g", "g2p.train.p", "g2p.dev.g", "g2p.dev.p"),
    ),
}
MOST = 250  # tokens of a side: longer pairs (there are none) and the line of all pieces are left out
DEV = 20  # pairs that a training wants to validate on, outside of every window


class Tokenised(NamedTuple):
    """Pairs for training in files, and lines for decoding with their references."""

    name: str
    files: dict[str, Path]  # train and dev, .source and .target
    lengths: np.ndarray  # [N, 2] of the training pairs, with </s>
    test: list[str]
    references: list[str]
    entries: int | None  # of the one list for both sides; None: each side has its own, of all its symbols


class Lines(NamedTuple):
    """The same before it is written."""

    train: tuple[list[str], list[str]]
    test: list[str]
    references: list[str]
    vocabulary: list[str]  # empty: what the training lines hold


def prepare(task: str, given: Path | None, folder: Path, *, pairs: int = 12_000, entries: int = ENTRIES) -> Tokenised:
    """Lay the files of a task into `folder`; where none are given, so many pairs of the embedded corpus.

    Raises DataError if the given folder does not hold them.
    """
    if given is not None:
        return lay(_read(task, given), folder, "given files")
    made = _translation(pairs, entries) if task == "translation" else _spelling(pairs)
    return lay(made, folder, "embedded corpus")


def lay(lines: Lines, folder: Path, name: str) -> Tokenised:
    """Write what a training reads, which leaves out blank and very long pairs."""
    folder.mkdir(parents=True, exist_ok=True)
    kept = [pair for pair in zip(*lines.train, strict=True) if all(0 < len(side.split()) <= MOST for side in pair)]
    # A pair that is too long counts for the vocabulary and is left out of the training: so every piece has its entry.
    repeats = 1 + MOST // max(1, len(lines.vocabulary))
    extra = [" ".join(lines.vocabulary * repeats)] if lines.vocabulary else []
    files, lengths = {}, []
    for side, own in zip(("source", "target"), zip(*kept, strict=True), strict=True):
        for part, content in (("train", [*own, *extra]), ("dev", own[:DEV])):
            files[f"{part}.{side}"] = folder / f"{part}.{side}"
            text_of = "".join(f"{line}\n" for line in content)
            files[f"{part}.{side}"].write_text(text_of, encoding="utf-8", newline="\n")
        lengths.append([len(line.split()) + 1 for line in own])
    entries = len(lines.vocabulary) + len(SPECIAL_TOKENS) if lines.vocabulary else None
    counted = f"{len(kept):,} pairs, {name}"
    return Tokenised(counted, files, np.array(lengths, dtype=np.int64).T, lines.test, lines.references, entries)


def text(line: Sequence[str]) -> str:
    """Subword pieces as text."""
    return "".join(line).replace("▁", " ").strip()


def _read(task: str, given: Path) -> Lines:
    for names in NAMES[task]:
        if all((given / name).is_file() for name in names):
            source, target, test, references, *vocabulary = (_lines(given / name) for name in names)
            return Lines((source, target), test, references, vocabulary[0] if vocabulary else [])
    raise DataError(f"{given}: no tokenised files for {task}; expected {', '.join(NAMES[task][0])}")


def _translation(pairs: int, entries: int) -> Lines:
    """Embedded sentences in subwords, with a vocabulary filled up to its size by pieces that never come."""
    drawn = generate(pairs + pairs // 10, seed=1, max_words=30)
    Random(1).shuffle(drawn)  # the later a pair is drawn, the likelier it is long
    sides = ([pair.source for pair in drawn], [pair.target for pair in drawn])
    tokenizer = train_tokenizer([*sides[0], *sides[1]], TokenizerOptions("bpe", entries))
    cut = [[" ".join(piece.text for piece in row) for row in tokenizer.pieces(side)] for side in sides]
    own = [tokenizer.token(i) for i in range(len(SPECIAL_TOKENS), len(tokenizer))]
    unused = [f"unused{i}" for i in range(entries - len(tokenizer))]
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
