"""Standard streams of another encoding, or closed by whoever started the command; and a process with little memory."""

from __future__ import annotations

import io
import os
import resource
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import tiny
from cli_tools import ENVIRONMENT, Ran, command, mirada, one_line, write_pairs
from mirada.cli import COMMANDS, main

PAIRS = list(zip(tiny.SOURCES, tiny.TARGETS, strict=True))
ONE = pytest.mark.parametrize("model_folder", ["luong"], indirect=True)
# Of each command that answers on standard output, what it takes; FOLDER and PAIRS stand for those of the test.
ANSWERING = {
    "translate": ["translate", "FOLDER"],
    "score": ["score", "FOLDER", "--tsv", "PAIRS", "--tokens"],
    "align": ["align", "FOLDER", "--tsv", "PAIRS"],
    "explain": ["explain", "FOLDER", "the cat", "--format", "json"],
    "evaluate": ["evaluate", "--hyp", "PAIRS", "--ref", "PAIRS", "--metrics", "chrf"],
    "check": ["data", "check", "--tsv", "PAIRS"],
}


def arguments(name: str, folder: Path, place: Path) -> list[str]:
    pairs = write_pairs(place / "pairs.tsv", PAIRS)
    return [{"FOLDER": str(folder), "PAIRS": str(pairs)}.get(part, part) for part in ANSWERING[name]]


def with_streams(closing: str, *given: object) -> Ran:
    """Run a command in a shell that closes some streams first, such as `>&-`."""
    line = ["sh", "-c", f"{shlex.join(command(*given))} {closing}"]
    done = subprocess.run(line, input=b"the cat\n", capture_output=True, env=ENVIRONMENT, check=False)
    return Ran(done.returncode, done.stdout.decode(), done.stderr.decode())


@pytest.mark.parametrize("name", COMMANDS)
def test_help_can_be_shown_in_ascii(name, monkeypatch):
    """Standard output is UTF-8 for every command, whatever the system's habit: here that of a bare C locale."""
    raw = io.BytesIO()
    monkeypatch.setattr("sys.stdout", io.TextIOWrapper(raw, encoding="ascii"))
    assert main([name, "--help"]) == 0
    assert raw.getvalue().decode("utf-8").startswith(f"usage: mirada {name}")


@ONE
@pytest.mark.parametrize("name", ANSWERING)
def test_answers_are_utf8_in_any_locale(name, model_folder, tmp_path, monkeypatch):
    given = arguments(name, model_folder, tmp_path)
    expected = mirada(*given, given="the cat\n")
    raw = io.BytesIO()
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"the cat\n")))
    monkeypatch.setattr("sys.stdout", io.TextIOWrapper(raw, encoding="ascii", newline="\r\n"))
    assert main(given) == expected.code
    assert raw.getvalue().decode("utf-8") == expected.output


@ONE
@pytest.mark.parametrize("name", ANSWERING)
def test_a_closed_output_is_told_before_the_work(name, model_folder, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("sys.stdin", None)
    monkeypatch.setattr("sys.stdout", None)
    assert main(arguments(name, model_folder, tmp_path)) == 2
    expected = "give --output" if name in ("translate", "explain") else "let it go to a file, or to /dev/null"
    wanted = f"mirada: standard output is closed; {expected}\n"
    assert capsys.readouterr().err in (wanted, "mirada: standard input is closed; give --input, or something to read\n")


@pytest.mark.slow
@ONE
def test_processes_whose_streams_are_closed(model_folder, tmp_path):
    """No traceback; and messages never go to standard output because standard error is closed."""
    refused = with_streams("2>&-", "translate", tmp_path / "none")
    assert (refused.code, refused.output) == (2, "")
    written = with_streams(">&- 2>&-", "translate", model_folder, "--output", tmp_path / "out")
    assert written.code == 0
    expected = mirada("translate", model_folder, "--device", "cpu", given="the cat\n").output
    assert (tmp_path / "out").read_text(encoding="utf-8") == expected


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux holds a process to its address space")
@pytest.mark.parametrize("most", [300])
@ONE
def test_too_little_memory_to_start_is_one_line(most, model_folder):
    size = most << 20
    done = subprocess.run(
        command("translate", model_folder),
        input=b"the cat\n",
        capture_output=True,
        check=False,
        env=ENVIRONMENT | {"OPENBLAS_NUM_THREADS": "1"},
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (size, size)),
    )
    assert (done.returncode, done.stdout) == (2, b"")
    assert one_line(done.stderr.decode()) == (
        f"too little memory for this command (this process may address {most} MiB, see `ulimit -v`; "
        "with torch it needs about 800)"
    )


@ONE
def test_an_unknown_users_home_is_one_line_for_every_path(model_folder, tmp_path):
    """`~nosuchuser/x` wherever a path may stand."""
    nobody = "~nosuchuser/x"
    pairs = write_pairs(tmp_path / "pairs.tsv", PAIRS)
    for given in (
        ["translate", nobody],
        *(["translate", model_folder, flag, nobody] for flag in ("--input", "--output", "--prefix-file")),
        ["translate", model_folder, "--save-attention", nobody],
        ["score", nobody, "--tsv", pairs],
        ["score", model_folder, "--tsv", nobody],
        ["explain", nobody, "the cat"],
        ["explain", model_folder, "the cat", "--format", "json", "--output", nobody],
        ["explain", "--verify", nobody, model_folder],
        ["align", model_folder, "--tsv", pairs, "--gold", nobody],
        ["evaluate", "--hyp", nobody, "--ref", pairs],
        ["evaluate", "--hyp", pairs, "--ref", nobody],
        ["evaluate", model_folder, "--tsv", pairs, "--save-outputs", nobody],
        ["average", nobody, model_folder, "--out", tmp_path / "a"],
        ["average", model_folder, model_folder, "--out", nobody],
        ["export", model_folder, "--to", "onnx", "--out", nobody],
        ["compare", "--tsv", pairs, "--out", nobody],
        ["bottleneck", "--out", nobody],
        ["data", "make", "--out", nobody],
        ["data", "check", "--tsv", nobody],
        ["data", "check", "--tsv", pairs, "--model", nobody],
        ["demo", "--out", nobody],
        ["train", nobody],
        ["train", "--tsv", nobody],
        ["train", "--tsv", pairs, "--model-dir", nobody],
        ["train", "--tsv", pairs, "--model-dir", tmp_path / "m", "--init-from", nobody],
        ["train", "--tsv", pairs, "--dev-tsv", pairs, "--model-dir", tmp_path / "m", "--source-embeddings", nobody],
        ["serve", model_folder, "--config", nobody],
    ):
        ran = mirada(*given, given="the cat\n")
        assert ran.code == 2, given
        assert one_line(ran.errors) == f"{nobody}: no such user's home folder", given
    assert not Path(nobody).parent.exists()
    assert not os.path.lexists(tmp_path / "m")


@ONE
@pytest.mark.parametrize("value", ["1e300", "1e5", "5.1", str(10**30)])
def test_a_length_penalty_beyond_all_numbers_is_refused(value, model_folder):
    said = f"alpha: input should be less than or equal to 5 (got '{value}')"
    ran = mirada("translate", model_folder, "--alpha", value, given="the cat\n")
    assert (ran.code, ran.output, one_line(ran.errors)) == (2, "", said)
