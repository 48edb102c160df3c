"""Every step of every system equals the papers' equations in plain NumPy float64, one sentence at a time."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from mirada.config import ModelConfig
from mirada.models import AnyModel, Memory, Step
from models.systems import FAMILIES, LENGTHS, SOURCE, TARGET, Options, build, systems
from reference import Array, CellState, Design, Moment, Run, Weights, bahdanau, classic, luong, transformer

TOLERANCE = 1e-10


def reference(options: Options, weights: Weights, source: list[int], target: list[int]) -> Run:
    """The equations of the paper that these options name."""
    layers = (options["enc_layers"], options["dec_layers"])
    if options["decoder"] == "transformer":
        heads, pre_norm = options["num_heads"], options["norm"] == "pre"
        return transformer.run(weights, source, target, layers=layers, heads=heads, pre_norm=pre_norm)
    reverse, score = options.get("reverse_source", False), options["score"] or ""
    design = Design(options["rnn_type"], options["bidirectional"], reverse, *layers, score)
    if options["decoder"] == "bahdanau":
        return bahdanau.run(design, weights, source, target, deep=options.get("readout") == "deep")
    if options["decoder"] == "luong":
        return luong.run(design, weights, source, target, input_feeding=options.get("input_feeding", True))
    return (classic.run_cho if options.get("feed_context") else classic.run)(design, weights, source, target)


def decode(model: AnyModel) -> tuple[Memory, object, list[Step]]:
    """The batch through encode, start and repeated step."""
    with torch.no_grad():
        memory = model.encode(SOURCE, LENGTHS)
        first = state = model.start(memory)
        steps = []
        for token in TARGET.T:
            steps.append(model.step(token, state, memory))
            state = steps[-1].state
    return memory, first, steps


def near(actual: Tensor | None, expected: Array | None, what: str) -> None:
    assert (actual is None) == (expected is None), f"{what}: only one of the two has it"
    if actual is not None and expected is not None:
        assert actual.shape == expected.shape, what
        assert np.abs(actual.numpy() - expected).max() <= TOLERANCE, what


def near_states(actual: tuple[tuple[Tensor, ...], ...], expected: list[CellState], row: int, what: str) -> None:
    for layer, (parts, arrays) in enumerate(zip(actual, expected, strict=True)):
        for name, part, array in zip("hc"[: len(arrays)], parts, arrays, strict=True):
            near(part[row], array, f"{what}, layer {layer}, {name}")


def near_step(step: Step, moment: Moment, row: int, length: int, what: str) -> None:
    """Compare one row of a step with the reference; padding has no place in the reference, and weight 0 here."""
    for name, part, expected in (("scores", step.scores, moment.scores), ("weights", step.attention, moment.weights)):
        near(None if part is None else part[row, :length], expected, f"{what}, {name}")
    near(None if step.heads is None else step.heads[row, ..., :length], moment.heads, f"{what}, heads")
    near(None if step.context is None else step.context[row], moment.context, f"{what}, context")
    near(step.hidden[row], moment.hidden, f"{what}, hidden")
    near(step.logits[row], moment.logits, f"{what}, logits")
    if moment.states:
        near_states(step.state.layers, moment.states, row, f"{what}, state")


@pytest.mark.parametrize(("decoder", "score"), FAMILIES)
def test_every_step_equals_the_papers_equations(decoder: str, score: str | None) -> None:
    for options in systems(decoder, score):
        model = build(options)
        weights = {name: value.numpy() for name, value in model.state_dict().items()}
        memory, first, steps = decode(model)
        for row, length in enumerate(LENGTHS.tolist()):
            run = reference(options, weights, SOURCE[row, :length].tolist(), TARGET[row].tolist())
            what = f"{options}, sentence {row}"
            near(memory.states[row, :length], np.stack(run.memory), f"{what}, encoder")
            if run.first:
                near_states(first.layers, run.first, row, f"{what}, s_0")
            for t, (step, moment) in enumerate(zip(steps, run.moments, strict=True)):
                near_step(step, moment, row, length, f"{what}, step {t}")


def test_the_grid_holds_every_value_of_every_option_that_changes_an_equation() -> None:
    """So that an option added to the models cannot be forgotten here."""
    without_effect = {"dropout", "embedding_dropout", "recurrent_dropout", "word_dropout"}  # in evaluation
    everything = [options for family in FAMILIES for options in systems(*family)]
    for name, field in ModelConfig.model_fields.items():
        if name not in without_effect:
            values = {options.get(name, field.default) for options in everything}
            assert len(values) > 1, f"{name} is always {values}"
