"""The command as its user has it: run in this process, which is quick, or as a process where that is what matters."""

from __future__ import annotations

import io
import os
import random
import shlex
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple
from unittest.mock import patch

from mirada.cli import main

# One thread, as everywhere in the tests: with another number the sums of floats differ in the last bit.
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
ENVIRONMENT.pop("PYTHONUNBUFFERED", None)  # with it, what goes wrong when Python writes the rest at the end is not seen
Pair = tuple[str, str]


class Ran(NamedTuple):
    """What a command gave back."""

    code: int
    output: str
    errors: str

    @property
    def lines(self) -> list[str]:
        """The lines of the output, each ended by a bare line end."""
        assert not self.output or self.output.endswith("\n")
        return self.output.split("\n")[:-1]


def mirada(*arguments: object, given: str | bytes = b"") -> Ran:
    """Run a command in this process with `given` as standard input."""
    raw = [io.BytesIO(given.encode() if isinstance(given, str) else given), io.BytesIO(), io.BytesIO()]
    with ExitStack() as stack:
        for name, buffer in zip(("stdin", "stdout", "stderr"), raw, strict=True):
            text = io.TextIOWrapper(buffer, encoding="utf-8", newline="", write_through=True)
            stack.enter_context(patch.object(sys, name, text))
            stack.callback(text.detach)
        code = main([str(argument) for argument in arguments])
        return Ran(code, raw[1].getvalue().decode(), raw[2].getvalue().decode())


def works(*arguments: object, given: str | bytes = b"") -> Ran:
    """Run a command that must succeed."""
    ran = mirada(*arguments, given=given)
    assert ran.code == 0, ran.errors
    return ran


def refusal(*arguments: object, given: str | bytes = b"") -> str:
    """Run a command that must be refused: exit code 2, nothing on standard output. Returns the error's one line."""
    ran = mirada(*arguments, given=given)
    assert (ran.code, ran.output) == (2, ""), ran
    return one_line(ran.errors)


def one_line(errors: str) -> str:
    """The last line of what was said, which must be the only error."""
    *notes, last, end = errors.split("\n")
    assert end == ""
    assert last.startswith("mirada: ")
    assert not any(note.startswith(("mirada: ", "Traceback")) for note in notes)
    return last.removeprefix("mirada: ")


def command(*arguments: object) -> list[str]:
    """The command line that starts a process."""
    return [sys.executable, "-m", "mirada", *map(str, arguments)]


def process(*arguments: object, given: bytes = b"") -> Ran:
    """Run a command as a process of its own, to its end."""
    done = subprocess.run(command(*arguments), input=given, capture_output=True, env=ENVIRONMENT, check=False)
    return Ran(done.returncode, done.stdout.decode(), done.stderr.decode())


def flags(options: Mapping[str, object]) -> list[str]:
    """Options as flags."""
    return [part for name, value in options.items() for part in (f"--{name}", str(value))]


def write(path: Path, lines: Sequence[str]) -> Path:
    """Write a file of lines."""
    path.write_bytes("".join(f"{line}\n" for line in lines).encode())
    return path


def write_pairs(path: Path, pairs: Sequence[Pair]) -> Path:
    """Write a file of pairs, tab-separated."""
    return write(path, [f"{source}\t{target}" for source, target in pairs])


def reversals(count: int, *, lengths: tuple[int, int], seed: int, symbols: str = "abcdefghij") -> list[Pair]:
    """Different sequences of symbols, each with its reverse."""
    draw = random.Random(seed)
    found: dict[str, str] = {}
    while len(found) < count:
        sequence = draw.choices(symbols, k=draw.randint(*lengths))
        found[" ".join(sequence)] = " ".join(reversed(sequence))
    return list(found.items())


def in_folder(work: Path, command: str, *, log: Path | None = None) -> str:
    """As `benchmarks.jobs.mirada` runs a command in a folder, without the seconds that a process takes to start."""
    here = Path.cwd()
    os.chdir(work)
    try:
        ran = works(*shlex.split(command))
    finally:
        os.chdir(here)
    if log:
        log.write_text(ran.errors)
    return ran.output
