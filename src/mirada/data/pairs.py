"""Pairs of sentences, line n of one side with line n of the other: kept, drawn from, split."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from mirada.data.rows import Row, is_blank
from mirada.errors import DataError


@dataclass(frozen=True)
class Corpus:
    """Pairs of sentences, none blank, with the line of the file that each came from. In memory, or in Arrow files."""

    sources: Sequence[str]
    targets: Sequence[str]
    lines: Sequence[int]  # line numbers of the pairs, from 1
    skipped: list[int]  # line numbers left out because a side is blank
    name: str
    references: list[tuple[str, ...]] = field(default_factory=list)  # further ones of each pair; empty: nobody has any
    first: int = 1  # the line at which pairs begin: 2 below a line that names the columns

    def all_lines(self) -> range:
        """The numbers of all lines read, those of pairs left out included."""
        return range(self.first, self.first + len(self.lines) + len(self.skipped))

    def all_references(self) -> list[list[str]]:
        """The target of each pair and its further references."""
        further = self.references or [()] * len(self)
        return [[target, *others] for target, others in zip(self.targets, further, strict=True)]

    def __len__(self) -> int:
        return len(self.sources)


def keep_pairs(rows: Iterable[tuple[int, Row]], name: str) -> Corpus:
    """Keep the numbered rows with text on both sides and note the others; raises DataError if none is left."""
    kept: list[tuple[int, Row]] = []
    skipped: list[int] = []
    first = 1
    for number, row in rows:
        if not (kept or skipped):
            first = number
        if is_blank(row.source) or is_blank(row.target):
            skipped.append(number)
        else:
            kept.append((number, row))
    if not kept:
        raise none_left(name, len(skipped))
    references = [row.references for _, row in kept] if any(row.references for _, row in kept) else []
    sources, targets = [row.source for _, row in kept], [row.target for _, row in kept]
    return Corpus(sources, targets, [number for number, _ in kept], skipped, name, references, first)


def none_left(name: str, skipped: int) -> DataError:
    """The error for files in which every pair has a blank side."""
    return DataError(f"{name}: no pair has text on both sides ({skipped} lines read)")


def split_dev(corpus: Corpus, *, size: int, seed: int) -> tuple[Corpus, Corpus]:
    """Split off at most `size` pairs, and at most a tenth (but one), as a dev set: returns (train, dev).

    Source strings are drawn, not pairs: all pairs of a source (a word's several pronunciations) go the same way, so no
    source of dev stands in train. A target may, as homophones do. Both keep the order of the file. A source with more
    pairs than are still wanted is passed over; where every source has too many, the one with fewest is dev.
    Raises DataError if all pairs have the same source.
    """
    drawn = drawn_for_dev(source_keys(corpus.sources), corpus.name, size=size, seed=seed)
    held_out = set(drawn.tolist())
    rest = [index for index in range(len(corpus)) if index not in held_out]
    dev = _select(corpus, drawn.tolist(), [], f"{corpus.name} (dev)")
    return _select(corpus, rest, corpus.skipped, corpus.name), dev


def source_keys(sources: Iterable[str]) -> np.ndarray:
    """A number of 64 bits for each source, equal where sources are: 8 bytes a pair, however long the texts."""
    return np.fromiter(map(hash, sources), dtype=np.int64)


def drawn_for_dev(keys: np.ndarray, name: str, *, size: int, seed: int) -> np.ndarray:
    """The pairs that `split_dev` takes for dev, in order, by the keys `[N]` of their sources; raises DataError."""
    order = np.argsort(keys, kind="stable")
    starts = np.flatnonzero(np.append(True, np.diff(keys[order]) != 0))  # in that order, of pairs with one source
    if len(starts) < 2:
        raise DataError(f"{name}: one distinct source is too few to split off a dev set; give dev_src and dev_tgt")
    ends = np.append(starts[1:], len(keys))
    begins = np.argsort(order[starts])  # the groups in the order in which they begin
    wanted, drawn = min(size, max(1, len(keys) // 10)), list[int]()
    for group in begins[np.random.default_rng(seed).permutation(len(begins))]:
        if ends[group] - starts[group] <= wanted:
            drawn.append(group)
            wanted -= int(ends[group] - starts[group])
        if not wanted:
            break
    drawn = drawn or [begins[(ends - starts)[begins].argmin()]]
    return np.sort(np.concatenate([order[starts[group] : ends[group]] for group in drawn]))


def select(corpus: Corpus, indices: Sequence[int]) -> Corpus:
    """Some pairs of a corpus, in the order of `indices`; all of them are the corpus itself."""
    return corpus if len(indices) == len(corpus) else _select(corpus, list(indices), corpus.skipped, corpus.name)


def _select(corpus: Corpus, indices: list[int], skipped: list[int], name: str) -> Corpus:
    columns = [[column[i] for i in indices] for column in (corpus.sources, corpus.targets)]
    references = [corpus.references[i] for i in indices if corpus.references]
    lines = [corpus.lines[i] for i in indices]
    return Corpus(columns[0], columns[1], lines, list(skipped), name, references, corpus.first)
