"""The line contract: what is one line of a file or a stream, whatever bytes are in it."""

from __future__ import annotations

import gzip
import io
import lzma
import re
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirada.data.corpus import open_text, read_lines, stream_lines
from mirada.errors import DataError

SEPARATORS = "\u2028\u2029\x85\v\f\x1c\x1d\x1e\r"
LINE = st.text(st.one_of(st.sampled_from("ab \t\0\ufeff" + SEPARATORS), st.characters(codec="utf-8"))).map(
    lambda text: text.replace("\n", "")
)


class Dribble(io.RawIOBase):
    """A stream that gives the bytes in pieces, as a pipe or a terminal does, and then fails if told to."""

    def __init__(self, pieces: Sequence[bytes], *, fails: bool = False) -> None:
        self.pieces = [piece for piece in pieces if piece]
        self.fails = fails

    def readable(self) -> bool:
        return True

    def readinto(self, buffer) -> int:
        if not self.pieces and self.fails:
            raise OSError("read past what there is")
        piece = self.pieces.pop(0) if self.pieces else b""
        if len(piece) > len(buffer):
            self.pieces.insert(0, piece[len(buffer) :])
        taken = piece[: len(buffer)]
        buffer[: len(taken)] = taken
        return len(taken)


def write(path: Path, text: str | bytes) -> Path:
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def fails_with(message: str):
    return pytest.raises(DataError, match=f"^{re.escape(message)}$")


def as_read(lines: Sequence[str]) -> list[str]:
    """What the contract keeps of lines: no mark at the very start, no carriage return before the line end."""
    kept = [line.removesuffix("\r") for line in lines]
    return [kept[0].removeprefix("\ufeff"), *kept[1:]] if kept else []


@given(st.lists(LINE, min_size=1))
def test_lines_written_are_the_lines_read(tmp_path_factory, lines):
    path = tmp_path_factory.getbasetemp() / "lines.txt"
    ended = write(path, "".join(f"{line}\n" for line in lines))
    assert read_lines(ended) == as_read(lines)
    joined = write(path, "\n".join(lines))
    without_end = lines if lines[-1] not in ("", "\ufeff" if len(lines) == 1 else "") else lines[:-1]
    assert read_lines(joined, allow_empty=True) == as_read(without_end)


@given(st.binary(), st.data())
def test_a_stream_in_any_pieces_reads_as_the_whole(content, data):
    cuts = sorted(data.draw(st.lists(st.integers(0, len(content)))))
    pieces = [content[a:b] for a, b in zip([0, *cuts], [*cuts, len(content)], strict=True)]

    def outcome(stream):
        try:
            return list(stream_lines(stream, "in"))
        except DataError as error:
            return str(error)

    assert outcome(io.BufferedReader(Dribble(pieces), 7)) == outcome(io.BytesIO(content))


@given(
    st.one_of(
        st.binary(),
        LINE.map(str.encode),
        st.lists(st.sampled_from([b"\n", b"\r", b"a", b"\xe9", b"\xff"])).map(b"".join),
    )
)
def test_any_bytes_keep_the_count_of_lines_or_name_the_line(content):
    body = content.removeprefix(b"\xef\xbb\xbf")
    expected = body.count(b"\n") + (not body.endswith(b"\n") and body != b"")
    try:
        assert len(list(stream_lines(io.BytesIO(content), "in"))) == expected
    except DataError as error:
        number = int(re.match(r"in:(\d+): byte 0x[0-9a-f]{2} at column \d+ is not UTF-8; ", str(error))[1])
        with pytest.raises(UnicodeDecodeError):
            body.split(b"\n")[number - 1].decode()
        b"\n".join(body.split(b"\n")[: number - 1]).decode()


@pytest.mark.parametrize("char", SEPARATORS + "\0\ufeff\u200b")
def test_only_the_line_feed_ends_a_line(tmp_path, char):
    path = write(tmp_path / "a", f"one{char}two\nthree\n")
    assert read_lines(path) == [f"one{char}two", "three"]


def test_windows_line_ends_and_mark_are_dropped_once(tmp_path):
    path = write(tmp_path / "a", b"\xef\xbb\xbfone\r\n\xef\xbb\xbftwo\r\r\nthree\r")
    assert read_lines(path) == ["one", "\ufefftwo\r", "three"]


def test_blank_lines_count(tmp_path):
    assert read_lines(write(tmp_path / "a", "\n\n x\n\n")) == ["", "", " x", ""]


def test_a_line_is_given_before_the_next_is_asked_for():
    stream = io.BufferedReader(Dribble([b"one\n"], fails=True))
    lines = stream_lines(stream, "in")
    assert next(lines) == "one"
    with fails_with("in: cannot be read, damaged or cut off (read past what there is)"):
        next(lines)


def test_stopping_early_leaves_the_stream_open():
    stream = io.BytesIO(b"one\ntwo\nthree\n")
    lines = stream_lines(stream, "in")
    next(lines)
    lines.close()
    assert stream.readline() == b"two\n"


@pytest.mark.parametrize("content", [b"", b"\xef\xbb\xbf"])
def test_empty_file(tmp_path, content):
    path = write(tmp_path / "a", content)
    with fails_with(f"{path}: empty"):
        read_lines(path)
    assert read_lines(path, allow_empty=True) == []


@pytest.mark.parametrize(("suffix", "pack"), [(".gz", gzip.compress), (".GZ", gzip.compress), (".xz", lzma.compress)])
def test_compressed_files(tmp_path, suffix, pack):
    text = "".join(f"línea {n}\n" for n in range(1000))
    assert read_lines(write(tmp_path / f"a{suffix}", pack(text.encode()))) == text.split("\n")[:-1]


@pytest.mark.parametrize(("suffix", "pack"), [(".gz", gzip.compress), (".xz", lzma.compress)])
def test_compressed_file_cut_off(tmp_path, suffix, pack):
    path = write(tmp_path / f"a{suffix}", pack("".join(map(str, range(5000))).encode())[:-20])
    with pytest.raises(DataError, match=f"^{re.escape(str(path))}: cannot be read, damaged or cut off \\(.*end.*\\)$"):
        read_lines(path)


@pytest.mark.parametrize("suffix", [".gz", ".xz"])
def test_name_of_a_compressed_file_on_plain_text(tmp_path, suffix):
    path = write(tmp_path / f"a{suffix}", "plain\n")
    with pytest.raises(DataError, match=f"^{re.escape(str(path))}: cannot be read, damaged or cut off \\("):
        read_lines(path)


def test_damage_inside_a_compressed_file(tmp_path):
    packed = bytearray(gzip.compress("".join(map(str, range(5000))).encode()))
    packed[60:80] = bytes(20)
    path = write(tmp_path / "a.gz", bytes(packed))
    with pytest.raises(DataError, match="cannot be read, damaged or cut off"):
        read_lines(path)


def test_files_that_cannot_be_opened(tmp_path, monkeypatch):
    with fails_with(f"{tmp_path / 'no.gz'}: no such file"):
        open_text(tmp_path / "no.gz")
    with fails_with(f"{tmp_path}: is a directory, expected a file"):
        open_text(tmp_path)
    file = write(tmp_path / "a", "x")
    with fails_with(f"{file / 'b'}: cannot be opened (Not a directory)"):
        open_text(file / "b")

    def refuse(*_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", refuse)
    with fails_with(f"{file}: cannot be opened (Permission denied)"):
        open_text(file)


def test_bytes_that_are_no_utf8(tmp_path):
    path = write(tmp_path / "a", b"good\nma\xc3\xb1ana caf\xe9\n")
    remedy = "convert the file to UTF-8 (e.g. iconv -f latin1 -t utf-8)"
    with fails_with(f"{path}:2: byte 0xe9 at column 11 is not UTF-8; {remedy}"):
        read_lines(path)
    write(path, b"good\n\x1f\x8b\n")  # bytes of gzip, but not where gzip has them
    with fails_with(f"{path}:2: byte 0x8b at column 2 is not UTF-8; {remedy}"):
        read_lines(path)


@pytest.mark.parametrize(
    ("content", "remedy"),
    [
        ("hi\n".encode("utf-16"), "convert the file to UTF-8 (iconv -f utf-16 -t utf-8)"),
        (gzip.compress(b"hi", mtime=0), "the file is compressed with gzip: give its name the ending .gz"),
        (lzma.compress(b"hi"), "the file is compressed with xz: give its name the ending .xz"),
    ],
)
def test_other_kinds_of_file_are_recognised(tmp_path, content, remedy):
    path = write(tmp_path / "a", content)
    with pytest.raises(
        DataError, match=f"^{re.escape(str(path))}:1: byte 0x.. at column . is not UTF-8; {re.escape(remedy)}$"
    ):
        read_lines(path)
