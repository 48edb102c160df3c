"""The check of a corpus before training: reads what can be read, reports what would hurt, raises only for no file.

Errors: bytes that are no UTF-8, rows that cannot be read, unequal line counts, no pairs, pairs of dev or test that
stand in train. The rest is a warning, or a note where it is often meant so.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

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
from mirada.data.rows import Layout, Row, find_columns, is_blank, parse_json, parse_tsv
from mirada.errors import DataError


def check_corpus(
    config: DataConfig,
    *,
    test: DataConfig | None = None,
    source_unknown: UnknownRate | None = None,
    target_unknown: UnknownRate | None = None,
    seed: int = 1,
) -> Report:
    """Check the training pairs of `config`, its dev pairs, and the pairs that `test` names as its training pairs.

    `source_unknown` and `target_unknown` count tokens of dev and test outside the vocabularies; `seed` splits off dev
    where there is none, as training does.
    Raises ConfigError if no or several ways are given, DataError if a file is missing or cannot be unpacked.
    """
    train = read_set("train", corpus.required_files(config, "training"), config)
    dev = corpus.chosen_files(config, dev=True)
    held_out = [read_set("dev", dev, config)] if dev else []
    held_out += [read_set("test", corpus.required_files(test, "test"), test)] if test else []
    summaries, findings = [], []
    for pairs in (train, *held_out):
        summary, found = check_set(pairs)
        summaries.append(summary)
        findings += found
    findings += check_tokens(config, train, held_out[0] if dev else None, seed=seed)
    findings += [*check_rare(train.source), *check_rare(train.target)]
    for pairs in held_out:
        findings += [*check_overlap(train, pairs), *check_unseen(train.source, pairs.source)]
        findings += check_unseen(train.target, pairs.target)
        findings += check_unknown(pairs.source, source_unknown) + check_unknown(pairs.target, target_unknown)
    findings.sort(key=lambda finding: SEVERITIES.index(finding.severity))
    return Report(tuple(summaries), tuple(findings))


def read_set(name: str, files: corpus.Files, config: DataConfig) -> PairSet:
    """Read a set of pairs, turning what cannot be decoded or split into findings; raises DataError for no file."""
    if files.kind != "text":
        return _read_rows(name, files, config)
    sides, findings = [], []
    for what, path in zip(("source", "target"), files.paths, strict=True):
        lines, complaints = _read_side(path)
        sides.append(Side(f"{name} {what}", str(path), lines, range(1, len(lines) + 1)))
        findings += _undecodable(name, complaints, len(lines))
    return PairSet(name, sides[0], sides[1], (*findings, *_unequal(name, *sides)))


def _read_side(path: Path) -> tuple[list[str], list[str]]:
    r"""Return the lines of a file and the complaints about lines that are no UTF-8 (in these, \xXX for a byte)."""
    lines, complaints = [], []
    with corpus.open_text(path) as stream:
        for number, raw in enumerate(corpus.raw_lines(stream, str(path)), start=1):
            try:
                lines.append(corpus.decode_line(raw, str(path), number))
            except DataError as error:
                complaints.append(str(error))
                lines.append(raw.decode("utf-8", errors="backslashreplace"))
    return lines, complaints


def _read_rows(name: str, files: corpus.Files, config: DataConfig) -> PairSet:
    """Read a TSV or JSONL file; rows that cannot be read are complaints and stand in no side."""
    path = files.paths[0]
    lines, undecodable = _read_side(path)
    rows: list[tuple[int, Row]] = []
    complaints = []
    try:
        first = lines[0] if lines else ""
        names = (config.source_columns, config.target_column)
        layout = find_columns(*names, first, f"{path}:1") if files.kind == "tsv" else None
    except DataError as error:
        layout, complaints, lines = None, [str(error)], []
    for number, line in enumerate(lines, start=1):
        try:
            if layout is None or number > layout.header:
                rows.append((number, _parse(line, layout, config, f"{path}:{number}")))
        except DataError as error:
            complaints.append(str(error))
    numbers = [number for number, _ in rows]
    source = Side(f"{name} source", str(path), [row.source for _, row in rows], numbers)
    target = Side(f"{name} target", str(path), [row.target for _, row in rows], numbers)
    message = f"{name}: {len(complaints)} of {len(lines)} rows that cannot be read"
    bad = _complain("bad_rows", complaints, len(lines), message)
    return PairSet(name, source, target, (*_undecodable(name, undecodable, len(lines)), *bad))


def _parse(line: str, layout: Layout | None, config: DataConfig, where: str) -> Row:
    if layout is not None:
        return parse_tsv(line, layout, where)
    return parse_json(line, (config.source_keys, config.target_key), where)


def _complain(kind: str, complaints: Sequence[str], total: int, message: str) -> list[Finding]:
    examples = tuple(complaints[:EXAMPLES])
    return [Finding(kind, "error", len(complaints), total, message, examples)] if complaints else []


def _undecodable(name: str, complaints: Sequence[str], total: int) -> list[Finding]:
    return _complain("undecodable", complaints, total, f"{name}: {len(complaints)} of {total} lines that are not UTF-8")


def _unequal(name: str, source: Side, target: Side) -> list[Finding]:
    counts = len(source.lines), len(target.lines)
    if counts[0] == counts[1]:
        return []
    message = describe_counts(source.name, target.name, source.lines, target.lines)
    return [Finding("line_counts", "error", abs(counts[0] - counts[1]), max(counts), f"{name}: {message}", ())]


def check_set(pairs: PairSet) -> tuple[SetSummary, list[Finding]]:
    """Check one set by itself."""
    kept = pairs.kept()
    findings = [*pairs.findings, *check_characters(pairs.source), *check_characters(pairs.target)]
    findings += [*check_blank(pairs, kept), *check_repeats(pairs, kept), *check_contents(pairs, kept)]
    findings += check_lengths(pairs, kept)
    skipped = len(pairs.source.lines) - len(kept) if pairs.parallel else 0
    return SetSummary(pairs.name, len(kept), skipped, summarise(pairs.source), summarise(pairs.target)), findings


def summarise(side: Side) -> SideSummary:
    """Count lengths and characters of a side."""
    lines = [line for line in side.lines if not is_blank(line)]
    unit = length_unit(lines)
    sizes = lengths(lines, unit)
    middle, longest = (int(np.median(sizes)), int(sizes.max())) if lines else (0, 0)
    by_script = scripts(side.counts)
    return SideSummary(side.name, len(side.lines), unit, int(sizes.sum()), middle, longest, len(side.counts), by_script)
