"""Quality by source length, which shows what attention is for.

Without it quality falls as sentences grow; with it, hardly (Bahdanau et al. 2015, figure 2).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from mirada.errors import ConfigError, DataError
from mirada.evaluation.bootstrap import SAMPLES, SEED, percentiles, resample
from mirada.evaluation.metrics import References, statistics, total

# Fixed, not quantiles, so that two corpora and two systems have the same buckets: 1–5, 6–10, …, 41–50, 51+.
EDGES = (5, 10, 15, 20, 30, 40, 50)


class Bucket(NamedTuple):
    """The sentences whose source has `low` to `high` tokens, both included; `high` None: no limit."""

    label: str
    low: int
    high: int | None
    indices: tuple[int, ...]


@dataclass(frozen=True)
class BucketScore:
    """The corpus metric of one bucket, with its 95 % bootstrap interval, in percent."""

    label: str
    low: int
    high: int | None
    count: int
    value: float
    interval_low: float
    interval_high: float


def buckets(lengths: Sequence[int], edges: Sequence[int] | None = None) -> list[Bucket]:
    """Sort sentences into buckets by length, shortest first; empty buckets are dropped.

    `edges` are the buckets' last lengths (default 5, 10, 15, 20, 30, 40, 50); longer sentences share an open bucket and
    empty sources (length 0) one of their own. Raises ConfigError for edges that do not rise from 1 or more,
    DataError for a negative length.
    """
    limits = _checked(EDGES if edges is None else edges)
    for number, length in enumerate(lengths, start=1):
        if length < 0:
            raise DataError(f"sentence {number}: expected a source length of 0 or more, got {length}")
    # Bucket b holds limits[b - 1] < length ≤ limits[b].
    places = np.searchsorted(limits, lengths, side="left")
    found = []
    for place in range(len(limits) + 1):
        low = limits[place - 1] + 1 if place else 0
        high = limits[place] if place < len(limits) else None
        indices = tuple(np.flatnonzero(places == place).tolist())
        found.append(Bucket(_label(low, high), low, high, indices))
    return [bucket for bucket in found if bucket.indices]


def filled(lengths: Sequence[int], edges: Sequence[int] | None = None) -> list[int]:
    """The edges without those that part off too few sentences to say anything: 20, of fewer than 200 a tenth.

    A bucket that is too small is merged with the next one, the last with the one before.
    """
    least, chosen, count = max(1, min(20, -(-len(lengths) // 10))), [], 0
    limits = list(EDGES if edges is None else edges)
    for low, high in pairwise([0, *limits]):
        count += sum(low < length <= high for length in lengths)
        if count >= least:
            chosen.append(high)
            count = 0
    while chosen and sum(length > chosen[-1] for length in lengths) < least:
        chosen.pop()
    return chosen


def by_length(
    lengths: Sequence[int],
    hypotheses: Sequence[str],
    references: References,
    name: str,
    *,
    edges: Sequence[int] | None = None,
    samples: int = SAMPLES,
    seed: int = SEED,
) -> list[BucketScore]:
    """Score each bucket of source lengths as a corpus of its own, with the interval of `bootstrap.interval`.

    Raises DataError for other than one length a sentence, and as `buckets` and `metrics.statistics`.
    """
    if len(lengths) != len(hypotheses):
        raise DataError(f"expected a length for every output, got {len(lengths)} lengths and {len(hypotheses)} outputs")
    whole = statistics(hypotheses, references, name)
    scores = []
    for label, low, high, indices in buckets(lengths, edges):
        part = whole._replace(rows=whole.rows[list(indices)])
        low_value, high_value = percentiles(resample(part, samples=samples, seed=seed))
        scores.append(BucketScore(label, low, high, len(indices), total(part), low_value, high_value))
    return scores


def _checked(edges: Sequence[int]) -> list[int]:
    """Return the last length of every closed bucket, that of the empty sources included."""
    limits = [0, *edges]
    if any(after <= before for before, after in pairwise(limits)):
        raise ConfigError(f"expected length edges that rise from 1 or more, such as 5 10 20, got {list(edges)}")
    return limits


def _label(low: int, high: int | None) -> str:
    if high is None:
        return f"{low}+"
    return str(low) if low == high else f"{low}–{high}"
