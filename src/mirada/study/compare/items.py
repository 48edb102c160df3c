"""The pairs of a comparison, written down once so that every run reads the same: train, dev, and test items."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from mirada.config.options import DataConfig
from mirada.data.corpus import Corpus, chosen_files, load_pairs, read_files, read_lines, split_dev
from mirada.errors import DataError, TrainingError
from mirada.evaluation.aligning import parse_gold, text_sizes
from mirada.evaluation.alignment import format_links
from mirada.evaluation.units import Units
from mirada.files import write_text

PARTS = ("train", "dev", "test")
NO_GOLD = "This comparison was begun without gold links, so it has no AER; begin anew in another --out to have it."


class Item(NamedTuple):
    """One source and what it may become; where gold is known, the links between it and its first reference."""

    source: str
    references: list[str]
    links: str | None = None  # as Pharaoh has them: i-j sure, ipj possible


class GoldLines(NamedTuple):
    """Gold links of the test pairs, a line each, what they count, and the user's file that they come from."""

    lines: list[str]
    units: Units
    file: str | None = None


class Tested(NamedTuple):
    """The test items as they stand in their file, what their gold links count (None: they have none), and a note."""

    items: list[Item]
    units: Units | None
    note: str


class Pairs(NamedTuple):
    """Training, dev and test pairs, lines for a reader about where they come from, and gold links of the test pairs."""

    train: Corpus
    dev: Corpus
    test: Corpus
    notes: tuple[str, ...]
    gold: GoldLines | None = None


def embedded_pairs(count: int, *, seed: int = 1) -> Pairs:
    """The embedded English–Spanish corpus, whose gold links are known."""
    from mirada.corpora.grammar import AlignedPair, make_splits

    def corpus(pairs: list[AlignedPair], name: str) -> Corpus:
        sides = [pair.source for pair in pairs], [pair.target for pair in pairs]
        return Corpus(*sides, list(range(1, len(pairs) + 1)), [], name)

    splits = make_splits(count, seed=seed)
    parts = [corpus(pairs, f"embedded {name}") for name, pairs in zip(PARTS, splits, strict=True)]
    note = f"the embedded English-Spanish corpus, made by a grammar (seed {seed})"
    gold = GoldLines([format_links(set(pair.links)) for pair in splits.test], "punctuation")
    return Pairs(parts[0], parts[1], parts[2], (note,), gold)


def given_pairs(data: DataConfig, test: DataConfig, *, seed: int = 1) -> Pairs:
    """The user's pairs. Without test files, and without dev files, a part is split off the training pairs by `seed`.

    Raises ConfigError or DataError as reading them does.
    """
    train, dev = load_pairs(data, seed=seed)
    notes = (
        [] if chosen_files(data, dev=True) else [f"dev: {len(dev)} pairs split off the training pairs (seed {seed})"]
    )
    files = chosen_files(test, test=True)
    if files is not None:
        return Pairs(train, dev, read_files(files, test), (*notes, *map(_skipped, (train, dev))))
    train, held_out = split_dev(train, size=data.dev_size, seed=seed + 1)
    notes.append(f"test: {len(held_out)} pairs split off the training pairs (seed {seed + 1})")
    return Pairs(train, dev, held_out, (*notes, *map(_skipped, (train, dev))))


def _skipped(corpus: Corpus) -> str:
    return f"{corpus.name}: {len(corpus.skipped)} pairs left out for a blank side" if corpus.skipped else ""


def read_gold(path: str, units: Units, test: Corpus) -> GoldLines:
    """Read gold links, line n for line n of the test pairs' files, also where a pair was left out for a blank side.

    Raises DataError with file:line for a bad link and for one outside its pair, and if no link is sure.
    """
    kept = {line: pair for line, *pair in zip(test.lines, test.sources, test.targets, strict=True)}
    rows = [kept.get(line, ["", ""]) for line in test.all_lines()]
    lines = read_lines(Path(path))
    sides = [source for source, _ in rows], [target for _, target in rows]
    if not any(parse_gold(lines, path, text_sizes(sides, units)).sure):
        raise DataError(f"{path}: no sure link (i-j) in {len(lines)} lines; AER and recall need some")
    return GoldLines([lines[line - test.first] for line in test.lines], units, path)


def to_items(test: Corpus, *, multi_reference: bool, gold: GoldLines | None = None) -> list[Item]:
    """One item a pair, or one a source with all its targets as references (and the links of the first)."""
    links = gold.lines if gold else [None] * len(test)
    single = [Item(source, [target], of) for source, target, of in zip(test.sources, test.targets, links, strict=True)]
    if not multi_reference:
        return single
    grouped: dict[str, Item] = {}
    for item in single:
        grouped.setdefault(item.source, item._replace(references=[])).references.extend(item.references)
    return list(grouped.values())


def write_parts(folder: Path, contents: Mapping[str, str]) -> None:
    """Write the files of a comparison, or check those that are there.

    Raises TrainingError if they hold other pairs: a comparison is never mixed from two corpora.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in contents.items():
        path = folder / f"{name}.jsonl"
        if not path.exists():
            write_text(path, text)
        elif not path.is_file() or path.read_bytes() != text.encode():
            what = "pairs or gold links" if name == "test" else "pairs"
            raise TrainingError(f"{path} holds other {what} than those given now; choose another --out")


def write_items(folder: Path, found: list[Item], gold: GoldLines | None) -> Tested:
    """Write the test items of a comparison, or check those that are there.

    A comparison that was begun without gold links goes on without. Raises TrainingError if the user gave some to it,
    and if there are other items or links.
    """
    path, bare = folder / "test.jsonl", [item._replace(links=None) for item in found]
    if gold is not None and path.is_file() and path.read_bytes() == item_lines(bare).encode():
        if gold.file is not None:
            raise TrainingError(f"{path} was written without gold links; leave --gold out, or choose another --out")
        return Tested(bare, None, NO_GOLD)
    write_parts(folder, {"test": item_lines(found)})
    return Tested(found, gold.units if gold else None, "")


def pair_lines(corpus: Corpus) -> str:
    """Pairs as JSON lines, in the form that training reads."""
    pairs = zip(corpus.sources, corpus.targets, strict=True)
    return _lines({"source": source, "target": target} for source, target in pairs)


def item_lines(items: Iterable[Item]) -> str:
    """Test items as JSON lines, with their links if they have some."""
    rows = (item._asdict() for item in items)
    return _lines({name: value for name, value in row.items() if value is not None} for row in rows)


def _lines(rows: Iterable[dict[str, Any]]) -> str:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def read_items(path: Path) -> list[Item]:
    """Read test items that `item_lines` wrote."""
    return [Item(**json.loads(line)) for line in read_lines(path)]


def fingerprint(text: str) -> str:
    """A short hash that tells two sets of pairs apart."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
