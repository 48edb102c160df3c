"""Is the attention an alignment: error against gold links, and what a matrix of weights looks like without gold.

A link is (source word, target word), both from 0. Weights are NumPy arrays `[T, S]`: row t is α_t, which sums to 1.
Rows and columns of end-of-sentence are the caller's to drop or keep.
"""

from __future__ import annotations

import re
from collections.abc import Sequence, Set
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from mirada.errors import DataError
from mirada.evaluation.metrics import FloatArray

Link = tuple[int, int]
LINK = re.compile(r"([0-9]+)([-p])([0-9]+)")


class AlignmentScore(NamedTuple):
    """Fractions between 0 and 1; `f1` is the harmonic mean of precision and recall; lower `aer` is better."""

    precision: float
    recall: float
    f1: float
    aer: float


class LinkCounts(NamedTuple):
    """How many links a corpus has and shares with the gold: what the fractions are made of."""

    links: int  # |A|
    sure: int  # |S|
    possible: int  # |P|, the sure ones included
    hit_sure: int  # |A ∩ S|
    hit_possible: int  # |A ∩ P|


def parse_links(line: str, where: str) -> tuple[frozenset[Link], frozenset[Link]]:
    """Read one sentence's links, Pharaoh's `i-j` (sure) and `ipj` (possible), separated by blanks.

    Returns the sure links, and the possible ones, which contain the sure. `where` is `file:line`, for the DataError
    that a bad token raises.
    """
    sure, possible = set(), set()
    for token in line.split():
        match = LINK.fullmatch(token)
        if match is None:
            raise DataError(
                f"{where}: bad link {token!r}; expected source-target from 0, such as 0-1 (sure) or 0p1 (possible)"
            )
        link = int(match[1]), int(match[3])
        possible.add(link)
        if match[2] == "-":
            sure.add(link)
    return frozenset(sure), frozenset(possible)


def format_links(sure: Set[Link], possible: Set[Link] = frozenset()) -> str:
    """Write links in order of source then target, so that `parse_links` reads the same ones."""
    return " ".join(f"{i}{'-' if (i, j) in sure else 'p'}{j}" for i, j in sorted(sure | possible))


def count_links(links: Sequence[Set[Link]], sure: Sequence[Set[Link]], possible: Sequence[Set[Link]]) -> LinkCounts:
    """Count links A against sure S and possible P over a corpus, one set a sentence; S is joined to P first.

    Raises DataError for unequal counts of sentences, and if there is no sure link: recall and AER then mean nothing.
    """
    if not len(links) == len(sure) == len(possible):
        raise DataError(
            f"expected links for every sentence, got {len(links)} aligned, {len(sure)} sure, {len(possible)} possible"
        )
    if not any(sure):
        raise DataError(f"expected sure gold links, got none in {len(sure)} sentences; recall and AER need them")
    sets = [(a, s, s | p) for a, s, p in zip(links, sure, possible, strict=True)]
    return LinkCounts(*(sum(sizes) for sizes in zip(*map(_sizes, sets), strict=True)))


def _sizes(sets: tuple[Set[Link], Set[Link], Set[Link]]) -> LinkCounts:
    a, s, p = sets
    return LinkCounts(len(a), len(s), len(p), len(a & s), len(a & p))


def alignment_error(
    links: Sequence[Set[Link]], sure: Sequence[Set[Link]], possible: Sequence[Set[Link]]
) -> AlignmentScore:
    """Score links A against sure S and possible P over a corpus (Och & Ney 2003); raises DataError as `count_links`."""
    return score_of(count_links(links, sure, possible))


def score_of(counts: LinkCounts) -> AlignmentScore:
    """precision = |A ∩ P| / |A|, recall = |A ∩ S| / |S|, AER = 1 − (|A ∩ S| + |A ∩ P|) / (|A| + |S|).

    Counts are summed over sentences before the division. No link at all has precision 0.
    """
    precision, recall = counts.hit_possible / max(counts.links, 1), counts.hit_sure / counts.sure
    f1 = 2 * precision * recall / (precision + recall) if precision + recall else 0.0
    hits = counts.hit_sure + counts.hit_possible
    return AlignmentScore(precision, recall, f1, 1 - hits / (counts.links + counts.sure))


def attention_links(weights: ArrayLike) -> frozenset[Link]:
    """Link every target word t to the source word with the largest weight (of equal ones the first): argmax_j α_tj."""
    best = np.asarray(weights).argmax(axis=-1)
    return frozenset((int(source), target) for target, source in enumerate(best))


def word_weights(weights: ArrayLike, source_groups: Sequence[int], target_groups: Sequence[int]) -> FloatArray:
    """Merge the weights of subword pieces `[T, S]` into those of words `[T words, S words]`; rows still sum to 1.

    The groups give every piece's word, from 0: `[0, 0, 1]` says that the first word has two pieces. A source word gets
    the sum of its pieces' weights, a target word the mean of its pieces' rows. Raises DataError if the groups do not
    fit the weights or skip a word.
    """
    pieces = np.asarray(weights, dtype=np.float64)
    target = _membership(target_groups, pieces.shape[0], "target")
    source = _membership(source_groups, pieces.shape[1], "source")
    merged: FloatArray = (target / target.sum(axis=0)).T @ pieces @ source
    return merged


def _membership(groups: Sequence[int], count: int, side: str) -> FloatArray:
    """Return a `[pieces, words]` array with 1 where the piece belongs to the word."""
    if len(groups) != count:
        raise DataError(f"{side} groups: expected a word for each of {count} pieces, got {len(groups)}")
    words = max(groups, default=-1) + 1
    if set(groups) != set(range(words)):
        raise DataError(f"{side} groups: expected every word from 0 to {words - 1}, got {sorted(set(groups))}")
    return np.eye(words)[list(groups)]


def entropy(weights: ArrayLike) -> FloatArray:
    """Return −Σ_j α_tj ln α_tj of every row, in nats: 0 looks at one word, ln S at all alike; `[T, S]` → `[T]`."""
    alpha = np.asarray(weights, dtype=np.float64)
    logs = np.log(alpha, where=alpha > 0, out=np.zeros_like(alpha))
    # Subtracted from zero, so that a sharp row gives 0 and not −0.
    return np.asarray(0.0 - (alpha * logs).sum(axis=-1))


def coverage(weights: ArrayLike) -> float:
    """Return the share of the source that was looked at: mean over j of min(Σ_t α_tj, 1), between 0 and 1.

    Σ_t α_tj is the coverage of Tu et al. 2016; the minimum is that of the penalty of Wu et al. 2016 (equation 14): a
    word looked at twice does not make up for one left out.
    """
    return float(np.minimum(np.asarray(weights, dtype=np.float64).sum(axis=0), 1.0).mean())


def monotonicity(weights: ArrayLike) -> float:
    """Return the share of steps from one target word to the next on which the attention does not move back.

    The place of a row is its mean source position Σ_j j α_tj. 1: never back (one row, or rows all alike, too);
    0: always back.
    """
    alpha = np.asarray(weights, dtype=np.float64)
    if len(alpha) < 2:
        return 1.0
    moves = np.diff(alpha @ np.arange(alpha.shape[1]))
    # Equal places may differ by the rounding of float32 weights.
    return float((moves >= -1e-5 * alpha.shape[1]).mean())
