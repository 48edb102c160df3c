"""Bootstrap: known distributions, and sacreBLEU's own paired test."""

from __future__ import annotations

import random

import numpy as np
import pytest
from sacrebleu.metrics import BLEU, CHRF
from sacrebleu.significance import PairedTest

from mirada.errors import ConfigError, DataError
from mirada.evaluation.bootstrap import interval, paired_bootstrap, percentiles, resample
from mirada.evaluation.metrics import METRICS, resolve, statistics

WORDS = ["the", "old", "man", "sees", "a", "small", "dog", "near", "my", "house"]


def noisy(texts, share, seed):
    """Replace about `share` of the words by others."""
    draw = random.Random(seed)
    return [" ".join(draw.choice(WORDS) if draw.random() < share else word for word in t.split()) for t in texts]


@pytest.fixture(scope="module")
def corpus():
    draw = random.Random(7)
    texts = [" ".join(draw.choices(WORDS, k=draw.randint(5, 12))) for _ in range(60)]
    return noisy(texts, 0.30, 1), noisy(texts, 0.32, 2), texts


@pytest.mark.parametrize("name", resolve(METRICS))
def test_equal_items_give_an_interval_of_no_width(name):
    # Every resample of one sentence said thirty times is the same corpus.
    outputs, references = ["the man sees a cat here"] * 30, [["the man sees a dog here"]] * 30
    (whole,) = {float(v) for v in resample(statistics(outputs[:1], references[:1], name), samples=1)}
    assert interval(outputs, references, name, samples=50) == pytest.approx((whole, whole))


def test_interval_of_a_share_is_the_binomial_one():
    # 400 items, 30 % right: resampled shares are Binomial(400, 0.3) / 400: mean 30, deviation 100 √(0.3 · 0.7 / 400).
    outputs, references = ["right"] * 120 + ["wrong"] * 280, [["right"]] * 400
    deviation = 100 * np.sqrt(0.3 * 0.7 / 400)
    drawn = resample(statistics(outputs, references, "exact"), samples=4000)
    assert drawn.mean() == pytest.approx(30, abs=4 * deviation / np.sqrt(4000))
    assert drawn.std() == pytest.approx(deviation, rel=0.05)
    low, high = interval(outputs, references, "exact", samples=4000)
    # A normal distribution has 95 % within 1.96 deviations; the share moves in steps of 0.25.
    assert low == pytest.approx(30 - 1.96 * deviation, abs=0.5)
    assert high == pytest.approx(30 + 1.96 * deviation, abs=0.5)


def test_percentiles_by_hand():
    # Of 0, 1, …, 100 the middle 80 % lies between 10 and 90.
    assert percentiles(np.arange(101.0), level=0.8) == pytest.approx((10, 90))


def test_a_higher_level_gives_a_wider_interval(corpus):
    outputs, _, texts = corpus
    references = [[text] for text in texts]
    low, high = interval(outputs, references, "bleu", samples=200, level=0.99)
    inner_low, inner_high = interval(outputs, references, "bleu", samples=200, level=0.5)
    (whole,) = [v.score for v in [BLEU().corpus_score(outputs, [texts])]]
    assert low < inner_low < whole < inner_high < high


@pytest.mark.parametrize(("name", "metric"), [("bleu", BLEU()), ("chrf", CHRF())])
def test_resamples_equal_the_metric_of_the_drawn_sentences(corpus, name, metric):
    # The strings themselves drawn by the same numbers, and scored by sacreBLEU from scratch.
    outputs, _, texts = corpus
    drawn = np.random.default_rng(3).integers(60, size=(4, 60))
    expected = [metric.corpus_score([outputs[i] for i in row], [[texts[i] for i in row]]).score for row in drawn]
    found = resample(statistics(outputs, [[text] for text in texts], name), samples=4, seed=3)
    assert found == pytest.approx(expected)


def test_edit_rates_are_those_of_the_drawn_corpus_not_the_mean_of_sentences():
    # A long right sentence and a short wrong one: a resample has k wrong of 2: rate k / (k + 9 (2 − k)).
    outputs, references = [" ".join("abcdefghi"), "x"], [[" ".join("abcdefghi")], ["y"]]
    drawn = resample(statistics(outputs, references, "wer"), samples=200)
    assert set(np.round(drawn, 9)) == {0.0, round(100 / 10, 9), 100.0}


@pytest.mark.parametrize(("name", "label", "metric"), [("bleu", "BLEU", BLEU()), ("chrf", "chrF2", CHRF())])
@pytest.mark.parametrize("swap", [False, True])
def test_p_value_equals_sacrebleus_paired_bootstrap(corpus, monkeypatch, name, label, metric, swap):
    a, b, texts = corpus
    a, b = (b, a) if swap else (a, b)
    monkeypatch.setenv("SACREBLEU_SEED", "12345")
    test = PairedTest([("a", a), ("b", b)], {label: metric}, [texts], test_type="bs", n_samples=500)
    _, scores = test()
    expected = scores[label][1].p_value
    found = paired_bootstrap(a, b, [[text] for text in texts], name, samples=500, seed=12345)
    # The same seed draws the same sentences; sacreBLEU sums in float32, which may turn over a tie or two of 501.
    assert found == pytest.approx(expected, abs=2.5 / 501)
    assert 0.01 < expected < 0.9
    # Another seed agrees within Monte-Carlo error: two estimates, each of deviation √(p (1 − p) / 500).
    other = paired_bootstrap(a, b, [[text] for text in texts], name, samples=500, seed=99)
    assert abs(other - expected) < 4 * np.sqrt(2 * expected * (1 - expected) / 500)


def test_p_value_of_a_clear_difference_is_the_smallest_possible():
    # 100 right against 100 wrong: d and every d_k are 100, d_k − mean is 0, never above 100: p = 1 / (1 + 99).
    references = [["right"]] * 100
    assert paired_bootstrap(["right"] * 100, ["wrong"] * 100, references, "exact", samples=99) == pytest.approx(0.01)


def test_systems_that_do_not_differ_get_p_1(corpus):
    outputs, _, texts = corpus
    references = [[text] for text in texts]
    assert paired_bootstrap(outputs, list(outputs), references, "bleu", samples=20) == 1.0
    assert paired_bootstrap(["x", "right"], ["y", "right"], [["right"]] * 2, "exact", samples=20) == 1.0


def test_one_seed_one_result(corpus):
    outputs, _, texts = corpus
    references = [[text] for text in texts]
    first = interval(outputs, references, "chrf", samples=50, seed=5)
    assert interval(outputs, references, "chrf", samples=50, seed=5) == first
    assert interval(outputs, references, "chrf", samples=50, seed=6) != first


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"samples": 0}, "^expected 1 or more bootstrap samples, got 0$"),
        ({"seed": -1}, "^expected a bootstrap seed of 0 or more, got -1$"),
        ({"level": 95}, r"^expected a confidence level between 0 and 1, such as 0\.95, got 95$"),
    ],
)
def test_options_out_of_range_are_refused(options, message):
    with pytest.raises(ConfigError, match=message):
        interval(["a"], [["a"]], "exact", **options)
    if "level" not in options:
        for other in ("a", "b"):
            with pytest.raises(ConfigError, match=message):
                paired_bootstrap(["a"], [other], [["a"]], "exact", **options)


def test_systems_of_other_sizes_are_refused():
    with pytest.raises(DataError, match=r"got 1 outputs and references for 2 sentences$"):
        paired_bootstrap(["a", "b"], ["a"], [["a"], ["b"]], "exact")
