"""`mirada train`."""

from __future__ import annotations

from collections.abc import Sequence

from mirada.cli.flags import Parser, add_options, collect
from mirada.config.configfile import load_yaml, parse
from mirada.escape import terminal
from mirada.files import expanded

EPILOG = """examples:
  mirada train --src train.en --tgt train.es --model-dir runs/luong --decoder luong --score general
  mirada train --tsv words.tsv --model-dir runs/g2p --decoder bahdanau --valid-metrics per,exact
  mirada train config.yaml --learning-rate 5e-4 --model.dropout 0.3

The options in force are written to MODEL_DIR/config.yaml. Stopped (Ctrl-C) or killed, the same command goes on where
the last save stood. Progress goes to standard error, one line a validation to MODEL_DIR/validations.tsv.
Several processes, or GPUs: torchrun --nproc-per-node 2 -m mirada train … (docs/training.md).
"""


def run(arguments: Sequence[str]) -> int:
    """Read options from a file and from flags, train, and say where the model is."""
    parser = Parser(
        "train",
        "Train a model from pairs of sentences, or go on with one.",
        usage="mirada train [CONFIG.yaml] [options]",
        epilog=EPILOG,
    )
    parser.add_argument("config", nargs="?", help="YAML file of options (blocks data, model, training, search)")
    parser.add_argument("--model-dir", "--save-model", dest="model_dir", help="folder of the model [runs/model]")
    parser.add_argument("--quiet", action="store_true", help="show nothing but errors")
    for block in ("data", "model", "training", "search"):
        add_options(parser, block)
    values = parser.read(arguments)
    base = load_yaml(expanded(values.config)) if values.config else {}
    options = collect(values, base)
    if values.model_dir:
        options["model_dir"] = values.model_dir
    config = parse(options, where=values.config or "options")

    from mirada.train.loop import train
    from mirada.train.processes import is_first
    from mirada.train.progress import Monitor

    result = train(config, monitor=Monitor(quiet=values.quiet))
    if is_first():
        print(terminal(str(result.folder)))
    return 0
