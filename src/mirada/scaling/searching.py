"""Lines searched by workers: blocks of lines out, their outputs back, in order and at constant memory."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

from mirada.config.options import SearchConfig
from mirada.scaling.pool import Do, Workplace, in_order
from mirada.search.chunks import searched
from mirada.texts import Translation

BATCHES = 4  # in a block: similar lengths share a batch, and no worker waits long for the last block
AUTOMATIC = 512  # lines a batch is reckoned with where its size is chosen by the search


class SearchJob(NamedTuple):
    """How a worker searches: `mirada.loading.load`'s arguments, and those of a translator's `search`."""

    models: tuple[Path, ...]
    options: SearchConfig
    device: str = "auto"
    precision: Literal["float32", "int8"] = "float32"
    ensemble_mode: Literal["linear", "log_linear"] = "linear"
    batch_size: int | None = 64
    with_attention: bool = False


class LineBlock(NamedTuple):
    """Lines that are searched together; `first` is the number of the first one, from 0."""

    lines: Sequence[str]
    first: int
    prefixes: list[str] | None

    def __str__(self) -> str:
        """For messages."""
        return f"lines {self.first + 1} to {self.first + len(self.lines)}"


class FoundBlock(NamedTuple):
    """The outputs of each line of a block, and what a user should know about them."""

    outputs: list[list[Translation]]
    warnings: list[str]


def make_search(job: SearchJob) -> Do:
    """Load the model once; returns what searches a block."""
    from mirada.loading import load

    translator = load(job.models, device=job.device, precision=job.precision, ensemble_mode=job.ensemble_mode)
    said: list[str] = []
    translator.warn = said.append
    getattr(translator, "fast_model", None)  # made now, so that what there is to say about it is said once
    about_model = said.copy()

    def search(block: LineBlock) -> FoundBlock:
        said.clear()
        outputs = translator.search(
            block.lines,
            options=job.options,
            prefixes=block.prefixes,
            batch_size=job.batch_size,
            with_attention=job.with_attention,
            first=block.first,
        )
        return FoundBlock(outputs, said.copy() if block.first else [*about_model, *said])

    return search


def search_blocks(
    place: Workplace,
    blocks: Iterable[Sequence[str]],
    *,
    batch_size: int | None,
    prefixes: Iterator[str] | None = None,
    warn: Callable[[str], Any],
) -> Iterator[list[list[Translation]]]:
    """Outputs of blocks of lines, as a translator's `stream_blocks` gives them; warnings as they come, in order."""
    sizes = itertools.repeat(BATCHES * (batch_size or AUTOMATIC))

    def block(lines: Sequence[str], *, first: int, prefixes: list[str] | None) -> LineBlock:
        return LineBlock(lines, first, prefixes)

    for _, done in in_order(place, searched(block, blocks, sizes, prefixes)):
        found: FoundBlock = done.result()
        for line in found.warnings:
            warn(line)
        yield found.outputs
