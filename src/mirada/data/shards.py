"""Pairs as Arrow files of at most SHARD pairs each, memory-mapped: what is not being read takes no memory.

Two kinds: texts (columns `source` and `target` of strings) and ids (the same columns of lists of numbers, as `Encoded`
has them). Mapped pages count as resident memory, so they are given back when there are more than MAPPED bytes of them.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any, NamedTuple, overload

import numpy as np

from mirada.errors import ConfigError, DataError

SHARD = 1 << 17  # pairs
LONG_SHARD = 1 << 26  # characters from which a shard is full with fewer pairs
MAPPED = 1 << 28
TOGETHER = 1 << 13  # texts taken out of a file at once
SIDES = ("source", "target")


def arrow() -> Any:
    """The library pyarrow; raises ConfigError if it is not installed."""
    try:
        import pyarrow
        import pyarrow.ipc
    except ImportError:
        raise ConfigError("Arrow and Parquet files need pyarrow: pip install 'mirada[arrow]'") from None
    return pyarrow


class Ragged(NamedTuple):
    """Rows of different lengths as an Arrow file has them: row i is `values[offsets[i]:offsets[i + 1]]`."""

    offsets: np.ndarray
    values: np.ndarray


class Shards:
    """Files of one kind, one after the other, with the number of pairs in each; opened when they are read."""

    def __init__(self, paths: Sequence[Path], pairs: Sequence[int], columns: Sequence[str] = SIDES):
        self.paths, self.pairs, self.columns = tuple(paths), tuple(pairs), list(columns)
        self._starts = [0, *accumulate(pairs)]
        self._open: dict[int, Any] = {}
        self._rows: dict[tuple[int, str], Ragged] = {}  # of open files: to ask for them takes longer than to read them
        self._mapped = 0

    def __len__(self) -> int:
        return self._starts[-1]

    def batch(self, number: int) -> Any:
        """The record batch of a file."""
        if number not in self._open:
            if self._mapped > MAPPED:
                self.release()
            batch, size = _open_shard(self.paths[number])
            if batch is None or batch.num_rows != self.pairs[number] or batch.schema.names != self.columns:
                said = f"does not hold the {self.pairs[number]:,} pairs that it should; prepare the corpus again"
                raise DataError(f"{self.paths[number]}: {said}")
            self._open[number] = batch
            self._mapped += size
        return self._open[number]

    def rows(self, number: int, side: str) -> Ragged:
        """A column of ids of a file."""
        if (number, side) not in self._rows:
            column = self.batch(number).column(side)
            self._rows[number, side] = Ragged(column.offsets.to_numpy(), column.values.to_numpy())
        return self._rows[number, side]

    def release(self) -> None:
        """Give back all that is mapped and read by nobody."""
        self._open.clear()
        self._rows.clear()
        self._mapped = 0

    def place(self, index: int) -> tuple[int, int]:
        """The file of a pair and its row there; raises IndexError."""
        if not 0 <= index < len(self):
            raise IndexError(index)
        number = bisect_right(self._starts, index) - 1
        return number, index - self._starts[number]


def _open_shard(path: Path) -> tuple[Any, int]:
    """The one record batch of a file, and the bytes of it."""
    pyarrow = arrow()
    try:
        with pyarrow.memory_map(str(path)) as mapped:
            found = pyarrow.ipc.open_file(mapped)
            batch = found.get_batch(0) if found.num_record_batches == 1 else None
            size = mapped.size()
    except (OSError, pyarrow.ArrowException) as error:
        raise DataError(f"{path}: cannot be read ({first_line(error)}); prepare the corpus again") from None
    return batch, size


def first_line(error: BaseException) -> str:
    """What a library has to say, in a line."""
    return (str(error).splitlines() or [type(error).__name__])[0]


class MappedTexts(Sequence[str]):
    """One side of a corpus, out of files of texts."""

    def __init__(self, shards: Shards, side: str):
        self._shards, self._side = shards, side

    def __len__(self) -> int:
        return len(self._shards)

    def __iter__(self) -> Iterator[str]:
        for number in range(len(self._shards.paths)):
            yield from self._texts(number)
            self._shards.release()

    def _texts(self, number: int) -> Iterator[str]:
        column = self._shards.batch(number).column(self._side)
        for start in range(0, len(column), TOGETHER):
            yield from column.slice(start, TOGETHER).to_pylist()

    @overload
    def __getitem__(self, index: int) -> str: ...

    @overload
    def __getitem__(self, index: slice) -> list[str]: ...

    def __getitem__(self, index: int | slice) -> str | list[str]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        number, row = self._shards.place(index)
        return str(self._shards.batch(number).column(self._side)[row].as_py())


class MappedIds(Sequence[Any]):
    """One side of encoded pairs, out of files of ids: row n is an array."""

    def __init__(self, shards: Shards, side: str):
        self._shards, self._side = shards, side

    def __len__(self) -> int:
        return len(self._shards)

    def __getitem__(self, index: Any) -> Any:
        number, row = self._shards.place(int(index))
        offsets, values = self._shards.rows(number, self._side)
        return values[offsets[row] : offsets[row + 1]]

    def lengths(self) -> np.ndarray:
        """How many ids each row has, `[N]`."""
        found = [np.diff(self._shards.rows(number, self._side).offsets) for number in range(len(self._shards.paths))]
        self._shards.release()
        return np.concatenate(found)


def write_texts(path: Path, columns: Mapping[str, Sequence[str]]) -> None:
    """Write a file of texts."""
    pyarrow = arrow()
    _write(path, {name: pyarrow.array(texts, pyarrow.string()) for name, texts in columns.items()})


def write_ids(path: Path, sides: Sequence[Ragged]) -> None:
    """Write a file of ids."""
    pyarrow = arrow()
    lists = [pyarrow.ListArray.from_arrays(*map(pyarrow.array, rows)) for rows in sides]
    _write(path, dict(zip(SIDES, lists, strict=True)))


def _write(path: Path, columns: dict[str, Any]) -> None:
    pyarrow = arrow()
    batch = pyarrow.record_batch(columns)
    with pyarrow.ipc.new_file(str(path), batch.schema) as stream:
        stream.write_batch(batch)
