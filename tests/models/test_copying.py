"""Copying from the source in every flow with attention: the equations, what they add up to, and every road to them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.autograd import gradcheck

from mirada.config import configfile
from mirada.config.options import ModelConfig
from mirada.errors import ConfigError
from mirada.fast.prepacked import prepacked
from mirada.models import AnyModel
from mirada.models.copying import Copying, mixture
from mirada.reference import systems as equations
from mirada.search.memory import padded
from mirada.trees import select_rows
from systems import ATTENTIVE, COPIED, COPIES, LENGTHS, SOURCE, VOCAB, Options, assert_same, build, some_systems


def copying_systems(decoder: str, score: str | None) -> list[Options]:
    found = [{**options, "copy_attn": True} for options in some_systems(decoder, score)[::2]]
    if decoder == "transformer":  # by the mean of the heads, by the first, and by the last
        found += [{**options, "copy_head": head} for options in found[:2] for head in {1, options["num_heads"]}]
    return found


def by_steps(model: AnyModel, copies: Tensor = COPIES, source: Tensor = SOURCE) -> Tensor:
    """log P of each step, [B, T, V + S]."""
    memory = model.encode(source, LENGTHS, copies)
    state, found = model.start(memory), []
    for token in COPIED.T:
        step = model.step(token, state, memory)
        state = step.state
        found.append(step.logits)
    return torch.stack(found, 1)


@pytest.mark.parametrize(("decoder", "score"), ATTENTIVE)
def test_every_step_is_the_papers_mixture(decoder: str, score: str | None) -> None:
    """Against NumPy in float64; forward = repeated step; sums to one; nothing for what no position holds."""
    for options in copying_systems(decoder, score):
        model, config = build(options), ModelConfig(**options)
        weights = {name: value.numpy() for name, value in model.state_dict().items()}
        with torch.no_grad():
            log_p = by_steps(model)
            outputs = model(SOURCE, LENGTHS, COPIED, COPIES)
            assert_same(model.logits(outputs.hidden, outputs.copying).exp(), log_p.exp(), 1e-12, options)
        assert_same(log_p.exp().sum(-1), torch.ones(3, 5).double(), 1e-12, options)
        assert (log_p[..., 1:3] == -torch.inf).all()  # <pad> and <s>
        assert (log_p[0, :, VOCAB + 1] == -torch.inf).all(), "position 1 holds a word of the vocabulary"
        for row, length in enumerate(LENGTHS.tolist()):
            source, copies = SOURCE[row, :length].tolist(), COPIES[row, :length].tolist()
            run = equations.run(config, weights, source, COPIED[row].tolist(), copies=copies)
            for t, named in enumerate(run.steps):
                found = log_p[row, t, : VOCAB + length].exp().numpy()
                assert np.abs(found - named["p"]).max() < 1e-12, (options, row, t)


def test_a_word_that_stands_twice_adds_both_weights() -> None:
    """By hand: p_gen = 1/4, P_vocab uniform over the two words that may be said, weights ½ + ⅙ on the same word."""
    logits = torch.tensor([[0.0, 9.0, 9.0, 0.0]], dtype=torch.float64)  # <unk>, <pad>, <s>, </s>
    weights = torch.tensor([[1 / 2, 1 / 3, 1 / 6]], dtype=torch.float64)
    gate = torch.tensor([-np.log(3.0)], dtype=torch.float64)
    p = mixture(logits, Copying(gate, weights, torch.tensor([[4, 3, 4]]))).exp()
    expected = torch.tensor([[1 / 8, 0, 0, 1 / 8 + 3 / 4 / 3, 3 / 4 * 2 / 3, 0, 0]], dtype=torch.float64)
    assert_same(p, expected, 1e-15, "by hand")


@pytest.mark.parametrize(("decoder", "score"), ATTENTIVE)
def test_padding_and_other_hypotheses_change_nothing(decoder: str, score: str | None) -> None:
    for options in copying_systems(decoder, score):
        model = build(options)
        with torch.no_grad():
            whole = by_steps(model)
            wide = by_steps(model, *(torch.nn.functional.pad(part, (0, 3), value=8) for part in (COPIES, SOURCE)))
            assert_same(wide[..., : VOCAB + SOURCE.size(1)].exp(), whole.exp(), 1e-12, options)
            assert (wide[..., VOCAB + SOURCE.size(1) :] == -torch.inf).all()
            memory = padded(model.encode(SOURCE, LENGTHS, COPIES)._replace(), 9)
            start = model.start(model.encode(SOURCE, LENGTHS, COPIES))
            twice = select_rows(start, torch.arange(3).repeat_interleave(2))
            step = model.step(COPIED[:, 0].repeat_interleave(2), twice, memory)
            assert_same(step.logits[::2, : VOCAB + 6].exp(), whole[:, 0].exp(), 1e-12, options)
            assert_same(step.logits[1::2].exp(), step.logits[::2].exp(), 1e-12, options)


def test_one_head_of_the_last_layer_can_be_what_copies() -> None:
    """By hand from the heads that a step shows: its weights alone, and no other model than with their mean."""
    options = {"decoder": "transformer", "embedding_dim": 8, "num_heads": 2, "dec_layers": 2, "copy_attn": True}
    models = {head: build({**options, "copy_head": head}) for head in (None, 1, 2)}
    with torch.no_grad():
        steps = {}
        for head, model in models.items():
            memory = model.encode(SOURCE, LENGTHS, COPIES)
            steps[head] = model.step(COPIED[:, 0], model.start(memory), memory)
            weights = steps[head].heads[:, -1].mean(1) if head is None else steps[head].heads[:, -1, head - 1]
            context = (weights[:, None] @ memory.states)[:, 0]
            y = model.embed(model.embedding, COPIED[:, :1], 0)[:, 0]
            gate = model.copy_gate(context, steps[head].hidden, y)
            own = model.logits(steps[head].hidden)
            assert_same(steps[head].logits.exp(), mixture(own, Copying(gate, weights, COPIES)).exp(), 1e-12, head)
            assert_same(steps[head].attention, steps[None].attention, 1e-12, head)
    assert (steps[1].logits.exp() - steps[2].logits.exp()).abs().max() > 1e-3


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"copy_attn": True, "copy_head": 3}, "copy_head 3: the layers have num_heads 2"),
        ({"copy_head": 1}, "copy_head 1 does nothing with copy_attn false"),
        ({"copy_head": 0, "copy_attn": True}, "greater than or equal to 1"),
    ],
)
def test_a_head_that_cannot_copy_is_one_clear_line(options: Options, told: str) -> None:
    with pytest.raises(ConfigError) as raised:
        configfile.parse({"model": {"decoder": "transformer", "embedding_dim": 8, "num_heads": 2, **options}})
    assert told in str(raised.value)


@pytest.mark.parametrize("decoder", ["bahdanau", "luong", "transformer"])
def test_the_copy_that_searches_copies_too(decoder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mirada.fast.prepacked.SMALLEST", {"float32": 1, "int8": 1})
    score: dict[str, Any] = {} if decoder == "transformer" else {"score": "general"}
    model = build({"decoder": decoder, "embedding_dim": 8, "hidden_size": 6, "copy_attn": True, **score} if score else {
        "decoder": decoder, "embedding_dim": 8, "copy_attn": True, "copy_head": 2}, dtype=torch.float32)  # fmt: skip
    with torch.inference_mode():
        assert_same(by_steps(prepacked(model)).exp(), by_steps(model).exp(), 1e-5, decoder)


def test_the_mixtures_gradients_by_finite_differences() -> None:
    torch.manual_seed(2)
    logits, gate = torch.randn(2, 6).double().requires_grad_(), torch.randn(2).double().requires_grad_()
    scores, ids = torch.randn(2, 3).double().requires_grad_(), torch.tensor([[6, 4, 6], [0, 5, 8]])

    def said(logits: Tensor, gate: Tensor, scores: Tensor) -> Tensor:
        p = mixture(logits, Copying(gate, scores.softmax(-1), ids))
        return p.gather(1, torch.tensor([[6, 4, 0], [8, 5, 0]]))

    assert gradcheck(said, (logits, gate, scores))


def test_a_model_that_copies_wants_to_know_what() -> None:
    model = build({"decoder": "luong", "score": "dot", "embedding_dim": 4, "hidden_size": 6, "copy_attn": True})
    with pytest.raises(ValueError, match="is told what each source position would write"):
        model(SOURCE, LENGTHS, COPIED)


def test_what_is_seldom_copied_keeps_its_digits() -> None:
    """In float32, where 1 − p_gen is a multiple of 6e-8: by hand in float64."""
    gate, weights, ids = torch.tensor([14.0, 20.0]), torch.tensor([[0.75, 0.25]] * 2), torch.tensor([[5, 4]] * 2)
    found = mixture(torch.zeros(2, 5), Copying(gate, weights, ids)).double()
    copied = (1 - gate.double().sigmoid()) * 0.75
    assert_same(found[:, 5], copied.log(), 1e-6, "a word of the source alone")
