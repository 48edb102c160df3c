"""Everything that every system computes equals the papers' equations in plain NumPy float64, one sentence at a time."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest
import torch
from torch import Tensor

from mirada.config.options import ModelConfig
from mirada.models import AnyModel, Memory, Step
from mirada.reference import Array, Named, systems
from systems import FAMILIES, LENGTHS, SOURCE, TARGET, build
from systems import systems as grid

TOLERANCE = 1e-10


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


def near(actual: Tensor | None, expected: Array | None, what: str) -> None:
    assert (actual is None) == (expected is None), f"{what}: only one of the two has it"
    if actual is not None and expected is not None:
        assert actual.shape == expected.shape, what
        assert np.abs(actual.numpy() - expected).max() <= TOLERANCE, what


def layer_states(named: Named, name: str, cell: str) -> list[tuple[Array, ...]]:
    """Every layer's state as the decoders hold it: (h,) or (h, c)."""
    layers = [key.partition(".")[2] for key in named if key.startswith(f"{name}.")]
    parts = [[named.get(f"{part}.{layer}") for part in (name, cell)] for layer in layers]
    return [tuple(part for part in pair if part is not None) for pair in parts]


def near_states(actual: tuple[tuple[Tensor, ...], ...], expected: list[tuple[Array, ...]], row: int, what: str) -> None:
    for layer, (parts, arrays) in enumerate(zip(actual, expected, strict=True)):
        for part, array in zip(parts, arrays, strict=True):
            near(part[row], array, f"{what}, layer {layer}")


def near_memory(memory: Memory, named: Named, row: int, what: str) -> None:
    """Compare what was read: states, final states, and the keys (and values) that attention compares with."""
    length = int(LENGTHS[row])
    near(memory.states[row, :length], named["h"], f"{what}, encoder")
    near_states(memory.final, layer_states(named, "final", "final_cell"), row, f"{what}, final states")
    if "keys" in named:
        near(memory.keys[row, :length], named["keys"], f"{what}, keys")
    elif memory.keys:
        for layer, pair in enumerate(memory.keys, start=1):
            for name, part in pair._asdict().items():
                near(part[row, :, :length], named[f"{name}.{layer}"], f"{what}, {name}")


def near_step(step: Step, named: Named, options: ModelConfig, row: int, what: str) -> None:
    """Compare what a step returns."""
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
        decoded = decode(model)
        for row, length in enumerate(LENGTHS.tolist()):
            run = systems.run(options, weights, SOURCE[row, :length].tolist(), TARGET[row].tolist())
            what = f"{values}, sentence {row}"
            near_memory(decoded.memory, run.encoder, row, what)
            if run.start:
                near_states(decoded.first.layers, layer_states(run.start, "s_0", "cell_0"), row, f"{what}, s_0")
            for t, (step, named) in enumerate(zip(decoded.steps, run.steps, strict=True)):
                near_step(step, named, options, row, f"{what}, step {t}")


def test_the_grid_holds_every_value_of_every_option_that_changes_an_equation() -> None:
    """So that an option added to the models cannot be forgotten here."""
    without_effect = {"dropout", "embedding_dropout", "recurrent_dropout", "word_dropout"}  # in evaluation
    # Tested below, and in test_copying.py and test_local_and_coverage.py.
    without_effect |= {"copy_attn", "copy_head", "attention_window", "window", "coverage", "segments"}
    everything = [options for family in FAMILIES for options in grid(*family)]
    for name, field in ModelConfig.model_fields.items():
        if name not in without_effect:
            values = {options.get(name, field.default) for options in everything}
            assert len(values) > 1, f"{name} is always {values}"


@pytest.mark.parametrize("decoder", ["luong", "transformer"])
def test_sources_of_parts_add_an_embedding_of_the_part(decoder: str) -> None:
    """Id 4 parts a source: what stands behind it, itself included, is of the next part."""
    shape = {"embedding_dim": 6, "hidden_size": 6, "score": "general"} if decoder == "luong" else {"embedding_dim": 8}
    values = {"decoder": decoder, "segments": 2, **shape}
    model = build(values)
    weights = {name: value.numpy() for name, value in model.state_dict().items()}
    states = model.encode(SOURCE, LENGTHS).states.detach()
    for row, length in enumerate(LENGTHS.tolist()):
        run = systems.run(ModelConfig(**values), weights, SOURCE[row, :length].tolist(), [2])
        near(states[row, :length], run.encoder["h"], f"{decoder}, sentence {row}")
