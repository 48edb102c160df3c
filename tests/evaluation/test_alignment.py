"""Alignment quality: by hand, and against the error rate written a second way."""

from __future__ import annotations

import math
import re
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirada.errors import DataError
from mirada.evaluation.alignment import (
    alignment_error,
    attention_links,
    coverage,
    entropy,
    format_links,
    monotonicity,
    parse_links,
    word_weights,
)


def test_links_are_read_and_possible_ones_contain_the_sure():
    sure, possible = parse_links("0-0 2p1  10-3 2-2\n", "gold.talp:1")
    assert sure == {(0, 0), (10, 3), (2, 2)}
    assert possible == {(0, 0), (10, 3), (2, 2), (2, 1)}
    assert parse_links("", "gold.talp:2") == (frozenset(), frozenset())


def test_a_link_said_twice_is_sure():
    assert parse_links("1p2 1-2", "x:1") == ({(1, 2)}, {(1, 2)})


@pytest.mark.parametrize("token", ["1:2", "1-", "-1-2", "1-2-3", "a-b", "1–2", "1s2", "1.0-2", "²-1", "١-1"])
def test_a_bad_link_names_file_and_line(token):
    message = f"gold.talp:7: bad link {token!r}; expected source-target from 0, such as 0-1 (sure) or 0p1 (possible)"
    with pytest.raises(DataError, match=f"^{re.escape(message)}$"):
        parse_links(f"0-0 {token} 1-1", "gold.talp:7")


links = st.frozensets(st.tuples(st.integers(0, 12), st.integers(0, 12)), max_size=8)


@given(links, links)
def test_written_links_are_read_back(sure, possible):
    assert parse_links(format_links(sure, possible), "x:1") == (sure, sure | possible)


def test_links_are_written_in_order():
    assert format_links({(10, 0), (2, 1)}, {(2, 0), (2, 1)}) == "2p0 2-1 10-0"
    assert format_links({(0, 1)}) == "0-1"


def test_error_rate_by_hand():
    # Sentence 1: A = {00, 11, 21}, S = {00, 22}, P = S + {11}: |A∩S| 1, |A∩P| 2.
    # Sentence 2: A = {00}, S = {00}: 1 and 1. In all |A| = 4, |S| = 3, |A∩S| = 2, |A∩P| = 3.
    # precision 3/4, recall 2/3, F1 = 2 · (3/4)(2/3) / (17/12) = 12/17, AER = 1 − 5/7 = 2/7.
    score = alignment_error([{(0, 0), (1, 1), (2, 1)}, {(0, 0)}], [{(0, 0), (2, 2)}, {(0, 0)}], [{(1, 1)}, {(0, 0)}])
    assert score == pytest.approx((3 / 4, 2 / 3, 12 / 17, 2 / 7))


def second_error_rate(links, sure, possible):
    """Go through all cells of a 13 × 13 table, and count in fractions."""
    aligned = gold = double = 0
    for a, s, p in zip(links, sure, possible, strict=True):
        for cell in [(i, j) for i in range(13) for j in range(13)]:
            aligned += cell in a
            gold += cell in s
            # A sure link that was found counts as both, a possible one once.
            double += (2 if cell in s else 1 if cell in p else 0) if cell in a else 0
    return 1 - Fraction(double, aligned + gold)


@given(st.lists(st.tuples(links, links, links), min_size=1, max_size=4))
def test_error_rate_equals_a_second_way_to_count(corpus):
    aligned, sure, possible = (list(side) for side in zip(*corpus, strict=True))
    sure[0] = sure[0] | {(0, 0)}
    found = alignment_error(aligned, sure, possible)
    assert found.aer == pytest.approx(float(second_error_rate(aligned, sure, possible)))
    assert 0 <= found.aer <= 1


@given(links.filter(bool), links)
def test_with_only_sure_links_the_error_rate_is_one_minus_f1(gold, aligned):
    score = alignment_error([aligned], [gold], [frozenset()])
    assert score.aer == pytest.approx(1 - score.f1)


def test_perfect_and_empty_alignments():
    gold = [{(0, 0), (1, 2)}]
    assert alignment_error(gold, gold, [set()]) == (1, 1, 1, 0)
    # All of S and any part of P is perfect too, by AER.
    assert alignment_error([{(0, 0), (1, 2), (3, 3)}], gold, [{(3, 3), (4, 4)}]).aer == 0
    assert alignment_error([set()], gold, [set()]) == (0, 0, 0, 1)


def test_unequal_counts_are_refused():
    message = "^expected links for every sentence, got 2 aligned, 1 sure, 1 possible$"
    with pytest.raises(DataError, match=message):
        alignment_error([{(0, 0)}, {(0, 0)}], [{(0, 0)}], [set()])


def test_gold_without_sure_links_is_refused():
    message = "^expected sure gold links, got none in 2 sentences; recall and AER need them$"
    with pytest.raises(DataError, match=message):
        alignment_error([{(0, 0)}, set()], [set(), set()], [{(0, 0)}, set()])


def test_attention_links_are_source_then_target():
    # Target word 0 looks most at source 2, word 1 at source 0; equal weights go to the first.
    assert attention_links([[0.1, 0.2, 0.7], [0.6, 0.3, 0.1], [0.2, 0.4, 0.4]]) == {(2, 0), (0, 1), (1, 2)}


def test_word_weights_by_hand():
    # Source words: pieces 0+1, 2. Target words: piece 0, pieces 1+2.
    weights = [[0.2, 0.3, 0.5], [0.1, 0.1, 0.8], [0.5, 0.3, 0.2]]
    merged = word_weights(weights, [0, 0, 1], [0, 1, 1])
    # Row 0: 0.2 + 0.3, 0.5. Row 1: means of (0.2, 0.8) and of (0.8, 0.2).
    assert merged == pytest.approx(np.array([[0.5, 0.5], [0.5, 0.5]]))
    # Pieces of a word need not be neighbours.
    assert word_weights(weights, [0, 1, 0], [0, 1, 2])[0] == pytest.approx(np.array([0.7, 0.3]))


@given(st.integers(1, 6), st.integers(1, 6), st.data())
def test_rows_of_word_weights_still_sum_to_one(rows, columns, data):
    weights = np.random.default_rng(rows * 7 + columns).dirichlet(np.ones(columns), size=rows)
    sides = [sorted(data.draw(st.lists(st.booleans(), min_size=n - 1, max_size=n - 1))) for n in (columns, rows)]
    source, target = ([0, *np.cumsum(side).tolist()] for side in sides)
    merged = word_weights(weights, source, target)
    assert merged.shape == (target[-1] + 1, source[-1] + 1)
    assert merged.sum(axis=1) == pytest.approx(np.ones(len(merged)))
    assert (merged >= 0).all()


@pytest.mark.parametrize(
    ("source", "target", "message"),
    [
        ([0], [0, 1], "^source groups: expected a word for each of 2 pieces, got 1$"),
        ([0, 1], [0, 1, 2], "^target groups: expected a word for each of 2 pieces, got 3$"),
        ([0, 2], [0, 1], r"^source groups: expected every word from 0 to 2, got \[0, 2\]$"),
        ([0, 1], [-1, 0], r"^target groups: expected every word from 0 to 0, got \[-1, 0\]$"),
    ],
)
def test_groups_that_do_not_fit_are_refused(source, target, message):
    with pytest.raises(DataError, match=message):
        word_weights(np.full((2, 2), 0.5), source, target)


def test_entropy_by_hand():
    # One word: 0. Four alike: ln 4. Halves: ln 2. (1/2, 1/4, 1/4): (ln 2) / 2 + (2 ln 4) / 4 = 1.5 ln 2.
    rows = [[0, 0, 1, 0], [0.25] * 4, [0.5, 0.5, 0, 0], [0.5, 0.25, 0.25, 0]]
    expected = [0, math.log(4), math.log(2), 1.5 * math.log(2)]
    assert entropy(rows) == pytest.approx(np.array(expected))
    assert not np.signbit(entropy(rows)).any()


def test_coverage_by_hand():
    # Columns sum to 1.5, 0.5, 0: (1 + 0.5 + 0) / 3.
    assert coverage([[1, 0, 0], [0.5, 0.5, 0]]) == pytest.approx(0.5)
    assert coverage(np.eye(3)) == 1.0
    # A source word never looked at: 2 of 3, however often the others are.
    assert coverage([[1, 0, 0], [0, 1, 0], [0, 1, 0], [1, 0, 0]]) == pytest.approx(2 / 3)


def test_monotonicity_by_hand():
    assert monotonicity(np.eye(4)) == 1.0
    assert monotonicity(np.eye(4)[::-1]) == 0.0
    # Places 0, 2, 1, 1.5: forward, back, forward.
    assert monotonicity([[1, 0, 0], [0, 0, 1], [0, 1, 0], [0.25, 0, 0.75]]) == pytest.approx(2 / 3)
    assert monotonicity([[0.3, 0.7]]) == 1.0


def test_monotonicity_takes_rounding_for_a_stay():
    uniform = np.full((50, 37), 1 / 37, dtype=np.float32)
    noise = np.random.default_rng(0).uniform(-1e-8, 1e-8, size=uniform.shape).astype(np.float32)
    assert monotonicity(uniform + noise) == 1.0
