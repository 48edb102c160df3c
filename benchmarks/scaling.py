"""How cost grows: `python -m benchmarks.scaling [--threads 1 2] [--out DIR]`.

One thing at a time is varied around a middle (sources and targets of 16 tokens, 64 sentences, 8,000 entries, the work's
own layers): the length of both sides, the batch, the vocabulary, the layers. Every point is a short training and a
search (beam 5) for outputs as long as the targets, on tokens drawn at random: the work does not depend on their sense.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from statistics import median
from typing import NamedTuple

import torch

from benchmarks import machine, rows, workloads
from benchmarks.clock import Clock, Plan
from benchmarks.tokenised import Lines, Tokenised, lay
from benchmarks.train import OUT, timed, version
from benchmarks.workloads import WORKLOADS, Workload
from mirada import load
from mirada.config.configfile import changed

SYSTEMS = ("T1", "T2", "T3")
AXES: dict[str, tuple[int, ...]] = {
    "length": (8, 16, 32, 64),
    "batch": (16, 32, 64, 128),
    "vocabulary": (2000, 4000, 8000, 16000),
    "layers": (1, 2, 3, 4),
}
QUICK_AXES: dict[str, tuple[int, ...]] = {"layers": (1, 2)}
PLAN = Plan(warmup=3, windows=1, updates=6)


class Point(NamedTuple):
    """What is varied."""

    length: int = 16  # tokens of a source and of a target, </s> included
    batch: int = 64
    vocabulary: int = 8000
    layers: int = 1  # of encoder and of decoder; the middle has as many as the workload


MIDDLE = Point()
QUICK_MIDDLE = Point(length=4, batch=4, vocabulary=50)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure every point with each number of threads."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workloads", nargs="+", choices=WORKLOADS, help="[T1 T2 T3; quick: T2 T3]")
    parser.add_argument("--axes", nargs="+", choices=AXES, help="[all]")
    parser.add_argument("--threads", type=int, nargs="+", help="[1 2; quick: 1]")
    parser.add_argument("--out", type=Path, default=OUT, metavar="DIR", help="where the rows go [%(default)s]")
    parser.add_argument("--quick", action="store_true", help="few tiny points, to see that it runs")
    given = parser.parse_args(arguments)
    axes = QUICK_AXES if given.quick else {axis: AXES[axis] for axis in given.axes or AXES}
    middle = QUICK_MIDDLE if given.quick else MIDDLE
    for threads in given.threads or ([1] if given.quick else [1, 2]):
        torch.set_num_threads(threads)
        for name in given.workloads or SYSTEMS[given.quick :]:
            workload = workloads.smaller(WORKLOADS[name]) if given.quick else WORKLOADS[name]
            for row in over_axes(workload, axes, middle):
                rows.write({**row, "work": name, "quick": given.quick}, given.out)


def over_axes(workload: Workload, axes: dict[str, tuple[int, ...]], middle: Point) -> Iterator[rows.Row]:
    """Rows of training and decoding at each value of each axis; a point that lies on several is measured once."""
    middle = middle._replace(layers=workload.model.get("enc_layers", 1))
    known: dict[Point, list[rows.Row]] = {}
    for axis, values in axes.items():
        for value in values:
            point = middle._replace(**{axis: value})
            if point not in known:
                known[point] = measure(workload, point)
            yield from ({**row, "axis": axis, "value": value} for row in known[point])


def measure(workload: Workload, point: Point) -> list[rows.Row]:
    """A row of training and one of decoding."""
    layers = {"enc_layers": point.layers, "dec_layers": point.layers}
    sized = workload._replace(batch_size=point.batch, model={**workload.model, **layers})
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        tokenised = lay(_random(point, point.batch * (PLAN.total + 1)), folder / "data", "drawn at random")
        config = workloads.options(sized, tokenised, workloads.Place(folder / "model"), updates=PLAN.total)
        (window,) = timed(config, Clock(PLAN, with_rates=False)).windows
        trained = _row("train", window.seconds / PLAN.updates, window.tokens / window.seconds, [window.load.others])
        return [trained, _decode(folder / "model", tokenised, point)]


def _decode(model: Path, tokenised: Tokenised, point: Point) -> rows.Row:
    """Search for outputs of the point's length: ms a batch."""
    translator = load(model, device="cpu")
    exactly = {"min_output_length": point.length, "max_output_length": point.length, "beam_size": 5}
    options = changed(translator.config.search, exactly)
    before, spent = machine.reading(), []
    for _ in range(4):
        begun = time.perf_counter()
        outputs = translator.search(tokenised.test, options=options, batch_size=point.batch)
        spent.append(time.perf_counter() - begun)
    tokens = sum(len(found[0].tokens) for found in outputs)
    load_meanwhile = machine.load_between(before, machine.reading())
    seconds = median(spent[1:])  # the first warms up
    return _row("decode", seconds, tokens / seconds, [load_meanwhile.others])


def _row(task: str, seconds: float, speed: float, others: Sequence[float | None]) -> rows.Row:
    return {
        "kind": "scaling",
        "system": "mirada",
        "version": version(),
        "task": task,
        "threads": torch.get_num_threads(),
        "ms": 1000 * seconds,
        "tokens_per_second": speed,
        "others": list(others),
        "machine": machine.facts(),
    }


def _random(point: Point, count: int) -> Lines:
    """Lines of entries drawn evenly, all of one length."""
    rng, entries = Random(1), [f"w{i}" for i in range(point.vocabulary - 4)]
    sides = [[" ".join(rng.choices(entries, k=point.length - 1)) for _ in range(count)] for _ in range(2)]
    return Lines((sides[0], sides[1]), sides[0][: point.batch], sides[1][: point.batch], entries)


if __name__ == "__main__":
    main()
