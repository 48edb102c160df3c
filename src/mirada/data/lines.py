"""Text files, read by one line contract, the same for files and for standard input.

UTF-8; lines end at b"\\n" and nowhere else, one carriage return before the line end is dropped, a byte order mark is
dropped at the very start, and a final line end opens no further line. So the number of lines is what `wc -l` counts
(plus a last line without an end), whatever is in them.
"""

from __future__ import annotations

import gzip
import lzma
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, cast

from mirada.errors import DataError
from mirada.files import refuse_endless

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
