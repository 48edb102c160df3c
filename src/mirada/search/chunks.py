"""How many lines are searched together: few at first, so that the first answers come early, then more and more."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

from mirada.errors import DataError

Found = TypeVar("Found")  # for the lines of a chunk

LOOKAHEAD = 16  # batches read together, so that similar lengths share a batch
AT_ONCE = 1 << 17  # characters read together, at most (or one line)


def growing(batch_size: int) -> Iterator[int]:
    """Lines to take at once: a batch, then twice as many each time, up to LOOKAHEAD batches."""
    count = batch_size
    while True:
        yield count
        count = min(2 * count, LOOKAHEAD * batch_size)


def blocks_of(lines: Iterable[str], batch_size: int) -> Iterator[list[str]]:
    """Lines as blocks that grow."""
    source = iter(lines)
    return itertools.takewhile(bool, (list(itertools.islice(source, count)) for count in growing(batch_size)))


def searched(
    search: Callable[..., Found],
    blocks: Iterable[Sequence[str]],
    sizes: Iterator[int],
    prefixes: Iterator[str] | None,
) -> Iterator[Found]:
    """What `search` finds for the lines of the blocks, chunk by chunk, told the `first` line's number and its prefixes.

    `sizes`: lines of each chunk, at most. Raises DataError if there are prefixes, but fewer than lines.
    """
    first = 0
    for chunk in chunks(blocks, sizes):
        begins = None if prefixes is None else list(itertools.islice(prefixes, len(chunk)))
        if begins is not None and len(begins) < len(chunk):
            raise DataError(f"{first + len(begins)} prefixes, and more lines; each line needs one, or an empty one")
        yield search(chunk, first=first, prefixes=begins)
        first += len(chunk)


def chunks(blocks: Iterable[Sequence[str]], sizes: Iterator[int]) -> Iterator[Sequence[str]]:
    """The lines of the blocks, as many together as are there; a large block is cut, so that memory stays constant."""
    for block in blocks:
        start = 0
        while start < len(block):
            yield (chunk := _head(block, start, next(sizes)))
            start += len(chunk)


def _head(block: Sequence[str], start: int, count: int) -> Sequence[str]:
    """At most `count` lines of a block from `start` on, of AT_ONCE characters in all, but at least one line."""
    end, size = start + 1, len(block[start])
    while end < min(len(block), start + count) and size + len(block[end]) <= AT_ONCE:
        size += len(block[end])
        end += 1
    return block[start:end]
