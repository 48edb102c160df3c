"""Everything that is measured of mirada: `make bench`, or `python -m benchmarks [--tokenised DIR] [--out DIR]`.

Each part is a process of its own, one after the other: training of every workload, models to decode with, decoding in
batches and one by one, start-up, and how cost grows. Rows go to OUT/mirada.jsonl, the report to OUT/report.md. Give the
machine nothing else to do: a program with two threads waits for both at every step.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from benchmarks.workloads import WORKLOADS

PARTS = ("train", "decode", "latency", "startup", "scaling")
DECODED = ("T2", "T3")
# As a user has it; all threads at one batch instead of a batch each; and with 8-bit products where there are any.
SEARCHES: dict[str, list[list[str]]] = {
    "decode": [[], ["--workers", "1"], ["--precision", "int8"]],
    "latency": [["--single"], ["--single", "--precision", "int8"]],
}


class Step(NamedTuple):
    """A module of this folder and what it is told."""

    module: str
    arguments: list[str]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run every step; returns the first exit code that is not 0."""
    given = read(arguments)
    todo = list(steps(given))
    for number, step in enumerate(todo, start=1):
        print(f"[{number}/{len(todo)}] {step.module} {' '.join(step.arguments)}", file=sys.stderr, flush=True)
        if code := run(step):
            print(f"{step.module} ended with exit code {code}; nothing after it was measured", file=sys.stderr)
            return code
    return _report(given)


def run(step: Step) -> int:
    """One step in a process of its own, so that its peak of memory and its threads are its own."""
    command = [sys.executable, "-m", f"benchmarks.{step.module}", *step.arguments]
    quiet = {"KINETO_LOG_LEVEL": "99"}  # torch's profiler speaks on standard error
    return subprocess.run(command, check=False, env=quiet | os.environ).returncode


def read(arguments: Sequence[str] | None) -> argparse.Namespace:
    """The options of the command line."""
    parser = argparse.ArgumentParser("python -m benchmarks", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--tokenised", metavar="DIR", help="tokenised files [made from the embedded corpus]")
    parser.add_argument("--out", type=Path, default=Path("bench-results"), metavar="DIR", help="[%(default)s]")
    parser.add_argument("--models", type=Path, metavar="DIR", help="models of fit, made where missing [OUT/models]")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS, help="[all]")
    parser.add_argument("--threads", help="threads of torch, except in scaling [its own choice]")
    parser.add_argument("--quick", action="store_true", help="tiny sizes, to see that everything runs")
    return parser.parse_args(arguments)


def steps(given: argparse.Namespace) -> Iterator[Step]:
    """What is to be done, in order."""
    quick = ["--quick"] if given.quick else []
    tokenised = ["--tokenised", given.tokenised] if given.tokenised else []
    threads = ["--threads", given.threads] if given.threads else []
    out = ["--out", str(given.out)]
    models = {workload: str((given.models or given.out / "models") / workload) for workload in DECODED}
    if "train" in given.only:
        yield from (Step("train", [workload, *tokenised, *threads, *out, *quick]) for workload in WORKLOADS)
    if {"decode", "latency", "startup"} & set(given.only):
        yield from (Step("fit", [workload, model, *tokenised, *threads, *quick]) for workload, model in models.items())
    for part, searches in SEARCHES.items():
        for how in searches if part in given.only else []:
            yield from (Step("decode", [model, *tokenised, *threads, *out, *how, *quick]) for model in models.values())
    if "startup" in given.only:
        yield from (Step("startup", [model, *out, *quick]) for model in models.values())
    if "scaling" in given.only:
        yield Step("scaling", [*out, *quick])


def _report(given: argparse.Namespace) -> int:
    path = given.out / "report.md"
    path.unlink(missing_ok=True)
    quick = ["--quick"] if given.quick else []
    code = run(Step("report", [str(given.out), "--into", str(path), *quick]))
    print(f"rows in {given.out}, report in {path}", file=sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(main())
