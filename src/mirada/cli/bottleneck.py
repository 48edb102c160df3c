"""`mirada bottleneck`."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace

from mirada.cli import tell
from mirada.cli.compare import PARTS as FILES
from mirada.cli.compare import names, pairs_for_test
from mirada.cli.engine import add_engine, engine_of
from mirada.cli.flags import Parser, add_options, collect
from mirada.escape import terminal
from mirada.files import expanded

EPILOG = """examples:
  mirada bottleneck --out runs/bottleneck --seeds 3    # a small world, three seeds
  mirada bottleneck --out runs/quick --quick           # some minutes on two cores
  mirada bottleneck --src train.en --tgt train.de --parts lengths,capacity --updates 4000 --out runs/en-de

parts:
  lengths     quality by source length, trained on sources of at most L words: short ones, long ones, up to 2 L
  capacity    the classic system at growing widths against attention
  forgetting  which source positions survive, on copying and reversing random symbols
  cost        time and memory of one decoder step as the source grows, for each score function

Stopped or killed, it goes on with the same command and --resume.
"""


def run(arguments: Sequence[str]) -> int:
    """Do the experiments and write a report."""
    values = _read(arguments)
    engine = engine_of(values, values.device)

    from mirada.study.bottleneck.experiment import bottleneck
    from mirada.study.bottleneck.settings import QUICK, BottleneckRequest, Settings

    settings = QUICK if values.quick else Settings()
    changes = {name: getattr(values, name) for name in ("updates", "pairs") if getattr(values, name) is not None}
    options = collect(values)
    request = BottleneckRequest(
        out=expanded(values.out),
        settings=replace(settings, **changes),
        parts=names(values.parts),
        data=options.get("data", {}),
        test=pairs_for_test(values, options.get("data", {})),
        attention=values.attention,
        cell=values.cell,
        length=values.length,
        seeds=values.seeds,
        device=values.device,
        quiet=values.quiet or engine.kind != "local",  # several that speak at once tell nobody anything
        engine=engine,
    )
    results = bottleneck(request, tell, resume=values.resume)
    print(terminal(str(request.out / "report.html")))
    return 1 if results["failed"] else 0


def _read(arguments: Sequence[str]) -> argparse.Namespace:
    parser = Parser(
        "bottleneck",
        "Measure what one fixed vector costs and what attention buys, in four experiments.",
        usage="mirada bottleneck --out DIR [--quick] [--src FILE --tgt FILE] [options]",
        epilog=EPILOG,
    )
    parser.add_argument("--out", required=True, metavar="DIR", help="folder of the runs and the report")
    parser.add_argument("--quick", action="store_true", help="smaller sizes: some minutes on two cores")
    parser.add_argument(
        "--parts", default="lengths,capacity,forgetting,cost", help="which experiments, by commas [all four]"
    )
    parser.add_argument("--attention", default="luong-general", help="the system with attention [luong-general]")
    parser.add_argument("--cell", choices=("lstm", "gru"), default="lstm", help="recurrent cell of all systems [lstm]")
    parser.add_argument("--length", type=int, metavar="L", help="longest source in training [by the pairs]")
    parser.add_argument("--updates", type=int, help="updates of each training of the first two parts [1500]")
    parser.add_argument("--pairs", type=int, help="training pairs of the small world [20000]")
    parser.add_argument("--seeds", type=int, default=1, help="runs of each system [1]")
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda or cuda:N [auto]")
    parser.add_argument("--resume", action="store_true", help="go on with the experiments that --out holds")
    parser.add_argument("--quiet", action="store_true", help="show no progress of the trainings")
    add_engine(parser, "trainings run")
    for name in FILES:
        parser.add_argument(f"--test-{name}", metavar="FILE", help="test pairs, in place of some split off")
    add_options(parser, "data")
    return parser.read(arguments)
