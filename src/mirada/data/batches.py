"""Batches of similar length, in an order that is a pure function of the lengths, the seed and the epoch.

So a training that stops anywhere can go on at exactly the same place.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from mirada.data.encoded import Encoded, pair_lengths
from mirada.data.vocabulary import BOS, EOS, PAD

__all__ = ["Encoded", "pair_lengths"]  # besides all that is defined here: they live where no torch is needed

WIDE = 256  # padded tokens of the longer side that a batch of sentences has room for, a sentence on average
BUCKET = 500  # batches whose sentences are shuffled together, then sorted by length
BLOCK = 1 << 16  # pairs that lie together in their files, and are read in one window
WINDOW = 16 * BLOCK  # pairs that are shuffled together


class Batch(NamedTuple):
    """What one update reads. Decoder input is <s> y_1 … y_n, what it must say is y_1 … y_n </s>."""

    source: Tensor  # [B, S]; [B, M, S] where the M models of an ensemble read a source in other tokens
    lengths: Tensor  # [B] or [B, M]
    target_in: Tensor  # [B, T]
    target_out: Tensor  # [B, T]
    tokens: int  # real target tokens, </s> included
    copies: Tensor | None = None  # [B, S]


class BatchSize(NamedTuple):
    """How large a batch is, in sentences (fewer where they are long) or in padded tokens of the longer side."""

    size: int
    by_tokens: bool


def plan(lengths: np.ndarray, size: BatchSize, *, seed: int, epoch: int, together: int = 1) -> list[np.ndarray]:
    """Batches of one epoch, as indices: lengths `[N, 2]` of source and target with their end tokens.

    Pairs are shuffled, sorted by length inside large buckets (so that padding stays near 5 %), cut, and the batches
    shuffled again. Pairs of one target length are sorted by source length, up and down in turn: where a batch reaches
    from one target length into the next, its sources are all short or all long. The `together` batches
    that one update reads are neighbours in length: they cost the same wherever they are computed.

    More than WINDOW pairs go window by window, each of blocks of neighbours drawn from everywhere: of files on disk
    only a window's blocks are read at a time.
    """
    rng = np.random.default_rng((seed, epoch))
    per_batch = max(1, size.size // max(1, int(lengths.max(1).mean()))) if size.by_tokens else size.size
    batches: list[np.ndarray] = []
    rest: list[np.ndarray] = []  # of each window what makes no whole update
    for window in _windows(len(lengths), rng):
        cuts = _cut_window(lengths, window, size, per_batch)
        whole = len(cuts) // together
        groups = [cuts[i * together : (i + 1) * together] for i in rng.permutation(whole)]
        batches += [batch for group in groups for batch in group]
        rest += cuts[whole * together :]
    return batches + rest


def _windows(count: int, rng: np.random.Generator) -> Iterator[np.ndarray]:
    """All indices below `count`, shuffled: in one window, or in windows of blocks that lie anywhere."""
    if count <= WINDOW:
        yield rng.permutation(count)
        return
    blocks = rng.permutation(-(-count // BLOCK)).tolist()
    each = WINDOW // BLOCK
    for i in range(0, len(blocks), each):
        spans = [np.arange(n * BLOCK, min((n + 1) * BLOCK, count), dtype=np.int32) for n in blocks[i : i + each]]
        yield rng.permutation(np.concatenate(spans))


def _cut_window(lengths: np.ndarray, order: np.ndarray, size: BatchSize, per_batch: int) -> list[np.ndarray]:
    """The batches of shuffled indices: buckets sorted by length, and cut."""
    batches: list[np.ndarray] = []
    for start in range(0, len(order), BUCKET * per_batch):
        bucket = order[start : start + BUCKET * per_batch]
        sources, targets = lengths[bucket].T
        bucket = bucket[np.lexsort((np.where(targets % 2, sources, -sources), targets))]
        batches += cut(lengths[bucket], bucket, size)
    return batches


def cut(lengths: np.ndarray, indices: np.ndarray, size: BatchSize) -> list[np.ndarray]:
    """Cut sorted indices into batches; by tokens, rows × longest side stays within the size (one pair at least).

    By sentences it stays within WIDE tokens a sentence, so that memory is bounded where a few pairs are very long.
    """
    rows, tokens = (len(indices), size.size) if size.by_tokens else (size.size, WIDE * size.size)
    if len(indices) and rows * int(lengths.max()) <= tokens:
        return [indices[i : i + rows] for i in range(0, len(indices), rows)]
    batches, start, longest = [], 0, 0
    for i, width in enumerate(lengths.max(1)):
        longest = max(longest, int(width))
        if i > start and (i - start == rows or longest * (i - start + 1) > tokens):
            batches.append(indices[start:i])
            start, longest = i, int(width)
    return [*batches, indices[start:]] if start < len(indices) else batches


def collate(pairs: Encoded, indices: Sequence[int] | np.ndarray, device: torch.device) -> Batch:
    """Pad the chosen pairs into one batch on `device`."""
    sources = [pairs.sources[i] for i in indices]
    others = [pairs.others[i] for i in indices] if pairs.others else []
    targets = [pairs.targets[i] for i in indices]
    source, lengths = pad_sources(sources, others, device)
    target_in, _ = pad(targets, device, first=BOS)
    target_out, _ = pad(targets, device, last=EOS)
    copies = None if pairs.copies is None else pad([pairs.copies[i] for i in indices], device)[0]
    return Batch(source, lengths, target_in, target_out, sum(map(len, targets)) + len(targets), copies)


def pad(
    rows: Sequence[Sequence[int]], device: torch.device, *, first: int | None = None, last: int | None = None
) -> tuple[Tensor, Tensor]:
    """Rows of ids → ids `[B, width]` with <pad> at the right, and real lengths `[B]`.

    `first` and `last`: ids to set before and after each row.
    """
    before = int(first is not None)
    lengths = [before + len(row) + (last is not None) for row in rows]
    ids = np.full((len(rows), max(lengths)), PAD, dtype=np.int64)
    for i, row in enumerate(rows):
        ids[i, before : before + len(row)] = row
    if first is not None:
        ids[:, 0] = first
    if last is not None:
        ids[np.arange(len(rows)), np.array(lengths) - 1] = last
    return sent(torch.from_numpy(ids), device), sent(torch.tensor(lengths), device)


def sent(tensor: Tensor, device: torch.device) -> Tensor:
    """A tensor of the CPU's on its way to a device; a GPU takes it while it computes what it was asked for before."""
    return tensor.pin_memory().to(device, non_blocking=True) if device.type == "cuda" else tensor.to(device)


def pad_sources(
    rows: Sequence[Sequence[int]], others: Sequence[Sequence[Sequence[int]]], device: torch.device
) -> tuple[Tensor, Tensor]:
    """Sources `[B, S]` and their lengths `[B]`; with `others`, which read them in other tokens, `[B, M, S]`, `[B, M]`.

    `others` has a row a source, and each of those a row of ids for each further reader; all are empty without any.
    """
    if not any(others):
        return pad(rows, device)
    every = [row for own, more in zip(rows, others, strict=True) for row in (own, *more)]
    ids, lengths = pad(every, device)
    return ids.unflatten(0, (len(rows), -1)), lengths.unflatten(0, (len(rows), -1))
