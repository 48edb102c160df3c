"""What `--engine` costs and gives: `python -m benchmarks.engines [MODEL] [--engines processes ray] [--seconds 8]`.

Sentences of the demo's small world are searched by one process, then by one and by two workers of each engine, one
thread each: the seconds until every worker has given a block back (it starts and loads the model), the milliseconds
that a block costs beside its search (of one empty line, one after the other), and lines a second.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from mirada.scaling.engine import EngineChoice, workplace
from mirada.scaling.searching import LineBlock, SearchJob, make_search, search_blocks

MODEL = Path(__file__).parent.parent / "docs/models/bahdanau"
EMPTY_BLOCKS = 100


class EngineRow(NamedTuple):
    """What was measured of an engine with so many workers."""

    engine: str
    workers: int
    first: float  # seconds
    block: float  # milliseconds
    speed: float  # lines a second


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path, nargs="?", default=MODEL, help="model folder [docs/models/bahdanau]")
    parser.add_argument("--engines", nargs="+", choices=("processes", "ray"), default=["processes", "ray"])
    parser.add_argument("--seconds", type=float, default=8, help="of one process's search, about [%(default)s]")
    given = parser.parse_args(arguments)
    os.environ["OMP_NUM_THREADS"] = "1"  # before torch is loaded

    from mirada.translator import load

    job = SearchJob((given.model.absolute(),), load(given.model, device="cpu").config.search, device="cpu")
    lines = sentences()
    begun = measure(EngineChoice(), job, lines[:256])
    lines = lines[: max(256, min(len(lines), round(begun.speed * given.seconds)))]
    found = [measure(EngineChoice(), job, lines)]
    for engine in given.engines:
        for workers in (1, 2):
            print(f"{engine}, {workers}", file=sys.stderr, flush=True)
            found.append(measure(EngineChoice(engine, workers, gpus=False), job, lines))
    print("\n".join(table(found, len(lines))))


def sentences(pairs: int = 12_000) -> list[str]:
    """Different ones, so that none is searched once for several."""
    from mirada.corpora.village import village_splits

    return list(dict.fromkeys(pair.source for pair in village_splits(pairs, seed=1, held_out=8, max_words=20).train))


def measure(choice: EngineChoice, job: SearchJob, lines: list[str]) -> EngineRow:
    """Start the workers, have empty blocks done, then all lines."""
    begun = time.perf_counter()
    with workplace(choice, partial(make_search, job), _note) as place:
        workers = choice.workers or 1
        _all(place.submit(LineBlock([""], 0, None)) for _ in range(workers))
        first = time.perf_counter() - begun
        spent = []
        for _ in range(EMPTY_BLOCKS):
            begun = time.perf_counter()
            place.submit(LineBlock([""], 0, None)).result()
            spent.append(time.perf_counter() - begun)
        begun = time.perf_counter()
        count = sum(len(rows) for rows in search_blocks(place, [lines], batch_size=64, warn=_note))
        return EngineRow(choice.kind, workers, first, 1000 * median(spent), count / (time.perf_counter() - begun))


def _all(futures: Iterable[Any]) -> None:
    for future in list(futures):
        future.result()


def _note(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def table(found: Sequence[EngineRow], lines: int) -> list[str]:
    """Markdown; the last column says how many times one worker's speed it is."""
    rows = [
        f"{lines:,} lines, blocks of 256",
        "",
        "| engine | workers | first block, s | a block, ms | lines a second | × |",
    ]
    rows.append("| --- | ---: | ---: | ---: | ---: | ---: |")
    alone = {row.engine: row.speed for row in found if row.workers == 1}
    for row in found:
        ratio = f"{row.speed / alone[row.engine]:.2f}"
        rows.append(
            f"| {row.engine} | {row.workers} | {row.first:.1f} | {row.block:.2f} | {row.speed:,.0f} | {ratio} |"
        )
    return rows


if __name__ == "__main__":
    main()
