"""Pairs of sentences out of files of every kind, read so that line n of one side always meets line n of the other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import zip_longest
from pathlib import Path
from typing import Literal, NamedTuple

from mirada.config.data import parts_of
from mirada.config.options import DataConfig
from mirada.data.checks.misalignment import describe_counts
from mirada.data.lines import open_text, raw_lines, read_lines, stream_lines
from mirada.data.pairs import Corpus, keep_pairs, select, split_dev
from mirada.data.references import references_in
from mirada.data.rows import Row, find_columns, parse_json, parse_tsv, row_of
from mirada.errors import ConfigError, DataError
from mirada.files import expanded

# Besides all that is defined here: where pairs are read, these are needed too.
__all__ = ["Corpus", "keep_pairs", "open_text", "raw_lines", "read_lines", "select", "split_dev", "stream_lines"]

Rows = Iterator[tuple[int, Row]]  # with their line numbers, from 1
WAYS = ("src", "tgt", "tsv", "jsonl", "dataset")  # options that name files of pairs; with dev_ before them, of dev
Kind = Literal["text", "tsv", "jsonl", "dataset", "prepared"]


class Files(NamedTuple):
    """The files of one set of pairs: two of text, or one of another kind."""

    kind: Kind
    paths: tuple[Path, ...]

    @property
    def name(self) -> str:
        """What messages call them."""
        return " | ".join(map(str, self.paths))


def read_parallel(src: Path, tgt: Path) -> Corpus:
    """Read line n of two files as pair n.

    Raises DataError if the counts differ, with both and the line where the files seem to part.
    """
    sources, targets = read_lines(src), read_lines(tgt)
    if len(sources) != len(targets):
        raise DataError(describe_counts(str(src), str(tgt), sources, targets))
    return keep_pairs(enumerate(map(Row, sources, targets), start=1), f"{src} | {tgt}")


def _parallel_rows(src: Path, tgt: Path) -> Rows:
    """The same as they come, for files that are too large to be looked at whole."""
    number = 0
    with open_text(src) as left, open_text(tgt) as right:
        both = zip_longest(stream_lines(left, str(src)), stream_lines(right, str(tgt)))
        for number, (source, target) in enumerate(both, start=1):
            if source is None or target is None:
                ends, goes_on = (src, tgt) if source is None else (tgt, src)
                said = f"{ends}: empty" if number == 1 else f"{ends} ends at line {number - 1} but {goes_on} goes on"
                raise DataError(said)
            yield number, Row(source, target)
    if not number:
        raise DataError(f"{src}: empty")


def _numbered(path: Path) -> Iterator[tuple[int, str]]:
    """The lines of a file with their numbers; raises DataError, also for an empty file."""
    number = 0
    with open_text(path) as stream:
        for number, line in enumerate(stream_lines(stream, str(path)), start=1):
            yield number, line
    if not number:
        raise DataError(f"{path}: empty")


def read_tsv(path: Path, *, source_column: str | int = 1, target_column: str | int = 2) -> Corpus:
    """Read columns (from 1, or by their names in the first line) of a tab-separated file; no quoting.

    Raises DataError with file:line.
    """
    return keep_pairs(_tsv_rows(path, parts_of(str(source_column)), str(target_column)), str(path))


def _tsv_rows(path: Path, source: Sequence[str], target: str) -> Rows:
    layout = None
    for number, line in _numbered(path):
        if layout is None:
            layout = find_columns(source, target, line, f"{path}:1")
            if layout.header:
                continue
        yield number, parse_tsv(line, layout, f"{path}:{number}")


def read_jsonl(path: Path, *, source_key: str = "source", target_key: str = "target") -> Corpus:
    """Read one JSON object a line; `a.b` means key b inside key a, unless there is a key "a.b".

    Raises DataError with file:line for anything but an object with text under the keys; blank lines are skipped.
    """
    return keep_pairs(_json_rows(path, (parts_of(source_key), target_key)), str(path))


def _json_rows(path: Path, keys: tuple[Sequence[str], str]) -> Rows:
    return ((number, parse_json(line, keys, f"{path}:{number}")) for number, line in _numbered(path))


def read_dataset(path: Path, *, source_key: str = "source", target_key: str = "target") -> Corpus:
    """Read a Parquet file, a folder of them, or a folder that Hugging Face datasets saved; keys are columns, `a.b` too.

    Raises DataError with path:row, ConfigError without pyarrow.
    """
    return keep_pairs(_dataset_rows(path, (parts_of(source_key), target_key)), str(path))


def _dataset_rows(path: Path, keys: tuple[Sequence[str], str]) -> Rows:
    from mirada.data.tables import records_of

    found = enumerate(records_of(path, [*keys[0], keys[1]]), start=1)
    return ((number, row_of(record, keys, f"{path}:{number}")) for number, record in found)


def rows_of(files: Files, config: DataConfig) -> Rows:
    """The rows of one set of pairs as they come, blank ones included, one at a time; raises DataError."""
    path, keys = files.paths[0], (config.source_keys, config.target_key)
    if files.kind == "tsv":
        return _tsv_rows(path, config.source_columns, config.target_column)
    if files.kind == "jsonl":
        return _json_rows(path, keys)
    if files.kind == "dataset":
        return _dataset_rows(path, keys)
    return _parallel_rows(path, files.paths[1])


def chosen_files(config: DataConfig, *, dev: bool = False, test: bool = False) -> Files | None:
    """Find the one way in which the pairs (or the dev pairs) are given, None if they are not.

    `test`: they are test pairs, which flags such as --test-src name. Raises ConfigError for half a way or several.
    """
    prefix = "dev_" if dev else ""
    given = {name: getattr(config, prefix + name) for name in WAYS}
    names = [name for name, value in given.items() if value is not None]
    if config.prepared is not None:
        return _prepared(config, [prefix + name for name in names], dev=dev)
    flag = "--dev-" if dev else "--test-" if test else "--"
    if names in (["src"], ["tgt"]):
        other = "tgt" if names == ["src"] else "src"
        raise ConfigError(f"{flag}{names[0]} without {flag}{other}; give pairs as {_ways(flag)}")
    if len(names) > 1 and names != ["src", "tgt"]:
        options = ", ".join(flag + name for name in names)
        raise ConfigError(f"{options} are too many together; give pairs as {_ways(flag)}")
    if not names:
        return None
    kinds: dict[str, Kind] = {"src": "text", "tsv": "tsv", "jsonl": "jsonl", "dataset": "dataset"}
    return Files(kinds[names[0]], tuple(expanded(given[name]) for name in names))


def _ways(flag: str) -> str:
    """The ways to give pairs, by flags that begin so."""
    return f"{flag}src and {flag}tgt, or {flag}tsv, or {flag}jsonl, or {flag}dataset"


def _prepared(config: DataConfig, names: list[str], *, dev: bool) -> Files | None:
    """A prepared corpus, which has its dev pairs with it; raises ConfigError for files beside it."""
    if names:
        raise ConfigError(f"{names[0]} beside prepared, which has training and dev pairs; give one of them")
    return None if dev or config.prepared is None else Files("prepared", (expanded(config.prepared),))


def required_files(config: DataConfig, what: str) -> Files:
    """Find the files of the pairs; raises ConfigError if there are none. `what`: training, test or input."""
    is_test = what == "test"
    if files := chosen_files(config, test=is_test):
        return files
    wanted = f"{what} pairs"
    raise ConfigError(f"no {wanted}: give them as {_ways('--test-' if is_test else '--')}")


def read_files(files: Files, config: DataConfig) -> Corpus:
    """Read one set of pairs, with the columns or keys of the options; raises DataError."""
    if files.kind == "prepared":
        from mirada.data.prepared import open_prepared

        return open_prepared(files.paths[0]).corpora[0]
    if files.kind == "text":
        return read_parallel(*files.paths)
    return keep_pairs(rows_of(files, config), files.name)


def load_pairs(config: DataConfig, *, seed: int) -> tuple[Corpus, Corpus]:
    """Read the training and dev pairs, (train, dev); without dev files, dev is split off train by `seed`.

    Raises ConfigError if the options name the pairs in no or several ways, DataError if a file cannot be used.
    """
    train_files, dev_files = required_files(config, "training"), chosen_files(config, dev=True)
    if train_files.kind == "prepared":
        from mirada.data.prepared import open_prepared

        return open_prepared(train_files.paths[0]).corpora
    train = read_files(train_files, config)
    if dev_files is None:
        return split_dev(train, size=config.dev_size, seed=seed)
    return train, read_dev(dev_files, config)


def read_dev(files: Files, config: DataConfig) -> Corpus:
    """The dev pairs with the further references that options name; raises as reading them does."""
    dev, column, key = read_files(files, config), config.dev_reference_column, config.dev_reference_key
    if not (column or key):
        return dev
    found = references_in(files.paths[0], read_lines(files.paths[0]), columns=column, key=key)
    further = [(*own[1:], *found[line - 1]) for own, line in zip(dev.all_references(), dev.lines, strict=True)]
    return replace(dev, references=further)
