"""A memory may hold weights that replace the softmax, for interventions: they come out, and what follows from them."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from mirada.models import AnyModel, Memory, Step
from mirada.trees import select_rows
from systems import FAMILIES, LENGTHS, SOURCE, TARGET, VOCAB, assert_same, build, some_systems

ATTENTIVE = [family for family in FAMILIES if family[0] != "classic"]
ONE_HEAD = [family for family in ATTENTIVE if family[0] != "transformer"]


def first_step(model: AnyModel, memory: Memory, tokens: Tensor = TARGET[:, 0]) -> Step:
    return model.step(tokens, model.start(memory), memory)


def last_word() -> Tensor:
    """Weights `[B, 1, S]` of one at each sentence's last real position."""
    return torch.nn.functional.one_hot(LENGTHS - 1, SOURCE.size(1)).double()[:, None]


@pytest.mark.parametrize(("decoder", "score"), ONE_HEAD)
def test_replacing_by_the_weights_a_step_has_anyway_changes_nothing(decoder: str, score: str | None) -> None:
    for options in some_systems(decoder, score):
        model = build(options)
        memory = model.encode(SOURCE, LENGTHS)
        free = first_step(model, memory)
        replaced = first_step(model, memory._replace(replaced=free.attention[:, None]))
        assert_same(replaced, free, 1e-13, options)


@pytest.mark.parametrize(("decoder", "score"), ATTENTIVE)
def test_a_replaced_weight_of_one_makes_that_state_the_context(decoder: str, score: str | None) -> None:
    """The scores stay as they were, and the weights come out as they went in, in every head."""
    for options in some_systems(decoder, score):
        model = build(options)
        memory = model.encode(SOURCE, LENGTHS)
        free, replaced = first_step(model, memory), first_step(model, memory._replace(replaced=last_word()))
        assert_same(replaced.attention, last_word()[:, 0], 0.0, options)
        assert not torch.equal(replaced.logits[[0, 2]], free.logits[[0, 2]])
        if decoder == "transformer":
            assert_same(replaced.heads, last_word()[:, None].expand_as(replaced.heads), 0.0, options)
        else:
            assert_same(replaced.scores, free.scores, 0.0, options)
            assert_same(replaced.context, memory.states[torch.arange(3), LENGTHS - 1], 1e-15, options)


@pytest.mark.parametrize(("decoder", "score"), ATTENTIVE)
def test_each_hypothesis_can_have_replaced_weights_of_its_own(decoder: str, score: str | None) -> None:
    """Weights `[B, K, S]` for K hypotheses: hypothesis k alone with its own `[B, 1, S]` gives the same."""
    torch.manual_seed(5)
    weights = torch.rand(3, 2, SOURCE.size(1), dtype=torch.float64).softmax(-1)
    tokens = torch.randint(4, VOCAB, (3, 2))
    for options in some_systems(decoder, score):
        model = build(options)
        memory = model.encode(SOURCE, LENGTHS)
        twice = select_rows(model.start(memory), torch.arange(3).repeat_interleave(2))
        together = model.step(tokens.flatten(), twice, memory._replace(replaced=weights))
        for k in range(2):
            alone = first_step(model, memory._replace(replaced=weights[:, k : k + 1]), tokens[:, k])
            assert_same(select_rows(together, torch.arange(3) * 2 + k), alone, 1e-13, (options, k))
