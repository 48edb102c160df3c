"""What outputs are measured by, named by flags: references, and beside them sources, groups, clusters and values."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import NamedTuple, TypeVar

from mirada.cli import say
from mirada.cli.flags import collect, positive
from mirada.cli.pairs import add_pairs, read_pairs
from mirada.errors import ConfigError, DataError
from mirada.files import expanded

T = TypeVar("T")


class Items(NamedTuple):
    """Item by item; groups, clusters and values are empty lists where none were named."""

    lines: Sequence[int]  # of the files, from 1
    sources: Sequence[str]
    references: list[list[str]]
    groups: list[str]
    clusters: list[str]
    values: list[list[str]]
    total: int  # lines of the files, those without an item included
    first: int = 1  # the line at which they begin


def add_items(parser: argparse.ArgumentParser) -> None:
    """Add the flags that name items."""
    parser.add_argument("--ref", metavar="FILE", action="append", help="references for --hyp; give it again for more")
    parser.add_argument(
        "--multi-reference", action="store_true", help="pairs with the same source are one item with several references"
    )
    group, cluster = "show the first metric by group", "draw whole clusters for the intervals"
    parser.add_argument("--group-column", type=positive, metavar="N", help=f"{group}: column N of --tsv")
    parser.add_argument("--groups", metavar="FILE", help=f"{group}: line n names the group of pair n")
    parser.add_argument("--cluster-column", type=positive, metavar="N", help=f"{cluster}: column N of --tsv")
    parser.add_argument("--clusters", metavar="FILE", help=f"{cluster}: line n names the cluster of pair n")
    parser.add_argument("--reference-column", metavar="N", help="further references: columns 4,6 or 4- (and all after)")
    parser.add_argument("--reference-key", metavar="KEY", help="further references: texts under a key of --jsonl")
    parser.add_argument("--values", metavar="FILE", help="strings that output n must hold, by tabs in line n: recall")
    add_pairs(parser)


def items_of_pairs(values: argparse.Namespace) -> Items:
    """Read the items that pairs of files give; raises ConfigError or DataError."""
    pairs = read_pairs(collect(values).get("data", {}), *values.models[:1])
    total = len(pairs) + len(pairs.skipped)
    _say_left_out("a blank side", pairs.skipped, total)
    further = _further(values, pairs.lines)
    references = [[*own, *more] for own, more in zip(pairs.all_references(), further, strict=True)]
    items = _with_beside(values, Items(pairs.lines, pairs.sources, references, [], [], [], total, pairs.first))
    return _merged(items) if values.multi_reference else items


def _further(values: argparse.Namespace, lines: Sequence[int]) -> list[list[str]]:
    """The references of each pair besides its target, in columns or under a key."""
    from mirada.data.corpus import read_lines
    from mirada.data.references import parse_columns, references_in_records, references_in_rows

    tsv, jsonl = (vars(values)[f"data.{kind}"] for kind in ("tsv", "jsonl"))
    for flag, path, kind in (("column", tsv, "tsv"), ("key", jsonl, "jsonl")):
        if vars(values)[f"reference_{flag}"] and not path:
            raise ConfigError(f"--reference-{flag} goes with --{kind}, whose {flag}s it names")
    if values.reference_column:
        columns = parse_columns(values.reference_column)
        found = references_in_rows(tsv, read_lines(expanded(tsv)), columns)
    elif values.reference_key:
        found = references_in_records(jsonl, read_lines(expanded(jsonl)), values.reference_key)
    else:
        return [[] for _ in lines]
    return [found[line - 1] for line in lines]


def items_of_references(values: argparse.Namespace, hypotheses: Sequence[str]) -> Items:
    """Read the items that files of references give; a blank line stands for a reference that is not there."""
    from mirada.data.corpus import read_lines

    source = vars(values)["data.src"]
    names = [*values.ref, *([source] if source else [])]
    sides = [read_lines(expanded(name)) for name in names]
    for name, side in zip(names, sides, strict=True):
        if len(side) != len(hypotheses):
            raise DataError(f"{values.hyp} has {len(hypotheses)} lines and {name} has {len(side)}; they must be equal")
    columns = sides[: len(values.ref)]
    rows = [[text for text in row if text.strip()] for row in zip(*columns, strict=True)]
    kept = [index for index, row in enumerate(rows) if row]
    if not kept:
        raise DataError(f"{', '.join(values.ref)}: no line has a reference")
    _say_left_out("want of a reference", [n + 1 for n, row in enumerate(rows) if not row], len(rows))
    sources = [sides[-1][i] for i in kept] if source else []
    lines = [index + 1 for index in kept]
    return _with_beside(values, Items(lines, sources, [rows[i] for i in kept], [], [], [], len(rows)))


def _say_left_out(why: str, lines: Sequence[int], total: int) -> None:
    if lines:
        shown = ", ".join(map(str, lines[:5])) + (", …" if len(lines) > 5 else "")
        say(f"left out for {why}: {len(lines)} of {total} items (lines {shown})")


def _with_beside(values: argparse.Namespace, items: Items) -> Items:
    """Add what stands beside the items: a column of the TSV file, or a file of its own."""
    wanted = _lines_of(values.values, items) if values.values else []
    return items._replace(
        groups=_names(values, "group", items),
        clusters=_names(values, "cluster", items),
        values=[line.split("\t") for line in wanted],
    )


def _names(values: argparse.Namespace, what: str, items: Items) -> list[str]:
    """The group or cluster of each item, none where no flag names them."""
    from mirada.data.corpus import read_lines

    path, column = vars(values)[f"{what}s"], vars(values)[f"{what}_column"]
    if path and column:
        raise ConfigError(f"--{what}-column and --{what}s name the same thing; give one of them")
    if path:
        return _lines_of(path, items)
    if not column:
        return []
    tsv = vars(values)["data.tsv"]
    if not tsv:
        raise ConfigError(f"--{what}-column counts columns of --tsv; beside other files give --{what}s FILE")
    rows = [line.split("\t") for line in read_lines(expanded(tsv))]
    for line in items.lines:
        if column > len(rows[line - 1]):
            raise DataError(f"{tsv}:{line}: {len(rows[line - 1])} columns, and --{what}-column is {column}")
    return [rows[line - 1][column - 1] for line in items.lines]


def _lines_of(path: str, items: Items) -> list[str]:
    from mirada.data.corpus import read_lines

    lines = read_lines(expanded(path))
    if len(lines) != items.total:
        raise DataError(f"{path} has {len(lines)} lines for {items.total} lines of pairs; they must be equal")
    return [lines[line - items.first] for line in items.lines]


def _merged(items: Items) -> Items:
    """Make pairs with the same source one item, where the first of them stands."""
    places: dict[str, list[int]] = {}
    for index, source in enumerate(items.sources):
        places.setdefault(source, []).append(index)
    firsts = [several[0] for several in places.values()]
    merged = [[text for i in several for text in items.references[i]] for several in places.values()]
    strings = [[value for i in several for value in items.values[i]] for several in places.values() if items.values]
    return Items(
        _at(items.lines, firsts),
        list(places),
        merged,
        _at(items.groups, firsts),
        _at(items.clusters, firsts),
        strings,
        items.total,
        items.first,
    )


def _at(column: Sequence[T], places: Sequence[int]) -> list[T]:
    return [column[place] for place in places] if column else []
