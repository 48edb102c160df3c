"""`python -m faults` in tests/: do every fault many times and print a table of them; exit code 1 unless all survive."""

from __future__ import annotations

import argparse
import os
import platform
import random
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path

from . import again, disks, fuzzing, kills, streams, trainings
from .outcome import HEADER, Outcome, row


def main() -> int:
    """Run what is asked for; the table goes to standard output as Markdown, problems to standard error."""
    parser = argparse.ArgumentParser(prog="python -m faults", description=__doc__)
    parser.add_argument("--tries", type=int, default=20, help="tries of each fault [20]")
    parser.add_argument("--lines", type=int, default=1_000_000, help="lines of the long stream [1000000]")
    parser.add_argument("--minutes", type=float, default=10.0, help="minutes of fuzzing [10]")
    parser.add_argument("--seed", type=int, default=1, help="of the random moments [1]")
    parser.add_argument(
        "--only", metavar="PART", default="", help="one kind: killed, stopped, disk, stream, fuzzing, …"
    )
    values = parser.parse_args()
    import torch

    how = f"--tries {values.tries} --lines {values.lines} --minutes {values.minutes:g} --seed {values.seed}"
    how += f" --only {values.only}" if values.only else ""
    where = f"{os.cpu_count()} cores ({platform.machine()}), Python {platform.python_version()}"
    print(f"`python -m faults {how}` in tests/, {where}, PyTorch {torch.__version__}:\n\n{HEADER}", flush=True)
    with tempfile.TemporaryDirectory(prefix="mirada-faults-") as place:
        outcomes = []
        for outcome in outcomes_of(values, Path(place)):
            print(row(outcome), flush=True)
            print(*outcome.problems, sep="\n", end="\n" if outcome.problems else "", file=sys.stderr, flush=True)
            outcomes.append(outcome)
    if not outcomes:
        parser.error(f"no fault's name contains {values.only!r}")
    survived = all(outcome.good for outcome in outcomes)
    print(f"\n{'All survived.' if survived else 'NOT ALL SURVIVED.'}")
    return 0 if survived else 1


def outcomes_of(values: argparse.Namespace, place: Path) -> Iterator[Outcome]:
    """Do the faults one after the other."""
    rng = random.Random(values.seed)
    reference = cache(partial(trainings.reference, place, epochs=12))
    known = cache(partial(streams.known, place))
    tries, wanted = values.tries, values.only
    faults: dict[str, Callable[[], Outcome]] = {
        "killed": lambda: kills.killed(place, reference(), tries, rng),
        "crashed": lambda: kills.crashed(place, reference(), tries, rng),
        "stopped-sigterm": lambda: kills.stopped(place, reference(), tries, rng, by=signal.SIGTERM),
        "stopped-ctrl-c": lambda: kills.stopped(place, reference(), tries, rng, by=signal.SIGINT),
        "full-disk": lambda: disks.full(place, reference(), tries, rng),
        "limited-file": lambda: disks.limited(place, reference(), tries, rng),
        "two-in-one": lambda: kills.two_in_one(place, reference(), max(1, tries // 4), rng),
        "long-stream": lambda: streams.million(place, known(), values.lines, rng),
        "one-by-one": lambda: streams.one_by_one(place, known(), tries, rng),
        "left": lambda: streams.left(place, known(), tries, rng),
        "interrupted": lambda: streams.interrupted(place, known(), tries, rng),
        "again-1": lambda: again.same(place, max(2, tries // 4), 1),
        "again-2": lambda: again.same(place, max(2, tries // 4), 2),
    }
    for name, do in faults.items():
        if wanted in name:
            yield do()
    if wanted in "fuzzing":
        yield from fuzzing.all_for(60 * values.minutes, place / "fuzzing", seed=values.seed)


if __name__ == "__main__":
    sys.exit(main())
