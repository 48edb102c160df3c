"""`mirada data make`, `mirada data check`, `mirada data prepare` and `mirada data invent`."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence

from mirada.cli import say
from mirada.cli.flags import Parser, add_options, collect, positive
from mirada.cli.pairs import FILES, refuse_ignored
from mirada.cli.streams import data_output
from mirada.config.options import DataConfig
from mirada.errors import ConfigError, DataError, suggestion
from mirada.escape import terminal
from mirada.files import UNWRITTEN, expanded
from mirada.hub import located
from mirada.messages import spoken

MANY = 100_000
FORMAT = ("source_column", "target_column", "source_key", "target_key")
HELP = """usage: mirada data make|check|prepare|invent …

  make     write a corpus that rules make, as files: English-Spanish with gold word alignments, or other jobs
  check    report on a corpus before training
  prepare  cut a corpus larger than memory into tokens, once, in files that mirada train --prepared reads
  invent   more training pairs from a few, for jobs that copy most letters (inflection)

`mirada data make --help`, and so on, say more.
"""
MADE = """kinds:
  translation  English to Spanish with gold word alignments: train.en, train.es, train.align, …
  scan         SCAN's commands to actions, all 20,910, split at random (Lake & Baroni 2018): train.tsv, dev.tsv, …
  scan-length  the same, tested on longer outputs than any trained on; scan-jump: on a verb never seen in a sentence
  inflection   lemma, features, form (columns 1, 2, 3) of invented Spanish verbs; the test's lemmas are new
  stories      kind, story, question, answer (columns 1 to 4), after bAbI (Weston et al. 2015)
"""


def run(arguments: Sequence[str]) -> int:
    """Run one of the four."""
    if not arguments or arguments[0] in ("-h", "--help"):
        print(spoken(HELP), end="")
        return 0 if arguments else 2
    actions = {"make": make, "check": check, "prepare": prepare, "invent": invent}
    if arguments[0] not in actions:
        near = suggestion(arguments[0], actions)
        raise ConfigError(f"unknown action {arguments[0]!r}{near}; `mirada data` knows make, check, prepare and invent")
    return actions[arguments[0]](arguments[1:])


def make(arguments: Sequence[str]) -> int:
    """Write an embedded corpus."""
    from mirada.corpora.jobs import KINDS, make_job
    from mirada.corpora.tables import write_tables

    parser = Parser("data make", "Write a corpus that rules make (train, dev and test) as files.", epilog=MADE)
    parser.add_argument("--kind", choices=("translation", *KINDS), default="translation", help="[translation]")
    parser.add_argument("--pairs", type=int, help="training pairs [translation 20000, inflection 6000, stories 9000]")
    parser.add_argument("--out", required=True, help="folder to write")
    parser.add_argument("--seed", type=int, default=1, help="of everything random [1]")
    parser.add_argument("--max-words", type=int, help="translation: longest English sentence, in words [50]")
    parser.add_argument("--force", action="store_true", help="overwrite files that exist")
    values = parser.read(arguments)
    if expanded(values.out).suffix.lower() in (".gz", ".xz", *UNWRITTEN):
        raise ConfigError(
            f"--out {values.out}: a folder is written there, and its name promises a packed file; choose another"
        )
    if values.kind != "translation":
        if values.max_words is not None:
            raise ConfigError(f"--max-words goes with --kind translation; with {values.kind} it would change nothing")
        tables = make_job(values.kind, pairs=values.pairs, seed=values.seed)
        for path in write_tables(tables, expanded(values.out), force=values.force):
            print(terminal(str(path)))
        return 0
    values.pairs = 20000 if values.pairs is None else values.pairs
    values.max_words = 50 if values.max_words is None else values.max_words

    from mirada.corpora.grammar import check_room, make_splits, write_splits

    needed = check_room(values.pairs, expanded(values.out), max_words=values.max_words)
    progress = _progress(values.pairs, needed)
    splits = make_splits(values.pairs, seed=values.seed, max_words=values.max_words, progress=progress)
    for path in write_splits(splits, expanded(values.out), force=values.force):
        print(terminal(str(path)))
    return 0


def invent(arguments: Sequence[str]) -> int:
    """Write the rows of a table, and after them rows with invented stems."""
    parser = Parser("data invent", "Write a table's rows, and after them rows that its own rows with new stems make.")
    parser.add_argument("--tsv", required=True, metavar="FILE", help="training pairs as tab-separated columns")
    parser.add_argument("--source-column", type=positive, default=1, help="column that holds the stem [1]")
    parser.add_argument("--target-column", type=positive, default=2, help="column that holds it too [2]")
    parser.add_argument("--pairs", type=positive, default=10000, help="rows to invent [10000]")
    parser.add_argument("--out", required=True, metavar="FILE", help="file to write")
    parser.add_argument("--seed", type=int, default=1, help="of everything random [1]")
    parser.add_argument("--force", action="store_true", help="overwrite a file that exists")
    values = parser.read(arguments)

    from mirada.corpora.invented import invent as make_rows
    from mirada.corpora.tables import table_text
    from mirada.data.corpus import read_lines
    from mirada.files import write_text

    out, columns = expanded(values.out), (values.source_column, values.target_column)
    if out.exists() and not values.force:
        raise DataError(f"{out}: exists; choose another file, or force (--force) to overwrite it")
    rows = [line.split("\t") for line in read_lines(expanded(values.tsv))]
    for number, row in enumerate(rows, start=1):
        if len(row) < max(columns):
            raise DataError(f"{values.tsv}:{number}: {len(row)} columns, expected at least {max(columns)}")
    made = make_rows(rows, values.pairs, source=columns[0] - 1, target=columns[1] - 1, seed=values.seed)
    write_text(out, table_text([*rows, *made]))
    return 0


def _progress(pairs: int, needed: int) -> Callable[[int], None]:
    """Say on standard error, for many pairs, how much room they will take, and now and then how many there are."""
    if pairs > MANY:
        say(f"about {needed / 1e6:,.0f} MB on disk, at most")

    def tell(made: int) -> None:
        if made % MANY == 0 and pairs > MANY:
            say(f"{made:,} pairs made, of {pairs:,} and dev and test")

    return tell


def check(arguments: Sequence[str]) -> int:
    """Report on a corpus; exit code 1 if something in it would hurt a training."""
    parser = Parser(
        "data check",
        "Report on a corpus before training. Exit code 0: fit to train on; 1: something would hurt.",
        epilog="example:\n  mirada data check --src train.en --tgt train.es --dev-src dev.en --dev-tgt dev.es",
    )
    add_options(parser, "data")
    parser.add_argument(
        "--seed", type=int, default=1, help="of the dev pairs that are split off where none are given [1]"
    )
    parser.add_argument("--test-src", metavar="FILE", help="source side of the test pairs")
    parser.add_argument("--test-tgt", metavar="FILE", help="target side of the test pairs")
    parser.add_argument("--test-tsv", metavar="FILE", help="test pairs as tab-separated columns")
    parser.add_argument("--test-jsonl", metavar="FILE", help="test pairs as JSON lines")
    parser.add_argument("--test-dataset", metavar="PATH", help="test pairs as --dataset has them")
    parser.add_argument(
        "--model", type=located, metavar="FOLDER", help="count dev and test tokens unknown to this model"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    values = parser.read(arguments)
    data_output()

    from mirada.cli.ticker import Ticker
    from mirada.config.configfile import parse
    from mirada.data.checks.check import check_corpus
    from mirada.data.checks.findings import exit_code, to_json, to_text

    given = collect(values).get("data", {})
    refuse_ignored({**given, **{kind: True for kind in ("tsv", "jsonl", "dataset") if getattr(values, f"test_{kind}")}})
    data = parse({"data": given}).data
    unknown = _unknown_rates(values.model)
    ticker = Ticker()
    try:
        report = check_corpus(
            data,
            test=_test(values, data),
            source_unknown=unknown[0],
            target_unknown=unknown[1],
            seed=values.seed,
            tell=ticker.tell,
        )
    finally:
        ticker.end()
    print(to_json(report) if values.json else to_text(report))
    return exit_code(report)


def prepare(arguments: Sequence[str]) -> int:
    """Prepare a corpus for training."""
    parser = Parser(
        "data prepare",
        "Learn the tokens of a corpus and cut it into them, once, in files that training reads as it needs them.",
        epilog="example:\n  mirada data prepare --src train.en.gz --tgt train.es.gz --out corpus\n"
        "  mirada train --prepared corpus --model-dir runs/large",
    )
    add_options(parser, "data")
    parser.add_argument("--out", required=True, metavar="DIR", help="folder to write")
    parser.add_argument(
        "--seed", type=int, default=1, help="of the dev pairs that are split off where none are given [1]"
    )
    parser.add_argument("--workers", type=positive, help="processes that cut texts into tokens [the cores there are]")
    values = parser.read(arguments)

    from mirada.cli.ticker import Ticker
    from mirada.config.configfile import parse
    from mirada.data.preparation import cores, prepare_corpus

    given = collect(values).get("data", {})
    refuse_ignored(given)
    ticker, workers = Ticker(), values.workers or cores()
    try:
        prepare_corpus(
            parse({"data": given}).data, expanded(values.out), seed=values.seed, workers=workers, tell=ticker.tell
        )
    finally:
        ticker.end()
    print(terminal(values.out))
    return 0


def _test(values: argparse.Namespace, data: DataConfig) -> DataConfig | None:
    given = {name: getattr(values, f"test_{name}") for name in FILES}
    if not any(given.values()):
        return None
    columns = {name: getattr(data, name) for name in FORMAT}
    return DataConfig.model_validate({**given, **columns})


Rate = Callable[[str], tuple[int, int]]


def _unknown_rates(model: str | None) -> tuple[Rate | None, Rate | None]:
    if model is None:
        return None, None
    from mirada.data.parts import SourceTokenizer
    from mirada.data.vocabulary import UNK
    from mirada.store.checkpoint import read_config, read_tokenizers

    def rate(tokenizer: SourceTokenizer) -> Rate:
        def count(text: str) -> tuple[int, int]:
            ids = tokenizer.encode([text])[0]
            return ids.count(UNK), len(ids)

        return count

    source, target = read_tokenizers(expanded(model), read_config(expanded(model)))
    return rate(source), rate(target)
