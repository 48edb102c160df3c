"""Pairs that are in memory: two lists, pairs, rows, or a table of pandas, polars, pyarrow or datasets, as a corpus.

No library of tables is imported: a table is what names its columns and gives each by its name. Rows become the records
that a line of a JSON file holds, so what may stand in them, and what is said of the rest, is the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePath
from typing import Any, NamedTuple

from mirada.config.data import DataConfig, parts_of
from mirada.data.corpus import Corpus, keep_pairs
from mirada.data.rows import Row, is_blank, json_source, texts_under
from mirada.errors import DataError, suggestion
from mirada.texts import check_texts

FILES = "a file is given by an option: tsv=, jsonl=, or src= and tgt="
PAIR = ("source", "target")
Record = dict[str, Any]


class Keys(NamedTuple):
    """The names under which rows hold the parts of a source, and the target."""

    source: tuple[str, ...]
    target: str


USUAL = Keys(PAIR[:1], PAIR[1])


class Rows(NamedTuple):
    """Rows by number from 1, and where their texts stand."""

    records: Iterable[tuple[int, Record]]
    keys: Keys


def read(data: Any, targets: Any, options: DataConfig, name: str) -> tuple[Corpus, Keys]:
    """Pairs with text on both sides, and the names of their parts; `name` is what messages call them.

    `data` is sources beside `targets`; or pairs, rows as mappings, or a table. Raises DataError, naming the row.
    """
    rows = _two_lists(data, targets) if targets is not None else _rows(data, options, name)
    found = ((number, _row(record, rows.keys, f"{name}, row {number}")) for number, record in rows.records)
    return keep_pairs(found, name), rows.keys


def texts(values: Any, names: str, name: str) -> list[str]:
    """A list of texts, of whatever gives some; raises DataError for one text, a path, or what is no text."""
    if isinstance(values, str):
        check_texts(values, names, name)
    if isinstance(values, bytes | PurePath | Mapping) or not isinstance(values, Iterable):
        raise DataError(f"expected a list of {names}, got {type(values).__name__}")
    found = list(values)
    check_texts(found, names, name)
    return found


def _two_lists(sources: Any, targets: Any) -> Rows:
    sides = texts(sources, "sources", "source"), texts(targets, "targets", "target")
    if len(sides[0]) != len(sides[1]):
        raise DataError(f"{len(sides[0])} sources and {len(sides[1])} targets; number n of both must belong together")
    return Rows(enumerate((dict(zip(PAIR, pair, strict=True)) for pair in zip(*sides, strict=True)), 1), USUAL)


def _rows(data: Any, options: DataConfig, name: str) -> Rows:
    """Rows of a table, or of what is gone through."""
    if isinstance(data, str | bytes | PurePath):
        raise DataError(f"{name}: expected pairs or a table, got {type(data).__name__} {str(data)!r:.80}; {FILES}")
    columns = _columns(data)
    if columns is not None:
        return _of_table(data, columns, options, name)
    if not isinstance(data, Iterable):
        raise DataError(f"{name}: expected pairs or a table, got {type(data).__name__}")
    items = list(data)
    if items and isinstance(items[0], Mapping):
        keys = Keys(options.source_keys, options.target_key)
        return Rows(((n, _mapping(item, f"{name}, row {n}")) for n, item in enumerate(items, 1)), keys)
    return Rows(((n, _pair(item, f"{name}, row {n}")) for n, item in enumerate(items, 1)), USUAL)


def _columns(data: Any) -> list[Any] | None:
    """The names of a table's columns; None for what is no table."""
    if isinstance(data, Mapping):
        return list(data)
    for name in ("column_names", "columns"):  # pyarrow's `columns` are not names
        names = getattr(data, name, None)
        if names is not None and not callable(names):
            return list(names)
    return None


def _of_table(table: Any, columns: list[Any], options: DataConfig, name: str) -> Rows:
    """By columns; by keys, which reach into what a column holds, where those are given."""
    if {"source_key", "target_key"} & options.model_fields_set:
        keys, chosen = Keys(options.source_keys, options.target_key), columns
    else:
        chosen = [_column(columns, one, name) for one in (*options.source_columns, *parts_of(options.target_column))]
        keys = Keys(tuple(map(str, chosen[:-1])), str(chosen[-1]))
    values = [_values(table[column]) for column in chosen]
    if len(lengths := {len(one) for one in values}) > 1:
        raise DataError(f"{name}: columns of different lengths ({', '.join(map(str, sorted(lengths)))})")
    records = (dict(zip(map(str, chosen), row, strict=True)) for row in zip(*values, strict=True))
    return Rows(enumerate(records, start=1), keys)


def _column(columns: Sequence[Any], wanted: str, name: str) -> Any:
    """A column by its name, or by its number from 1."""
    names = [str(column) for column in columns]
    if wanted in names:
        return columns[names.index(wanted)]
    if wanted.isdigit() and int(wanted) <= len(columns):
        return columns[int(wanted) - 1]
    known = f"columns: {', '.join(map(repr, names[:12])) or 'none'}"
    raise DataError(f"{name}: no column {wanted!r} ({known}){suggestion(wanted, names)}")


def _values(column: Any) -> list[Any]:
    """A column as a list: pyarrow's, that of pandas and polars, or any other."""
    for method in ("to_pylist", "to_list"):
        if hasattr(column, method):
            return list(getattr(column, method)())
    return list(column) if isinstance(column, Iterable) and not isinstance(column, str) else [column]


def _mapping(item: Any, where: str) -> Record:
    if not isinstance(item, Mapping):
        raise DataError(f"{where}: expected a mapping like the first, got {type(item).__name__}")
    return dict(item)


def _pair(item: Any, where: str) -> Record:
    if isinstance(item, str | bytes) or not isinstance(item, Sequence) or len(item) != 2:
        size = f" of {len(item)}" if isinstance(item, tuple | list) else ""
        raise DataError(f"{where}: expected (source, target), got {type(item).__name__}{size}")
    return dict(zip(PAIR, item, strict=True))


def _row(record: Record, keys: Keys, where: str) -> Row:
    target = [text for text in texts_under(record, keys.target, where) if not is_blank(text)]
    return Row(json_source(record, keys.source, where), target[0] if target else "", tuple(target[1:]))
