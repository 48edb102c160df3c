"""Interventions do what they say, to the model's copy, and are refused where they cannot."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from explain_tools import GIVEN, SENTENCE, make, one, searching
from mirada.errors import ConfigError
from mirada.explain.edits import Edits, read_edits, replaced_weights
from mirada.explain.record import Trace
from mirada.explain.trace import trace

LONG = "el gato duerme bajo el viejo"
WITH_ATTENTION = ("bahdanau", "luong", "transformer")


def weights_under(edits: Edits, decoder: str = "luong") -> tuple[Trace, Trace]:
    """A given output's trace, unedited and edited: the same words, so that only the edit differs."""
    translator = make(decoder=decoder)
    return one(translator, reference=LONG), one(translator, reference=LONG, edits=edits)


def test_weights_by_hand() -> None:
    own = [0.5, 0.3, 0.2]
    uniform, diagonal, edge = Edits("uniform", from_step=2), Edits("diagonal", from_step=1), Edits("edge", (2, 3))
    assert replaced_weights(uniform, 1, own) is None
    assert replaced_weights(uniform, 2, own) == [1 / 3, 1 / 3, 1 / 3]
    assert [replaced_weights(diagonal, step, own) for step in (1, 3, 4)] == [[1, 0, 0], [0, 0, 1], [0, 0, 1]]
    assert [replaced_weights(edge, step, own) for step in (1, 2, 3)] == [None, [0, 0, 1], None]
    assert replaced_weights(Edits(no_input_feeding=True), 1, own) is None


@pytest.mark.parametrize("decoder", WITH_ATTENTION)
def test_uniform_gives_every_source_token_the_same(decoder: str) -> None:
    before, after = weights_under(Edits("uniform", from_step=3), decoder)
    assert after.attention[2:] == pytest.approx(1 / len(after.source.tokens))
    assert after.attention[:2] == pytest.approx(before.attention[:2])
    assert after.edits == Edits("uniform", from_step=3)


@pytest.mark.parametrize("decoder", WITH_ATTENTION)
def test_diagonal_looks_at_token_t_and_beyond_the_end_at_the_last(decoder: str) -> None:
    _, after = weights_under(Edits("diagonal"), decoder)
    steps, tokens = after.attention.shape
    assert steps > tokens, "the sentence is to show what happens beyond the end"
    assert after.attention.argmax(1).tolist() == [min(t, tokens - 1) for t in range(steps)]
    assert after.attention.max(1) == pytest.approx(1)


@pytest.mark.parametrize("decoder", WITH_ATTENTION)
@pytest.mark.parametrize("kind", ["uniform", "diagonal", "shuffled"])
def test_what_the_edited_search_chooses_is_the_likeliest_of_the_edited_numbers(decoder: str, kind: str) -> None:
    """A search widens the sentence's memory; the replaced weights must not reach behind the sentence."""
    options = searching(beam_size=1, max_output_length=12)
    edits = Edits(kind, from_step=1, seed=1 if kind == "shuffled" else None)
    after = one(make(decoder=decoder), "the red fox", options=options, edits=edits)
    assert len(after.source.tokens) % 8 != 0
    assert [step.chosen.id for step in after.steps] == [step.top[0].id for step in after.steps]


@pytest.mark.parametrize("decoder", WITH_ATTENTION)
def test_given_weights_stand_at_one_step(decoder: str) -> None:
    tokens = len(one(make(decoder=decoder)).source.tokens)
    row = tuple(float(weight) for weight in np.arange(1, tokens + 1) / sum(range(1, tokens + 1)))
    before, after = weights_under(Edits("weights", from_step=2, weights=row), decoder)
    assert after.attention[1] == pytest.approx(row)
    assert after.attention[0] == pytest.approx(before.attention[0])
    assert after.attention[3] != pytest.approx(row)


def test_given_weights_that_are_its_own_change_nothing() -> None:
    before = one(make(decoder="luong"), reference=LONG)
    _, after = weights_under(Edits("weights", from_step=2, weights=tuple(before.attention[1].tolist())))
    assert after.steps[-1].logits == pytest.approx(before.steps[-1].logits, abs=1e-6)
    with pytest.raises(ConfigError, match=r"^weights: expected one for each of \d+ source tokens, got 2$"):
        weights_under(Edits("weights", from_step=2, weights=(0.5, 0.5)))


@pytest.mark.parametrize("decoder", WITH_ATTENTION)
def test_an_edge_changes_one_step(decoder: str) -> None:
    before, after = weights_under(Edits("edge", (2, 3)), decoder)
    assert after.attention[1].tolist() == [float(j == 2) for j in range(len(after.source.tokens))]
    assert after.attention[0] == pytest.approx(before.attention[0])
    assert after.attention[2:].max() < 0.9


@pytest.mark.parametrize("decoder", ["bahdanau", "luong"])
def test_shuffled_deals_out_the_models_own_weights(decoder: str) -> None:
    before, after = weights_under(Edits("shuffled", seed=1), decoder)
    assert sorted(after.attention[0]) == pytest.approx(sorted(before.attention[0]))
    orders = {tuple(weights_under(Edits("shuffled", seed=seed), decoder)[1].attention[0]) for seed in (1, 1, 2, 3)}
    assert len(orders) == 3, "one order a seed"


@pytest.mark.parametrize("decoder", ["bahdanau", "luong"])
def test_the_context_comes_from_the_given_weights_and_the_scores_stay_the_models(decoder: str) -> None:
    before, after = weights_under(Edits("uniform"), decoder)
    assert after.steps[0].tensors["c"] == pytest.approx(after.encoder["h"].mean(0), abs=1e-6)
    assert after.steps[0].tensors["e"] == pytest.approx(before.steps[0].tensors["e"])


def test_a_transformers_every_head_is_replaced() -> None:
    _, after = weights_under(Edits("edge", (1, 2)), "transformer")
    first = after.steps[0].tensors
    assert first["alpha.1"].tolist() == [[float(j == 1) for j in range(len(after.source.tokens))]] * 2
    assert first["heads.1"] == pytest.approx(after.encoder["values.1"][:, 1], abs=1e-6)


@pytest.mark.parametrize("decoder", WITH_ATTENTION)
@pytest.mark.parametrize("kind", ["uniform", "diagonal", "shuffled"])
def test_a_beam_under_an_edit_finds_what_it_says(decoder: str, kind: str) -> None:
    """The search's own scores are those of the path made again, hypothesis by hypothesis."""
    translator = make(decoder=decoder)
    found = trace(translator, SENTENCE, options=searching(n_best=3), edits=Edits(kind))
    assert len(found) == 3
    for path in found:
        again = one(translator, reference=path.output.text, edits=Edits(kind))
        if again.output.ids == path.output.ids:
            assert again.output.score == pytest.approx(path.output.score, abs=1e-4)
    scores = [path.output.score for path in found if path.output.finished]
    assert scores == sorted(scores, reverse=True)


def test_no_input_feeding_is_a_model_with_zeros_there_and_leaves_the_model_alone() -> None:
    translator, other = make(decoder="luong"), make(decoder="luong")
    before = one(translator, reference=GIVEN)
    edited = one(translator, reference=GIVEN, edits=Edits(no_input_feeding=True))
    with torch.no_grad():
        other.model.feed_gates.weight.zero_()
    expected = one(other, reference=GIVEN)
    for step, there, was in zip(edited.steps, expected.steps, before.steps, strict=True):
        assert np.array_equal(step.logits, there.logits)
        assert step.step == 1 or not np.allclose(step.logits, was.logits)
    again = one(translator, reference=GIVEN)
    assert all(np.array_equal(a.logits, b.logits) for a, b in zip(before.steps, again.steps, strict=True))


def test_a_dropped_head_gives_nothing_and_the_other_all() -> None:
    translator = make(decoder="transformer", dec_layers=2)
    edited = one(translator, reference=GIVEN, edits=Edits(drop_head=(1, 2)))
    before = one(translator, reference=GIVEN)
    output = translator.model.decoder[0].cross_heads.o
    weight, bias = output.weight.detach().numpy(), output.bias.detach().numpy()
    for step in edited.steps:
        expected = weight[:, :3] @ step.tensors["heads.1"][0] + bias  # d_k is 6 / 2
        assert step.tensors["c.1"] == pytest.approx(expected, abs=1e-5)
    assert not np.allclose(edited.steps[0].logits, before.steps[0].logits)


def test_dropping_a_head_that_gives_nothing_changes_nothing() -> None:
    translator = make(decoder="transformer")
    with torch.no_grad():
        translator.model.decoder[0].cross_heads.o.weight[:, :3] = 0
    before, after = one(translator), one(translator, edits=Edits(drop_head=(1, 1)))
    assert before.output == after.output
    assert all(np.array_equal(a.logits, b.logits) for a, b in zip(before.steps, after.steps, strict=True))


@pytest.mark.parametrize(
    ("options", "edits", "message"),
    [
        ({"decoder": "classic"}, Edits("uniform"), "--attention: a classic model has no attention; use a bahdanau"),
        ({"decoder": "bahdanau"}, Edits(no_input_feeding=True), "this model is bahdanau; it is for luong models with"),
        ({"decoder": "luong", "input_feeding": False}, Edits(no_input_feeding=True), "this model is luong without"),
        ({"decoder": "luong"}, Edits(drop_head=(1, 1)), "--drop-head 1.1: a luong model has no heads"),
        ({"decoder": "transformer"}, Edits(drop_head=(2, 1)), "2.1: no such head; the decoder has layers 1 to 1, each"),
        ({"decoder": "transformer"}, Edits(drop_head=(1, 3)), "1.3: no such head; .* each heads 1 to 2"),
        ({"decoder": "luong"}, Edits("uniform", from_step=99), "--from-step 99: no such step; .* has steps 1 to STEPS"),
        ({"decoder": "luong"}, Edits("uniform", from_step=0), "--from-step 0: no such step; .* has steps 1 to STEPS"),
        (
            {"decoder": "luong"},
            Edits("edge", (99, 1)),
            "edge:99-1: no such step; the unedited output has steps 1 to STEPS",
        ),
    ],
)
def test_an_edit_that_is_not_possible_is_refused(options: dict[str, Any], edits: Edits, message: str) -> None:
    translator = make(**options)
    steps = len(translator.target_tokenizer.encode([GIVEN])[0]) + 1
    with pytest.raises(ConfigError, match=message.replace("STEPS", str(steps))):
        one(translator, reference=GIVEN, edits=edits)


def test_a_source_token_that_is_not_there_is_refused() -> None:
    translator = make(decoder="luong")
    count = len(one(translator).source.tokens)
    message = f"edge:1-{count + 1}: no such source token; they are 1 to {count} here, the last is </s>"
    with pytest.raises(ConfigError, match=message):
        one(translator, edits=Edits("edge", (1, count + 1)))


def read(**given: Any) -> Edits | None:
    nothing = {"attention": None, "from_step": None, "seed": None, "no_input_feeding": False, "drop_head": None}
    return read_edits(**{**nothing, **given})


def test_edits_are_read_from_flags() -> None:
    assert read() is None
    assert read(attention="uniform", from_step=2) == Edits("uniform", from_step=2)
    assert read(attention="shuffled") == Edits("shuffled", from_step=1, seed=1)
    assert read(attention="edge:3-12") == Edits("edge", (3, 12))
    assert read(drop_head="2.1", no_input_feeding=True) == Edits(no_input_feeding=True, drop_head=(2, 1))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"attention": ""}, "--attention : expected uniform, diagonal, shuffled or edge:I-J"),
        ({"attention": "edge"}, "--attention edge: expected"),
        ({"attention": "edge:0-1"}, "--attention edge:0-1: expected .* both counted from 1"),
        ({"attention": "edge:1.1"}, "--attention edge:1.1: expected"),
        ({"attention": "uniform:1-1"}, "--attention uniform:1-1: expected"),
        ({"drop_head": "1-1"}, "--drop-head 1-1: expected L.H, decoder layer and head counted from 1, such as 2.1"),
        ({"drop_head": "0.1"}, "--drop-head 0.1: expected L.H"),
        ({"from_step": 2}, "--from-step 2: it goes with --attention uniform, diagonal or shuffled"),
        ({"from_step": 2, "attention": "edge:1-1"}, "--from-step 2: it goes with"),
        ({"seed": 2, "attention": "uniform"}, "--shuffle-seed 2: it goes with --attention shuffled"),
    ],
)
def test_flags_that_make_no_sense_are_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        read(**given)
