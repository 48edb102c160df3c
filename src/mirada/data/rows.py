"""One line of a TSV or JSONL file as a pair of texts."""

from __future__ import annotations

import json
import re

from mirada.errors import DataError, suggestion

ARRAY = "one JSON array; expected one JSON object a line (jq -c '.[]' FILE > FILE.jsonl makes them)"
SURROGATE = re.compile("[\ud800-\udfff]")


def is_blank(text: str) -> bool:
    """Tell whether a side holds nothing but blanks (no-break and other Unicode blanks included)."""
    return not text.strip()


def parse_tsv(line: str, columns: tuple[int, int], where: str) -> tuple[str, str]:
    """Take two columns (from 1) of a line, both empty for a blank line; raises DataError if there are too few."""
    fields = line.split("\t")
    if max(columns) <= len(fields):
        return fields[columns[0] - 1], fields[columns[1] - 1]
    if is_blank(line):
        return "", ""
    plural = "" if len(fields) == 1 else "s"
    raise DataError(f"{where}: {len(fields)} column{plural}, expected at least {max(columns)}, separated by tabs")


def parse_json(line: str, keys: tuple[str, str], where: str) -> tuple[str, str]:
    """Take the text under two keys of a JSON object, both empty for a blank line; raises DataError."""
    if is_blank(line):
        return "", ""
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
    return _text_under(record, keys[0], where), _text_under(record, keys[1], where)


def _unique_keys(items: list[tuple[str, object]]) -> dict[str, object]:
    record = dict(items)
    if len(record) < len(items):
        names = [key for key, _ in items]
        twice = next(key for key in names if names.count(key) > 1)
        raise ValueError(f"key {twice!r} stands twice in an object")
    return record


def _json_kind(value: object) -> str:
    """Name a JSON value's kind as its standard does."""
    kinds = {dict: "an object", list: "an array", str: "text", bool: "a boolean", type(None): "null"}
    return kinds.get(type(value), "a number")


def _text_under(record: dict[str, object], key: str, where: str) -> str:
    value = record[key] if key in record else _descend(record, key, where)
    if not isinstance(value, str):
        raise DataError(f"{where}: key {key!r} holds {_json_kind(value)}, expected text")
    if half := SURROGATE.search(value):
        raise DataError(f"{where}: key {key!r} holds half a surrogate pair (\\u{ord(half[0]):04x}), which is no text")
    return value


def _descend(record: dict[str, object], key: str, where: str) -> object:
    value: object = record
    for part in key.split("."):
        if not isinstance(value, dict) or part not in value:
            names = ", ".join(repr(name) for name in list(record)[:8]) or "none"
            raise DataError(f"{where}: no key {key!r} (keys of the line: {names}){suggestion(key, record)}")
        value = value[part]
    return value
