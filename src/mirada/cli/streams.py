"""Standard input, output and error as every command has them, however the process was started."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any, TextIO

from mirada.errors import ConfigError


def prepare() -> None:
    """Let data be UTF-8 with bare line ends whatever the system's habit, and messages have a place to go.

    Python has None for a stream that was closed by whoever started it (`2>&-`); `print` takes None for standard output.
    """
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 — as long as the process lives
    with suppress(AttributeError):  # closed, or a stream in memory
        sys.stdout.reconfigure(encoding="utf-8", newline="\n")  # type: ignore[union-attr]


def keep_numbers() -> None:
    """Let no file that is opened later get the number of a closed stream: what is written there would hit it."""
    with suppress(OSError):
        while (number := os.open(os.devnull, os.O_RDONLY)) <= 2:
            pass
        os.close(number)


def data_output(instead: str = "") -> TextIO:
    """Standard output, for what a command finds; raises ConfigError, with what to do `instead`, where it is closed."""
    if sys.stdout is None:
        raise ConfigError(f"standard output is closed; {instead or 'let it go to a file, or to /dev/null'}")
    return sys.stdout


@contextmanager
def undisturbed() -> Iterator[None]:
    """Let Ctrl-C and SIGTERM wait until the finished lines are out, whole; a second one does not wait."""
    came: list[int] = []

    def received(number: int, _frame: FrameType | None) -> None:
        if came:
            raise KeyboardInterrupt
        came.append(number)

    before: dict[signal.Signals, Any] = {}
    with suppress(ValueError):  # not in the main thread: signals are someone else's business
        for kind in (signal.SIGINT, signal.SIGTERM):
            if signal.getsignal(kind) is not signal.SIG_IGN:
                before[kind] = signal.signal(kind, received)
    try:
        yield
    finally:
        for kind, handler in before.items():
            signal.signal(kind, handler)
    if came:
        signal.raise_signal(came[0])
