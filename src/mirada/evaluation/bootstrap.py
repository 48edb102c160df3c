"""Bootstrap over sentences: how sure a corpus metric is, and whether two systems differ.

A resample draws as many sentences as there are, with replacement (Koehn 2004). Its value comes from the sum of the
drawn sentences' rows, never from their mean score, so BLEU stays the BLEU of a corpus.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mirada.errors import ConfigError, DataError
from mirada.evaluation.metrics import FloatArray, References, Statistics, statistics, total

SAMPLES = 1000
SEED = 12345  # sacreBLEU's default: the same resamples, so the same numbers


def interval(
    hypotheses: Sequence[str],
    references: References,
    name: str,
    *,
    samples: int = SAMPLES,
    seed: int = SEED,
    level: float = 0.95,
) -> tuple[float, float]:
    """Return the bootstrap percentile interval of a corpus metric, in percent (Efron & Tibshirani 1993, chapter 13).

    Raises as `metrics.statistics`, and ConfigError for samples, seed or level out of range.
    """
    return percentiles(resample(statistics(hypotheses, references, name), samples=samples, seed=seed), level=level)


def paired_bootstrap(
    hypotheses_a: Sequence[str],
    hypotheses_b: Sequence[str],
    references: References,
    name: str,
    *,
    samples: int = SAMPLES,
    seed: int = SEED,
) -> float:
    """Return the two-sided p-value of the difference between two systems on the same sentences.

    As sacreBLEU's paired bootstrap: with d = |A − B| on the corpus and d_k on resample k (both systems on the same
    sentences), p = (1 + #{k: d_k − mean(d) > d}) / (1 + samples). One departure: two systems whose every sentence
    counts the same differ by nothing, and get 1, not 1 / (1 + samples). Raises as `interval`.
    """
    a, b = statistics(hypotheses_a, references, name), statistics(hypotheses_b, references, name)
    if np.array_equal(a.rows, b.rows):
        _check_draws(samples, seed)
        return 1.0
    real = abs(total(a) - total(b))
    resampled = np.abs(resample(a, samples=samples, seed=seed) - resample(b, samples=samples, seed=seed))
    return float((1 + np.sum(resampled - resampled.mean() > real)) / (1 + samples))


def resample(found: Statistics, *, samples: int = SAMPLES, seed: int = SEED) -> FloatArray:
    """Return the metric on each resample, `[samples]`; one seed draws the same sentences whatever the metric."""
    _check_draws(samples, seed)
    draws = np.random.default_rng(seed)
    count = len(found.rows)
    sums = [
        np.bincount(draws.integers(count, size=count), minlength=count).astype(np.float64) @ found.rows
        for _ in range(samples)
    ]
    return found.value(np.stack(sums))


def by_cluster(found: Statistics, clusters: Sequence[str]) -> Statistics:
    """Add up the rows of each cluster, so that a resample draws whole clusters; the value of all stays the same.

    For items that stand or fall together, such as the forms of one lemma (Davison & Hinkley 1997, section 3.8).
    Raises DataError for other than one cluster an item.
    """
    if len(clusters) != len(found.rows):
        raise DataError(f"expected a cluster for every item, got {len(clusters)} clusters and {len(found.rows)} items")
    names, places = np.unique(np.asarray(clusters), return_inverse=True)
    rows = np.zeros((len(names), found.rows.shape[1]))
    np.add.at(rows, places, found.rows)
    return found._replace(rows=rows)


def percentiles(values: FloatArray, *, level: float = 0.95) -> tuple[float, float]:
    """Return the two quantiles between which the middle `level` of the values lies; raises ConfigError."""
    if not 0 < level < 1:
        raise ConfigError(f"expected a confidence level between 0 and 1, such as 0.95, got {level}")
    low, high = np.quantile(values, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def _check_draws(samples: int, seed: int) -> None:
    if samples < 1:
        raise ConfigError(f"expected 1 or more bootstrap samples, got {samples}")
    if seed < 0:
        raise ConfigError(f"expected a bootstrap seed of 0 or more, got {seed}")
