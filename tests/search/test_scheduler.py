"""From ids to ids: limits, order, and two roads to the same log-probabilities."""

from __future__ import annotations

from math import inf

import numpy as np
import pytest
import torch

import tiny
from mirada.config.options import SearchConfig
from mirada.data.batches import Encoded, collate
from mirada.data.vocabulary import BOS, EOS, PAD
from mirada.fast.prepacked import prepacked
from mirada.search import scheduler
from mirada.search.decode import Hypothesis
from mirada.search.scheduler import (
    LOGITS,
    MOST_SENTENCES,
    Request,
    Room,
    automatic,
    force,
    output_limit,
    search_all,
    with_end,
)
from mirada.translator import Translator

CPU = torch.device("cpu")
WAYS = {
    "greedy": SearchConfig(beam_size=1, max_length_ratio=0.1),
    "beam": SearchConfig(beam_size=4, n_best=3, max_length_ratio=0.1),
    "sample": SearchConfig(sample=True, n_best=2, max_length_ratio=0.1),
}


@pytest.fixture(params=list(WAYS))
def options(request: pytest.FixtureRequest) -> SearchConfig:
    return WAYS[request.param]


def requests(translator: Translator) -> list[Request]:
    ids = translator.source_tokenizer.encode(tiny.SOURCES)
    return [Request(with_end(row, len(row)), [], number) for number, row in enumerate(ids)]


def run(
    translator: Translator, wanted: list[Request], options: SearchConfig, batch_size: int = 64
) -> list[list[Hypothesis]]:
    return search_all(translator.model, wanted, options, batch_size=batch_size, device=CPU, with_attention=True)


# Limits


def test_the_limit_of_an_output_follows_its_own_source():
    assert output_limit(7, SearchConfig()) == 24  # 2 × 7 + 10
    assert output_limit(7, SearchConfig(max_length_ratio=0.5)) == 13
    assert output_limit(0, SearchConfig()) == 10
    assert output_limit(7, SearchConfig(max_output_length=3)) == 3
    assert output_limit(7, SearchConfig(min_output_length=50)) == 50


def test_a_limit_in_a_batch_is_each_sentence_s_own(translator):
    never = SearchConfig(beam_size=1, max_length_ratio=0.1, min_output_length=1)
    for request, [output] in zip(requests(translator), run(translator, requests(translator), never), strict=True):
        limit = output_limit(len(request.source) - 1, never)
        assert len(output.tokens) == limit if not output.finished else len(output.tokens) < limit


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


def test_batches_that_refill_each_other_have_few_steps(translator, monkeypatch):
    model, rows = prepacked(translator.model), []
    step = model.step
    monkeypatch.setattr(model, "step", lambda token, *rest: (rows.append(len(token)), step(token, *rest))[1])
    for together in (1, 16):
        monkeypatch.setattr(scheduler, "MOST_TOGETHER", together)
        rows.append(0)
        search_all(model, requests(translator), SearchConfig(beam_size=1), batch_size=3, device=CPU)
    alone, refilled = rows[1 : rows.index(0, 1)], rows[rows.index(0, 1) + 1 :]
    assert sum(refilled) == sum(alone)
    assert len(refilled) < len(alone)
    assert max(refilled) == 3


def test_an_automatic_batch_keeps_its_logits_few():
    assert automatic(8000, SearchConfig(beam_size=5)).sentences == LOGITS // 40_000
    assert automatic(50, SearchConfig(beam_size=5)).sentences == MOST_SENTENCES
    assert automatic(100_000_000, SearchConfig(beam_size=5)).sentences == 1
    assert automatic(8000, SearchConfig(sample=True, n_best=2)).sentences == LOGITS // 16_000


def test_a_room_bounds_sentences_and_padded_positions(translator, monkeypatch):
    wanted = requests(translator)
    expected = run(translator, wanted, WAYS["greedy"])
    shapes = []
    encode = translator.model.encode
    monkeypatch.setattr(
        translator.model, "encode", lambda ids, lengths: (shapes.append(ids.shape), encode(ids, lengths))[1]
    )
    room = Room(5, 20)
    found = search_all(translator.model, wanted, WAYS["greedy"], batch_size=room, device=CPU)
    assert [[output.tokens for output in outputs] for outputs in found] == [
        [output.tokens for output in outputs] for outputs in expected
    ]
    assert sum(rows for rows, _ in shapes) == len({tuple(request.source) for request in wanted})
    assert all(rows <= 5 and (rows * width <= 20 or rows == 1) for rows, width in shapes)


def test_no_requests_no_results(translator):
    assert run(translator, [], WAYS["beam"]) == []


def test_these_models_say_different_things(translator):
    """Or the tests here and of the translator would show little: if this fails, choose other seeds in tiny.py."""
    outputs = [found[0] for way in ("greedy", "beam") for found in run(translator, requests(translator), WAYS[way])]
    assert len({output.tokens for output in outputs}) >= 6
    assert len({output.finished for output in outputs}) == 2
    assert len({len(output.tokens) for output in outputs}) >= 4


# Two roads to the same log-probabilities: step by step as the search goes, and all steps at once


def test_forced_decoding_agrees_with_the_search(translator, options):
    wanted = requests(translator)
    outputs = [
        (request, output)
        for request, found in zip(wanted, run(translator, wanted, options), strict=True)
        for output in found
    ]
    sources = [request.source for request, _ in outputs]
    forced = force(translator.model, sources, [list(o.tokens) for _, o in outputs], CPU, with_attention=True)
    for (request, output), given in zip(outputs, forced, strict=True):
        assert len(given.token_log_probabilities) == len(output.tokens) + 1
        steps = len(output.token_log_probabilities)
        own = given.token_log_probabilities[:steps]
        assert own == pytest.approx(list(output.token_log_probabilities), abs=1e-4)
        assert sum(own) == pytest.approx(output.log_probability, abs=1e-4)
        if given.attention is not None and output.attention is not None:
            width = len(request.source)
            torch.testing.assert_close(given.attention[:steps], output.attention[:, :width], rtol=0, atol=1e-4)


def test_forced_decoding_is_the_softmax_without_pad_and_start(translator):
    sources = [request.source for request in requests(translator)]
    targets = [[10, 11, 12], [], [40], [7, 0, 7, 0, 7, 59], [4], [5, 5]]
    forced = force(translator.model, sources, targets, CPU)
    for source, target, given in zip(sources, targets, forced, strict=True):
        batch = collate(Encoded([source], [target]), [0], CPU)
        with torch.no_grad():
            hidden = translator.model.forward(batch.source, batch.lengths, batch.target_in).hidden[0]
            logits = translator.model.logits(hidden).double().numpy()
        logits[:, [PAD, BOS]] = -inf
        log_p = logits - np.log(np.exp(logits).sum(1, keepdims=True))
        expected = [log_p[step, token] for step, token in enumerate([*target, EOS])]
        assert given.token_log_probabilities == pytest.approx(expected, abs=1e-4)
        assert given.attention is None


def test_all_that_can_follow_adds_up_to_one(translator):
    """Over every token that can be said: exp of the first forced log-probability sums to 1."""
    source = requests(translator)[0].source
    count = len(translator.target_tokenizer)
    said = [token for token in range(count) if token not in (PAD, BOS, EOS)]
    forced = force(translator.model, [source] * (len(said) + 1), [[], *([token] for token in said)], CPU)
    assert sum(np.exp(given.token_log_probabilities[0]) for given in forced) == pytest.approx(1, abs=1e-4)
