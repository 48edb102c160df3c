"""A search as a GPU makes it, tried on a CPU: the same outputs, and one question a step."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
import torch

from asking import ASKING, Asking
from mirada.config.model import applicable
from mirada.config.options import SearchConfig
from mirada.data.vocabulary import EOS
from mirada.search import continuous, step
from mirada.search.decode import Sentences, search
from mirada.search.scheduler import Request, search_all
from systems import BATCH, build

SEARCHES: list[dict[str, Any]] = [
    {"beam_size": 1},
    {"beam_size": 3},
    {"beam_size": 4, "n_best": 2, "min_output_length": 3, "no_repeat_ngram_size": 2},
    {"sample": True, "n_best": 3, "beam_size": 3},
]
SYSTEMS: list[dict[str, Any]] = [
    {"decoder": "classic"},
    {"decoder": "bahdanau", "score": "additive"},
    {"decoder": "luong", "score": "general"},
    {"decoder": "transformer", "num_heads": 2, "embedding_dim": 6, "ff_size": 7},
]


@pytest.fixture
def as_on_a_gpu(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """A device that is not asked where that would be to wait; how often its numbers were read."""
    read, hosts = [0], step.hosts
    for module in (step, continuous):
        monkeypatch.setattr(module, "synchronous", lambda _: False)

    def counted(parts: Any) -> Any:
        read[0] += 1
        return hosts(parts)

    for module in ("beam", "sampling"):
        monkeypatch.setattr(f"mirada.search.{module}.hosts", counted)
    return read


def model_of(options: dict[str, Any]) -> Any:
    sizes = {"embedding_dim": 4, "hidden_size": 6}
    model = build(applicable({**sizes, **options}), dtype=torch.float32)
    with torch.no_grad():
        model.output.bias[EOS] = 1.0  # so that some outputs end before others
    return model


def found(model: Any, options: SearchConfig, *, with_attention: bool) -> Any:
    memory = model.encode(BATCH.source, BATCH.lengths)
    sentences = Sentences(torch.tensor([9, 5, 7]), torch.tensor([[7, 4], [1, 1], [9, 1]]))
    return search(model.step, memory, model.start(memory), options, sentences, with_attention=with_attention)


@pytest.mark.parametrize("options", SEARCHES)
@pytest.mark.parametrize("system", SYSTEMS)
def test_outputs_are_the_same(system: dict[str, Any], options: dict[str, Any], request: pytest.FixtureRequest) -> None:
    model, config = model_of(system), SearchConfig(**options)
    with_attention = system["decoder"] != "classic"
    wanted = found(model, config, with_attention=with_attention)
    request.getfixturevalue("as_on_a_gpu")
    for ours, theirs in zip(found(model, config, with_attention=with_attention), wanted, strict=True):
        assert ours == theirs
        for one, other in zip(ours, theirs, strict=True):
            assert not with_attention or torch.equal(one.attention.float(), other.attention)


@pytest.mark.parametrize("options", SEARCHES)
@pytest.mark.parametrize("system", SYSTEMS)
def test_a_step_is_one_question(system: dict[str, Any], options: dict[str, Any], as_on_a_gpu: list[int]) -> None:
    """While nobody comes or goes: what a step was, and that nobody is done, is read at once."""
    model, asked = model_of(system), list[tuple[int, int]]()
    with torch.no_grad():
        model.output.bias[EOS] = -99.0
    own = model.step
    with Asking() as asking:

        def watched(*arguments: Any) -> Any:
            asked.append((len([name for name in asking.found if name in ASKING]), as_on_a_gpu[0]))
            return own(*arguments)

        model.step = watched
        memory = model.encode(BATCH.source, BATCH.lengths)
        search(model.step, memory, model.start(memory), SearchConfig(**options), Sentences(torch.tensor([6, 6, 6])))
    assert len(asked) == 7
    for before, after in pairwise(asked[1:]):  # before the first step it is looked up whether beams may spread
        assert (after[0] - before[0], after[1] - before[1]) == (0, 1)


def test_others_join_all_the_same(as_on_a_gpu: list[int]) -> None:
    """Continuous batching: seven sentences in three places."""
    model, config = model_of(SYSTEMS[1]), SearchConfig(beam_size=2, max_length_ratio=1, max_length_offset=4)
    requests = [Request([4 + i, 7, 8, 3][i % 3 :], [], i) for i in range(7)]
    outputs = search_all(model, requests, config, batch_size=3, device=torch.device("cpu"))
    alone = [search_all(model, [request], config, batch_size=1, device=torch.device("cpu"))[0] for request in requests]
    assert [[one.tokens for one in own] for own in outputs] == [[one.tokens for one in own] for own in alone]
