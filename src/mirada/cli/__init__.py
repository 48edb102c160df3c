"""The command line: parse, call, print. Each command is a module here, imported only when it is called.

Data goes to standard output, messages to standard error; a user's mistake is one line and an exit code other than 0.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.metadata import version

from mirada.errors import ConfigError, MiradaError, suggestion

COMMANDS = {
    "train": "train a model from pairs of sentences, or go on with one that was stopped",
    "translate": "turn each input line into an output line (standard input to standard output)",
    "score": "log-probability of given outputs",
    "align": "word links of given pairs by attention, and their error against gold links",
    "evaluate": "quality on a test set: BLEU, chrF, TER, exact match, error rates, ROUGE, F1, by length",
    "compare": "train systems under the same conditions (or test models), and write a report",
    "bottleneck": "measure what a fixed vector costs and attention buys, in four experiments",
    "data": "make the embedded corpus, or check a corpus before training",
    "demo": "see everything in three minutes: train four systems, translate, look at attention",
}
HELP = """usage: mirada COMMAND …

Train, run, compare and look inside sequence-to-sequence models.

commands:
{commands}

`mirada COMMAND --help` says more. First steps: `mirada demo`, then
  mirada train --src train.en --tgt train.es --model-dir runs/first --decoder luong
  echo "How are you?" | mirada translate runs/first
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    try:
        return _dispatch(arguments)
    except MiradaError as error:
        print(f"mirada: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print("mirada: stopped", file=sys.stderr)
        return 130
    except BrokenPipeError:
        # The reader has what it wanted (`| head`); what Python still holds for it goes nowhere.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


def _dispatch(arguments: list[str]) -> int:
    if not arguments or arguments[0] in ("-h", "--help", "help"):
        commands = "\n".join(f"  {name:<10} {summary}" for name, summary in COMMANDS.items())
        print(HELP.format(commands=commands), end="")
        return 0 if arguments else 2
    if arguments[0] == "--version":
        print(f"mirada {version('mirada')}")
        return 0
    name, rest = arguments[0], arguments[1:]
    if name not in COMMANDS:
        raise ConfigError(f"unknown command {name!r}{suggestion(name, COMMANDS)}; `mirada --help` lists them")
    return int(import_module(f"mirada.cli.{name}").run(rest))
