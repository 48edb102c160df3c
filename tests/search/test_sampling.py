"""Sampling: what is drawn, from which distribution, and from which random numbers."""

from __future__ import annotations

from math import exp, sqrt

import pytest
import torch

from mirada.config.options import SearchConfig
from mirada.search.decode import Hypothesis, Sentences, search
from mirada.search.sampling import draw, truncated
from search_tools import WAYS, run, steps
from toy_decoder import EOS, ToyDecoder

PROBABILITIES = torch.tensor([[0.125, 0.5, 0.125, 0.25]], dtype=torch.float64)


@pytest.mark.parametrize(
    "options", [{"temperature": 1e-9}, {"temperature": 1e-300}, {"top_k": 1}, {"top_p": 1e-9}], ids=str
)
def test_no_chance_left_is_greedy(options):
    toy = ToyDecoder(1, sentences=6, end=0.5)
    sampled = run(toy, SearchConfig(sample=True, n_best=2, **options))
    for outputs, [greedy] in zip(sampled, run(toy, WAYS["greedy"]), strict=True):
        assert [steps(output) for output in outputs] == [steps(greedy)] * 2
        assert outputs[0].log_probability == pytest.approx(greedy.log_probability)


def test_seed_decides():
    toy = ToyDecoder(2, sentences=4)
    first, again = (run(toy, SearchConfig(sample=True, n_best=5, sample_seed=7)) for _ in range(2))
    assert first == again
    assert first != run(toy, SearchConfig(sample=True, n_best=5, sample_seed=8))


def test_sampling_leaves_the_global_generator_alone():
    before = torch.get_rng_state()
    run(ToyDecoder(2), SearchConfig(sample=True))
    assert torch.equal(before, torch.get_rng_state())


def test_draws_belong_to_the_sentence_number_not_to_the_place():
    toy, options = ToyDecoder(3, end=-1), SearchConfig(sample=True, n_best=5)
    memory, state = toy.begin(0, 0, 0)
    limits = torch.tensor([9, 9, 9])
    a, b, c = search(toy, memory, state, options, Sentences(limits, ids=[4, 5, 4]))
    assert a == c
    assert a != b
    assert search(toy, memory, state, options, Sentences(limits)) == search(
        toy, memory, state, options, Sentences(limits, ids=[0, 1, 2])
    )


def test_draws_do_not_depend_on_the_limit():
    toy, options = ToyDecoder(4, sentences=5, end=-1), SearchConfig(sample=True, alpha=0)
    for [short], [long] in zip(run(toy, options, limit=3), run(toy, options, limit=40), strict=True):
        assert long.tokens[:3] == short.tokens


def test_frequencies_are_the_probabilities():
    toy, count = ToyDecoder(5, sharpness=1), 20_000
    [outputs] = run(toy, SearchConfig(sample=True, n_best=count), limit=1)
    expected = [exp(value) for value in toy.log_probabilities(0, [])]
    for token in (0, EOS, 4, 5):
        seen = sum(steps(output)[0] == token for output in outputs)
        spread = sqrt(count * expected[token] * (1 - expected[token]))
        assert abs(seen - count * expected[token]) < 4.5 * spread
    assert len(outputs) == count


def test_frequencies_of_whole_outputs_are_their_probabilities():
    toy, count = ToyDecoder(6, sharpness=1, end=1), 20_000
    [outputs] = run(toy, SearchConfig(sample=True, n_best=count), limit=2)
    for output in set(outputs):
        chance, seen = chance_of(toy, output), outputs.count(output)
        assert abs(seen - count * chance) < 4.5 * sqrt(count * chance * (1 - chance)) + 1
    assert sum(chance_of(toy, output) for output in set(outputs)) == pytest.approx(1)


def chance_of(toy: ToyDecoder, output: Hypothesis) -> float:
    """An output at the limit did not draw `</s>` after it."""
    went_on = 0 if output.finished else exp(toy.log_probabilities(0, list(output.tokens))[EOS])
    return exp(output.log_probability) * (1 - went_on)


@pytest.mark.parametrize("change", [{"temperature": 3.0}, {"top_k": 2}, {"top_p": 0.5}])
def test_reported_probabilities_are_the_models_own(change):
    toy = ToyDecoder(7, sentences=3)
    for sentence, outputs in enumerate(run(toy, SearchConfig(sample=True, n_best=3, **change))):
        for output in outputs:
            assert output.token_log_probabilities == pytest.approx(toy.walk(sentence, steps(output))[0])


def test_numbers_become_tokens_by_the_inverse_distribution():
    # In the order of the ids the sums are 1/8, 5/8, 6/8, 1.
    uniforms = torch.tensor([0, 0.124, 0.126, 0.624, 0.626, 0.749, 0.751, 1 - 2**-53], dtype=torch.float64)
    choice = PROBABILITIES.log().expand(len(uniforms), -1)
    assert draw(choice, uniforms, SearchConfig()).tolist() == [0, 0, 1, 1, 2, 2, 3, 3]
    # √ of each, renormalised: temperature 2 gives 0.354, 0.707, 0.354, 0.5 over 1.914.
    uniforms = torch.tensor([0.184, 0.186, 0.553, 0.555, 0.738, 0.740], dtype=torch.float64)
    assert draw(choice[:6], uniforms, SearchConfig(sample=True, temperature=2)).tolist() == [0, 1, 1, 2, 2, 3]


def test_forbidden_tokens_are_never_drawn():
    choice = torch.tensor([[-torch.inf, 0.0, -torch.inf, 0.0, -torch.inf]])
    # Rounded to float32, a number just below 1 becomes 1.
    uniforms = torch.tensor([0, 0.4999, 0.5001, 1 - 2**-53, 1], dtype=torch.float64)
    assert draw(choice.expand(5, -1), uniforms, SearchConfig()).tolist() == [1, 1, 3, 3, 3]


def test_a_sentence_leaves_with_its_last_output():
    for seed in range(10):
        toy = ToyDecoder(seed, end=2)
        [outputs] = run(toy, SearchConfig(sample=True, n_best=3, sample_seed=seed), limit=50)
        assert len(toy.rows) == max(len(steps(output)) for output in outputs)


@pytest.mark.parametrize(
    ("top_k", "top_p", "kept"),
    [
        (0, 1.0, [0.125, 0.5, 0.125, 0.25]),
        (1, 1.0, [0, 0.5, 0, 0]),
        (2, 1.0, [0, 0.5, 0, 0.25]),
        (9, 1.0, [0.125, 0.5, 0.125, 0.25]),
        (0, 0.01, [0, 0.5, 0, 0]),
        (0, 0.5, [0, 0.5, 0, 0]),
        (0, 0.51, [0, 0.5, 0, 0.25]),
        (0, 0.75, [0, 0.5, 0, 0.25]),
        (0, 0.9, [0.125, 0.5, 0.125, 0.25]),
        (2, 0.66, [0, 0.5, 0, 0]),  # of what top_k leaves, the likeliest has two thirds
        (2, 0.67, [0, 0.5, 0, 0.25]),
    ],
)
def test_truncation_by_arithmetic(top_k, top_p, kept):
    found = truncated(PROBABILITIES, top_k, top_p)
    if (top_k, top_p) == (0, 0.9):
        # Three of the four reach 0.875, so the fourth is needed.
        assert (found > 0).all()
    assert found.tolist() == [kept]
