"""One line of a TSV or JSONL file as a pair of texts: a source, perhaps of several parts, a target, and references."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import NamedTuple

from mirada.errors import DataError, suggestion

PART, ITEM = "\t", "\x1e"  # between the parts of a source; between the texts of a list within one part
ARRAY = "one JSON array; expected one JSON object a line (jq -c '.[]' FILE > FILE.jsonl makes them)"
SURROGATE = re.compile("[\ud800-\udfff]")


class Row(NamedTuple):
    """What a line holds. A source of several parts has them joined by PART."""

    source: str
    target: str
    references: tuple[str, ...] = ()  # further ones, none blank


class Layout(NamedTuple):
    """The columns of a TSV file, from 0, of a source's parts and the target; `header`: the first line names them."""

    source: tuple[int, ...]
    target: int
    header: bool = False


def is_blank(text: str) -> bool:
    """Tell whether a side holds nothing but blanks (no-break and other Unicode blanks included)."""
    return not text.strip()


def find_columns(source: Sequence[str], target: str, first_line: str, where: str) -> Layout:
    """Find columns given by number (from 1) or by their names in the first line.

    Raises DataError for a name that the first line does not have.
    """
    names = [*source, target]
    header = [] if all(name.isdigit() for name in names) else first_line.split("\t")
    places = [int(name) - 1 if name.isdigit() else _named(name, header, where) for name in names]
    return Layout(tuple(places[:-1]), places[-1], bool(header))


def _named(name: str, header: Sequence[str], where: str) -> int:
    if name not in header:
        columns = f"columns of the first line: {', '.join(map(repr, header[:12]))}"
        raise DataError(f"{where}: no column named {name!r} ({columns}){suggestion(name, header)}")
    return header.index(name)


def parse_tsv(line: str, layout: Layout, where: str) -> Row:
    """Take the columns of a line, all empty for a blank line; raises DataError if there are too few."""
    fields = line.split("\t")
    most = max(*layout.source, layout.target)
    if most < len(fields):
        return Row(PART.join(fields[place] for place in layout.source), fields[layout.target])
    if is_blank(line):
        return Row("", "")
    plural = "" if len(fields) == 1 else "s"
    raise DataError(f"{where}: {len(fields)} column{plural}, expected at least {most + 1}, separated by tabs")


def parse_json(line: str, keys: tuple[Sequence[str], str], where: str) -> Row:
    """Take the texts under the source's keys and the target's, all empty for a blank line; raises DataError.

    A list of texts under a source's key is one part; under the target's key it is the target and further references.
    """
    record = parse_object(line, where)
    return Row("", "") if record is None else row_of(record, keys, where)


def row_of(record: dict[str, object], keys: tuple[Sequence[str], str], where: str) -> Row:
    """Take the texts that an object, or a row of a table, holds under the keys, as `parse_json` does."""
    source = json_source(record, keys[0], where)
    kept = [text for text in texts_under(record, keys[1], where) if not is_blank(text)]
    return Row(source, kept[0] if kept else "", tuple(kept[1:]))


def json_source(record: dict[str, object], keys: Sequence[str], where: str) -> str:
    """The source that an object holds under one key or several; a tab within one of several is a blank."""
    parts = [ITEM.join(texts_under(record, key, where)) for key in keys]
    return PART.join(part.replace(PART, " ") for part in parts) if len(parts) > 1 else parts[0]


def parse_object(line: str, where: str) -> dict[str, object] | None:
    """The JSON object of a line, None for a blank line; raises DataError for anything else."""
    if is_blank(line):
        return None
    try:
        record = json.loads(line, object_pairs_hook=_unique_keys)
    except json.JSONDecodeError as error:
        if line.lstrip().startswith("[") and where.endswith(":1"):
            raise DataError(f"{where}: {ARRAY}") from None
        raise DataError(f"{where}: not valid JSON ({error.msg}, column {error.colno})") from None
    except (ValueError, RecursionError) as error:
        raise DataError(f"{where}: not usable JSON ({error})") from None
    if isinstance(record, list) and where.endswith(":1"):
        raise DataError(f"{where}: {ARRAY}")
    if not isinstance(record, dict):
        raise DataError(f"{where}: expected a JSON object, got {_json_kind(record)}")
    return record


def _unique_keys(items: list[tuple[str, object]]) -> dict[str, object]:
    record = dict(items)
    if len(record) < len(items):
        names = [key for key, _ in items]
        twice = next(key for key in names if names.count(key) > 1)
        raise ValueError(f"key {twice!r} stands twice in an object")
    return record


def _json_kind(value: object) -> str:
    """Name a JSON value's kind as its standard does, another by its type (rows given from Python may hold some)."""
    kinds = {dict: "an object", list: "an array", str: "text", bool: "a boolean", type(None): "null"}
    return kinds.get(type(value), "a number" if isinstance(value, int | float) else type(value).__name__)


def texts_under(record: dict[str, object], key: str, where: str) -> list[str]:
    """The text under a key, or the texts of a list there; raises DataError for anything else."""
    value = record[key] if key in record else _descend(record, key, where)
    items: list[object] = value if isinstance(value, list) else [value]
    for item in items:
        if not isinstance(item, str):
            held = f"a list with {_json_kind(item)}" if isinstance(value, list) else _json_kind(item)
            raise DataError(f"{where}: key {key!r} holds {held}, expected text")
        if half := SURROGATE.search(item):
            code = ord(half[0])
            raise DataError(f"{where}: key {key!r} holds half a surrogate pair (\\u{code:04x}), which is no text")
    return [str(item) for item in items]


def _descend(record: dict[str, object], key: str, where: str) -> object:
    value: object = record
    for part in key.split("."):
        if not isinstance(value, dict) or part not in value:
            names = ", ".join(repr(name) for name in list(record)[:8]) or "none"
            raise DataError(f"{where}: no key {key!r} (keys of the line: {names}){suggestion(key, record)}")
        value = value[part]
    return value
