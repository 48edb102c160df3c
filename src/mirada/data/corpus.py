"""Text files and pairs of sentences, read so that line n of one side always meets line n of the other.

The line contract, the same for files and for standard input: UTF-8, lines end at b"\\n" and nowhere else, one carriage
return before the line end is dropped, a byte order mark is dropped at the very start, and a final line end opens no
further line. So the number of lines is what `wc -l` counts (plus a last line without an end), whatever is in them.
"""

from __future__ import annotations

import gzip
import lzma
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import BinaryIO, Literal, NamedTuple, cast

import numpy as np

from mirada.config.data import parts_of
from mirada.config.options import DataConfig
from mirada.data.checks.misalignment import describe_counts
from mirada.data.references import references_in
from mirada.data.rows import Row, find_columns, is_blank, parse_json, parse_tsv
from mirada.errors import ConfigError, DataError
from mirada.files import expanded, refuse_endless

BOM = b"\xef\xbb\xbf"
# What a file that is no UTF-8 text often is, told by its first bytes, and what to do about it.
SIGNATURES = {
    b"\xff\xfe": "convert the file to UTF-8 (iconv -f utf-16 -t utf-8)",
    b"\xfe\xff": "convert the file to UTF-8 (iconv -f utf-16 -t utf-8)",
    b"\x1f\x8b": "the file is compressed with gzip: give its name the ending .gz",
    b"\xfd7zXZ": "the file is compressed with xz: give its name the ending .xz",
    b"(\xb5/\xfd": "the file is compressed with zstd: unpack it first",
    b"BZh": "the file is compressed with bzip2: unpack it first",
    b"PK\x03\x04": "the file is a zip archive: unpack it first",
}
UNREADABLE = (OSError, EOFError, zlib.error, lzma.LZMAError)
LONGEST_LINE = 1 << 24  # bytes: more is refused before it fills the memory
CONVERT = "convert the file to UTF-8 (e.g. iconv -f latin1 -t utf-8)"


@dataclass(frozen=True)
class Corpus:
    """Pairs of sentences, none blank, with the line of the file that each came from."""

    sources: list[str]
    targets: list[str]
    lines: list[int]  # line numbers of the pairs, from 1
    skipped: list[int]  # line numbers left out because a side is blank
    name: str
    references: list[tuple[str, ...]] = field(default_factory=list)  # further ones of each pair; empty: nobody has any
    first: int = 1  # the line at which pairs begin: 2 below a line that names the columns

    def all_lines(self) -> range:
        """The numbers of all lines read, those of pairs left out included."""
        return range(self.first, self.first + len(self.lines) + len(self.skipped))

    def all_references(self) -> list[list[str]]:
        """The target of each pair and its further references."""
        further = self.references or [()] * len(self)
        return [[target, *others] for target, others in zip(self.targets, further, strict=True)]

    def __len__(self) -> int:
        return len(self.sources)


def open_text(path: Path) -> BinaryIO:
    """Open a file for reading bytes, unpacking `.gz` and `.xz`; raises DataError if it is missing or no file.

    Damage inside a compressed file shows when it is read: `raw_lines` turns it into a DataError.
    """
    suffix = path.suffix.lower()
    try:
        refuse_endless(path, streams=True)
        if suffix == ".gz":
            return cast(BinaryIO, gzip.open(path, "rb"))
        if suffix == ".xz":
            return cast(BinaryIO, lzma.open(path, "rb"))
        return path.open("rb")
    except FileNotFoundError:
        place = "" if path.is_absolute() else f" (from the working directory {Path.cwd()})"
        raise DataError(f"{path}: no such file{place}") from None
    except IsADirectoryError:
        raise DataError(f"{path}: is a directory, expected a file") from None
    except (OSError, ValueError) as error:
        raise DataError(f"{path}: cannot be opened ({getattr(error, 'strerror', None) or error})") from None


def raw_lines(stream: BinaryIO, name: str) -> Iterator[bytes]:
    """Yield the lines of a stream by the line contract, not yet decoded; raises DataError if reading fails."""
    number = 0
    try:
        while raw := stream.readline(LONGEST_LINE + 2):  # a reader that stops early must not close the stream
            number += 1
            line = raw.removeprefix(BOM) if number == 1 else raw
            if len(raw.removesuffix(b"\n")) > LONGEST_LINE:
                raise too_long(name, number)
            if line:
                yield line.removesuffix(b"\n").removesuffix(b"\r")
    except UNREADABLE as error:
        raise unreadable(name, error) from None


def unreadable(name: str, error: BaseException) -> DataError:
    """The error for a stream that fails while it is read."""
    return DataError(f"{name}: cannot be read, damaged or cut off ({error})")


def too_long(name: str, number: int) -> DataError:
    """The error for a line that no sentence is, such as a file without line ends."""
    return DataError(f"{name}:{number}: a line of more than {LONGEST_LINE:,} bytes; is this a text with line ends?")


def decode_line(raw: bytes, name: str, number: int) -> str:
    """Decode one line; raises DataError with file, line, byte and column (in characters, from 1) if it is not UTF-8."""
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        column = len(raw[: error.start].decode("utf-8")) + 1
        remedies = [text for start, text in SIGNATURES.items() if number == 1 and raw.startswith(start)]
        remedy = remedies[0] if remedies else CONVERT
        problem = f"byte 0x{raw[error.start]:02x} at column {column} is not UTF-8"
        raise DataError(f"{name}:{number}: {problem}; {remedy}") from None


def stream_lines(stream: BinaryIO, name: str) -> Iterator[str]:
    """Yield the lines of a stream by the line contract, holding one at a time; raises DataError with `name:line`."""
    for number, raw in enumerate(raw_lines(stream, name), start=1):
        yield decode_line(raw, name, number)


def read_lines(path: Path, *, allow_empty: bool = False) -> list[str]:
    """Read the lines of a file by the line contract; raises DataError, also for an empty file unless allowed."""
    with open_text(path) as stream:
        lines = list(stream_lines(stream, str(path)))
    if not lines and not allow_empty:
        raise DataError(f"{path}: empty")
    return lines


def keep_pairs(rows: Iterable[tuple[int, Row]], name: str) -> Corpus:
    """Keep the numbered rows with text on both sides and note the others; raises DataError if none is left."""
    corpus = Corpus([], [], [], [], name)
    for number, row in rows:
        if is_blank(row.source) or is_blank(row.target):
            corpus.skipped.append(number)
            continue
        corpus.sources.append(row.source)
        corpus.targets.append(row.target)
        corpus.lines.append(number)
        corpus.references.append(row.references)
    if not corpus.lines:
        raise DataError(f"{name}: no pair has text on both sides ({len(corpus.skipped)} lines read)")
    return corpus if any(corpus.references) else replace(corpus, references=[])


def read_parallel(src: Path, tgt: Path) -> Corpus:
    """Read line n of two files as pair n.

    Raises DataError if the counts differ, with both and the line where the files seem to part.
    """
    sources, targets = read_lines(src), read_lines(tgt)
    if len(sources) != len(targets):
        raise DataError(describe_counts(str(src), str(tgt), sources, targets))
    rows = enumerate(map(Row, sources, targets), start=1)
    return keep_pairs(rows, f"{src} | {tgt}")


def read_tsv(path: Path, *, source_column: str | int = 1, target_column: str | int = 2) -> Corpus:
    """Read columns (from 1, or by their names in the first line) of a tab-separated file; no quoting.

    Raises DataError with file:line.
    """
    lines = read_lines(path)
    layout = find_columns(parts_of(str(source_column)), str(target_column), lines[0], f"{path}:1")
    rows = ((n, parse_tsv(line, layout, f"{path}:{n}")) for n, line in enumerate(lines, start=1) if n > layout.header)
    return replace(keep_pairs(rows, str(path)), first=1 + layout.header)


def read_jsonl(path: Path, *, source_key: str = "source", target_key: str = "target") -> Corpus:
    """Read one JSON object a line; `a.b` means key b inside key a, unless there is a key "a.b".

    Raises DataError with file:line for anything but an object with text under the keys; blank lines are skipped.
    """
    keys = (parts_of(source_key), target_key)
    rows = ((n, parse_json(line, keys, f"{path}:{n}")) for n, line in enumerate(read_lines(path), start=1))
    return keep_pairs(rows, str(path))


def split_dev(corpus: Corpus, *, size: int, seed: int) -> tuple[Corpus, Corpus]:
    """Split off at most `size` pairs, and at most a tenth (but one), as a dev set: returns (train, dev).

    Source strings are drawn, not pairs: all pairs of a source (a word's several pronunciations) go the same way, so no
    source of dev stands in train. A target may, as homophones do. Both keep the order of the file. A source with more
    pairs than are still wanted is passed over; where every source has too many, the one with fewest is dev.
    Raises DataError if all pairs have the same source.
    """
    groups: dict[str, list[int]] = {}
    for index, source in enumerate(corpus.sources):
        groups.setdefault(source, []).append(index)
    if len(groups) < 2:
        raise DataError(
            f"{corpus.name}: one distinct source is too few to split off a dev set; give dev_src and dev_tgt"
        )
    wanted = min(size, max(1, len(corpus) // 10))
    drawn = _draw(list(groups.values()), wanted, seed)
    rest = [index for index in range(len(corpus)) if index not in drawn]
    dev = _select(corpus, sorted(drawn), [], f"{corpus.name} (dev)")
    return _select(corpus, rest, corpus.skipped, corpus.name), dev


def _draw(groups: list[list[int]], wanted: int, seed: int) -> set[int]:
    drawn: set[int] = set()
    for place in np.random.default_rng(seed).permutation(len(groups)):
        if len(drawn) + len(groups[place]) <= wanted:
            drawn.update(groups[place])
        if len(drawn) == wanted:
            break
    smallest = min(groups, key=len)
    return drawn or set(smallest)


def select(corpus: Corpus, indices: Sequence[int]) -> Corpus:
    """Some pairs of a corpus, in the order of `indices`; all of them are the corpus itself."""
    return corpus if len(indices) == len(corpus) else _select(corpus, list(indices), corpus.skipped, corpus.name)


def _select(corpus: Corpus, indices: list[int], skipped: list[int], name: str) -> Corpus:
    columns = [[column[i] for i in indices] for column in (corpus.sources, corpus.targets)]
    references = [corpus.references[i] for i in indices if corpus.references]
    lines = [corpus.lines[i] for i in indices]
    return Corpus(columns[0], columns[1], lines, list(skipped), name, references, corpus.first)


class Files(NamedTuple):
    """The files of one set of pairs: two of text, or one of another kind."""

    kind: Literal["text", "tsv", "jsonl"]
    paths: tuple[Path, ...]


def chosen_files(config: DataConfig, *, dev: bool = False) -> Files | None:
    """Find the one way in which the pairs (or the dev pairs) are given, None if they are not.

    Raises ConfigError for half a way or more than one.
    """
    prefix = "dev_" if dev else ""
    given = {name: getattr(config, prefix + name) for name in ("src", "tgt", "tsv", "jsonl")}
    names = [name for name, value in given.items() if value is not None]
    ways = f"give pairs as {prefix}src and {prefix}tgt, or {prefix}tsv, or {prefix}jsonl"
    if names in (["src"], ["tgt"]):
        other = "tgt" if names == ["src"] else "src"
        raise ConfigError(f"{prefix}{names[0]} without {prefix}{other}; {ways}")
    if names and names not in (["src", "tgt"], ["tsv"], ["jsonl"]):
        options = ", ".join(prefix + name for name in names)
        raise ConfigError(f"{options} are too many together; {ways}")
    if not names:
        return None
    kind: Literal["text", "tsv", "jsonl"] = "tsv" if "tsv" in names else "jsonl" if "jsonl" in names else "text"
    return Files(kind, tuple(expanded(given[name]) for name in names))


def required_files(config: DataConfig, what: str) -> Files:
    """Find the files of the pairs; raises ConfigError if there are none."""
    if files := chosen_files(config):
        return files
    raise ConfigError(f"no {what} pairs: give them as src and tgt, or tsv, or jsonl")


def read_files(files: Files, config: DataConfig) -> Corpus:
    """Read one set of pairs, with the columns or keys of the options; raises DataError."""
    if files.kind == "tsv":
        return read_tsv(files.paths[0], source_column=config.source_column, target_column=config.target_column)
    if files.kind == "jsonl":
        return read_jsonl(files.paths[0], source_key=config.source_key, target_key=config.target_key)
    return read_parallel(files.paths[0], files.paths[1])


def load_pairs(config: DataConfig, *, seed: int) -> tuple[Corpus, Corpus]:
    """Read the training and dev pairs, (train, dev); without dev files, dev is split off train by `seed`.

    Raises ConfigError if the options name the pairs in no or several ways, DataError if a file cannot be used.
    """
    train_files, dev_files = required_files(config, "training"), chosen_files(config, dev=True)
    train = read_files(train_files, config)
    if dev_files is None:
        return split_dev(train, size=config.dev_size, seed=seed)
    return train, with_references(read_files(dev_files, config), dev_files, config)


def with_references(dev: Corpus, files: Files, config: DataConfig) -> Corpus:
    """Dev pairs with the further references that options name; raises as reading them does."""
    column, key = config.dev_reference_column, config.dev_reference_key
    if not (column or key):
        return dev
    found = references_in(files.paths[0], read_lines(files.paths[0]), columns=column, key=key)
    further = [(*own[1:], *found[line - 1]) for own, line in zip(dev.all_references(), dev.lines, strict=True)]
    return replace(dev, references=further)
