"""`mirada demo`."""

from __future__ import annotations

from collections.abc import Sequence

from mirada.cli.flags import Parser
from mirada.files import expanded
from mirada.messages import spoken


def run(arguments: Sequence[str]) -> int:
    """Train four small systems and show what they do."""
    parser = Parser("demo", "Train four systems on a small English-Spanish world, translate, look at attention.")
    parser.add_argument("--out", default="mirada-demo", help="folder for what is made [mirada-demo]")
    parser.add_argument("--seed", type=int, default=1, help="of everything random [1]")
    values = parser.read(arguments)

    import torch

    from mirada.study.demo import demo

    # Models this small gain nothing from a second thread, and lose tenfold by it where another process is busy.
    torch.set_num_threads(1)
    demo(expanded(values.out), lambda line: print(spoken(line), flush=True), seed=values.seed)
    return 0
