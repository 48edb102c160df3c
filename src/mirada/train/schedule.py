"""The learning rate as a pure function of the update, as in nanoGPT: no scheduler object, nothing to save."""

from __future__ import annotations

import math
from typing import NamedTuple


class Schedule(NamedTuple):
    """Peak rate, warm-up updates, what comes after, and the last update (for the shapes that end)."""

    peak: float
    warmup: int
    shape: str  # constant, inverse_sqrt, cosine, linear, plateau
    last: int


def paced(schedule: Schedule, update: int, done: float) -> Schedule:
    """The schedule of a training that ends by the clock, when `update` updates have taken the share `done` of its time.

    Its last update is the one that is reached at this pace; the warm-up is a tenth of all at most.
    """
    if not done:
        return schedule
    last = max(update, min(schedule.last, round(update / done)))
    return schedule._replace(last=last, warmup=min(schedule.warmup, last // 10))


def learning_rate(update: int, schedule: Schedule) -> float:
    """Rate of update 1, 2, …: a linear rise over the warm-up, then the shape (plateau's factor is applied outside).

    inverse_sqrt falls as peak · √(warmup / update) (Vaswani et al. 2017, section 5.3, with the peak as a free choice);
    cosine and linear reach a hundredth of the peak at the last update.
    """
    if update <= schedule.warmup:
        return schedule.peak * update / schedule.warmup
    if schedule.shape == "inverse_sqrt":
        return schedule.peak * math.sqrt(max(1, schedule.warmup) / update)
    if schedule.shape in ("cosine", "linear"):
        done = min(1.0, (update - schedule.warmup) / max(1, schedule.last - schedule.warmup))
        left = (1 + math.cos(math.pi * done)) / 2 if schedule.shape == "cosine" else 1 - done
        return schedule.peak * max(left, 0.01)
    return schedule.peak
