"""How far a long command is, on standard error: a line that changes on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import sys
import time
from contextlib import suppress

from mirada.cli import say
from mirada.messages import spoken

OFTEN, SELDOM = 0.2, 10.0  # seconds between words of progress: on a terminal, elsewhere


class Ticker:
    """Tells how many pairs are done; the first word comes after some time, so that short commands stay silent."""

    def __init__(self) -> None:
        self._told = time.monotonic()
        self._shown = 0  # characters on the terminal's line

    def tell(self, what: str, done: int, total: int | None) -> None:
        """Say that `done` pairs are done, of `total` where that is known."""
        on_terminal = sys.stderr is not None and sys.stderr.isatty()
        if time.monotonic() - self._told < (OFTEN if on_terminal else SELDOM):
            return
        self._told = time.monotonic()
        line = f"{what}: {done:,} pairs" if total is None else f"{what}: {done:,} of {total:,} pairs"
        if not on_terminal:
            say(line)
            return
        line = spoken(line)
        with suppress(OSError):
            print(f"\r{line.ljust(self._shown)}", end="", file=sys.stderr, flush=True)
        self._shown = len(line)

    def end(self) -> None:
        """Take the line away."""
        if self._shown:
            with suppress(OSError):
                print(f"\r{' ' * self._shown}\r", end="", file=sys.stderr, flush=True)
            self._shown = 0
