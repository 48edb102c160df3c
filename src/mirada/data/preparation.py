"""A corpus of any size prepared for training in files (prepared.py), at constant memory, in several processes.

The pairs are read once into files of texts (twice where dev is split off); the tokenisers are learned from these, and
each file of texts becomes one of ids, in a process of its own.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack
from itertools import accumulate, chain
from multiprocessing import get_context, parent_process
from pathlib import Path
from typing import Any

import numpy as np

from mirada.config.data import DataConfig
from mirada.data import preparing
from mirada.data.corpus import chosen_files, read_dev, required_files, rows_of
from mirada.data.fitting import fit
from mirada.data.pairs import Corpus, drawn_for_dev, none_left, source_keys
from mirada.data.parts import load_source
from mirada.data.prepared import (
    TOKENIZERS,
    Manifest,
    ShardSize,
    ids_path,
    mapped_corpus,
    read_inputs,
    texts_path,
    write_dev,
    write_manifest,
)
from mirada.data.rows import Row, is_blank
from mirada.data.shards import LONG_SHARD, SHARD, SIDES, MappedTexts, Ragged, Shards, write_ids, write_texts
from mirada.data.telling import Tell
from mirada.data.tokenizer import Tokenizer
from mirada.errors import ConfigError, MiradaError
from mirada.files import new_folder

OFTEN = 10_000  # pairs between words of progress


def prepare_corpus(data: DataConfig, out: Path, *, seed: int, workers: int, tell: Tell) -> None:
    """Prepare the pairs that the options name, in a folder that is whole or not there.

    `seed` splits off dev where there is none, as training does. Raises ConfigError, DataError, or MiradaError if
    something stands at `out` already or it cannot be written.
    """
    files, dev_files = required_files(data, "training"), chosen_files(data, dev=True)
    if files.kind == "prepared":
        raise ConfigError(f"prepared {data.prepared}: is prepared already; name files of pairs")
    if data.bpe_dropout:
        raise ConfigError("bpe_dropout cuts the texts anew in every epoch, so they cannot be cut before; leave it out")
    inputs = read_inputs((*files.paths, *(dev_files.paths if dev_files else ())))
    with new_folder(out) as folder:
        corpora, sizes = write_corpora(data, folder, seed=seed, tell=tell)
        train = corpora[0]
        tell("choosing and learning the tokens", len(train), len(train))
        choices = preparing.choose(data, corpora)
        options = preparing.resolve(data, choices)
        for tokenizer, name in zip(preparing.learn_tokenizers(options, train), TOKENIZERS, strict=True):
            tokenizer.save(folder / name)
        shards = list(_encoded(folder, options, sizes, workers=workers, tell=tell))
        kept, cut = sum(shard.kept for shard in shards), sum(shard.cut for shard in shards)
        fits = preparing.too_long(options, train, (kept, cut), "training")
        write_dev(folder, corpora[1])
        manifest = Manifest(
            fingerprint=preparing.fingerprint(corpora),
            given=data,
            options=options,
            seed=seed,
            inputs=inputs,
            name=train.name,
            skipped=list(train.skipped),
            first=train.first,
            notes=[*choices.notes(), preparing.count_note(train, "training"), *fits],
            shards=shards,
        )
        write_manifest(folder, manifest)


def write_corpora(data: DataConfig, folder: Path, *, seed: int, tell: Tell) -> tuple[preparing.Corpora, list[int]]:
    """Write the training pairs as files of texts; returns what `load_pairs` would, and how many pairs a file has."""
    files, dev_files = required_files(data, "training"), chosen_files(data, dev=True)
    drawn: set[int] = set()
    if dev_files is None:
        keys = source_keys(row.source for _, row in _told(rows_of(files, data), "reading", tell) if _whole(row))
        drawn = set(drawn_for_dev(keys, files.name, size=data.dev_size, seed=seed).tolist()) if len(keys) else set()
    writer, dev, skipped, first, kept = _TextWriter(folder), list[tuple[int, Row]](), list[int](), 1, 0
    for number, row in _told(rows_of(files, data), "writing texts", tell):
        if not kept and not skipped:
            first = number
        if not _whole(row):
            skipped.append(number)
            continue
        if kept in drawn:
            dev.append((number, row))
        else:
            writer.add(row)
        kept += 1
    if not kept:
        raise none_left(files.name, len(skipped))
    sizes = writer.close()
    train = mapped_corpus(folder, sizes, files.name, skipped, first)
    return (train, read_dev(dev_files, data) if dev_files else _dev(dev, f"{files.name} (dev)", first)), sizes


def _whole(row: Row) -> bool:
    return not (is_blank(row.source) or is_blank(row.target))


def _dev(rows: list[tuple[int, Row]], name: str, first: int) -> Corpus:
    sides = [row.source for _, row in rows], [row.target for _, row in rows]
    references = [row.references for _, row in rows]
    return Corpus(*sides, [number for number, _ in rows], [], name, references if any(references) else [], first)


def _told(rows: Iterable[tuple[int, Row]], what: str, tell: Tell) -> Iterator[tuple[int, Row]]:
    """The same rows, with word of how many there are."""
    for number, row in rows:
        if number % OFTEN == 0:
            tell(what, number, None)
        yield number, row


class _TextWriter:
    """Writes files of texts, each as soon as it is full."""

    def __init__(self, folder: Path):
        self._folder = folder
        self._sides: tuple[list[str], list[str]] = ([], [])
        self._characters = 0
        self._pairs: list[int] = []

    def add(self, row: Row) -> None:
        self._sides[0].append(row.source)
        self._sides[1].append(row.target)
        self._characters += len(row.source) + len(row.target)
        if len(self._sides[0]) == SHARD or self._characters >= LONG_SHARD:
            self._flush()

    def _flush(self) -> None:
        write_texts(texts_path(self._folder, len(self._pairs)), dict(zip(SIDES, self._sides, strict=True)))
        self._pairs.append(len(self._sides[0]))
        self._sides, self._characters = ([], []), 0

    def close(self) -> list[int]:
        """Write what is left; returns how many pairs each file has."""
        if self._sides[0]:
            self._flush()
        return self._pairs


def _encoded(folder: Path, data: DataConfig, pairs: list[int], *, workers: int, tell: Tell) -> Iterator[ShardSize]:
    """Make the files of ids, in several processes where more than one is wanted; what each holds, in order."""
    count, done = len(pairs), 0
    work = [folder] * count, [data] * count, pairs, range(count)
    with ExitStack() as stack:
        found: Iterable[ShardSize] = map(encode_shard, *work)
        if min(workers, count) > 1:
            context = get_context("spawn")  # threads of this process, torch's for one, survive no fork
            executor = ProcessPoolExecutor(min(workers, count), context, initializer=_begin_worker)
            stack.callback(executor.shutdown, cancel_futures=True)
            found = executor.map(encode_shard, *work)
        try:
            for shard in found:
                done += shard.pairs
                tell("cutting into tokens", done, sum(pairs))
                yield shard
        except BrokenProcessPool:
            said = "a process that cuts texts into tokens has ended (too little memory?); lower --workers"
            raise MiradaError(said) from None


def _begin_worker() -> None:
    """One core a process; and an end with the process that started this one, which may be killed."""
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    parent = parent_process()
    if parent is not None:
        threading.Thread(target=_end_after, args=(parent,), daemon=True).start()


def _end_after(process: Any) -> None:
    process.join()
    os._exit(1)


def encode_shard(folder: Path, data: DataConfig, pairs: int, number: int) -> ShardSize:
    """Make a file of ids of one of texts; returns what both hold."""
    source = load_source(folder / TOKENIZERS[0], data.source_tokenizer or "")
    target = Tokenizer.load(folder / TOKENIZERS[1], data.target_tokenizer or "")
    shards = Shards([texts_path(folder, number)], [pairs])
    sources, targets = (MappedTexts(shards, side) for side in SIDES)
    texts = Corpus(sources, targets, range(pairs), [], "")
    rows = [_Rows(len(source)), _Rows(len(target))]
    cut = 0
    for own in preparing.parts(texts):
        found = fit(preparing.ids(own, (source, target)), data.max_length, data.truncate_source)
        cut += found.cut
        for side, encoded in zip(rows, (found.pairs.sources, found.pairs.targets), strict=True):
            side.add(encoded)
    write_ids(ids_path(folder, number), [side.ragged() for side in rows])
    sizes = [path(folder, number).stat().st_size for path in (texts_path, ids_path)]
    return ShardSize(pairs=pairs, kept=len(rows[0]), cut=cut, text_bytes=sizes[0], id_bytes=sizes[1])


class _Rows:
    """Rows of ids of one vocabulary, gathered in 2 bytes an id where that is enough."""

    def __init__(self, vocabulary: int):
        self._type = np.uint16 if vocabulary <= 1 << 16 else np.int32
        self._ends: list[int] = [0]
        self._values: list[np.ndarray] = []

    def __len__(self) -> int:
        return len(self._ends) - 1

    def add(self, rows: Sequence[Sequence[int]]) -> None:
        self._ends += [self._ends[-1] + end for end in accumulate(map(len, rows))]
        self._values.append(np.fromiter(chain.from_iterable(rows), self._type))

    def ragged(self) -> Ragged:
        return Ragged(np.array(self._ends, dtype=np.int32), np.concatenate(self._values))


def cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
