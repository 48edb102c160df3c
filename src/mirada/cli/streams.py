"""Standard input, output and error as every command has them, however the process was started."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from typing import TextIO

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
