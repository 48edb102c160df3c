"""Where two files that should be parallel part: from the lengths of their lines, as a sentence aligner would see it.

Long sentences have long translations (Gale & Church 1993), so where line i of one file belongs to line
i + e of the other, the logarithms of their lengths differ little. Each line costs the absolute difference, each change
of the shift e a fixed price; the cheapest way through the files (dynamic programming) tells where the shift leaves 0.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

CHANGE_COST = 5.0  # about ten lines whose lengths fit clearly better elsewhere
MOST_SHIFTS = 32

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


def describe_counts(source_name: str, target_name: str, sources: Sequence[str], targets: Sequence[str]) -> str:
    """Say in one line how many lines each file has and where to look first."""
    counts = f"{source_name} has {len(sources)} lines but {target_name} has {len(targets)}"
    parts = parting_line(sources, targets)
    shorter = min(len(sources), len(targets))
    longer_name = source_name if len(sources) > len(targets) else target_name
    place = f"line {shorter + 1} is the first that only {longer_name} has"
    if parts is not None:
        place = f"by their lengths the files part at about line {parts}"
    blank = one_sided_blank(sources, targets)
    return f"{counts}; {place}" + (f"; first line with one blank side: {blank}" if blank is not None else "")


def one_sided_blank(sources: Sequence[str], targets: Sequence[str]) -> int | None:
    """Return the first line (from 1) that is blank on exactly one side, None if there is none."""
    pairs = zip(sources, targets, strict=False)  # the end of the longer file has no other side
    hits = (n for n, (source, target) in enumerate(pairs, start=1) if bool(source.strip()) != bool(target.strip()))
    return next(hits, None)


def parting_line(sources: Sequence[str], targets: Sequence[str]) -> int | None:
    """Estimate the first line (from 1) from which the lines of the two sides do not belong together.

    None: up to the end of the shorter side the lengths fit best as they stand (so its end is what is missing).
    """
    short, long = sorted((_log_lengths(sources), _log_lengths(targets)), key=len)
    size, surplus = len(short), len(long) - len(short)
    if not size or not surplus:
        return None
    usual = np.median(long) - np.median(short)  # of the sides, not of the pairs: right wherever they part
    best = _costs(short, long, 0, usual)  # best[i]: cheapest way to place the first i lines
    left = np.full(size + 1, -1)  # left[i]: where that way leaves shift 0, -1 for never
    for shift in [*range(1, min(surplus, MOST_SHIFTS)), surplus]:
        best, left = _allow_shift(best, left, _costs(short, long, shift, usual))
    return None if left[size] < 0 else int(left[size]) + 1


def _log_lengths(lines: Sequence[str]) -> Floats:
    return np.log1p(np.fromiter(map(len, lines), dtype=np.float64, count=len(lines)))


def _costs(short: Floats, long: Floats, shift: int, usual: np.floating) -> Floats:
    """Sum the cost of the first 0, 1, … lines of `short` against those of `long` from `shift` on."""
    misfit = np.abs(long[shift : shift + len(short)] - short - usual)
    return np.concatenate(([0.0], np.cumsum(misfit)))


def _allow_shift(best: Floats, left: Ints, costs: Floats) -> tuple[Floats, Ints]:
    """Take one more shift into the cheapest ways: change to it at any earlier line, or not at all."""
    gains = best - costs
    running = np.minimum.accumulate(gains)
    change = np.maximum.accumulate(np.where(gains == running, np.arange(len(gains)), 0))  # where the minimum stands
    new = running + costs + CHANGE_COST
    better = new < best
    new_left = np.where(left[change] < 0, change, left[change])
    return np.where(better, new, best), np.where(better, new_left, left)
