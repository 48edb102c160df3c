"""Beam search against all outputs there are, and against a plain beam search that never stops early."""

from __future__ import annotations

from math import log

import pytest
import torch

from mirada.config.options import SearchConfig
from mirada.search.beam import beam_search
from mirada.search.continuous import NewRequests, RunningBatch, _reordered
from mirada.search.decode import Hypothesis, Sentences, rules_of, search
from search_tools import run, steps
from toy_decoder import BOS, EOS, ToyDecoder, exhaustive, plain_beam, plain_greedy, rank

ALPHAS = [0.0, 0.6, 1.0, 2.0]


def agree(outputs: list[Hypothesis], expected: list, alpha: float) -> None:
    assert [steps(output) for output in outputs] == [one.tokens for one in expected]
    assert [output.finished for output in outputs] == [one.tokens[-1] == EOS for one in expected]
    assert [output.log_probability for output in outputs] == pytest.approx([one.log_probability for one in expected])
    assert [output.score for output in outputs] == pytest.approx([one.score(alpha) for one in expected])


@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("n_best", [1, 5, 108])
def test_beam_of_full_width_finds_the_best_of_all_outputs(alpha, n_best):
    toy = ToyDecoder(n_best, sentences=4)
    # 3 ordinary tokens and the end: the fifth step, which is for the end alone, has 81 × 4 continuations.
    found = run(toy, SearchConfig(beam_size=324, n_best=n_best, alpha=alpha, exact_stop=True), limit=4)
    for sentence, outputs in enumerate(found):
        agree(outputs, rank(exhaustive(toy, sentence, 4), alpha)[:n_best], alpha)


@pytest.mark.parametrize("exact", [True, False])
@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("seed", range(12))
def test_stopping_early_changes_nothing_or_what_it_is_meant_to(alpha, seed, exact):
    width, n_best = [(2, 1), (2, 2), (3, 2), (5, 1), (5, 5), (8, 3)][seed % 6]
    toy = ToyDecoder(seed, sentences=6, vocabulary=9, end=[-1, 0, 2][seed % 3])
    limits = [12, 3, 7, 12, 1, 9]
    found = run(toy, SearchConfig(beam_size=width, n_best=n_best, alpha=alpha, exact_stop=exact), limit=limits)
    wanted = None if exact else n_best
    for sentence, outputs in enumerate(found):
        expected = plain_beam(toy, sentence, limits[sentence], width=width, alpha=alpha, wanted=wanted)
        agree(outputs, expected[:n_best], alpha)


def test_stopping_early_happens():
    toy = ToyDecoder(0, sentences=6, vocabulary=9, end=2)
    run(toy, SearchConfig(beam_size=3, n_best=1, alpha=0.6, exact_stop=True), limit=200)
    exact = len(toy.rows)
    assert exact < 50
    toy.rows.clear()
    run(toy, SearchConfig(beam_size=3, n_best=1, alpha=0.6), limit=200)
    assert len(toy.rows) < exact / 2


@pytest.mark.parametrize("seed", range(8))
def test_rules_and_prefixes_as_in_the_plain_search(seed):
    toy = ToyDecoder(seed, sentences=4, vocabulary=7, end=seed % 3)
    prefix = [[], [4], [5, 5, 6], [6, 4]]
    options = SearchConfig(
        beam_size=4, n_best=4, alpha=1, min_output_length=seed % 4, no_repeat_ngram_size=seed % 3, exact_stop=True
    )
    found = run(toy, options, limit=[7, 9, 2, 8], prefix=prefix)
    for sentence, outputs in enumerate(found):
        expected = plain_beam(
            toy, sentence, [7, 9, 2, 8][sentence], width=4, alpha=1, prefix=prefix[sentence],
            min_length=seed % 4, ngram=seed % 3,
        )  # fmt: skip
        agree(outputs, expected[: len(outputs)], 1)
        assert len(outputs) == min(4, len(expected))


@pytest.mark.parametrize("seed", range(10))
def test_beam_of_one_without_length_penalty_is_greedy(seed):
    toy = ToyDecoder(seed, sentences=6, end=1)
    options = SearchConfig(beam_size=1, alpha=0)
    batch = RunningBatch(beam_search(toy, options, with_attention=False), None)
    rules = rules_of(Sentences(torch.full((6,), 8)), options)
    found = dict(batch.insert(NewRequests(range(6), range(6), rules, *toy.begin()), 6))
    while not batch.empty:
        found.update(batch.step(6))
    for sentence in range(6):
        assert steps(found[sentence][0]) == plain_greedy(toy, sentence, 8).tokens


def test_ranking_by_arithmetic():
    # First </s> 1/4, token 4 1/2, token 5 1/4; after token 4 the end is certain, after token 5 it has 1/2.
    toy = ToyDecoder(0)
    toy.table[:] = -1000
    toy.table[..., BOS, 3:] = torch.tensor([log(1 / 4), log(1 / 2), log(1 / 4)], dtype=torch.float64)
    toy.table[..., 4, EOS] = 0
    toy.table[..., 5, [EOS, 4]] = 0
    expected = [((4,), log(1 / 2)), ((), log(1 / 4)), ((5,), log(1 / 8)), ((5, 4), log(1 / 8))]
    [outputs] = run(toy, SearchConfig(beam_size=4, n_best=2, alpha=0), limit=4)
    assert [output.tokens for output in outputs] == [(4,), ()]
    assert [output.score for output in outputs] == pytest.approx([log(1 / 2), log(1 / 4)])
    # log(1/4) = -1.386 alone, log(1/8) / (8/6)^2 = -1.170 and log(1/8) / (7/6)^2 = -1.528: longer now pays.
    [outputs] = run(toy, SearchConfig(beam_size=4, n_best=4, alpha=2, exact_stop=True), limit=4)
    assert [output.tokens for output in outputs] == [(4,), (5, 4), (), (5,)]
    assert {output.tokens: output.log_probability for output in outputs} == pytest.approx(dict(expected))
    scores = [log(1 / 2) / (7 / 6) ** 2, log(1 / 8) / (8 / 6) ** 2, log(1 / 4), log(1 / 8) / (7 / 6) ** 2]
    assert [output.score for output in outputs] == pytest.approx(scores)


def test_finished_outputs_come_before_likelier_unfinished_ones():
    toy = ToyDecoder(0)
    toy.table[:] = torch.tensor([-1000, 0, 0, log(0.01), log(0.98), log(0.01)], dtype=torch.float64)
    outputs = run(toy, SearchConfig(beam_size=2, n_best=2, alpha=0), limit=1)[0]
    assert [(output.tokens, output.finished) for output in outputs] == [((), True), ((4,), False)]
    assert outputs[0].log_probability == pytest.approx(log(0.01))
    assert outputs[1].log_probability == pytest.approx(log(0.98))


def test_fewer_outputs_than_places_come_back_as_they_are():
    # Nothing but unk, 4, 5 and the end in one step: four outputs, though eight are wanted.
    [outputs] = run(ToyDecoder(1), SearchConfig(beam_size=8, n_best=8), limit=1)
    assert sorted(steps(output) for output in outputs) == [[0], [3], [4], [5]]


def test_state_is_left_alone_when_its_order_stays():
    tree = (torch.arange(3), (torch.zeros(3, 2), None))
    assert _reordered(tree, None) is tree
    assert _reordered(tree, torch.tensor([[0], [1], [2]])) is tree
    assert torch.equal(_reordered(tree, torch.tensor([[0], [2], [1]]))[0], torch.tensor([0, 2, 1]))
    assert torch.equal(_reordered(tree, torch.tensor([[0, 0], [1, 1], [2, 2]]))[0], torch.tensor([0, 0, 1, 1, 2, 2]))


def test_large_vocabulary_is_searched_like_a_small_one():
    # Same table, spread over 5000 ids, most of them impossible.
    toy, options = ToyDecoder(2, sentences=2, end=1), SearchConfig(beam_size=3, n_best=3)
    spread = torch.tensor([0, 1, 2, 3, 2500, 4999])
    back = torch.zeros(5000, dtype=torch.long).scatter(0, spread, torch.arange(6))

    def wide(token, state, memory):
        result = toy(back[token], state, memory)
        logits = torch.full((len(token), 5000), -1e4, dtype=torch.float64).index_copy(1, spread, result.logits)
        return result._replace(logits=logits)

    found = search(wide, *toy.begin(), options, Sentences(torch.tensor([8, 8])))
    for outputs, expected in zip(found, run(toy, options), strict=True):
        assert [tuple(back[list(one.tokens)].tolist()) for one in outputs] == [one.tokens for one in expected]
        assert [one.score for one in outputs] == pytest.approx([one.score for one in expected])
