"""Batches of different options take turns in one worker: nobody waits for the end of another's, and all join theirs."""

from __future__ import annotations

from concurrent.futures import wait as wait_for
from typing import Any

import pytest
import torch

from mirada.config.options import SearchConfig
from mirada.search.run import LONGEST, REST, TRACKS, TURN
from search_tools import Gated, request, scheduler, steps
from toy_decoder import EOS, ToyDecoder

LONG = SearchConfig(beam_size=1, max_output_length=5 * TURN)
SHORT = SearchConfig(beam_size=1, max_output_length=9, alpha=0.1)


@pytest.fixture
def toy() -> ToyDecoder:
    """Every output goes to its limit."""
    toy = ToyDecoder(1, sentences=40, vocabulary=8)
    toy.table[..., EOS] -= 50
    return toy


def test_a_short_output_of_other_options_does_not_wait_for_a_long_one(toy: ToyDecoder) -> None:
    model, order = Gated(toy), list[str]()
    shared = scheduler(model)
    futures = [shared.submit(request(0), LONG)]
    model.begun.wait(30)
    futures.append(shared.submit(request(1), SHORT))
    for name, future in zip(("long", "short"), futures, strict=True):
        future.add_done_callback(lambda _, name=name: order.append(f"{name} after {len(model.steps)}"))
    model.gate.set()
    assert [len(future.result(30)[0].tokens) for future in futures] == [5 * TURN, 9]
    assert order[0] == f"short after {TURN + 10}", "one turn of the other, and its own steps"
    assert len(model.steps) == 5 * TURN + 1 + 10, "no step is made twice"


def test_those_that_come_in_between_join_the_batch_of_their_options(toy: ToyDecoder) -> None:
    model = Gated(toy)
    shared = scheduler(model)
    futures = [shared.submit(request(0), LONG), shared.submit(request(1), SHORT)]
    model.begun.wait(30)
    more = [shared.submit(request(i), LONG) for i in (2, 3)]
    model.gate.set()
    assert [len(future.result(30)[0].tokens) for future in futures + more] == [5 * TURN, 9, 5 * TURN, 5 * TURN]
    assert len(model.steps) <= 5 * TURN + 1 + REST + 10 + 1, "the three long ones together"


@pytest.mark.parametrize(("more", "after"), [(1, LONGEST), (4, 2 * REST), (8, REST), (16, REST // 2)])
def test_the_fewer_come_the_longer_they_wait_for_others(toy: ToyDecoder, more: int, after: int) -> None:
    model = Gated(toy)
    shared = scheduler(model)
    futures = shared.submit_all([request(i) for i in range(8)], LONG)
    model.begun.wait(30)
    futures += shared.submit_all([request(8 + i) for i in range(more)], LONG)
    model.gate.set()
    wait_for(futures, timeout=30)
    assert model.steps.index(8 + more) == after


def test_more_options_than_batches_come_all_to_their_turn(toy: ToyDecoder) -> None:
    """And what is found is what each finds alone."""
    model = Gated(toy)
    shared = scheduler(model)
    ways = [LONG.model_copy(update={"alpha": i / 10, "max_output_length": 9 + i}) for i in range(2 * TRACKS + 1)]
    futures = [shared.submit(request(i), way) for i, way in enumerate(ways)]
    model.gate.set()
    found = [steps(future.result(30)[0]) for future in futures]
    assert [len(tokens) for tokens in found] == [9 + i for i in range(len(ways))]
    assert found == [steps(shared.search([request(i)], way)[0][0]) for i, way in enumerate(ways)]


class Small(Gated):
    """Has room for three sentences, whose searches may belong to several batches."""

    def __init__(self, toy: ToyDecoder):
        super().__init__(toy)
        self.held, self.refused = dict[int, int](), 0  # rows by their options

    def step(self, token: torch.Tensor, state: Any, memory: Any) -> Any:
        lane = int(memory.sentence[0]) // 10
        self.held[lane] = len(token)
        if sum(self.held.values()) > 3:
            self.refused += 1
            self.held.pop(lane)
            raise RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory")
        return super().step(token, state, memory)


def test_a_batch_for_which_the_others_leave_no_memory_is_searched_after_them(toy: ToyDecoder) -> None:
    model = Small(toy)
    shared = scheduler(model)
    futures = [shared.submit(request(i), LONG) for i in (0, 1)]
    model.begun.wait(30)
    futures += shared.submit_all([request(i) for i in (10, 11)], SHORT)
    futures[0].add_done_callback(lambda _: model.held.pop(0, None))
    model.gate.set()
    wait_for(futures, timeout=30)
    assert [len(future.result(0)[0].tokens) for future in futures] == [5 * TURN, 5 * TURN, 9, 9]
    assert model.refused == 1
