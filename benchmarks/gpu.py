"""What a GPU brings, in one run of ten minutes at most: `benchmarks/gpu.sh [--out DIR]`, or `python -m benchmarks.gpu`.

First whether it is right: loss, gradients and outputs of seven systems beside the CPU's in float64, also replayed as
graphs. Then how fast: training by batch and precision, decoding by beam, and peers where they are. The most telling
comes first; what the time does not suffice for is left out and named. Rows go to OUT/*.jsonl as they are made, the
report to OUT/report.md. With --device cpu --quick all of it runs in tiny sizes, which say nothing.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from benchmarks import decode, machine, report, rows, train, workloads
from benchmarks.clock import Plan
from benchmarks.gpu_checks import SYSTEMS, check
from benchmarks.tokenised import Tokenised, prepare
from benchmarks.workloads import WORKLOADS, Place, Workload
from mirada.train import loop
from mirada.train.progress import Monitor
from mirada.translator import load

BATCHES = (512, 64, 2048)  # sentences of a batch in training
TRAINED = ("T1", "T2", "T2-nofeed", "T3", "T4")
DECODED, SEARCHED, BEAMS = ("T3", "T2"), (256, 64), (5, 1)  # models, sentences searched together
FITTED = 400  # updates of the models that decode, of 256 sentences
PEERS = {"onmt": ("T1", "T2", "T2-nofeed", "T3", "T4"), "hf": ("T3",)}
KEPT_BACK = 20  # seconds of the run for the report


class Task(NamedTuple):
    """Something that is measured, and what it is called."""

    name: str
    work: Callable[[], object]


class Given(NamedTuple):
    """Where it is measured, from what and how long."""

    out: Path
    device: str
    quick: bool
    minutes: float
    tokenised: Path | None
    peers: Path | None


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure until all is done or the time is over; returns 1 if something failed."""
    given, begun = read(arguments), time.monotonic()
    failed, left_out = list[str](), list[str]()
    with TemporaryDirectory() as folder:
        for task in tasks(given, Path(folder)):
            if time.monotonic() - begun > 60 * given.minutes - KEPT_BACK:
                left_out.append(task.name)
                continue
            try:
                task.work()
            except Exception:  # one that fails says so, and those after it are measured
                traceback.print_exc()
                failed.append(task.name)
    for what, names in (("failed", failed), ("left out for want of time", left_out)):
        if names:
            print(f"{what}: {', '.join(names)}", file=sys.stderr)
    (given.out / "report.md").unlink(missing_ok=True)
    report.main([str(given.out), "--into", str(given.out / "report.md"), *(["--quick"] if given.quick else [])])
    return 1 if failed else 0


def read(arguments: Sequence[str] | None) -> Given:
    """The options of the command line."""
    parser = argparse.ArgumentParser("python -m benchmarks.gpu", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--out", type=Path, default=Path(os.environ.get("OUT", "bench-results/gpu")), metavar="DIR")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda", help="cpu: to see that it runs")
    parser.add_argument("--quick", action="store_true", help="tiny sizes")
    parser.add_argument("--minutes", type=float, default=9.5, help="after so many nothing new begins [%(default)s]")
    parser.add_argument("--tokenised", type=Path, metavar="DIR", help="tokenised files [made from the embedded corpus]")
    parser.add_argument("--peers", type=Path, metavar="DIR", help="what peers/install.sh and peers/prepare.py made")
    return Given(**vars(parser.parse_args(arguments)))


def tasks(given: Given, folder: Path) -> Iterator[Task]:
    """Everything, the most telling first."""
    precisions = ("bf16", "float32") if given.device == "cuda" else ("float32",)
    for name, precision in product(SYSTEMS, precisions):
        yield Task(f"check {name} {precision}", partial(_check, given, name, precision))
    few: dict[str, Any] = workloads.FEW if given.quick else {}
    kinds = {workload.task for workload in WORKLOADS.values()}
    data = {kind: prepare(kind, given.tokenised, folder / kind, **few) for kind in sorted(kinds)}
    batches = (8,) if given.quick else BATCHES
    for batch in batches[:1]:
        yield from _trainings(given, data, folder, [(batch, precision) for precision in precisions])
    for name in DECODED:
        yield Task(f"decode {name}", partial(_decode, given, data["translation"], folder, name))
    yield from _peers(given, batches[0])
    yield from _trainings(given, data, folder, list(product(batches[1:], precisions)))


def _check(given: Given, name: str, precision: str) -> None:
    row = check(name, precision, given.device, wide=not given.quick)
    rows.write({**row, "quick": given.quick}, given.out)


def _trainings(
    given: Given, data: dict[str, Tokenised], folder: Path, settings: Sequence[tuple[int, str]]
) -> Iterator[Task]:
    for (batch, precision), name in product(settings, TRAINED):
        work = partial(_train, given, data, folder, (name, batch, precision))
        yield Task(f"train {name} of {batch} in {precision}", work)


def _train(given: Given, data: dict[str, Tokenised], folder: Path, setting: tuple[str, int, str]) -> None:
    name, batch, precision = setting
    workload = _sized(WORKLOADS[name], batch, quick=given.quick)
    tokenised, place = data[workload.task], folder / "-".join(map(str, setting))
    epoch = -(-len(tokenised.lengths) // batch)
    # Two epochs know nearly all shapes of batches; of small batches they are too long.
    plan = Plan(2, 2, 2) if given.quick else Plan(min(100, max(10, 2 * epoch)), 3, 20)
    row = train.measure(workload, tokenised, place, plan, precision=precision, device=given.device)
    rows.write({**row, "work": name, "batch_size": batch, "quick": given.quick}, given.out)


def _sized(workload: Workload, batch: int, *, quick: bool) -> Workload:
    return (workloads.smaller(workload) if quick else workload)._replace(batch_size=batch)


def _decode(given: Given, tokenised: Tokenised, folder: Path, name: str) -> None:
    """Train a model that ends its outputs where they should, and let it translate."""
    workload = _sized(WORKLOADS[name], 8 if given.quick else 256, quick=given.quick)
    place = Place(folder / f"{name}-model", device=given.device)
    loop.train(
        workloads.options(workload, tokenised, place, updates=8 if given.quick else FITTED), monitor=Monitor(quiet=True)
    )
    translator = load(place.folder, device=given.device)
    if given.quick:
        tokenised = tokenised._replace(test=tokenised.test[:8])
    for batch, beam in product(SEARCHED, BEAMS):
        row = decode.measure(translator, tokenised, decode.Job(beam, batch, 1 if given.quick else 2))
        rows.write({**row, "work": name, "quick": given.quick}, given.out)


def _peers(given: Given, batch: int) -> Iterator[Task]:
    """Trainings of those whose environment is there; Hugging Face's may be this one."""
    if given.peers is None:
        return
    for peer, names in PEERS.items():
        python = given.peers / "venvs" / peer / "bin" / "python"
        for name in names:
            if python.exists() or peer == "hf":
                command = [str(python) if python.exists() else sys.executable, "-m", f"benchmarks.peers.{peer}"]
                command += ["train", name, str(given.peers), "--device", given.device, "--train-batch", str(batch)]
                command += ["--warmup", "20", "--updates", "60"]
                yield Task(f"{peer} {name}", partial(subprocess.run, command, check=True))


if __name__ == "__main__":
    machine.facts()
    sys.exit(main())
