"""Training speed of one workload: `python -m benchmarks.train T1 [--tokenised DIR] [--threads N] [--out DIR]`.

Target tokens a second through `mirada.train.loop.train`, over windows after a warm-up; the share of the matrix rate
measured between the windows; peak memory; and, in a second training, where the time goes.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any, cast

import numpy as np
import torch

from benchmarks import flops, machine, rows, workloads
from benchmarks.clock import Clock, Plan
from benchmarks.parts import Watch, watching
from benchmarks.tokenised import Tokenised, prepare
from benchmarks.workloads import WORKLOADS, Workload
from mirada.config.options import Config
from mirada.data.batches import plan
from mirada.data.vocabulary import SPECIAL_TOKENS
from mirada.train import loop
from mirada.train.progress import Monitor
from mirada.train.setup import batch_size

OUT = Path("bench-results")
QUICK = Plan(warmup=2, windows=2, updates=2)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure the workload that is named: one a process, so that its peak of memory is its own."""
    given = _read(arguments)
    if given.threads:
        torch.set_num_threads(given.threads)
    workload = workloads.smaller(WORKLOADS[given.work]) if given.quick else WORKLOADS[given.work]
    workload = workload._replace(batch_size=given.batch_size or workload.batch_size)
    schedule = QUICK if given.quick else Plan(given.warmup, given.windows, given.updates)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        tokenised = prepare(workload.task, given.tokenised, folder / "data", **(workloads.FEW if given.quick else {}))
        row = measure(workload, tokenised, folder, schedule, precision=given.precision, device=given.device)
        row |= (
            {}
            if given.no_parts or given.device != "cpu"
            else watch(workload, tokenised, folder, given.precision, quick=given.quick)
        )
    rows.write({**row, "work": given.work, "quick": given.quick, "round": given.round}, given.out)


def _read(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("work", choices=WORKLOADS)
    parser.add_argument("--tokenised", type=Path, metavar="DIR", help="tokenised files [made from the embedded corpus]")
    parser.add_argument("--out", type=Path, default=OUT, metavar="DIR", help="where the rows go [%(default)s]")
    parser.add_argument("--threads", type=int, help="threads of torch [its own choice]")
    parser.add_argument("--warmup", type=int, default=Plan().warmup, help="updates that do not count [%(default)s]")
    parser.add_argument("--windows", type=int, default=Plan().windows, help="[%(default)s]")
    parser.add_argument("--updates", type=int, default=Plan().updates, help="of a window [%(default)s]")
    parser.add_argument("--no-parts", action="store_true", help="leave out where the time goes")
    parser.add_argument("--precision", choices=("float32", "bf16"), default="float32", help="[%(default)s]")
    parser.add_argument("--device", default="cpu", help="cpu or cuda; on a GPU without where the time goes [cpu]")
    parser.add_argument("--batch-size", type=int, help="sentences [the workload's]")
    parser.add_argument("--round", type=int, help="number of the round, when systems are measured in turn")
    parser.add_argument("--quick", action="store_true", help="tiny sizes, to see that it runs")
    return parser.parse_args(arguments)


def measure(
    workload: Workload,
    tokenised: Tokenised,
    folder: Path,
    schedule: Plan,
    *,
    precision: str = "float32",
    device: str = "cpu",
) -> rows.Row:
    """Train in windows; everything that can be said about them."""
    place = workloads.Place(folder / "measured", precision, device)
    config = workloads.options(workload, tokenised, place, updates=schedule.total)
    on_cpu = device == "cpu"  # a GPU has begun the next window's first update when one ends: nothing comes between
    clock = timed(config, Clock(schedule, with_rates=on_cpu, precision=precision, device=device))
    if not on_cpu:
        clock.rates.append(machine.measure_rates(precision=precision, device=device))
    lengths = batches(config, tokenised, clock)
    shown: rows.Row = {"precision": precision, "machine": machine.facts(device)}
    shown |= {} if on_cpu else {"batch_size": workload.batch_size}
    return {**_speed(clock), **_work(config, tokenised, lengths, clock), **shown}


def timed(config: Config, clock: Clock) -> Clock:
    """Train under a clock."""
    loop.train(config, monitor=cast(Monitor, clock))
    return clock


def _speed(clock: Clock) -> rows.Row:
    speeds = [window.tokens / window.seconds for window in clock.windows]
    return {
        "kind": "train",
        "system": "mirada",
        "version": version(),
        "tokens_per_second": median(speeds),
        "windows": speeds,
        "updates": clock.plan.updates,
        "others": [window.load.others for window in clock.windows],
        "stolen": [window.load.stolen for window in clock.windows],
        "own": [window.load.own for window in clock.windows],
        "rates": clock.rate()._asdict(),
        "peak_mb": clock.peak_megabytes,
    }


def _work(config: Config, tokenised: Tokenised, lengths: list[np.ndarray], clock: Clock) -> rows.Row:
    """Operations of the windows' own batches, and their share of the matrix rate."""
    together = [(int(s), int(t)) for s, t in np.concatenate(lengths)]
    counted = flops.training(config.model, _target_entries(tokenised), together)
    rate, seconds = clock.rate(), sum(window.seconds for window in clock.windows)
    tokens = sum(target for _, target in together)
    padding = [sum(len(b) * int(b[:, i].max()) for b in lengths) / sum(pair[i] for pair in together) for i in (0, 1)]
    share = counted.total / seconds / 1e9
    return {
        "data": tokenised.name,
        "tokens_per_update": tokens / len(lengths),
        "padding": padding[1],
        "source_padding": padding[0],
        "gflop": {part: value / len(lengths) / 1e9 for part, value in counted._asdict().items()},
        "gflops": share,
        "fraction": share / rate.linear,
        "fraction_of_best": share / rate.best(),
    }


def batches(config: Config, tokenised: Tokenised, clock: Clock) -> list[np.ndarray]:
    """Lengths `[B, 2]` of the batches of the windows, by the order that training promises.

    Raises RuntimeError if their tokens are not those that training told of.
    """
    options, found, epoch = config.training, list[np.ndarray](), 0
    size = batch_size(config)
    while len(found) < len(clock.tokens):
        found += [tokenised.lengths[chosen] for chosen in plan(tokenised.lengths, size, seed=options.seed, epoch=epoch)]
        epoch += 1
    found = found[: len(clock.tokens)]
    if [int(batch[:, 1].sum()) for batch in found] != clock.tokens:
        raise RuntimeError("training read other batches than mirada.data.batches.plan names: operations are unknown")
    return found[clock.plan.warmup :]


def _target_entries(tokenised: Tokenised) -> int:
    if tokenised.entries is not None:
        return tokenised.entries
    return len(set(tokenised.files["train.target"].read_text(encoding="utf-8").split())) + len(SPECIAL_TOKENS)


def watch(
    workload: Workload, tokenised: Tokenised, folder: Path, precision: str = "float32", *, quick: bool = False
) -> rows.Row:
    """Train again, under the stopwatch and the profiler: ms an update by part, and torch's costliest operations."""
    seen = Watch(1, 2, 1) if quick else Watch(8, 15, 4)
    place = workloads.Place(folder / "watched", precision)
    config = workloads.options(workload, tokenised, place, updates=seen.total)
    with watching(seen.stopwatch):
        loop.train(config, monitor=cast(Monitor, seen))
    return {"parts": seen.parts, "operations": [operation._asdict() for operation in seen.operations]}


def version() -> str:
    """mirada's version, and the revision of its source where git knows it."""
    import subprocess
    from importlib.metadata import PackageNotFoundError
    from importlib.metadata import version as installed

    try:
        own = installed("mirada")
    except PackageNotFoundError:  # its source is read where it stands
        own = "source"
    command = ["git", "-C", str(Path(__file__).parent), "describe", "--always", "--dirty", "--exclude", "*"]
    try:
        ran: Any = subprocess.run(command, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return own
    return f"{own} ({ran.stdout.strip()})"


if __name__ == "__main__":
    main()
