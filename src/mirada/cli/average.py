"""`mirada average`."""

from __future__ import annotations

from collections.abc import Sequence

from mirada.cli.flags import Parser
from mirada.errors import ConfigError
from mirada.escape import terminal
from mirada.files import expanded
from mirada.hub import located

EPILOG = """example:
  mirada train --tsv words.tsv --model-dir runs/g2p --keep-best 5
  mirada average runs/g2p/kept/* --out runs/g2p-mean
"""


def run(arguments: Sequence[str]) -> int:
    """Write the mean of several models, and say where it is."""
    parser = Parser(
        "average",
        "Make one model of several of one training: the mean of their weights.",
        usage="mirada average MODEL MODEL … --out MODEL",
        epilog=EPILOG,
    )
    parser.add_argument(
        "models", nargs="+", type=located, metavar="MODEL", help="model folders of equal options and vocabularies"
    )
    parser.add_argument("--out", required=True, help="folder of the new model")
    values = parser.read(arguments)
    if len(values.models) < 2:
        raise ConfigError("one model is its own mean; give two or more")

    from mirada.store.averaging import average_models

    average_models([expanded(name) for name in values.models], out := expanded(values.out))
    print(terminal(str(out)))
    return 0
