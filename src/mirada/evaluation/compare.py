"""Systems against each other on the same sentences: values over seeds, intervals over sentences, paired differences.

A system is trained once a seed, so it has several outputs a sentence. Its value is the mean over seeds of the corpus
metric. Two uncertainties are kept apart: the interval draws *sentences* again (Koehn 2004), the same ones for every
seed and every system; the spread says what another *seed* would change. Where something is said of systems and not of
these trainings, `draw_seeds` draws the seeds again as well (two levels: Davison & Hinkley 1997, section 3.8), the same
ones for every system.
"""

from __future__ import annotations

import statistics as spread
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from mirada.evaluation.bootstrap import SAMPLES, SEED, percentiles, resample
from mirada.evaluation.lengths import BucketScore, buckets
from mirada.evaluation.metrics import FloatArray, References, Statistics, sentence_scores, statistics, total

# What the kinds of target tokens are mostly used for: sentences, phonemes or tags, letters.
TASK_METRICS: Mapping[str, tuple[str, ...]] = {
    "bpe": ("bleu", "chrf", "ter"),
    "unigram": ("bleu", "chrf", "ter"),
    "word": ("exact", "item_error", "per"),
    "char": ("exact", "item_error", "cer"),
    "features": ("exact", "item_error", "cer"),
}


class Measured(NamedTuple):
    """One metric of one system: on the corpus for each seed, and the mean over seeds on each bootstrap resample."""

    by_seed: tuple[float, ...]
    resampled: FloatArray  # [samples]
    signature: str


class Summary(NamedTuple):
    """A value, what other sentences would change (95 %), and what other seeds did."""

    value: float
    low: float
    high: float
    deviation: float | None  # sample standard deviation over seeds; None with one seed
    least: float
    most: float
    by_seed: tuple[float, ...]


class Difference(NamedTuple):
    """A − B in percent, its 95 % interval over sentences, and the two-sided p-value."""

    value: float
    low: float
    high: float
    p: float


class Gap(NamedTuple):
    """A sentence, and how far apart the systems' own scores for it are."""

    item: int  # from 0
    size: float
    scores: dict[str, float]


def measure(
    outputs: Sequence[Sequence[str]],
    references: References,
    name: str,
    *,
    samples: int = SAMPLES,
    seed: int = SEED,
    draw_seeds: bool = False,
) -> Measured:
    """Measure one system with one metric; `outputs` holds the outputs of each seed. Raises as `metrics.statistics`.

    `seed` draws the sentences; other ones for other sentences of the same system, whose seeds are drawn alike.
    """
    found = [statistics(of_a_seed, references, name) for of_a_seed in outputs]
    return _measured(found, samples, seed, draw_seeds)


def _measured(found: Sequence[Statistics], samples: int, seed: int, draw_seeds: bool) -> Measured:
    each = np.stack([resample(one, samples=samples, seed=seed) for one in found])  # [seeds, samples]
    resampled = over_seeds(each) if draw_seeds else each.mean(axis=0)
    return Measured(tuple(total(one) for one in found), resampled, found[0].signature)


def over_seeds(each: FloatArray) -> FloatArray:
    """The mean over as many seeds, drawn again for each resample: `[seeds, samples, …]` → `[samples, …]`."""
    seeds, samples = each.shape[:2]
    drawn = np.random.default_rng(SEED).integers(seeds, size=(seeds, samples))
    mean: FloatArray = each[drawn, np.arange(samples)].mean(axis=0)
    return mean


def summarise(measured: Measured) -> Summary:
    """Mean, interval and spread of a measured system."""
    by_seed = measured.by_seed
    low, high = percentiles(measured.resampled)
    deviation = spread.stdev(by_seed) if len(by_seed) > 1 else None
    return Summary(spread.fmean(by_seed), low, high, deviation, min(by_seed), max(by_seed), by_seed)


def difference(a: Measured, b: Measured) -> Difference:
    """Compare two systems on the same resamples; with one seed each the p-value is `bootstrap.paired_bootstrap`'s.

    With d = |A − B| on the corpus and d_k on resample k, p = (1 + #{k: d_k − mean(d) > d}) / (1 + samples); two systems
    that no resample tells apart get 1.
    """
    value = spread.fmean(a.by_seed) - spread.fmean(b.by_seed)
    low, high = percentiles(a.resampled - b.resampled)
    if np.array_equal(a.resampled, b.resampled):
        return Difference(value, low, high, 1.0)
    apart = np.abs(a.resampled - b.resampled)
    beyond = int(np.sum(apart - apart.mean() > abs(value)))
    return Difference(value, low, high, (1 + beyond) / (1 + len(apart)))


def by_length(
    lengths: Sequence[int],
    outputs: Sequence[Sequence[str]],
    references: References,
    name: str,
    *,
    edges: Sequence[int] | None = None,
    samples: int = SAMPLES,
    draw_seeds: bool = False,
) -> list[BucketScore]:
    """Score each bucket of source lengths: mean over seeds and interval over the bucket's sentences."""
    found = [statistics(of_a_seed, references, name) for of_a_seed in outputs]
    scores = []
    for label, low, high, indices in buckets(lengths, edges):
        parts = [one._replace(rows=one.rows[list(indices)]) for one in found]
        part = summarise(_measured(parts, samples, SEED, draw_seeds))
        scores.append(BucketScore(label, low, high, len(indices), part.value, part.low, part.high))
    return scores


def source_lengths(sources: Sequence[str]) -> tuple[list[int], str]:
    """Lengths in words, or in characters where every source is a single word; and the unit's name."""
    words = [len(source.split()) for source in sources]
    if max(words, default=0) > 1:
        return words, "words"
    return [len(source) for source in sources], "characters"


def mean_sentence_scores(outputs: Sequence[Sequence[str]], references: References, name: str) -> list[float]:
    """Score each sentence alone, mean over seeds, in percent."""
    by_seed = [sentence_scores(of_a_seed, references, name) for of_a_seed in outputs]
    return [spread.fmean(scores) for scores in zip(*by_seed, strict=True)]


def widest_gaps(scores: Mapping[str, Sequence[float]], count: int) -> list[Gap]:
    """Return the `count` sentences whose scores lie furthest apart between systems, widest first, ties in order."""
    rows = [dict(zip(scores, row, strict=True)) for row in zip(*scores.values(), strict=True)]
    gaps = [Gap(i, max(row.values()) - min(row.values()), row) for i, row in enumerate(rows)]
    return sorted((gap for gap in gaps if gap.size > 0), key=lambda gap: -gap.size)[:count]
