"""`mirada align`."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple

from mirada.cli import tell
from mirada.cli.flags import Parser, add_options, collect
from mirada.cli.pairs import FILES, FORMAT, PAIRS, pair_options, refuse_ignored, warn_of_swapped
from mirada.cli.streams import data_output
from mirada.errors import ConfigError
from mirada.files import expanded
from mirada.hub import located

if TYPE_CHECKING:
    from mirada.evaluation.aligning import Aligned, Gold, Options, Pairs, Quality, Reading
    from mirada.translator import Translator

DEV = ("dev_src", "dev_tgt", "dev_tsv", "dev_jsonl", "dev_dataset")
MEASURES = {
    "entropy": "entropy (nats)",
    "coverage": "coverage",
    "monotonicity": "monotonicity",
    "end": "weight on </s>",
}
EPILOG = """examples:
  mirada align runs/luong --src test.en --tgt test.es > test.links
  mirada align runs/luong --src test.en --tgt test.es --gold test.align --units punctuation \\
      --shift auto --dev-src dev.en --dev-tgt dev.es --dev-gold dev.align
  mirada align runs/transformer --src test.en --tgt test.es --gold test.align --units punctuation --heads all

n pairs in, n lines out: links i-j (source-target, from 0); a pair with a blank side gives an empty line. The report
goes to standard error. A gold file has a line a pair: i-j for a sure link, ipj for a possible one.

--units says what is counted: `words`, what stands between blanks (for text whose punctuation stands apart already, as
in most gold sets); `punctuation`, words and, each by itself, the marks at their ends (for ordinary text with such gold,
as `mirada data make` writes both); `tokens`, as `translate --alignment` counts: words for subword models, single
characters for character models.

</s> takes no part: a word that looks mostly at </s> is linked to its best real word.
"""


class AlignmentJob(NamedTuple):
    """A model and how its weights are read: the ways to choose from (on dev), and those to report besides."""

    model: Translator
    options: Options
    tried: list[Reading]
    every: list[Reading]


def run(arguments: Sequence[str]) -> int:
    """Align given pairs, and measure the alignment."""
    values = _read(arguments)
    _check(values)
    data_output()

    from mirada.evaluation.aligning import align, best_reading, qualities
    from mirada.evaluation.alignment import format_links

    job = _job(values)
    pairs = _pairs(values, dev=False)
    warn_of_swapped(job.model, *pairs)
    gold = _gold(values.gold, job, pairs) if values.gold else None
    dev = _on_dev(job, values) if len(job.tried) > 1 else {}
    chosen = best_reading(dev) if dev else job.tried[0]
    rows = []
    for row in align(job.model, pairs, list(dict.fromkeys([chosen, *job.every])), job.options):
        rows.append(row)
        if not values.json:
            print(format_links(row[chosen].links))
    report = _report(rows, chosen, qualities(rows, gold) if gold else {}, dev)
    if values.json:
        print(json.dumps({**report, "links": [format_links(row[chosen].links) for row in rows]}, indent=1))
    else:
        for line in _text(report).split("\n"):
            tell(line)
    return 0


def _read(arguments: Sequence[str]) -> argparse.Namespace:
    usage = "mirada align MODEL --src FILE --tgt FILE [options]"
    summary = "Word links of given pairs by attention (forced decoding), and their error against gold links."
    parser = Parser("align", summary, usage=usage, epilog=EPILOG)
    parser.add_argument("model", type=located, help="model folder, or hf:USER/NAME")
    parser.add_argument("--gold", metavar="FILE", help="gold links: report AER, precision, recall and F1")
    parser.add_argument(
        "--shift",
        choices=("0", "1", "auto"),
        default="0",
        help="0: the weights of step t align word t; 1: those of step t + 1, which has read it; auto: best on dev [0]",
    )
    parser.add_argument(
        "--heads",
        metavar="mean|L.H|all|auto",
        default="mean",
        help="of a Transformer: the mean of the last layer, one head of a layer (from 1, such as 2.1), the mean and a "
        "report on every head, or the best by AER on dev [mean]",
    )
    parser.add_argument("--dev-gold", metavar="FILE", help="gold links of the dev pairs, to choose by (auto)")
    parser.add_argument(
        "--units", choices=("words", "punctuation", "tokens"), default="words", help="what is linked; see above [words]"
    )
    parser.add_argument("--json", action="store_true", help="print links and report as JSON")
    parser.add_argument("--batch-size", type=int, default=64, help="pairs forced together [64]")
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda or cuda:N [auto]")
    add_options(parser, "data", only=(*FILES, *FORMAT, *DEV), meaning=PAIRS)
    return parser.read(arguments)


def _check(values: argparse.Namespace) -> None:
    """Refuse flags that contradict each other, before anything is loaded."""
    dev = values.dev_gold or any(vars(values)[f"data.{name}"] for name in DEV)
    chooses = "auto" in (values.shift, values.heads)
    if chooses and not (values.dev_gold and any(vars(values)[f"data.{name}"] for name in DEV)):
        raise ConfigError("auto chooses by AER on dev pairs: give --dev-src, --dev-tgt and --dev-gold")
    if dev and not chooses:
        raise ConfigError("dev pairs are there to choose by: add --shift auto or --heads auto, or leave them out")
    if chooses and values.gold and expanded(values.gold).resolve() == expanded(values.dev_gold).resolve():
        raise ConfigError(f"{values.gold}: chosen by and reported on; --dev-gold must be of other pairs than --gold")
    if values.heads == "all" and not values.gold:
        raise ConfigError("--heads all reports the AER of every head: give --gold")
    if values.batch_size < 1:
        raise ConfigError(f"--batch-size must be at least 1, got {values.batch_size}")


def _job(values: argparse.Namespace) -> AlignmentJob:
    from mirada.evaluation.aligning import MEAN, Options, Reading, head_names
    from mirada.translator import load

    model = load(values.model, device=values.device)
    system = model.config.model
    if not system.has_attention:
        raise ConfigError(f"{values.model}: a classic model has no attention to align with")
    names = head_names(system.dec_layers, system.num_heads) if system.decoder == "transformer" else []
    every = [MEAN, *names]
    heads = {"all": [MEAN], "auto": every}.get(values.heads, [values.heads])
    if heads[0] not in every:
        known = f"one from {names[0]} to {names[-1]} (layer.head)" if names else "no others: it is no Transformer"
        raise ConfigError(f"--heads {values.heads}: expected mean, all, auto or, of this model, {known}")
    shifts = [0, 1] if values.shift == "auto" else [int(values.shift)]
    reported = [Reading(*way) for way in product(every, (0, 1))] if values.heads == "all" else []
    tried = [Reading(*way) for way in product(heads, shifts)]
    return AlignmentJob(model, Options(values.units, values.batch_size), tried, reported)


def _pairs(values: argparse.Namespace, *, dev: bool) -> Pairs:
    """Line n of the files as item n − 1; a pair with a blank side is blank on both."""
    from mirada.data.corpus import chosen_files, read_files, required_files

    given = collect(values).get("data", {})
    refuse_ignored(given)
    data = pair_options(given, values.model)
    files = (chosen_files(data, dev=True) if dev else None) or required_files(data, "input")
    corpus = read_files(files, data)
    kept = {line: pair for line, *pair in zip(corpus.lines, corpus.sources, corpus.targets, strict=True)}
    rows = [kept.get(line, ["", ""]) for line in corpus.all_lines()]
    return [source for source, _ in rows], [target for _, target in rows]


def _gold(path: str, job: AlignmentJob, pairs: Pairs) -> Gold:
    from mirada.data.corpus import read_lines
    from mirada.evaluation.aligning import pair_sizes, parse_gold

    return parse_gold(read_lines(expanded(path)), path, pair_sizes(job.model, pairs, job.options.units))


def _on_dev(job: AlignmentJob, values: argparse.Namespace) -> dict[Reading, Quality]:
    """How good each way to read is on the dev pairs."""
    from mirada.evaluation.aligning import align, qualities

    pairs = _pairs(values, dev=True)
    gold = _gold(values.dev_gold, job, pairs)
    return qualities(list(align(job.model, pairs, job.tried, job.options)), gold)


Rows = Sequence[Mapping["Reading", "Aligned"]]


def _report(
    rows: Rows, chosen: Reading, scores: Mapping[Reading, Quality], dev: Mapping[Reading, Quality]
) -> dict[str, Any]:
    from mirada.evaluation.aligning import mean_profile

    profiles = [row[chosen].profile for row in rows]
    mean = mean_profile(profiles)
    return {
        "pairs": len(rows),
        "blank": profiles.count(None),
        "reading": chosen._asdict(),
        "attention": mean._asdict() if mean else None,
        "gold": _table({chosen: scores[chosen]})[0] if scores else None,
        "every": _table(scores) if len(scores) > 1 else [],
        "dev": _table(dev),
    }


def _table(scores: Mapping[Reading, Quality]) -> list[dict[str, Any]]:
    return [{**way._asdict(), **found.score._asdict(), **found.counts._asdict()} for way, found in scores.items()]


def _text(report: Mapping[str, Any]) -> str:
    way, mean, gold = report["reading"], report["attention"], report["gold"]
    pairs = f"{report['pairs']} pairs, {report['blank']} with a blank side"
    lines = [f"{pairs}; heads {way['head']}, shift {way['shift']}"]
    if mean:
        lines.append("means over pairs: " + ", ".join(f"{MEASURES[name]} {value:.3f}" for name, value in mean.items()))
    if gold:
        lines.append(f"against gold:     {_scores(gold)}")
        lines.append(
            f"links: {gold['links']}; gold: {gold['sure']} sure, {gold['possible']} with the possible; found: "
            f"{gold['hit_sure']} of the sure, {gold['hit_possible']} with the possible"
        )
    for title, table in (("chosen on dev from", report["dev"]), ("every head", report["every"])):
        lines += [f"{title}:"] if table else []
        lines += [f"  heads {row['head']:<6} shift {row['shift']}  {_scores(row)}" for row in table]
    return "\n".join(lines)


def _scores(row: Mapping[str, Any]) -> str:
    return f"AER {row['aer']:.4f}  precision {row['precision']:.4f}  recall {row['recall']:.4f}  F1 {row['f1']:.4f}"
