"""Forced decoding: two roads to the same log-probabilities, step by step as the search goes, and all steps at once."""

from __future__ import annotations

from math import inf

import numpy as np
import pytest
import torch

from mirada.config.options import SearchConfig
from mirada.data.batches import Encoded, collate
from mirada.data.vocabulary import BOS, EOS, PAD
from mirada.scoring import force
from mirada.search.scheduler import search_all
from search_tools import SHORT_WAYS, requests

CPU = torch.device("cpu")


@pytest.fixture(params=list(SHORT_WAYS))
def options(request: pytest.FixtureRequest) -> SearchConfig:
    return SHORT_WAYS[request.param]


def test_forced_decoding_agrees_with_the_search(translator, options):
    wanted = requests(translator)
    outputs = [
        (request, output)
        for request, found in zip(
            wanted,
            search_all(translator.model, wanted, options, batch_size=64, device=CPU, with_attention=True),
            strict=True,
        )
        for output in found
    ]
    sources = [request.source for request, _ in outputs]
    forced = force(translator.model, Encoded(sources, [list(o.tokens) for _, o in outputs]), CPU, with_attention=True)
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
    forced = force(translator.model, Encoded(sources, targets), CPU)
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
    forced = force(translator.model, Encoded([source] * (len(said) + 1), [[], *([token] for token in said)]), CPU)
    assert sum(np.exp(given.token_log_probabilities[0]) for given in forced) == pytest.approx(1, abs=1e-4)
