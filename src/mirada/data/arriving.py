"""Lines as they arrive: what a pipe or a terminal has given so far is handed on at once.

The line contract is that of `mirada.data.lines`. What is read together is what one read gives: all that is there,
up to BLOCK bytes, and it waits only where there is no whole line yet. So someone who types sees an answer after every
line, and a file or a busy pipe still fills whole batches.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import BinaryIO, cast

from mirada.data.lines import BOM, LONGEST_LINE, UNREADABLE, decode_line, too_long, unreadable
from mirada.errors import DataError

BLOCK = 1 << 18  # bytes asked for at once; a pipe holds fewer


def line_blocks(stream: BinaryIO, name: str) -> Iterator[list[str]]:
    """Yield the lines of one read together, at least one; raises DataError with `name:line`.

    What stands before a line that cannot be decoded is yielded first.
    """
    number = 0
    for block in _raw_blocks(stream, name):
        lines: list[str] = []
        try:
            for raw in block:
                number += 1
                lines.append(decode_line(raw, name, number))
        except DataError:
            if lines:
                yield lines
            raise
        yield lines


def _raw_blocks(stream: BinaryIO, name: str) -> Iterator[list[bytes]]:
    held: list[bytes] = []  # the beginning of a line whose end has not come yet
    size = before = 0  # bytes of that; lines so far
    while data := _read(stream, name):
        *whole, rest = data.split(b"\n")
        if whole:
            whole[0] = b"".join((*held, whole[0]))
            held, size = [], 0
            yield _plain(whole, before, name)
            before += len(whole)
        held.append(rest)
        size += len(rest)
        if size > LONGEST_LINE:
            raise too_long(name, before + 1)
    last = b"".join(held)
    if last.removeprefix(BOM if before == 0 else b""):
        yield _plain([last], before, name)


def _plain(lines: list[bytes], before: int, name: str) -> list[bytes]:
    """Lines without byte order mark and carriage return; none is too long."""
    for number, line in enumerate(lines, start=before + 1):
        if len(line) > LONGEST_LINE:
            raise too_long(name, number)
    if before == 0:
        lines = [lines[0].removeprefix(BOM), *lines[1:]]
    return [line.removesuffix(b"\r") for line in lines]


def _read(stream: BinaryIO, name: str) -> bytes:
    try:
        return cast(io.BufferedReader, stream).read1(BLOCK)
    except UNREADABLE as error:
        raise unreadable(name, error) from None
