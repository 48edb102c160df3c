"""Texts gathered one by one: in memory while they are few, in Arrow files when they are many."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from importlib.util import find_spec
from itertools import compress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import overload

import numpy as np

from mirada.data.shards import MappedTexts, Shards, write_texts

HELD = 1 << 25  # characters in memory


class Spool:
    """Texts that are added, and then a sequence of them; its files are gone when the stack ends."""

    def __init__(self, stack: ExitStack):
        self._stack = stack
        self._held: list[str] = []
        self._characters = 0
        self._folder: Path | None = None
        self._paths: list[Path] = []
        self._counts: list[int] = []

    def add(self, text: str) -> None:
        """Add a text."""
        self._held.append(text)
        self._characters += len(text)
        if self._characters > HELD and find_spec("pyarrow"):
            self._write()

    def _write(self) -> None:
        if self._folder is None:
            made = TemporaryDirectory(prefix="mirada-", ignore_cleanup_errors=True)
            self._folder = Path(self._stack.enter_context(made))
        path = self._folder / f"{len(self._paths):05}.arrow"
        write_texts(path, {"text": self._held})
        self._paths.append(path)
        self._counts.append(len(self._held))
        self._held, self._characters = [], 0

    def texts(self) -> Sequence[str]:
        """All that were added."""
        if not self._paths:
            return self._held
        if self._held:
            self._write()
        return MappedTexts(Shards(self._paths, self._counts, ("text",)), "text")


class Chosen(Sequence[str]):
    """Some of many texts, by their places in order, `[N]`."""

    def __init__(self, texts: Sequence[str], rows: np.ndarray):
        self._texts, self._rows = texts, rows

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[str]:
        chosen = np.zeros(len(self._texts), dtype=bool)
        chosen[self._rows] = True
        return compress(self._texts, chosen)

    @overload
    def __getitem__(self, index: int) -> str: ...

    @overload
    def __getitem__(self, index: slice) -> list[str]: ...

    def __getitem__(self, index: int | slice) -> str | list[str]:
        if isinstance(index, slice):
            return [self._texts[row] for row in self._rows[index].tolist()]
        return self._texts[int(self._rows[index])]
