"""`mirada evaluate`."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from mirada.cli.flags import Parser, add_options, collect, positive
from mirada.cli.pairs import add_pairs, read_pairs
from mirada.errors import ConfigError

EPILOG = """examples:
  mirada evaluate runs/luong --src test.en --tgt test.es
  mirada evaluate runs/g2p --tsv test.tsv --metrics exact,item_error,per --multi-reference
  mirada evaluate --hyp out.es --ref test.es --src test.en --metrics bleu,chrf
"""


class Outputs(NamedTuple):
    """Sources, outputs and references, item by item."""

    sources: list[str]
    hypotheses: list[str]
    references: list[list[str]]


def run(arguments: Sequence[str]) -> int:
    """Measure a model on pairs, or given outputs against references."""
    values = _read(arguments)
    if (values.model is None) == (values.hyp is None):
        raise ConfigError("give either a model folder with --src/--tgt (or --tsv, --jsonl), or --hyp with --ref")
    _refuse_unused(values)
    outputs, kind = _given(values) if values.model is None else _translated(values)
    names = [name.strip() for name in values.metrics.split(",")] if values.metrics else DEFAULT[kind]

    from mirada.evaluation.bootstrap import interval
    from mirada.evaluation.metrics import evaluate

    rows: list[dict[str, Any]] = []
    for metric in evaluate(outputs.hypotheses, outputs.references, names):
        low, high = interval(outputs.hypotheses, outputs.references, metric.name)
        rows.append({"metric": metric.name, "value": metric.value, "low": low, "high": high, "made": metric.signature})
    buckets = _by_length(outputs, rows[0]["metric"]) if outputs.sources else []
    report = {"items": len(outputs.hypotheses), "metrics": rows, "by_length": buckets}
    print(json.dumps(report, indent=1, ensure_ascii=False) if values.json else _text(report))
    return 0


DEFAULT = {
    "bpe": ["bleu", "chrf", "ter"],
    "unigram": ["bleu", "chrf", "ter"],
    "word": ["exact", "item_error", "per"],
    "char": ["exact", "item_error", "cer"],
}


def _read(arguments: Sequence[str]) -> argparse.Namespace:
    parser = Parser(
        "evaluate",
        "Quality on a test set, with 95 % bootstrap intervals.",
        usage="mirada evaluate MODEL --src FILE --tgt FILE [options], or mirada evaluate --hyp FILE --ref FILE",
        epilog=EPILOG,
    )
    parser.add_argument("model", nargs="?", help="model folder")
    parser.add_argument("--hyp", metavar="FILE", help="outputs to measure, instead of a model")
    parser.add_argument("--ref", metavar="FILE", action="append", help="references for --hyp; give it again for more")
    parser.add_argument(
        "--metrics", help="bleu, chrf, ter, exact, item_error, per, cer, wer, rouge, f1 [by the tokens]"
    )
    parser.add_argument(
        "--multi-reference", action="store_true", help="pairs with the same source are one item with several references"
    )
    parser.add_argument("--save-outputs", metavar="FILE", help="also write the outputs, one a line")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--batch-size", type=positive, default=64, help="sentences searched together [64]")
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda or cuda:N [auto]")
    add_pairs(parser)
    add_options(parser, "search")
    return parser.read(arguments)


def _refuse_unused(values: argparse.Namespace) -> None:
    """Raise ConfigError for a flag that would change nothing."""
    if values.model is not None:
        if values.ref:
            raise ConfigError("--ref goes with --hyp; a model's references are given by --tgt (or --tsv, --jsonl)")
        return
    unused = [name for name in ("multi_reference", "save_outputs") if vars(values)[name]]
    unused += [key.partition(".")[2] for key, value in vars(values).items() if "." in key and value is not None]
    for name in unused:
        if name != "src":
            flag = name.replace("_", "-")
            raise ConfigError(f"--{flag} goes with a model folder; with --hyp it would change nothing")


def _given(values: argparse.Namespace) -> tuple[Outputs, str]:
    from mirada.data.corpus import read_lines
    from mirada.errors import DataError

    if not values.ref:
        raise ConfigError("--hyp needs --ref, a file of references")
    hypotheses = read_lines(Path(values.hyp), allow_empty=True)
    sides = [read_lines(Path(path)) for path in values.ref]
    source = vars(values)["data.src"]
    sources = read_lines(Path(source)) if source else []
    for name, side in [*zip(values.ref, sides, strict=True), *([(source, sources)] if source else [])]:
        if len(side) != len(hypotheses):
            raise DataError(f"{values.hyp} has {len(hypotheses)} lines and {name} has {len(side)}; they must be equal")
    return Outputs(sources, hypotheses, [list(row) for row in zip(*sides, strict=True)]), "bpe"


def _translated(values: argparse.Namespace) -> tuple[Outputs, str]:
    from mirada.config.configfile import changed
    from mirada.translator import load

    options = collect(values)
    pairs = read_pairs(options.get("data", {}))
    items: list[tuple[str, list[str]]] = [(s, [t]) for s, t in zip(pairs.sources, pairs.targets, strict=True)]
    if values.multi_reference:
        grouped: dict[str, list[str]] = {}
        for source, references in items:
            grouped.setdefault(source, []).extend(references)
        items = list(grouped.items())
    translator = load(values.model, device=values.device)
    search = changed(translator.config.search, options.get("search", {}))
    found = translator.search([source for source, _ in items], options=search, batch_size=values.batch_size)
    hypotheses = [outputs[0].text for outputs in found]
    if values.save_outputs:
        from mirada.files import write_text

        write_text(Path(values.save_outputs), "".join(f"{text}\n" for text in hypotheses))
    kind = translator.config.data.target_tokenizer or "bpe"
    return Outputs([source for source, _ in items], hypotheses, [references for _, references in items]), kind


def _by_length(outputs: Outputs, metric: str) -> list[dict[str, Any]]:
    """The first metric by source length, counted in words (in characters where sources are single words)."""
    from mirada.evaluation.lengths import by_length

    words = [len(source.split()) for source in outputs.sources]
    single = max(words) == 1
    lengths = [len(source) for source in outputs.sources] if single else words
    scores = by_length(lengths, outputs.hypotheses, outputs.references, metric)
    unit = "characters" if single else "words"
    return [
        {
            "length": f"{s.label} {unit}",
            "count": s.count,
            "value": s.value,
            "low": s.interval_low,
            "high": s.interval_high,
        }
        for s in scores
    ]


def _text(report: dict[str, Any]) -> str:
    lines = [f"{report['items']} items; 95 % intervals by bootstrap over items"]
    lines += [
        f"{r['metric']:<11}{r['value']:7.2f}  [{r['low']:.2f}, {r['high']:.2f}]  {r['made']}" for r in report["metrics"]
    ]
    if report["by_length"]:
        lines.append(f"{report['metrics'][0]['metric']} by source length:")
        lines += [
            f"  {b['length']:<18}{b['value']:7.2f}  [{b['low']:.2f}, {b['high']:.2f}]  {b['count']} items"
            for b in report["by_length"]
        ]
    return "\n".join(lines)
