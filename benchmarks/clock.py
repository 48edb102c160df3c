"""The clock of a training: it stands where the progress bar would, and is told of every update as it ends.

A training on a GPU tells of an update when its outcome has come back, with the next one under way.

So what is measured is `mirada.train.loop.train` itself: reading batches, forward, loss, backward, clipping, optimiser.
"""

from __future__ import annotations

import time
from typing import NamedTuple

from benchmarks.machine import Load, Rates, Reading, load_between, measure_rates, middle, peak_megabytes, reading


class Plan(NamedTuple):
    """How long to measure."""

    warmup: int = 30  # updates that do not count
    windows: int = 3
    updates: int = 30  # of one window

    @property
    def total(self) -> int:
        """Updates in all."""
        return self.warmup + self.windows * self.updates


class Window(NamedTuple):
    """Some updates in a row."""

    seconds: float
    tokens: int
    load: Load


class Clock:
    """Cuts a training into windows, and measures the matrix rate between them, if that is wanted."""

    def __init__(self, plan: Plan, *, with_rates: bool = True, precision: str = "float32", device: str = "cpu"):
        self.plan, self._with_rates, self._precision, self._device = plan, with_rates, precision, device
        self.tokens: list[int] = []  # of every update
        self.windows: list[Window] = []
        self.rates: list[Rates] = []
        self.peak_megabytes = 0.0
        self._begun: tuple[float, Reading | None] = (0.0, None)

    def note(self, line: str) -> None:
        """Nobody reads along."""

    def start(self, name: str, total: int, done: int) -> None:
        """The training begins."""

    def stop(self) -> None:
        """The training has ended."""

    def update(self, done: int, tokens: int, loss: float) -> None:
        """An update has ended: `done` of them so far, the last with so many real target tokens."""
        now = time.perf_counter()
        self.tokens.append(tokens)
        since = len(self.tokens) - self.plan.warmup
        if since < 0 or since % self.plan.updates or len(self.windows) == self.plan.windows:
            return
        if since:
            load = load_between(self._begun[1], reading())
            window = self.tokens[-self.plan.updates :]
            self.windows.append(Window(now - self._begun[0], sum(window), load))
            self.peak_megabytes = peak_megabytes(self._device)
        if self._with_rates:
            self.rates.append(measure_rates(precision=self._precision))
        self._begun = (time.perf_counter(), reading())

    def rate(self) -> Rates:
        """The median of each rate over the times between the windows."""
        return middle(self.rates)
