"""`mirada evaluate`."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from mirada.cli import say, tell
from mirada.cli.engine import add_engine, engine_of
from mirada.cli.flags import Parser, add_models, add_options, collect, ensemble_mode, positive
from mirada.cli.items import Items, add_items, items_of_pairs, items_of_references
from mirada.cli.pairs import warn_of_swapped
from mirada.cli.streams import data_output
from mirada.errors import ConfigError, DataError
from mirada.files import expanded, write_text

if TYPE_CHECKING:
    from mirada.evaluation.report import Hypotheses
    from mirada.translator import Translation

EPILOG = """examples:
  mirada evaluate runs/luong --src test.en --tgt test.es
  mirada evaluate runs/g2p --tsv test.tsv --metrics exact,item_error,per --multi-reference
  mirada evaluate runs/answers --tsv test.tsv --source-column 2 --target-column 3 --group-column 1
  mirada evaluate runs/summaries --tsv test.tsv --source-column 3 --target-column 4 --reference-column 5-
  mirada evaluate runs/luong runs/bahdanau --src test.en --tgt test.es   # an ensemble
  mirada evaluate --hyp out.es --ref test.es --src test.en --metrics bleu,chrf
  mirada evaluate --hyp out.txt --tsv test.tsv --values values.tsv --metrics bleu,rouge-stem

A blank reference is an absent one: with several --ref the others count, and an item without any is left out and counted
on standard error. --group-column shows the first metric by group, and the mean of the groups; --cluster-column draws
whole clusters for the intervals, where items stand or fall together, as the forms of one lemma do. With --n-best N
the share of items that one of the N outputs gets right is shown as exact@N.
"""
MODEL_ONLY = ("save_outputs", "batch_size", "device", "ensemble_mode", "engine", "workers", "ray_address")


def run(arguments: Sequence[str]) -> int:
    """Measure a model on pairs, or given outputs against references."""
    values = _read(arguments)
    _refuse_unused(values)
    data_output()
    outputs, kind = _given(values) if not values.models else _translated(values)

    from mirada.evaluation.measurable import concerns
    from mirada.evaluation.metrics import resolve
    from mirada.evaluation.report import make_report, to_text, usual_metrics

    asked = [name.strip() for name in values.metrics.split(",")] if values.metrics else []
    names = resolve(asked) if asked else usual_metrics(kind, outputs.references, tokenizer=values.bleu_tokenizer)
    if values.bleu_tokenizer != "auto" and "bleu" not in names:
        raise ConfigError(f"--bleu-tokenizer goes with the metric bleu; the metrics are {', '.join(names)}")
    for name in names:
        for line in concerns(name, outputs.hypotheses, outputs.references, tokenizer=values.bleu_tokenizer):
            say(f"warning: {line}")
    report = make_report(outputs, names, tokenizer=values.bleu_tokenizer)
    print(json.dumps(report, indent=1, ensure_ascii=False) if values.json else to_text(report))
    return 0


def _read(arguments: Sequence[str]) -> argparse.Namespace:
    parser = Parser(
        "evaluate",
        "Quality on a test set, with 95 % bootstrap intervals.",
        usage="mirada evaluate MODEL --src FILE --tgt FILE [options], or mirada evaluate --hyp FILE --ref FILE",
        epilog=EPILOG,
    )
    add_models(parser, count="*")
    parser.add_argument("--hyp", metavar="FILE", help="outputs to measure, instead of a model")
    parser.add_argument(
        "--metrics",
        help="bleu, chrf, ter, exact, item_error, per, cer, wer, edit_distance, f1, rouge, rougeLsum (with -stem: "
        "English endings dropped first), … [by the tokens]",
    )
    parser.add_argument(
        "--bleu-tokenizer",
        default="auto",
        metavar="auto|13a|zh|ja-mecab|ko-mecab|intl|char|none",
        help="what BLEU counts [auto: by the references' script]",
    )
    parser.add_argument("--save-outputs", metavar="FILE", help="also write the outputs, one a line")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--batch-size", type=positive, help="sentences searched together [64]")
    parser.add_argument("--device", help="auto, cpu, cuda or cuda:N [auto]")
    add_engine(parser, "blocks of sentences are searched")
    add_items(parser)
    add_options(parser, "search")
    return parser.read(arguments)


def _refuse_unused(values: argparse.Namespace) -> None:
    """Raise ConfigError for a flag that would change nothing."""
    if (not values.models) == (values.hyp is None):
        raise ConfigError("give either a model folder with --src/--tgt (or --tsv, --jsonl), or --hyp with --ref")
    given = {key: value for key, value in vars(values).items() if value is not None}
    pairs = [key.partition(".")[2] for key in given if key.startswith("data.")]
    if values.models:
        if values.ref:
            raise ConfigError("--ref goes with --hyp; a model's references are given by --tgt (or --tsv, --jsonl)")
        return
    if not values.ref and not pairs:
        raise ConfigError("--hyp needs --ref, a file of references (or --tsv, --jsonl, or --src with --tgt)")
    for name in [*MODEL_ONLY, *(key for key in given if key.startswith("search."))]:
        if name in given:
            raise ConfigError(f"{_flag(name)} goes with a model folder; with --hyp it would change nothing")
    others = [name for name in ("multi_reference", "reference_column", "reference_key") if given.get(name)]
    for name in [*pairs, *others] if values.ref else []:
        if name != "src":
            raise ConfigError(f"{_flag(name)} beside --ref: two ways to name the references; give one of them")


def _flag(name: str) -> str:
    return "--" + name.rpartition(".")[2].replace("_", "-")


def _given(values: argparse.Namespace) -> tuple[Hypotheses, str]:
    """Outputs from a file. One output a line of the pairs, or one an item, as --save-outputs writes them."""
    from mirada.data.corpus import read_lines

    hypotheses = read_lines(expanded(values.hyp), allow_empty=True)
    items = items_of_references(values, hypotheses) if values.ref else items_of_pairs(values)
    by_line = len(hypotheses) == items.total and not values.multi_reference
    if not by_line and len(hypotheses) != len(items.lines):
        lines = f"{len(items.lines)} items" + ("" if values.multi_reference else f" in {items.total} lines")
        raise DataError(f"{values.hyp} has {len(hypotheses)} lines for {lines}; they must be equal")
    return _outputs([hypotheses[n - items.first] for n in items.lines] if by_line else hypotheses, items), "bpe"


def _translated(values: argparse.Namespace) -> tuple[Hypotheses, str]:
    choice = engine_of(values, values.device)

    from mirada.config.configfile import changed
    from mirada.scaling.engine import workplace
    from mirada.scaling.searching import SearchJob, make_search, search_blocks
    from mirada.translator import load

    items = items_of_pairs(values)
    out = expanded(values.save_outputs) if values.save_outputs else None
    device = values.device or "auto"
    here = device if choice.kind == "local" else "cpu"  # workers have their own
    translator = load(values.models, device=here, ensemble_mode=ensemble_mode(values))
    translator.warn = say
    warn_of_swapped(translator, items.sources, [first for first, *_ in items.references])
    search = changed(translator.config.search, collect(values).get("search", {}))
    size = values.batch_size or 64
    if choice.kind == "local":
        found = translator.search(items.sources, options=search, batch_size=size)
    else:
        models = tuple(map(expanded, values.models))
        job = SearchJob(models, search, device, ensemble_mode=ensemble_mode(values), batch_size=size)
        with workplace(choice, partial(make_search, job), tell) as place:
            parts = search_blocks(place, [items.sources], batch_size=size, warn=say)
            found = [outputs for part in parts for outputs in part]
    _say_limited([several[0] for several in found])
    texts = [[output.text for output in several] for several in found]
    hypotheses = [several[0] for several in texts]
    if out is not None:
        write_text(out, "".join(f"{text}\n" for text in hypotheses))
    kind = translator.config.data.target_tokenizer or "bpe"
    return _outputs(hypotheses, items, texts if search.n_best > 1 else []), kind


def _say_limited(found: Sequence[Translation]) -> None:
    limited = sum(not output.finished for output in found)
    if limited:
        what = "reached the limit of their length before they ended (see --max-output-length, --max-length-ratio)"
        say(f"warning: {limited} of {len(found)} outputs {what}")


def _outputs(hypotheses: list[str], items: Items, lists: list[list[str]] | None = None) -> Hypotheses:
    from mirada.evaluation.report import Hypotheses

    return Hypotheses(
        hypotheses,
        items.references,
        items.sources,
        lists=lists or [],
        values=items.values,
        groups=items.groups,
        clusters=items.clusters,
    )
