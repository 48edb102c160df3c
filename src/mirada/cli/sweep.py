"""`mirada sweep`."""

from __future__ import annotations

from collections.abc import Sequence

from mirada.cli import tell
from mirada.cli.engine import add_engine, engine_of
from mirada.cli.flags import Parser
from mirada.escape import terminal
from mirada.files import expanded

EPILOG = """example:
  mirada sweep sweep.yaml --out runs/sweep --engine processes --workers 4

sweep.yaml has the blocks that a file for `mirada train` has, for all trials alike, and a block sweep:
  data: {src: train.en, tgt: train.es}
  training: {max_updates: 2000}
  sweep:
    vary:
      model.decoder: [luong, bahdanau]
      training.learning_rate: {low: 1e-4, high: 1e-2, log: true}
    trials: 20          # random search; without it every combination of the lists
    seed: 1             # of random search [1]
    metric: bleu        # what trials are sorted by [early_stopping_metric]

Trials come out best first, in DIR/results.csv and DIR/results.json too; the last line is the best one's folder. Stopped
or killed, or with more trials, the same command goes on: what is finished is not trained again. Exit code 1: a trial
failed, which is tried again the next time.
"""


def run(arguments: Sequence[str]) -> int:
    """Train every trial, and show which is the best."""
    parser = Parser(
        "sweep",
        "Try values of options: a training for each combination, sorted by a metric on the dev pairs.",
        usage="mirada sweep FILE.yaml --out DIR [options]",
        epilog=EPILOG,
    )
    parser.add_argument("file", metavar="FILE.yaml", help="the options of all trials, and what varies")
    parser.add_argument("--out", required=True, metavar="DIR", help="folder of the trials and the results")
    parser.add_argument("--quiet", action="store_true", help="show no progress of the trainings")
    add_engine(parser, "trials are trained")
    values = parser.read(arguments)

    from mirada.config.sweep import read_sweep

    config, options = read_sweep(expanded(values.file))
    engine = engine_of(values, (options.get("training") or {}).get("device"))

    from mirada.study.sweep import SweepRequest, sweep, table

    found = sweep(SweepRequest(expanded(values.out), config, options, engine, values.quiet), tell)
    for line in table(*found):
        print(terminal(line))
    print(terminal(str(found.rows[0].trial.folder)))
    return 1 if any(row.error for row in found.rows) else 0
