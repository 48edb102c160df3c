"""How many lines are searched together: few at first, so that the first answers come early, then more and more."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

LOOKAHEAD = 16  # batches read together, so that similar lengths share a batch
AT_ONCE = 1 << 17  # characters read together, at most (or one line)


def growing(batch_size: int) -> Iterator[int]:
    """Lines to take at once: a batch, then twice as many each time, up to LOOKAHEAD batches."""
    count = batch_size
    while True:
        yield count
        count = min(2 * count, LOOKAHEAD * batch_size)


def chunks(blocks: Iterable[Sequence[str]], batch_size: int) -> Iterator[Sequence[str]]:
    """The lines of the blocks, as many together as are there; a large block is cut, so that memory stays constant."""
    sizes = growing(batch_size)
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
