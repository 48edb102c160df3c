"""A sentence is read and written the same alone, in any batch, any order, with any padding; so are its hypotheses."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from mirada.models import AnyModel, Memory, Step
from mirada.models.base import State
from mirada.trees import select_rows
from systems import (
    FAMILIES,
    LENGTHS,
    SOURCE,
    TARGET,
    VOCAB,
    Batch,
    assert_same,
    build,
    leaves,
    some_systems,
    systems,
)

PRECISIONS = [(torch.float64, 1e-10), (torch.float32, 1e-5)]


def seen(model: AnyModel, batch: Batch) -> list[list[Any]]:
    """List for each sentence what encoder, start, step and forward give it, cut to its real positions."""
    with torch.no_grad():
        memory = model.encode(batch.source, batch.lengths)
        first = model.start(memory)
        steps = follow(model, batch.target.T, first, memory)
        outputs = model(*batch, with_attention=True)
    whole = (memory.final, first, steps[-1].state, outputs.hidden, [(s.logits, s.hidden, s.context) for s in steps])
    over_source = (outputs.attention, [(s.scores, s.attention, s.heads) for s in steps])
    return [
        [memory.states[row, :length]]
        + [leaf[row] for leaf in leaves(whole)]
        + [leaf[row, ..., :length] for leaf in leaves(over_source)]
        for row, length in enumerate(batch.lengths.tolist())
    ]


def follow(model: AnyModel, tokens: Tensor, state: State, memory: Memory) -> tuple[Step, ...]:
    """Make a step for each of the tokens `[T, N]`."""
    steps: list[Step] = []
    for token in tokens:
        steps.append(model.step(token, steps[-1].state if steps else state, memory))
    return tuple(steps)


def garbage(source: Tensor, lengths: Tensor, extra: int) -> Tensor:
    """Return the same sentences with `extra` more columns and random ids, 0 to 12, in all padding."""
    wide = torch.randint(0, VOCAB, (len(source), source.size(1) + extra))
    for row, length in enumerate(lengths.tolist()):
        wide[row, :length] = source[row, :length]
    return wide


@pytest.mark.parametrize(("decoder", "score"), FAMILIES)
@pytest.mark.parametrize(("dtype", "tolerance"), PRECISIONS)
def test_a_sentence_alone_is_the_same_in_any_batch(
    decoder: str, score: str | None, dtype: torch.dtype, tolerance: float
) -> None:
    for options in some_systems(decoder, score):
        model = build(options, dtype=dtype)
        alone = [
            seen(model, Batch(SOURCE[[row], :length], LENGTHS[[row]], TARGET[[row]]))[0]
            for row, length in enumerate(LENGTHS.tolist())
        ]
        for order, extra in (([2, 0, 1], 3), ([1, 2], 0), ([1, 1, 0, 1], 1)):
            source = garbage(SOURCE[order], LENGTHS[order], extra)
            for row, sentence in zip(seen(model, Batch(source, LENGTHS[order], TARGET[order])), order, strict=True):
                assert_same(row, alone[sentence], tolerance, (options, order, extra))


def test_states_on_padding_are_zero() -> None:
    for decoder, score in FAMILIES:
        memory = build(next(systems(decoder, score))).encode(SOURCE, LENGTHS)
        assert (memory.states[~memory.mask] == 0).all()
        assert memory.mask.sum(1).tolist() == LENGTHS.tolist()


@pytest.mark.parametrize(("decoder", "score"), FAMILIES)
def test_hypotheses_of_a_sentence_equal_separate_calls(decoder: str, score: str | None) -> None:
    """`step` on B·K rows, two steps, each hypothesis with words of its own: K calls on B rows give the same."""
    hypotheses = 4
    torch.manual_seed(2)
    tokens = torch.randint(0, VOCAB, (2, len(SOURCE), hypotheses))
    for options in some_systems(decoder, score):
        model = build(options)
        with torch.no_grad():
            memory = model.encode(SOURCE, LENGTHS)
            start = model.start(memory)
            repeated = select_rows(start, torch.arange(len(SOURCE)).repeat_interleave(hypotheses))
            together = follow(model, tokens.flatten(1), repeated, memory)
            for k in range(hypotheses):
                apart = follow(model, tokens[:, :, k], start, memory)
                rows = torch.arange(len(SOURCE)) * hypotheses + k
                assert_same(select_rows(together, rows), apart, 1e-12, (options, k))


@pytest.mark.parametrize(("decoder", "score"), FAMILIES)
def test_choosing_rows_of_state_and_memory_midway_goes_on_as_alone(decoder: str, score: str | None) -> None:
    """After two steps keep sentences 2 and 0, in this order, as a search does when sentence 1 is finished."""
    rows = torch.tensor([2, 0])
    for options in some_systems(decoder, score):
        model = build(options)
        with torch.no_grad():
            memory = model.encode(SOURCE, LENGTHS)
            before = follow(model, TARGET.T[:2], model.start(memory), memory)
            whole = follow(model, TARGET.T[2:], before[-1].state, memory)
            state, fewer = select_rows(before[-1].state, rows), select_rows(memory, rows)
            chosen = follow(model, TARGET.T[2:, rows], state, fewer)
        assert_same(chosen, select_rows(whole, rows), 1e-12, options)


@pytest.mark.parametrize(("decoder", "score"), FAMILIES)
def test_every_leaf_is_batch_first(decoder: str, score: str | None) -> None:
    """What `select_rows` relies on: the first axis of each tensor of memory and state counts sentences."""
    for options in some_systems(decoder, score):
        model = build(options)
        memory = model.encode(SOURCE, LENGTHS)
        step = model.step(TARGET[:, 0], model.start(memory), memory)
        for leaf in leaves((memory, model.start(memory), step)):
            assert len(leaf) == len(SOURCE), options
