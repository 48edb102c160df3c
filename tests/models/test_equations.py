"""Everything that every system computes equals the papers' equations in plain NumPy float64, one sentence at a time."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest
import torch
from torch import Tensor

from mirada.config.options import ModelConfig
from mirada.explain.legend import SOURCE as SOURCE_AXIS
from mirada.explain.legend import describe
from mirada.models import AnyModel, Memory, Step
from mirada.reference import Array, Named, systems
from systems import FAMILIES, LENGTHS, SOURCE, TARGET, build
from systems import systems as grid

TOLERANCE = 1e-10
Heard = dict[str, Tensor]


class Decoded(NamedTuple):
    """The batch through encode, start and repeated step."""

    memory: Memory
    first: object
    steps: list[Step]


def decode(model: AnyModel) -> Decoded:
    with torch.no_grad():
        memory = model.encode(SOURCE, LENGTHS)
        first = state = model.start(memory)
        steps = []
        for token in TARGET.T:
            steps.append(model.step(token, state, memory))
            state = steps[-1].state
    return Decoded(memory, first, steps)


def listen(model: AnyModel) -> list[Heard]:
    """What the model tells of the encoder, of the start, and of each step."""
    heard: list[Heard] = [{}, {}]

    def note(name: str, value: Tensor) -> None:
        assert name not in heard[-1], f"{name} is told twice"
        heard[-1][name] = value

    with torch.no_grad():
        memory = model.encode(SOURCE, LENGTHS, note=lambda name, value: heard[0].update({name: value}))
        state = model.start(memory, note=note)
        for token in TARGET.T:
            heard.append({})
            step = model.step(token, state, memory, note=note)
            heard[-1]["logits"], state = step.logits, step.state
    return heard


def near(actual: Tensor | None, expected: Array | None, what: str) -> None:
    assert (actual is None) == (expected is None), f"{what}: only one of the two has it"
    if actual is not None and expected is not None:
        assert actual.shape == expected.shape, what
        assert np.abs(actual.numpy() - expected).max() <= TOLERANCE, what


def near_named(heard: Heard, expected: Named, options: ModelConfig, row: int, what: str) -> None:
    """Compare one row of all that was told; padding, at the end of every axis of source tokens, is cut off."""
    assert list(heard) == list(expected), what
    for name, value in heard.items():
        axes = describe(options, name).axes if name != "logits" else ("unit",)
        part = value[row]
        assert part.ndim == len(axes), f"{what}, {name}"
        for axis, kind in enumerate(axes):
            if kind == SOURCE_AXIS:
                part = part.narrow(axis, 0, int(LENGTHS[row]))
        near(part, expected[name], f"{what}, {name}")


def layer_states(named: Named, name: str, cell: str) -> list[tuple[Array, ...]]:
    """Every layer's state as the decoders hold it: (h,) or (h, c)."""
    layers = [key.partition(".")[2] for key in named if key.startswith(f"{name}.")]
    parts = [[named.get(f"{part}.{layer}") for part in (name, cell)] for layer in layers]
    return [tuple(part for part in pair if part is not None) for pair in parts]


def near_states(actual: tuple[tuple[Tensor, ...], ...], expected: list[tuple[Array, ...]], row: int, what: str) -> None:
    for layer, (parts, arrays) in enumerate(zip(actual, expected, strict=True)):
        for part, array in zip(parts, arrays, strict=True):
            near(part[row], array, f"{what}, layer {layer}")


def near_step(step: Step, named: Named, options: ModelConfig, row: int, what: str) -> None:
    """Compare what a step returns, where nobody listens."""
    expected = dict(named)
    if options.decoder == "transformer":
        top = options.dec_layers
        expected |= {"e": named[f"e.{top}"].mean(0), "c": named[f"c.{top}"]}
        heads = np.stack([named[f"alpha.{layer}"] for layer in range(1, top + 1)])
        near(step.heads[row, ..., : heads.shape[-1]], heads, f"{what}, heads")
    else:
        near_states(step.state.layers, layer_states(named, "s", "cell"), row, f"{what}, state")
    for name, part in (("e", step.scores), ("alpha", step.attention)):
        near(None if part is None else part[row, : LENGTHS[row]], expected.get(name), f"{what}, {name}")
    if options.decoder != "classic":
        near(step.context[row], expected["c"], f"{what}, context")
    read = next(name for name in ("s_tilde", "maxout", "s", f"s.{options.dec_layers}") if name in named)
    near(step.hidden[row], expected[read], f"{what}, hidden")
    near(step.logits[row], expected["logits"], f"{what}, logits")


@pytest.mark.parametrize(("decoder", "score"), FAMILIES)
def test_every_step_equals_the_papers_equations(decoder: str, score: str | None) -> None:
    for values in grid(decoder, score):
        model, options = build(values), ModelConfig(**values)
        weights = {name: value.numpy() for name, value in model.state_dict().items()}
        heard, decoded = listen(model), decode(model)
        for row, length in enumerate(LENGTHS.tolist()):
            run = systems.run(options, weights, SOURCE[row, :length].tolist(), TARGET[row].tolist())
            what = f"{values}, sentence {row}"
            near(decoded.memory.states[row, :length], run.encoder["h"], f"{what}, encoder")
            if run.start:
                near_states(decoded.first.layers, layer_states(run.start, "s_0", "cell_0"), row, f"{what}, s_0")
            for t, (step, named) in enumerate(zip(decoded.steps, run.steps, strict=True)):
                near_step(step, named, options, row, f"{what}, step {t}")
            for told, named in zip(heard, [run.encoder, run.start, *run.steps], strict=True):
                near_named(told, named, options, row, what)


def test_the_grid_holds_every_value_of_every_option_that_changes_an_equation() -> None:
    """So that an option added to the models cannot be forgotten here."""
    without_effect = {"dropout", "embedding_dropout", "recurrent_dropout", "word_dropout"}  # in evaluation
    everything = [options for family in FAMILIES for options in grid(*family)]
    for name, field in ModelConfig.model_fields.items():
        if name not in without_effect:
            values = {options.get(name, field.default) for options in everything}
            assert len(values) > 1, f"{name} is always {values}"
