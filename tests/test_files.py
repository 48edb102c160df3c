"""A file is whole or not there, and a folder has one writer, whatever happens in between."""

from __future__ import annotations

import gzip
import lzma
import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from cli_tools import refusal, works, write
from mirada.data.corpus import read_lines, read_tsv
from mirada.errors import MiradaError, TrainingError
from mirada.files import locked, text_stream, write_atomic, write_text

HOLDER = """
import sys
from pathlib import Path
from mirada.files import locked
with locked(Path(sys.argv[1])):
    print("holding", flush=True)
    sys.stdin.readline()
"""


def refuse(*_: object) -> None:
    raise OSError(28, "No space left on device")


def test_a_new_file_and_a_new_content(tmp_path):
    path = tmp_path / "a.bin"
    for content in (b"\x00\xff\n", b"", b"longer than before"):
        write_atomic(path, content)
        assert path.read_bytes() == content
    assert os.listdir(tmp_path) == ["a.bin"]


def test_text_is_utf8_with_its_own_line_ends(tmp_path):
    write_text(tmp_path / "a.txt", "ñ 漢\r\n\u2028\n")
    assert (tmp_path / "a.txt").read_bytes() == b"\xc3\xb1 \xe6\xbc\xa2\r\n\xe2\x80\xa8\n"


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_a_failure_leaves_the_old_content(tmp_path, monkeypatch, step):
    path = tmp_path / "a.txt"
    write_atomic(path, b"old")
    monkeypatch.setattr(os, step, refuse)
    message = f"{path}: could not be written (No space left on device); what stood there before is intact"
    with pytest.raises(MiradaError, match=f"^{re.escape(message)}$"):
        write_atomic(path, b"new")
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["a.txt"]


def test_a_failure_leaves_no_file_where_there_was_none(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "replace", refuse)
    with pytest.raises(MiradaError, match="No space left"):
        write_atomic(tmp_path / "a.txt", b"new")
    assert os.listdir(tmp_path) == []


def test_a_folder_that_is_not_there(tmp_path):
    path = tmp_path / "missing" / "a.txt"
    with pytest.raises(MiradaError, match=f"^{re.escape(str(path))}: could not be written \\(No such file"):
        write_atomic(path, b"new")


def test_the_content_is_on_disk_before_it_takes_the_place(tmp_path, monkeypatch):
    events: list[str] = []
    fsync, replace = os.fsync, os.replace
    monkeypatch.setattr(os, "fsync", lambda number: (events.append("flush"), fsync(number))[1])
    monkeypatch.setattr(os, "replace", lambda old, new: (events.append("replace"), replace(old, new))[1])
    write_atomic(tmp_path / "a.txt", b"new")
    assert events == ["flush", "replace", "flush"]  # the file, then the name, then the folder


@pytest.fixture
def holder(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process that holds the folder."""
    command = [sys.executable, "-c", HOLDER, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "holding\n"
        yield process
        process.kill()


def test_a_second_writer_is_refused(tmp_path, holder):
    message = f"{tmp_path}: another process is writing into this folder; wait for it, or choose another --model-dir"
    with pytest.raises(TrainingError, match=f"^{re.escape(message)}$"), locked(tmp_path):
        raise AssertionError("the lock was given twice")
    holder.communicate("done\n")
    with locked(tmp_path):
        pass


def test_a_crash_frees_the_folder(tmp_path, holder):
    holder.kill()
    holder.wait()
    with locked(tmp_path), pytest.raises(TrainingError, match="another process"), locked(tmp_path):
        raise AssertionError("the lock was given twice")


def test_an_error_inside_frees_the_folder(tmp_path):
    with pytest.raises(KeyError), locked(tmp_path):
        raise KeyError
    with locked(tmp_path):
        pass


def test_folders_do_not_disturb_each_other(tmp_path, holder):
    other = tmp_path / "other"
    other.mkdir()
    with locked(other):
        pass


# What never ends


def test_a_device_is_not_read(tmp_path):
    """A link to a device that never ends, wherever a file is read: refused at once by one line."""
    (tmp_path / "endless").symlink_to("/dev/zero")
    pairs = write(tmp_path / "a", ["a"])
    said = f"{tmp_path / 'endless'}: cannot be opened (is no regular file)"
    assert refusal("train", "--src", tmp_path / "endless", "--tgt", pairs) == said
    assert refusal("data", "check", "--tsv", tmp_path / "endless") == said
    said = f"{tmp_path / 'endless'}: cannot be read (is no regular file)"
    assert refusal("train", tmp_path / "endless") == said


def test_a_pipe_to_which_nobody_writes_is_no_file_of_options(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    assert "is no regular file" in refusal("train", tmp_path / "pipe")


def test_a_pipe_and_the_null_device_are_streams(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    writer = threading.Thread(target=(tmp_path / "pipe").write_bytes, args=(b"a\tb\n",))
    writer.start()
    assert read_tsv(tmp_path / "pipe").sources == ["a"]
    writer.join()
    assert read_lines(Path(os.devnull), allow_empty=True) == []


def test_a_missing_file_is_named_with_the_place_that_it_was_looked_for(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    said = f"no.tsv: no such file (from the working directory {tmp_path})"
    assert refusal("train", "--tsv", "no.tsv") == said


@pytest.mark.parametrize("ending", [".bz2", ".zst", ".zip"])
def test_a_name_that_promises_another_packing_is_refused(tmp_path, ending):
    said = f"mirada packs as .gz or .xz, not as {ending}; choose another name"
    for write_it in (lambda path: write_text(path, "x"), text_stream):
        with pytest.raises(MiradaError, match=re.escape(f"{tmp_path / 'out'}{ending}: {said}")):
            write_it(tmp_path / f"out{ending}")
    assert list(tmp_path.iterdir()) == []
    out = tmp_path / f"data{ending}"
    message = f"--out {out}: a folder is written there, and its name promises a packed file; choose another"
    assert refusal("data", "make", "--pairs", 20, "--out", out) == message
    assert not out.exists()


@pytest.mark.parametrize("model_folder", ["luong"], indirect=True)
@pytest.mark.parametrize(("ending", "opened"), [(".gz", gzip.open), (".xz", lzma.open)])
def test_a_trace_is_packed_as_its_name_says_and_verified_so(model_folder, tmp_path, ending, opened):
    out = tmp_path / f"how.json{ending}"
    works("explain", model_folder, "the cat", "--format", "json", "--output", out)
    with opened(out, "rt", encoding="utf-8") as stream:
        assert '"mirada-trace"' in stream.read(100)
    assert "every value agrees with the weights" in works("explain", "--verify", out, model_folder).output
    out.write_bytes(b"{}")
    assert refusal("explain", "--verify", out, model_folder).startswith(f"{out}: cannot be read (")


@pytest.mark.parametrize("model_folder", ["luong"], indirect=True)
def test_a_model_whose_name_is_no_utf8_is_one_line(model_folder, tmp_path):
    folder = tmp_path / "caf\udce9"
    shutil.copytree(model_folder, folder)
    said = f"{tmp_path}/caf\\udce9: the name is not UTF-8; give the folder another name"
    for command in (["translate", folder], ["explain", folder, "the cat"]):
        assert refusal(*command, given="a\n") == said
