"""From ids to ids: limits, order, batches, and one scheduler for many callers."""

from __future__ import annotations

import pytest
import torch

from mirada.config.options import SearchConfig
from mirada.data.vocabulary import EOS
from mirada.fast.prepacked import prepacked
from mirada.search import scheduler
from mirada.search.decode import Hypothesis
from mirada.search.queue import LEAST_SENTENCES, LOGITS, MOST_SENTENCES, Capacity, automatic
from mirada.search.scheduler import Request, Scheduler, search_all, with_end
from mirada.texts import output_limit
from mirada.translator import Translator
from search_tools import SHORT_WAYS, requests

CPU = torch.device("cpu")


@pytest.fixture(params=list(SHORT_WAYS))
def options(request: pytest.FixtureRequest) -> SearchConfig:
    return SHORT_WAYS[request.param]


def run(
    translator: Translator, wanted: list[Request], options: SearchConfig, batch_size: int = 64
) -> list[list[Hypothesis]]:
    return search_all(translator.model, wanted, options, batch_size=batch_size, device=CPU, with_attention=True)


# Limits


def test_the_limit_of_an_output_follows_its_own_source():
    assert output_limit(7, SearchConfig()) == 24  # 2 × 7 + 10
    assert output_limit(7, SearchConfig(max_length_ratio=0.5)) == 13
    assert output_limit(7, SearchConfig(max_length_offset=1)) == 15
    assert output_limit(7, SearchConfig(max_length_ratio=0.5, max_length_offset=0)) == 3
    assert output_limit(0, SearchConfig()) == 10
    assert output_limit(7, SearchConfig(max_output_length=3)) == 3
    assert output_limit(7, SearchConfig(min_output_length=50)) == 50


def test_a_limit_in_a_batch_is_each_sentence_s_own(translator):
    never = SearchConfig(beam_size=1, max_length_ratio=0.1, min_output_length=1)
    for request, [output] in zip(requests(translator), run(translator, requests(translator), never), strict=True):
        limit = output_limit(len(request.source) - 1, never)
        assert len(output.tokens) == limit if not output.finished else len(output.tokens) <= limit


def test_a_source_is_cut_before_its_end():
    assert with_end([5, 6, 7], 3) == [5, 6, 7, EOS]
    assert with_end([5, 6, 7], 2) == [5, 6, EOS]
    assert with_end([], 2) == [EOS]


# Order


def test_results_come_in_the_order_of_the_requests(translator, options):
    wanted = requests(translator)
    expected = run(translator, wanted, options)
    advanced = run(translator, wanted[::-1], options, batch_size=2)[::-1]
    alone = [run(translator, [request], options)[0] for request in wanted]
    for left, *others in zip(expected, advanced, alone, strict=True):
        for right in others:
            assert [output.tokens for output in right] == [output.tokens for output in left]
            assert [output.score for output in right] == pytest.approx([output.score for output in left], abs=1e-5)


@pytest.mark.parametrize("workers", [1, 2])
def test_places_that_others_take_over_change_nothing(translator, options, workers, monkeypatch):
    monkeypatch.setattr("mirada.fast.prepacked.SMALLEST", {"float32": 1, "int8": 1})
    model, wanted = prepacked(translator.model), requests(translator)
    expected = run(translator, wanted, options)
    found = search_all(model, wanted, options, batch_size=2, device=CPU, workers=workers)
    for here, there in zip(found, expected, strict=True):
        assert [output.tokens for output in here] == [output.tokens for output in there]
        assert [output.score for output in here] == pytest.approx([output.score for output in there], abs=1e-4)


def test_places_are_taken_over_so_that_steps_are_few(translator):
    """Six sentences in three places: fewer steps than if three waited for the longest of the other three."""
    model, rows, options = prepacked(translator.model), [], SearchConfig(beam_size=1, max_length_ratio=0.1)
    step = model.step
    model.step = lambda token, *rest: (rows.append(len(token)), step(token, *rest))[1]
    found = search_all(model, requests(translator), options, batch_size=3, device=CPU)
    steps = [len(output.token_log_probabilities) + (not output.finished) for [output] in found]
    assert sum(rows) == sum(steps), "nobody is searched longer than needed"
    assert max(rows) == 3
    assert len(rows) <= sum(max(steps[i] for i in half) for half in halves(translator))


def halves(translator: Translator) -> list[list[int]]:
    order = sorted(range(6), key=lambda i: -len(requests(translator)[i].source))
    return [order[:3], order[3:]]


def test_an_automatic_batch_keeps_its_logits_few():
    assert automatic(8000, SearchConfig(beam_size=5)).sentences == LOGITS // 40_000
    assert automatic(50, SearchConfig(beam_size=5)).sentences == MOST_SENTENCES
    assert automatic(100_000_000, SearchConfig(beam_size=5)).sentences == 1
    assert automatic(8000, SearchConfig(sample=True, n_best=2)).sentences == LOGITS // 16_000


def test_an_automatic_batch_is_half_of_a_worker_s_part():
    greedy = SearchConfig(beam_size=1)
    assert [automatic(50, greedy, share).sentences for share in (1, 65, 9999)] == [LEAST_SENTENCES, 65, MOST_SENTENCES]


def test_a_capacity_bounds_sentences_and_padded_positions(translator, monkeypatch):
    wanted = requests(translator)
    expected = run(translator, wanted, SHORT_WAYS["greedy"])
    shapes = []
    encode = translator.model.encode
    monkeypatch.setattr(
        translator.model, "encode", lambda ids, lengths: (shapes.append(ids.shape), encode(ids, lengths))[1]
    )
    monkeypatch.setattr(scheduler, "automatic", lambda *given: Capacity(5, 20))
    found = Scheduler(translator.model, device=CPU, vocabulary=60).search(wanted, SHORT_WAYS["greedy"])
    assert [[output.tokens for output in outputs] for outputs in found] == [
        [output.tokens for output in outputs] for outputs in expected
    ]
    assert sum(rows for rows, _ in shapes) == len({tuple(request.source) for request in wanted})
    assert all(rows <= 5 and (rows * width <= 20 or rows == 1) for rows, width in shapes)


def test_no_requests_no_results(translator):
    assert run(translator, [], SHORT_WAYS["beam"]) == []


def test_these_models_say_different_things(translator):
    """Or the tests here and of the translator would show little: if this fails, choose other seeds in tiny.py."""
    outputs = [
        found[0] for way in ("greedy", "beam") for found in run(translator, requests(translator), SHORT_WAYS[way])
    ]
    assert len({output.tokens for output in outputs}) >= 6
    assert len({output.finished for output in outputs}) == 2
    assert len({len(output.tokens) for output in outputs}) >= 4
