"""Run `mirada …` as processes that can be killed, quickly: each is forked from one that has torch loaded already."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import time
from collections.abc import Callable
from multiprocessing import reduction
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, NamedTuple

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # threads that wait leave a busy machine to others
CONTEXT: Any = multiprocessing.get_context("forkserver")
# torch._dynamo: torch's optimisers load it when the first is made, which takes longer than a short training.
CONTEXT.set_forkserver_preload(
    ["torch._dynamo", "mirada.train.loop", "mirada.cli.train", "mirada.cli.translate", "mirada.evaluation.metrics"]
)
PATIENCE = 180.0  # seconds; a slow machine is no failure, a process that hangs is


class Handed:
    """An open file that goes with a command into its process."""

    def __init__(self, descriptor: int):
        self.descriptor = descriptor

    def __getstate__(self) -> Any:
        return reduction.DupFd(self.descriptor)

    def __setstate__(self, state: Any) -> None:
        self.descriptor = state.detach()


class Ends(NamedTuple):
    """A command's standard input and output, when not /dev/null and its log."""

    stdin: Handed | None = None
    stdout: Handed | None = None


DETACHED = Ends()


class Crash(NamedTuple):
    """Where a command kills itself with signal 9: in its n-th call of a step of writing a file."""

    step: str  # torn, written, renamed
    call: int


class Command:
    """One running `mirada` command and what it has said: on standard error, and on standard output unless handed."""

    def __init__(
        self, arguments: list[str], log: Path, *, ends: Ends = DETACHED, crash: Crash | None = None, threads: int = 1
    ):
        self.log = log
        log.write_bytes(b"")
        all_of_it = (arguments, log, ends, crash, threads)
        self.process: BaseProcess = CONTEXT.Process(target=_child, args=all_of_it, daemon=True)
        self.process.start()

    def said(self) -> str:
        """All that it has said so far."""
        return self.log.read_text(encoding="utf-8", errors="replace")

    def wait_for(self, text: str) -> bool:
        """Wait until it has said this, or has ended; tells whether it has said it."""
        wait(lambda: text in self.said() or not self.process.is_alive())
        return text in self.said()

    def send(self, number: int) -> None:
        """Send a signal, if it still runs."""
        if self.process.is_alive() and self.process.pid is not None:
            os.kill(self.process.pid, number)

    def end(self) -> int:
        """Wait for its end; returns the exit code, negative for the signal that killed it (99 for one that hangs)."""
        self.process.join(PATIENCE)
        if self.process.exitcode is None:
            self.process.kill()
            self.process.join()
            return 99
        return self.process.exitcode


def wait(ready: Callable[[], bool]) -> None:
    """Wait until something is so; gives up after PATIENCE."""
    limit = time.monotonic() + PATIENCE
    while not ready() and time.monotonic() < limit:
        time.sleep(0.005)


def run(arguments: list[str], log: Path, *, ends: Ends = DETACHED) -> int:
    """Run a command to its end; returns the exit code."""
    return Command(arguments, log, ends=ends).end()


def _child(arguments: list[str], log: Path, ends: Ends, crash: Crash | None, threads: int) -> None:
    import torch

    from mirada.cli import main

    torch.set_num_threads(threads)
    said = os.open(log, os.O_WRONLY | os.O_APPEND)
    handed = [end.descriptor for end in ends if end is not None]
    os.dup2(said, 2)
    os.dup2(said if ends.stdout is None else ends.stdout.descriptor, 1)
    if ends.stdin is not None:
        os.dup2(ends.stdin.descriptor, 0)
    for descriptor in (said, *handed):
        os.close(descriptor)
    # As a new Python opens them: those of the parent were made for other files.
    sys.stdin, sys.stdout, sys.stderr = (os.fdopen(number, mode, closefd=False) for number, mode in enumerate("rww"))
    if crash is not None:
        _prepare(crash)
    sys.exit(main(arguments))


def _prepare(crash: Crash) -> None:
    """Make the process die as by a power cut: half a file written, all of it but under no name yet, or just named."""
    count = 0

    def due() -> bool:
        nonlocal count
        count += 1
        return count == crash.call

    def fsync(descriptor: int) -> None:
        if due():
            os.ftruncate(descriptor, os.fstat(descriptor).st_size // 2)
            os.kill(os.getpid(), signal.SIGKILL)

    def replace(source: Any, target: Any, **options: Any) -> None:
        if crash.step == "renamed":
            real(source, target, **options)
        if due():
            os.kill(os.getpid(), signal.SIGKILL)
        if crash.step == "written":
            real(source, target, **options)

    real = os.replace
    if crash.step == "torn":
        os.fsync = lambda descriptor: fsync(descriptor) if not _is_folder(descriptor) else None
    else:
        os.replace = replace  # type: ignore[assignment]


def _is_folder(descriptor: int) -> bool:
    return bool(os.fstat(descriptor).st_mode & 0o040000)
