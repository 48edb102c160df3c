"""What a person sees of a training: a progress bar on a terminal, plain lines elsewhere. All on standard error."""

from __future__ import annotations

import sys
import time
from typing import Any

from mirada.escape import terminal
from mirada.messages import spoken

PARTS = 5  # of a training with a label: at the end of each it says a line


class Monitor:
    """Shows notes, a bar with tokens/s and time left, and one line a validation. `quiet` shows nothing.

    With a `label`, for trainings beside each other, every line begins with it, a few lines stand for the bar, and
    nothing is said of what a training begins with.
    """

    def __init__(self, *, quiet: bool = False, label: str = ""):
        self.quiet = quiet or sys.stderr is None  # None: closed by whoever started this
        self._label = label
        self._total: int | None = None
        self._begun = False
        self._bar: Any = None
        self._task: Any = None
        self._since: tuple[float, int] = (time.monotonic(), 0)

    def note(self, line: str) -> None:
        """Show one line, above the bar if there is one."""
        if self.quiet or (self._label and not self._begun):
            return
        line = terminal(f"{self._label}: {spoken(line)}" if self._label else spoken(line))
        try:
            if self._bar is not None:
                self._bar.console.print(line, markup=False, highlight=False)
            else:
                print(line, file=sys.stderr, flush=True)
        except OSError:  # nobody reads it any more (`| head`): that is the end of the notes, not of the training
            self.quiet = True

    def start(self, name: str, total: int | None, done: int) -> None:
        """Begin a bar of `total` updates (None: as many as the time allows), `done` of which are done."""
        self._since, self._total, self._begun = (time.monotonic(), 0), total, True
        if self.quiet or self._label or not sys.stderr.isatty():
            return
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[speed]}"),
            TimeRemainingColumn(),
            console=Console(stderr=True),
        )
        self._task = self._bar.add_task(terminal(spoken(name)), total=total, completed=done, speed="")
        self._bar.start()

    def update(self, done: int, tokens: int, loss: float) -> None:
        """Show that `done` updates are done, the last with so many target tokens and such a loss a token."""
        begun, before = self._since
        self._since = (begun, before + tokens)
        if self._label and self._total and done * PARTS // self._total > (done - 1) * PARTS // self._total:
            self.note(f"{done} of {self._total} updates, loss {loss:.3f}")
        if self._bar is not None:
            speed = (before + tokens) / max(1e-9, time.monotonic() - begun)
            self._bar.update(self._task, completed=done, speed=f"{speed:,.0f} tokens/s · {spoken('loss')} {loss:.3f}")

    def stop(self) -> None:
        """Take the bar away."""
        if self._bar is not None:
            self._bar.stop()
            self._bar = None
