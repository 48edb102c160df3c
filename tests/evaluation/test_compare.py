"""Systems against each other: seeds, sentences and differences, by arithmetic on paper and by a second road."""

from __future__ import annotations

import math

import numpy as np
import pytest

from mirada.evaluation import bootstrap, compare, lengths
from mirada.evaluation.metrics import evaluate

REFERENCES = [["a b c d e"], ["f g h i j"], ["k l m n o"], ["p q r s t"]]
GOOD = ["a b c d e", "f g h i j", "k l m n x", "p q r s t"]
POOR = ["a b c x y", "f g h i j", "x x x", "p q r x t"]


def test_seeds_by_hand():
    # Exact: seed 1 has 2 of 4, seed 2 all 4: mean 75, deviation √((25² + 25²) / 1).
    half = ["a b c d e", "f g h i j", "no", "no"]
    whole = [references[0] for references in REFERENCES]
    found = compare.summarise(compare.measure([half, whole], REFERENCES, "exact", samples=50))
    assert (found.value, found.least, found.most, found.by_seed) == (75.0, 50.0, 100.0, (50.0, 100.0))
    assert found.deviation == pytest.approx(math.sqrt(1250))
    # What one seed misses the other hits: 50 + 50 · (share of the first two among the drawn), so at least 50.
    assert 50.0 <= found.low <= found.value <= found.high <= 100.0


def test_one_seed_has_no_deviation_and_the_interval_of_the_bootstrap():
    found = compare.summarise(compare.measure([POOR], REFERENCES, "bleu", samples=80, seed=3))
    assert found.deviation is None
    assert found.value == found.least == found.most == evaluate(POOR, REFERENCES, ["bleu"])[0].value
    assert (found.low, found.high) == bootstrap.interval(POOR, REFERENCES, "bleu", samples=80, seed=3)


def test_resamples_of_several_seeds_are_the_mean_of_each_seed_on_the_same_sentences():
    both = compare.measure([GOOD, POOR], REFERENCES, "chrf", samples=30)
    alone = [compare.measure([outputs], REFERENCES, "chrf", samples=30).resampled for outputs in (GOOD, POOR)]
    np.testing.assert_allclose(both.resampled, (alone[0] + alone[1]) / 2, rtol=1e-12)


def test_seeds_are_drawn_again_where_that_is_wanted():
    each = np.array([[0.0], [6.0]]).repeat(4000, 1)  # two seeds that no sentence tells apart
    drawn = compare.over_seeds(each)
    assert set(drawn) == {0.0, 3.0, 6.0}
    assert drawn.mean() == pytest.approx(3, abs=0.2)
    assert drawn.var() == pytest.approx(9 / 2, rel=0.1)  # of the mean of two draws from {0, 6}
    assert np.array_equal(compare.over_seeds(each[:1]), each[0])


@pytest.mark.parametrize("name", ["bleu", "wer", "exact"])
def test_differences_are_those_of_the_paired_bootstrap(name):
    a, b = (compare.measure([outputs], REFERENCES, name, samples=100, seed=5) for outputs in (GOOD, POOR))
    found = compare.difference(a, b)
    assert found.p == bootstrap.paired_bootstrap(GOOD, POOR, REFERENCES, name, samples=100, seed=5)
    values = [evaluate(outputs, REFERENCES, [name])[0].value for outputs in (GOOD, POOR)]
    assert found.value == pytest.approx(values[0] - values[1])
    assert found.low <= found.value <= found.high


def test_differences_at_the_ends():
    right = [references[0] for references in REFERENCES]
    all_right, all_wrong = (
        compare.measure([outputs], REFERENCES, "exact", samples=99) for outputs in (right, ["-"] * 4)
    )
    # Every resample says 100: none is further from the mean than the difference itself, so p = 1 / (1 + 99).
    assert compare.difference(all_right, all_wrong) == compare.Difference(100.0, 100.0, 100.0, 0.01)
    assert compare.difference(all_right, all_right) == compare.Difference(0.0, 0.0, 0.0, 1.0)


def test_by_length_of_one_seed_is_that_of_lengths():
    sizes = [3, 9, 4, 12]
    found = compare.by_length(sizes, [POOR], REFERENCES, "wer", edges=[5, 10], samples=40)
    assert found == lengths.by_length(sizes, POOR, REFERENCES, "wer", edges=[5, 10], samples=40)
    assert [(score.label, score.count) for score in found] == [("1–5", 2), ("6–10", 1), ("11+", 1)]


def test_by_length_takes_the_mean_over_seeds():
    found = compare.by_length([1, 1, 7, 7], [GOOD, POOR], REFERENCES, "exact", edges=[5], samples=20)
    # GOOD is right on items 1, 2, 4; POOR on item 2 alone.
    assert [score.value for score in found] == [75.0, 25.0]


def test_source_lengths_are_counted_in_what_the_sources_are_made_of():
    assert compare.source_lengths(["a b", "c"]) == ([2, 1], "words")
    assert compare.source_lengths(["abc", "de"]) == ([3, 2], "characters")


def test_the_widest_gaps_come_first_and_agreement_is_left_out():
    scores = {"a": [10.0, 50.0, 0.0, 70.0], "b": [30.0, 50.0, 90.0, 50.0], "c": [20.0, 50.0, 40.0, 60.0]}
    found = compare.widest_gaps(scores, 3)
    assert [(gap.item, gap.size) for gap in found] == [(2, 90.0), (0, 20.0), (3, 20.0)]
    assert found[0].scores == {"a": 0.0, "b": 90.0, "c": 40.0}
    assert len(compare.widest_gaps(scores, 1)) == 1


def test_sentence_scores_are_the_mean_over_seeds():
    assert compare.mean_sentence_scores([GOOD, POOR], REFERENCES, "exact") == [50.0, 100.0, 0.0, 50.0]
