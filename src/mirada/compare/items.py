"""The pairs of a comparison, written down once so that every run reads the same: train, dev, and test items."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from mirada.config import DataConfig
from mirada.data.corpus import Corpus, chosen_files, load_pairs, read_files, read_lines, split_dev
from mirada.errors import TrainingError
from mirada.files import write_text

PARTS = ("train", "dev", "test")


class Item(NamedTuple):
    """One source and what it may become."""

    source: str
    references: list[str]


class Pairs(NamedTuple):
    """Training and dev pairs, test pairs, and lines for a reader about where they come from."""

    train: Corpus
    dev: Corpus
    test: Corpus
    notes: tuple[str, ...]


def embedded_pairs(count: int, *, seed: int = 1) -> Pairs:
    """The embedded English–Spanish corpus."""
    from mirada.data.grammar import AlignedPair, make_splits

    def corpus(pairs: list[AlignedPair], name: str) -> Corpus:
        sides = [pair.source for pair in pairs], [pair.target for pair in pairs]
        return Corpus(*sides, list(range(1, len(pairs) + 1)), [], name)

    splits = make_splits(count, seed=seed)
    parts = [corpus(pairs, f"embedded {name}") for name, pairs in zip(PARTS, splits, strict=True)]
    note = f"the embedded English-Spanish corpus, made by a grammar (seed {seed})"
    return Pairs(parts[0], parts[1], parts[2], (note,))


def given_pairs(data: DataConfig, test: DataConfig, *, seed: int = 1) -> Pairs:
    """The user's pairs. Without test files, and without dev files, a part is split off the training pairs by `seed`.

    Raises ConfigError or DataError as reading them does.
    """
    train, dev = load_pairs(data, seed=seed)
    notes = (
        [] if chosen_files(data, dev=True) else [f"dev: {len(dev)} pairs split off the training pairs (seed {seed})"]
    )
    files = chosen_files(test)
    if files is not None:
        return Pairs(train, dev, read_files(files, test), (*notes, *map(_skipped, (train, dev))))
    train, held_out = split_dev(train, size=data.dev_size, seed=seed + 1)
    notes.append(f"test: {len(held_out)} pairs split off the training pairs (seed {seed + 1})")
    return Pairs(train, dev, held_out, (*notes, *map(_skipped, (train, dev))))


def _skipped(corpus: Corpus) -> str:
    return f"{corpus.name}: {len(corpus.skipped)} pairs left out for a blank side" if corpus.skipped else ""


def to_items(test: Corpus, *, multi_reference: bool) -> list[Item]:
    """One item a pair, or one a source with all its targets as references."""
    if not multi_reference:
        return [Item(source, [target]) for source, target in zip(test.sources, test.targets, strict=True)]
    grouped: dict[str, list[str]] = {}
    for source, target in zip(test.sources, test.targets, strict=True):
        grouped.setdefault(source, []).append(target)
    return [Item(source, references) for source, references in grouped.items()]


def write_parts(folder: Path, contents: Mapping[str, str]) -> None:
    """Write the files of a comparison, or check those that are there.

    Raises TrainingError if they hold other pairs: a comparison is never mixed from two corpora.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in contents.items():
        path = folder / f"{name}.jsonl"
        if not path.exists():
            write_text(path, text)
        elif path.read_text(encoding="utf-8") != text:
            raise TrainingError(f"{path} holds other pairs than those given now; choose another --out")


def pair_lines(corpus: Corpus) -> str:
    """Pairs as JSON lines, in the form that training reads."""
    pairs = zip(corpus.sources, corpus.targets, strict=True)
    return _lines({"source": source, "target": target} for source, target in pairs)


def item_lines(items: Iterable[Item]) -> str:
    """Test items as JSON lines."""
    return _lines(item._asdict() for item in items)


def _lines(rows: Iterable[dict[str, Any]]) -> str:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def read_items(path: Path) -> list[Item]:
    """Read test items that `item_lines` wrote."""
    return [Item(**json.loads(line)) for line in read_lines(path)]


def fingerprint(text: str) -> str:
    """A short hash that tells two sets of pairs apart."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
