"""`mirada demo`."""

from __future__ import annotations

from collections.abc import Sequence

from mirada.cli.flags import Parser, positive
from mirada.files import expanded
from mirada.messages import spoken


def run(arguments: Sequence[str]) -> int:
    """Train four small systems and show what they do."""
    parser = Parser("demo", "Train four systems on a small English-Spanish world, translate, look at attention.")
    parser.add_argument("--out", default="mirada-demo", help="folder for what is made [mirada-demo]")
    parser.add_argument("--seed", type=int, default=1, help="of everything random [1]")
    parser.add_argument("--workers", type=positive, default=2, metavar="N", help="systems trained at a time [2]")
    values = parser.read(arguments)

    import torch

    from mirada.study.demo import demo

    torch.set_num_threads(1)  # as the workers do
    out = expanded(values.out)
    demo(out, lambda line: print(spoken(line), flush=True), seed=values.seed, workers=values.workers)
    return 0
