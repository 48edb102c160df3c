"""Further references of an item: columns of its row, as many as it has, or texts under a key. Absent is not empty."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from mirada.data.rows import is_blank
from mirada.errors import ConfigError, DataError, suggestion

COLUMNS = re.compile(r"([1-9]\d{0,5})(,[1-9]\d{0,5})*(-)?")


class Columns(NamedTuple):
    """Columns of a row, counted from 1, and the one from which on all the others belong to them."""

    numbers: tuple[int, ...]
    rest: int | None


def parse_columns(text: str) -> Columns:
    """Read columns written as 4, as 4,6 or as 4- (the fourth and all after it); raises ConfigError."""
    if not COLUMNS.fullmatch(text):
        raise ConfigError(f"expected columns such as 4, 4,6 or 4- (4 and all after it), got {text!r}")
    numbers = [int(part) for part in text.removesuffix("-").split(",")]
    return Columns(tuple(numbers[:-1]), numbers[-1]) if text.endswith("-") else Columns(tuple(numbers), None)


def references_in_rows(path: Path, rows: Sequence[str], columns: Columns) -> list[list[str]]:
    """Return the texts in some columns of each row, none for columns that a row lacks or leaves blank.

    Raises DataError if no row has any: the columns are not there.
    """
    found = []
    for row in rows:
        fields = row.split("\t")
        texts = [fields[n - 1] for n in columns.numbers if n <= len(fields)]
        texts += fields[columns.rest - 1 :] if columns.rest else []
        found.append([text for text in texts if not is_blank(text)])
    if not any(found):
        widest = max(row.count("\t") + 1 for row in rows)
        raise DataError(f"{path}: no line has a reference in the columns asked for (the most a line has are {widest})")
    return found


def references_in_records(path: Path, rows: Sequence[str], key: str) -> list[list[str]]:
    """Return the texts under a key of each JSON object, one or a list of them, none where it is absent, null or blank.

    Raises DataError with file:line for anything else under it, and if no line has it.
    """
    records = [json.loads(row) if not is_blank(row) else {} for row in rows]
    found = [_texts(record.get(key), f"{path}:{n}", key) for n, record in enumerate(records, start=1)]
    if not any(found):
        known = dict.fromkeys(name for record in records for name in record)
        raise DataError(f"{path}: no line has a reference under the key {key!r}{suggestion(key, list(known))}")
    return found


def references_in(path: Path, lines: Sequence[str], *, columns: str | None, key: str | None) -> list[list[str]]:
    """Return the references of each line in columns (`parse_columns`), or else under a key; raises as these do."""
    if columns:
        return references_in_rows(path, lines, parse_columns(columns))
    return references_in_records(path, lines, str(key))


def _texts(value: Any, where: str, key: str) -> list[str]:
    texts = [value] if isinstance(value, str) else [] if value is None else value
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise DataError(f"{where}: key {key!r} holds neither a text nor a list of texts")
    return [text for text in texts if not is_blank(text)]
