"""A model to decode with: `python -m benchmarks.fit T3 FOLDER [--tokenised DIR] [--epochs N]` trains a workload's.

FOLDER is one like any other that `mirada train` makes. Two epochs give outputs that end where they should, which is
what decoding speed needs; they are no measure of quality.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import torch

from benchmarks import workloads
from benchmarks.tokenised import prepare
from benchmarks.workloads import WORKLOADS
from mirada.train import loop


def main(arguments: Sequence[str] | None = None) -> None:
    """Train the model of a workload into a folder, its tokenised files in FOLDER.data."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("work", choices=WORKLOADS)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--tokenised", type=Path, metavar="DIR", help="tokenised files [made from the embedded corpus]")
    parser.add_argument("--epochs", type=int, default=2, help="[%(default)s]")
    parser.add_argument("--updates", type=int, help="stop after so many updates [no limit]")
    parser.add_argument("--threads", type=int, help="threads of torch [its own choice]")
    parser.add_argument("--quick", action="store_true", help="tiny sizes, to see that it runs")
    given = parser.parse_args(arguments)
    if given.threads:
        torch.set_num_threads(given.threads)
    workload = workloads.smaller(WORKLOADS[given.work]) if given.quick else WORKLOADS[given.work]
    data = given.folder.with_name(given.folder.name + ".data")
    tokenised = prepare(workload.task, given.tokenised, data, **(workloads.FEW if given.quick else {}))
    place = workloads.Place(given.folder)
    loop.train(workloads.options(workload, tokenised, place, updates=given.updates, epochs=given.epochs))


if __name__ == "__main__":
    main()
