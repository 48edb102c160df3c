"""The check of a corpus before training: reads what can be read, reports what would hurt, raises only for no file.

Errors: bytes that are no UTF-8, rows that cannot be read, unequal line counts, no pairs, pairs of dev or test that
stand in train. The rest is a warning, or a note where it is often meant so.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np

from mirada.config.options import DataConfig
from mirada.data import corpus
from mirada.data.checks.characters import EXAMPLES, Side, check_characters, check_rare, scripts
from mirada.data.checks.findings import SEVERITIES, Finding, Report, SetSummary, SideSummary
from mirada.data.checks.misalignment import describe_counts
from mirada.data.checks.pairs import (
    PairSet,
    UnknownRate,
    check_blank,
    check_contents,
    check_lengths,
    check_overlap,
    check_repeats,
    check_unknown,
    check_unseen,
    length_unit,
    lengths,
)
from mirada.data.checks.tokens import check_tokens
from mirada.data.lines import decode_line
from mirada.data.rows import Layout, Row, find_columns, is_blank, parse_json, parse_tsv, row_of
from mirada.data.spool import Spool
from mirada.data.tables import records_of
from mirada.data.telling import Tell, silent
from mirada.errors import DataError

SIDES = ("source", "target")
OFTEN = 10_000  # lines between words of progress
Found = TypeVar("Found")


def check_corpus(
    config: DataConfig,
    *,
    test: DataConfig | None = None,
    source_unknown: UnknownRate | None = None,
    target_unknown: UnknownRate | None = None,
    seed: int = 1,
    tell: Tell = silent,
) -> Report:
    """Check the training pairs of `config`, its dev pairs, and the pairs that `test` names as its training pairs.

    `source_unknown` and `target_unknown` count tokens of dev and test outside the vocabularies; `seed` splits off dev
    where there is none, as training does. `tell` hears how far it is. Of a large corpus only a part is in memory.
    Raises ConfigError if no or several ways are given, DataError if a file is missing or cannot be unpacked.
    """
    with ExitStack() as stack:
        reader = Reader(config, stack, tell)
        train = reader.read("train", corpus.required_files(config, "training"))
        dev = corpus.chosen_files(config, dev=True)
        held_out = [reader.read("dev", dev)] if dev else []
        if test:
            files = corpus.required_files(test, "test")
            held_out.append(reader._replace(config=test).read("test", files))
        summaries, findings = [], []
        for pairs in (train, *held_out):
            summary, found = check_set(pairs, tell)
            summaries.append(summary)
            findings += found
        findings += check_tokens(config, train, held_out[0] if dev else None, seed=seed, tell=tell)
        findings += [*check_rare(train.source), *check_rare(train.target)]
        for pairs in held_out:
            tell(f"comparing train with {pairs.name}", len(train.source.lines), None)
            findings += [*check_overlap(train, pairs), *check_unseen(train.source, pairs.source)]
            findings += check_unseen(train.target, pairs.target)
            findings += check_unknown(pairs.source, source_unknown) + check_unknown(pairs.target, target_unknown)
    findings.sort(key=lambda finding: SEVERITIES.index(finding.severity))
    return Report(tuple(summaries), tuple(findings))


class Complaints:
    """What is wrong with lines: how many are, and the first of them."""

    def __init__(self) -> None:
        self.count = 0
        self.first: list[str] = []

    def add(self, complaint: str) -> None:
        """Add one."""
        self.count += 1
        self.first += [complaint] * (self.count <= EXAMPLES)

    def heard(self, read: Callable[..., Found], *arguments: Any) -> Found | None:
        """What `read` makes of these arguments, or nothing and one complaint more."""
        try:
            return read(*arguments)
        except DataError as error:
            self.add(str(error))
            return None


class Reader(NamedTuple):
    """Reads sets of pairs as these options say, turning what cannot be decoded or split into findings."""

    config: DataConfig
    stack: ExitStack
    tell: Tell

    def read(self, name: str, files: corpus.Files) -> PairSet:
        """Read a set; raises DataError for no file."""
        if files.kind == "prepared":
            return self._prepared(name, files)
        return self._parallel(name, files) if files.kind == "text" else self._rows(name, files)

    def _prepared(self, name: str, files: corpus.Files) -> PairSet:
        found = corpus.read_files(files, self.config)
        sides = found.sources, found.targets
        source, target = (
            Side(f"{name} {what}", found.name, side, found.lines) for what, side in zip(SIDES, sides, strict=True)
        )
        return PairSet(name, source, target, ())

    def _parallel(self, name: str, files: corpus.Files) -> PairSet:
        sides, findings = [], []
        for what, path in zip(SIDES, files.paths, strict=True):
            complaints, lines = Complaints(), Spool(self.stack)
            for line in self._lines(path, complaints):
                lines.add(line)
            texts = lines.texts()
            sides.append(Side(f"{name} {what}", str(path), texts, range(1, len(texts) + 1)))
            findings += _undecodable(name, complaints, len(texts))
        return PairSet(name, sides[0], sides[1], (*findings, *_unequal(name, *sides)))

    def _lines(self, path: Path, complaints: Complaints) -> Iterator[str]:
        r"""The lines of a file, with complaints about those that are no UTF-8 (in these, \xXXX for a byte)."""
        with corpus.open_text(path) as stream:
            for number, raw in enumerate(corpus.raw_lines(stream, str(path)), start=1):
                if number % OFTEN == 0:
                    self.tell(f"reading {path}", number, None)
                try:
                    line = decode_line(raw, str(path), number)
                except DataError as error:
                    complaints.add(str(error))
                    line = raw.decode("utf-8", errors="backslashreplace")
                yield line

    def _rows(self, name: str, files: corpus.Files) -> PairSet:
        """Read a file of rows; those that cannot be read are complaints and stand in no side."""
        path, undecodable, bad = files.paths[0], Complaints(), Complaints()
        numbers, sides, total = array("l"), (Spool(self.stack), Spool(self.stack)), 0
        for number, row in self._parsed(files, undecodable, bad):
            total += 1
            if row is not None:
                numbers.append(number)
                sides[0].add(row.source)
                sides[1].add(row.target)
        texts = [side.texts() for side in sides]
        source, target = (
            Side(f"{name} {what}", str(path), own, numbers) for what, own in zip(SIDES, texts, strict=True)
        )
        message = f"{name}: {bad.count} of {total} rows that cannot be read"
        findings = _undecodable(name, undecodable, total), _complain("bad_rows", bad, total, message)
        return PairSet(name, source, target, (*findings[0], *findings[1]))

    def _parsed(
        self, files: corpus.Files, undecodable: Complaints, bad: Complaints
    ) -> Iterator[tuple[int, Row | None]]:
        """The rows of a file; none for one that cannot be read, and for a line that names columns."""
        keys, path = (self.config.source_keys, self.config.target_key), files.paths[0]
        if files.kind == "dataset":
            records = enumerate(records_of(path, [*keys[0], keys[1]]), start=1)
            yield from ((n, bad.heard(row_of, record, keys, f"{path}:{n}")) for n, record in records)
            return
        layout: Layout | None = None
        for number, line in enumerate(self._lines(path, undecodable), start=1):
            where = f"{path}:{number}"
            if files.kind == "jsonl":
                yield number, bad.heard(parse_json, line, keys, where)
                continue
            if layout is None:
                columns = self.config.source_columns, self.config.target_column
                layout = bad.heard(find_columns, *columns, line, where)
                if layout is None:  # the columns are not there: no line has them
                    return
            yield number, None if layout.header and number == 1 else bad.heard(parse_tsv, line, layout, where)


def _complain(kind: str, complaints: Complaints, total: int, message: str) -> list[Finding]:
    return (
        [Finding(kind, "error", complaints.count, total, message, tuple(complaints.first))] if complaints.count else []
    )


def _undecodable(name: str, complaints: Complaints, total: int) -> list[Finding]:
    return _complain(
        "undecodable", complaints, total, f"{name}: {complaints.count} of {total} lines that are not UTF-8"
    )


def _unequal(name: str, source: Side, target: Side) -> list[Finding]:
    counts = len(source.lines), len(target.lines)
    if counts[0] == counts[1]:
        return []
    message = describe_counts(source.name, target.name, source.lines, target.lines)
    return [Finding("line_counts", "error", abs(counts[0] - counts[1]), max(counts), f"{name}: {message}", ())]


def check_set(pairs: PairSet, tell: Tell = silent) -> tuple[SetSummary, list[Finding]]:
    """Check one set by itself."""
    total, kept = len(pairs.source.lines), int(pairs.whole.sum())
    findings = list(pairs.findings)
    for side in (pairs.source, pairs.target):
        tell(f"{side.label}: characters", len(side.lines), None)
        findings += check_characters(side)
    tell(f"{pairs.name}: pairs", total, None)
    findings += [*check_blank(pairs), *check_repeats(pairs), *check_contents(pairs), *check_lengths(pairs)]
    skipped = total - kept if pairs.parallel else 0
    return SetSummary(pairs.name, kept, skipped, summarise(pairs.source), summarise(pairs.target)), findings


def summarise(side: Side) -> SideSummary:
    """Count lengths and characters of a side."""
    unit = length_unit(line for line in side.lines if not is_blank(line))
    sizes = lengths((line for line in side.lines if not is_blank(line)), unit)
    middle, longest = (int(np.median(sizes)), int(sizes.max())) if len(sizes) else (0, 0)
    by_script = scripts(side.counts)
    return SideSummary(side.name, len(side.lines), unit, int(sizes.sum()), middle, longest, len(side.counts), by_script)
