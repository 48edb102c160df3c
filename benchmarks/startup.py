"""How long mirada takes to start: `python -m benchmarks.startup MODEL`.

Wall time of whole processes, `mirada --help` and `mirada translate` of one sentence, and where the imports' share of it
goes. One start of each comes first, unmeasured, so that the files are in the system's memory.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks import machine, rows, workloads
from benchmarks.train import OUT, version
from mirada.store.folder import read_config

SENTENCE = "▁A ▁man ▁in ▁a ▁blue ▁shirt ."
SHOWN = 10  # packages


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure both commands."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("--out", type=Path, default=OUT, metavar="DIR", help="where the rows go [%(default)s]")
    parser.add_argument("--repeat", type=int, default=5, help="starts that are measured [%(default)s]")
    parser.add_argument("--sentence", default=SENTENCE)
    parser.add_argument("--quick", action="store_true", help="one start of each, to see that it runs")
    given = parser.parse_args(arguments)
    translate = f"translate, {workloads.name_of(read_config(given.model).model)}"
    for name, command in (("--help", ["--help"]), (translate, ["translate", str(given.model)])):
        row = measure(name, command, given.sentence, 1 if given.quick else given.repeat)
        rows.write({**row, "quick": given.quick}, given.out)


def measure(name: str, command: list[str], sentence: str, repeat: int) -> rows.Row:
    """Start the command several times; best, median, all runs, and the packages that take longest to import."""
    whole = [sys.executable, "-m", "mirada", *command]
    start(whole, sentence)
    before = machine.reading()
    spent = [start(whole, sentence)[0] for _ in range(repeat)]
    load = machine.load_between(before, machine.reading())
    timed = [sys.executable, "-X", "importtime", *whole[1:]]
    return {
        "kind": "startup",
        "system": "mirada",
        "version": version(),
        "work": name,
        "best_s": min(spent),
        "median_s": median(spent),
        "runs": spent,
        "others": [load.others],
        "imports": imports(start(timed, sentence)[1]),
        "machine": machine.facts(),
    }


def start(command: list[str], sentence: str) -> tuple[float, str]:
    """Seconds from start to end, and what was said on standard error; raises CalledProcessError if it failed."""
    begun = time.perf_counter()
    ran = subprocess.run(command, input=f"{sentence}\n", capture_output=True, text=True, check=True, encoding="utf-8")
    return time.perf_counter() - begun, ran.stderr


def imports(report: str) -> list[dict[str, Any]]:
    """The packages that took longest to import, each with all its own modules, from `python -X importtime`."""
    spent: Counter[str] = Counter()
    for line in report.split("\n"):
        own, bar, rest = line.removeprefix("import time:").partition("|")
        if bar and own.strip().isdigit():
            package = rest.rpartition("|")[2].strip().split(".")[0]
            spent[package] += int(own)
    return [{"package": package, "ms": micro / 1000} for package, micro in spent.most_common(SHOWN)]


if __name__ == "__main__":
    main()
