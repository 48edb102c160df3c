"""Corpora of other jobs than translation: train, dev and test as rows of columns, written as tab-separated files."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from mirada.errors import DataError
from mirada.files import write_text

Row = tuple[str, ...]


class Tables(NamedTuple):
    """Three lists of rows."""

    train: list[Row]
    dev: list[Row]
    test: list[Row]


def write_tables(tables: Tables, folder: Path, *, force: bool = False) -> list[Path]:
    """Write train.tsv, dev.tsv and test.tsv; raises DataError if one exists, unless `force`, or no folder can be."""
    contents = {folder / f"{name}.tsv": rows for name, rows in zip(Tables._fields, tables, strict=True)}
    existing = [path for path in contents if path.exists()]
    if existing and not force:
        raise DataError(f"{existing[0]}: exists; choose another folder, or force (--force) to overwrite it")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DataError(f"{folder}: cannot be made a folder ({error.strerror}); choose another one") from None
    for path, rows in contents.items():
        write_text(path, table_text(rows))
    return list(contents)


def table_text(rows: Iterable[Sequence[str]]) -> str:
    """Return rows as tab-separated lines."""
    return "".join("\t".join(row) + "\n" for row in rows)
