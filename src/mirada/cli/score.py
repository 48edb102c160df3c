"""`mirada score`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

from mirada.cli.flags import Parser, add_models, collect, ensemble_mode, positive
from mirada.cli.pairs import add_pairs, read_pairs, warn_of_swapped
from mirada.cli.streams import data_output

if TYPE_CHECKING:
    from mirada.translator import Scored

EPILOG = """examples:
  mirada score runs/luong --src test.en --tgt test.es
  mirada score runs/luong --tsv pairs.tsv --tokens
  mirada score runs/luong runs/bahdanau --tsv pairs.tsv                 # an ensemble: the mean of what they say

Pairs with a blank side are left out, as in training; with --tokens each line says which it is.
"""


def run(arguments: Sequence[str]) -> int:
    """Print the log-probability of each given target, one line a pair."""
    parser = Parser(
        "score",
        "Log-probability (natural, not length-normalised) of given outputs, one line a pair.",
        usage="mirada score MODEL [MODEL …] --src FILE --tgt FILE [options]",
        epilog=EPILOG,
    )
    add_models(parser)
    parser.add_argument("--tokens", action="store_true", help="JSON lines with the log-probability of every token")
    parser.add_argument("--batch-size", type=positive, default=64, help="pairs scored together [64]")
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda or cuda:N [auto]")
    add_pairs(parser)
    values = parser.read(arguments)
    output = data_output()

    from mirada.loading import load

    mode = ensemble_mode(values)
    pairs = read_pairs(collect(values).get("data", {}), values.models[0])
    translator = load(values.models, device=values.device, ensemble_mode=mode)
    warn_of_swapped(translator, pairs.sources, pairs.targets)
    scored = translator.score(pairs.sources, pairs.targets, batch_size=values.batch_size)
    for line, found in zip(pairs.lines, scored, strict=True):
        print(_as_json(line, found) if values.tokens else f"{found.log_probability:.6f}", file=output)
    return 0


def _as_json(line: int, found: Scored) -> str:
    row = {
        "line": line,
        "log_probability": found.log_probability,
        "tokens": found.tokens,
        "token_log_probabilities": found.token_log_probabilities,
    }
    return json.dumps(row, ensure_ascii=False)
