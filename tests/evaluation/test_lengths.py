"""Quality by source length: which sentence falls where, and each bucket as a corpus of its own."""

from __future__ import annotations

import pytest

from mirada.errors import ConfigError, DataError
from mirada.evaluation.bootstrap import interval
from mirada.evaluation.lengths import Bucket, BucketScore, buckets, by_length, filled
from mirada.evaluation.metrics import evaluate


def test_default_buckets_at_their_edges():
    found = buckets(range(1, 53))
    assert [bucket.label for bucket in found] == [
        "1–5",
        "6–10",
        "11–15",
        "16–20",
        "21–30",
        "31–40",
        "41–50",
        "51+",
    ]
    for bucket in found:
        # Sentence i has length i + 1.
        last = 52 if bucket.high is None else bucket.high
        assert bucket.indices == tuple(range(bucket.low - 1, last))


def test_empty_buckets_are_dropped_and_empty_sources_have_their_own():
    assert buckets([12, 0, 60, 12]) == [
        Bucket("0", 0, 0, (1,)),
        Bucket("11–15", 11, 15, (0, 3)),
        Bucket("51+", 51, None, (2,)),
    ]


def test_own_edges():
    assert [(b.label, b.indices) for b in buckets([1, 2, 3, 4], [1, 3])] == [("1", (0,)), ("2–3", (1, 2)), ("4+", (3,))]
    assert buckets([7, 9], []) == [Bucket("1+", 1, None, (0, 1))]
    assert buckets([]) == []


def test_scores_by_hand():
    # Lengths 2, 4: outputs right, wrong: 1 of 2. Length 8: right, and every resample of one sentence is that sentence.
    found = by_length([2, 8, 4], ["a", "b", "c"], [["a"], ["b"], ["x"]], "exact", samples=200)
    assert found == [
        BucketScore("1–5", 1, 5, 2, 50.0, 0.0, 100.0),
        BucketScore("6–10", 6, 10, 1, 100.0, 100.0, 100.0),
    ]


@pytest.mark.parametrize("name", ["bleu", "chrf", "wer", "rougeL"])
def test_a_bucket_is_scored_as_a_corpus_of_its_own(name):
    outputs = ["a b c d e f", "the man went to bed late", "x y z w", "one two three four five", "it is so good to see"]
    references = [["a b c d e g"], ["the man went to sleep late"], ["x y z v"], ["one two three four six"], ["it is"]]
    lengths = [3, 9, 4, 7, 9]
    short, long = by_length(lengths, outputs, references, name, samples=60, seed=4)
    for score, chosen in ((short, [0, 2]), (long, [1, 3, 4])):
        part = [outputs[i] for i in chosen], [references[i] for i in chosen]
        (expected,) = evaluate(*part, [name])
        assert score.count == len(chosen)
        assert score.value == pytest.approx(expected.value)
        assert (score.interval_low, score.interval_high) == pytest.approx(interval(*part, name, samples=60, seed=4))


def test_own_edges_reach_the_scores():
    found = by_length([1, 9], ["a", "b"], [["a"], ["b"]], "exact", edges=[20], samples=5)
    assert [(score.label, score.count) for score in found] == [("1–20", 2)]


@pytest.mark.parametrize("edges", [[5, 5], [10, 5], [0, 5], [-1]])
def test_edges_that_do_not_rise_are_refused(edges):
    with pytest.raises(ConfigError, match=r"^expected length edges that rise from 1 or more, such as 5 10 20, got \["):
        buckets([1], edges)


def test_a_negative_length_is_refused():
    with pytest.raises(DataError, match=r"^sentence 2: expected a source length of 0 or more, got -3$"):
        buckets([1, -3])


def test_a_length_is_needed_for_every_output():
    with pytest.raises(DataError, match=r"^expected a length for every output, got 2 lengths and 1 outputs$"):
        by_length([1, 2], ["a"], [["a"]], "exact")


def test_by_length_refuses_what_the_metrics_refuse():
    with pytest.raises(ConfigError, match=r"^metric 'rouge' is several"):
        by_length([1], ["a"], [["a"]], "rouge")
    with pytest.raises(DataError, match=r"^nothing to evaluate"):
        by_length([], [], [], "bleu")


def test_buckets_with_few_items_are_merged():
    # 200 sentences: at least 20 a bucket. 1–5 has 100, 6–10 only 15 and goes with 11–15; 21 and more has 3.
    lengths = [3] * 100 + [8] * 15 + [12] * 42 + [18] * 40 + [25] * 3
    assert filled(lengths) == [5, 15]
    assert [(bucket.label, len(bucket.indices)) for bucket in buckets(lengths, filled(lengths))] == [
        ("1–5", 100),
        ("6–15", 57),
        ("16+", 43),
    ]
    assert filled([1] * 30) == []  # one bucket for all
    assert filled([1, 8, 12, 25], [5, 10, 20]) == [5, 10, 20]  # of a handful every bucket says what it can
    assert filled([]) == []
