"""Rows of Parquet files and of folders that Hugging Face datasets saved, read with pyarrow alone, some at a time."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from mirada.data.shards import arrow, first_line
from mirada.errors import DataError, suggestion

TOGETHER = 4096  # rows
SPLITS, STATE = "dataset_dict.json", "state.json"  # of datasets: the parts of one folder; the files of one part


def records_of(path: Path, keys: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Yield the rows as mappings with the columns that the keys begin in; a key `a.b` reaches into a struct.

    Raises DataError for what is missing, damaged or of another kind, and for a column that is not there.
    """
    pyarrow = arrow()
    for file in files_of(path):
        try:
            for batch in _batches(file, keys):
                yield from batch.to_pylist()
        except (OSError, ValueError, pyarrow.ArrowException) as error:
            raise DataError(f"{file}: cannot be read as {_kind(file)} ({first_line(error)})") from None


def files_of(path: Path) -> list[Path]:
    """The files of a dataset in their order: the file itself, those that a saved folder names, or all Parquet files."""
    if path.is_file():
        return [path]
    if not path.is_dir():
        raise DataError(f"{path}: no such file or folder")
    if (path / SPLITS).is_file():
        splits = sorted(part.name for part in path.iterdir() if (part / STATE).is_file())
        raise DataError(f"{path}: a dataset of the splits {', '.join(splits) or 'none'}; name one (DIR/train)")
    found = _saved(path / STATE) if (path / STATE).is_file() else sorted(path.rglob("*.parquet"))
    if not found:
        raise DataError(f"{path}: neither Parquet files nor a dataset that save_to_disk wrote ({STATE} is missing)")
    return found


def _saved(state: Path) -> list[Path]:
    """The Arrow files that `save_to_disk` names in its state."""
    try:
        names = [str(entry["filename"]) for entry in json.loads(state.read_text(encoding="utf-8"))["_data_files"]]
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise DataError(f"{state}: not the state of a saved dataset ({first_line(error)})") from None
    missing = [name for name in names if Path(name).name != name or not (state.parent / name).is_file()]
    if missing or not names:
        raise DataError(f"{state.parent}: the dataset's file {missing[0] if missing else '(none)'} is not there")
    return [state.parent / name for name in names]


def _kind(file: Path) -> str:
    return "Arrow" if file.suffix == ".arrow" else "Parquet"


def _batches(file: Path, keys: Sequence[str]) -> Iterator[Any]:
    """Record batches of a file with the columns wanted."""
    pyarrow = arrow()
    if _kind(file) == "Parquet":
        from pyarrow.parquet import ParquetFile

        with ParquetFile(file) as table:
            columns = _columns(file, table.schema_arrow.names, keys)
            yield from table.iter_batches(TOGETHER, columns=columns)
        return
    with pyarrow.memory_map(str(file)) as mapped, pyarrow.ipc.open_stream(mapped) as stream:
        columns = _columns(file, stream.schema.names, keys)
        for batch in stream:
            chosen = batch.select(columns)
            for start in range(0, batch.num_rows, TOGETHER):
                yield chosen.slice(start, TOGETHER)


def _columns(file: Path, names: Sequence[str], keys: Sequence[str]) -> list[str]:
    """The columns in which the keys begin; raises DataError for one that is not there."""
    found = []
    for key in keys:
        column = key if key in names else key.split(".")[0]
        if column not in names:
            known = f"columns: {', '.join(map(repr, names[:12])) or 'none'}"
            raise DataError(f"{file}: no column {key!r} ({known}){suggestion(key, names)}")
        found.append(column)
    return list(dict.fromkeys(found))
