"""`mirada compare`."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

from mirada.cli import tell
from mirada.cli.engine import add_engine, engine_of
from mirada.cli.flags import Parser, add_options, collect
from mirada.config.configfile import load_yaml
from mirada.errors import ConfigError
from mirada.escape import terminal
from mirada.files import expanded
from mirada.hub import located

EPILOG = """examples:
  mirada compare --out runs/first --budget 600updates                  # the embedded corpus, four systems
  mirada compare --src train.en --tgt train.de --dev-src dev.en --dev-tgt dev.de --test-src test.en \\
    --test-tgt test.de --systems classic-lstm,bahdanau,luong-general --budget 10epochs --seeds 3 --out runs/en-de
  mirada compare --models runs/a runs/b --test-src test.en --test-tgt test.de --gold test.align --out runs/a-and-b

Systems are a decoder and, where they have them, a cell and a score: classic-lstm, classic-gru, bahdanau, luong-dot,
luong-general, luong-concat, transformer, and others such as bahdanau-gru or luong-gru-additive. The options of `mirada
train` hold for all systems; those that do nothing with a system's decoder are left out for it. A comparison that was
stopped or killed goes on with the same command and --resume. Exit code 1: a run failed, the others are reported.

With gold links (--gold, a line a test pair; the embedded corpus brings its own) the report has the AER, precision and
recall of each system's attention, as `mirada align` measures them.
"""
PARTS = ("src", "tgt", "tsv", "jsonl", "dataset")
SYSTEMS = "classic-lstm,bahdanau,luong-general,transformer"


def run(arguments: Sequence[str]) -> int:
    """Train and test systems under the same conditions, or test models that exist, and write a report."""
    values = _read(arguments)
    options = collect(values, load_yaml(expanded(values.config)) if values.config else {})
    options.pop("model_dir", None)
    engine = engine_of(values, options.get("training", {}).get("device"))
    _fill(values, {name for name in PARTS if options.get("data", {}).get(name)})

    from mirada.study.compare.comparison import compare
    from mirada.study.compare.plan import ComparisonRequest

    request = ComparisonRequest(
        out=expanded(values.out),
        systems=names(values.systems or ""),
        models=tuple(values.models or ()),
        options=options,
        test=pairs_for_test(values, options.get("data", {})),
        budget=values.budget,
        seeds=values.seeds,
        match_parameters=values.match_parameters,
        baseline=values.baseline,
        metrics=names(values.metrics or ""),
        multi_reference=values.multi_reference,
        gold=values.gold,
        units=values.units,
        embedded=values.pairs,
        batch_size=values.decode_batch_size,
        quiet=values.quiet or engine.kind != "local",  # several that speak at once tell nobody anything
        engine=engine,
    )
    results = compare(request, tell, resume=values.resume)
    print(terminal(str(request.out / "report.html")))
    return 1 if any(system["failed"] for system in results["systems"]) else 0


def _read(arguments: Sequence[str]) -> argparse.Namespace:
    parser = Parser(
        "compare",
        "Train systems on the same pairs, tokens, order and budget, test them, and write a report.",
        usage="mirada compare --out DIR [CONFIG.yaml] [--src FILE --tgt FILE] [options]",
        epilog=EPILOG,
    )
    parser.add_argument("config", nargs="?", help="YAML file of options that all systems share")
    parser.add_argument("--out", required=True, metavar="DIR", help="folder of the runs and the report")
    parser.add_argument(
        "--systems",
        help="what to train, by commas [classic-lstm,bahdanau,luong-general,transformer]",
    )
    parser.add_argument(
        "--models", nargs="+", type=located, metavar="MODEL", help="model folders to test, instead of --systems"
    )
    parser.add_argument("--budget", help="Nupdates, Nepochs or Nminutes of each run [10epochs]")
    parser.add_argument("--seeds", type=int, help="runs of each system, from --seed on [1]")
    parser.add_argument("--match-parameters", action="store_true", help="widths that give as many weights as the first")
    parser.add_argument("--baseline", metavar="SYSTEM", help="what the others are tested against [the first]")
    parser.add_argument("--metrics", help="bleu, chrf, ter, exact, item_error, per, cer, … [by the target's tokens]")
    parser.add_argument("--multi-reference", action="store_true", help="test pairs with the same source are one item")
    parser.add_argument("--pairs", type=int, help="pairs of the embedded corpus, without --src [6000]")
    parser.add_argument("--decode-batch-size", type=int, default=64, help="test sentences searched together [64]")
    parser.add_argument("--resume", action="store_true", help="go on with the comparison that --out holds")
    parser.add_argument("--quiet", action="store_true", help="show no progress of the trainings")
    add_engine(parser, "trainings and tests run")
    parser.add_argument("--gold", metavar="FILE", help="gold links of the test pairs (i-j sure, ipj possible): AER")
    parser.add_argument(
        "--units",
        choices=("words", "punctuation"),
        help="what --gold counts: words between blanks, or marks at their ends by themselves too [words]",
    )
    for name, what in zip(
        PARTS, ("source side", "target side", "tab-separated", "JSON lines", "a dataset"), strict=True
    ):
        parser.add_argument(f"--test-{name}", metavar="FILE", help=f"test pairs: {what}")
    for block in ("data", "model", "training", "search"):
        add_options(parser, block)
    return parser.read(arguments)


def _fill(values: argparse.Namespace, files: set[str]) -> None:
    """Fill in what was not given; raises ConfigError for a flag that would change nothing."""
    usual = {"systems": SYSTEMS, "budget": "10epochs", "seeds": 1, "match_parameters": False, "pairs": 6000}
    for name, value in usual.items():
        given = getattr(values, name)
        flag = f"--{name.replace('_', '-')}"
        if given and values.models and name != "systems":
            raise ConfigError(f"{flag} does nothing with --models, which are only tested; leave it out")
        if given and files and name == "pairs":
            raise ConfigError(f"{flag} is of the embedded corpus; beside --{min(files)} it would change nothing")
        if given is None and not (name == "systems" and values.models):
            setattr(values, name, value)


def names(text: str) -> tuple[str, ...]:
    """The parts of a list with commas."""
    return tuple(name.strip() for name in text.split(",") if name.strip())


def pairs_for_test(values: argparse.Namespace, data: dict[str, Any]) -> dict[str, Any]:
    """The block that names the test pairs, by --test-…; columns and keys are those of the training pairs."""
    given = {name: getattr(values, f"test_{name}") for name in PARTS}
    columns = ("source_column", "target_column", "source_key", "target_key")
    found = {name: path for name, path in given.items() if path is not None}
    return found | {name: data[name] for name in columns if name in data}
