"""One scheduler under many callers: who shares steps, who waits, who leaves, and what goes wrong only for some."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import threading
import time
import weakref
from concurrent.futures import CancelledError, Future
from concurrent.futures import wait as wait_for
from typing import Any

import pytest
import torch

from mirada.config.options import SearchConfig
from mirada.errors import DataError
from mirada.search.decode import Hypothesis
from mirada.search.queue import OVERTAKING
from mirada.search.scheduler import QueueFullError, Request
from search_tools import Gated, ToyModel, request, run, scheduler, steps
from toy_decoder import EOS, ToyDecoder

GREEDY = SearchConfig(beam_size=1, max_output_length=9)
BEAM = SearchConfig(beam_size=3, n_best=2, max_output_length=9)
SAMPLE = SearchConfig(sample=True, n_best=2, max_output_length=9)
CPU = torch.device("cpu")


@pytest.fixture
def toy() -> ToyDecoder:
    return ToyDecoder(1, sentences=40, vocabulary=8)


def tokens(outputs: list[Hypothesis]) -> list[list[int]]:
    return [steps(output) for output in outputs]


@pytest.mark.parametrize("options", [GREEDY, BEAM, SAMPLE], ids=["greedy", "beam", "sample"])
@pytest.mark.parametrize("workers", [1, 3])
def test_everybody_gets_what_they_asked_for(toy: ToyDecoder, options: SearchConfig, workers: int) -> None:
    expected = [tokens(found) for found in run(toy, options, limit=9)]
    shared, wrong = scheduler(ToyModel(toy), workers=workers), list[int]()

    def ask(first: int) -> None:
        for sentence in range(first, 40, 4):
            if (
                tokens(shared.submit(request(sentence, sentence), options, batch_size=5).result(30))
                != expected[sentence]
            ):
                wrong.append(sentence)

    callers = [threading.Thread(target=ask, args=(first,)) for first in range(4)]
    for caller in callers:
        caller.start()
    whole = shared.search([request(i, i) for i in range(40)], options, batch_size=4)
    for caller in callers:
        caller.join()
    assert wrong == []
    assert [tokens(found) for found in whole] == expected


def test_a_request_joins_the_batch_that_runs(toy: ToyDecoder) -> None:
    toy.table[..., EOS] -= 50
    model = Gated(toy)
    shared = scheduler(model, workers=4)
    first = shared.submit(request(1), GREEDY)
    model.begun.wait(30)
    others = [shared.submit(request(i), GREEDY) for i in (2, 3)]
    model.gate.set()
    assert [len(future.result(30)[0].tokens) for future in (first, *others)] == [9, 9, 9]
    assert max(model.steps) == 3
    assert sum(model.steps) == 3 * 10, "a step a token and one for the end, together"


def test_other_options_do_not_share_steps(toy: ToyDecoder) -> None:
    toy.table[..., EOS] -= 50
    model = Gated(toy)
    shared = scheduler(model)
    futures = [shared.submit(request(i), GREEDY) for i in (1, 2)]
    futures += [shared.submit(request(i), GREEDY.model_copy(update={"alpha": 0.1})) for i in (3, 4)]
    model.gate.set()
    assert [len(future.result(30)[0].tokens) for future in futures] == [9] * 4
    assert max(model.steps) == 2


def test_how_long_an_output_may_be_is_each_one_s_own(toy: ToyDecoder) -> None:
    toy.table[..., EOS] -= 50
    model = Gated(toy)
    shared = scheduler(model)
    first = shared.submit(request(0), GREEDY)
    model.begun.wait(30)
    lengths = ({"max_output_length": 5}, {"max_output_length": None, "max_length_ratio": 3.0, "max_length_offset": 4})
    others = [shared.submit(request(i), GREEDY.model_copy(update=lengths[i % 2])) for i in range(4)]
    model.gate.set()
    assert [len(future.result(30)[0].tokens) for future in (first, *others)] == [9, 5, 7, 5, 7]
    assert max(model.steps) == 5, "all together"


def test_the_oldest_request_is_served_next_but_for_a_few_that_join_a_batch(toy: ToyDecoder) -> None:
    """Nobody overtakes others whose options differ for ever: 64 do."""
    toy.table[..., EOS] -= 50
    model = Gated(toy)
    shared, done = scheduler(model), list[str]()
    other = GREEDY.model_copy(update={"alpha": 0.1})
    futures = []
    for number, (name, options) in enumerate([("a", GREEDY), ("b", other), *[("c", GREEDY)] * 70]):
        futures.append(
            shared.submit(Request([number % 40 + 4, number // 40 + 4, EOS], [], number), options, batch_size=8)
        )
        futures[-1].add_done_callback(lambda _, name=name: done.append(name))
        model.begun.wait(30)
    model.gate.set()
    wait_for(futures)
    assert done[0] == "a"
    assert 1 < done.index("b") <= 1 + OVERTAKING < len(done)


def test_those_that_join_come_together(toy: ToyDecoder) -> None:
    """To read one sentence costs as much as two steps: a batch makes some steps between one joining and the next."""
    toy.table[..., EOS] -= 50
    model, sizes = Gated(toy), list[int]()
    shared = scheduler(model)
    shared.watch(sizes.append)
    long = GREEDY.model_copy(update={"max_output_length": 20})
    futures = [shared.submit(request(0), long)]
    model.begun.wait(30)
    model.arrive = lambda: len(futures) < 17 and futures.append(shared.submit(request(len(futures)), GREEDY))
    model.gate.set()
    wait_for(futures[:1])
    wait_for(futures)
    assert len(futures) == 17
    assert len(sizes) <= 5, "of 17 that came one by one"


def test_equal_requests_are_searched_once(toy: ToyDecoder) -> None:
    model = Gated(toy)
    shared = scheduler(model, workers=2)
    futures = [shared.submit(request(i % 2, number=i), GREEDY) for i in range(6)]
    model.gate.set()
    found = [future.result(30) for future in futures]
    assert found[0] == found[2] == found[4]
    assert found[0] is not found[2], "nobody's list is another's"
    assert max(model.steps) <= 2
    drawn = shared.search([request(1, number) for number in range(5)], SAMPLE)
    assert len({output.tokens for outputs in drawn for output in outputs}) > 2


def test_a_full_queue_refuses(toy: ToyDecoder) -> None:
    model = Gated(toy)
    shared = scheduler(model, most_waiting=2)
    futures = [shared.submit(request(0), GREEDY, batch_size=1)]
    model.begun.wait(30)
    futures += [shared.submit(request(i), GREEDY, batch_size=1) for i in (1, 2)]
    with pytest.raises(QueueFullError, match=r"^2 requests wait already; try again later$"):
        shared.submit(request(3), GREEDY, batch_size=1)
    assert futures[1].cancel()
    futures.append(shared.submit(request(3), GREEDY, batch_size=1))
    model.gate.set()
    assert [future.cancelled() or bool(future.result(30)) for future in futures] == [True] * 4


def test_who_cancels_leaves_the_batch(toy: ToyDecoder) -> None:
    toy.table[..., EOS] -= 50
    model = Gated(toy)
    shared = scheduler(model)
    long = SearchConfig(beam_size=1, max_output_length=500)
    futures = [shared.submit(request(i), long) for i in range(3)]
    model.begun.wait(30)
    assert futures[1].cancel()
    twice = [shared.submit(request(4), GREEDY) for _ in range(2)]
    assert twice[0].cancel(), "the other still waits for the same"
    model.gate.set()
    assert len(twice[1].result(30)[0].tokens) == 9
    assert [len(futures[i].result(30)[0].tokens) for i in (0, 2)] == [500, 500]
    with pytest.raises(CancelledError):
        futures[1].result()
    done, _ = wait_for(futures, timeout=1)
    assert len(done) == 3
    assert sum(model.steps) <= 2 * 501 + 2 + 10


def test_awaiting_and_cancelling_by_asyncio(toy: ToyDecoder) -> None:
    shared = scheduler(ToyModel(toy))

    async def ask() -> list[Hypothesis]:
        return await asyncio.wait_for(asyncio.wrap_future(shared.submit(request(3), BEAM)), 30)

    assert asyncio.run(ask()) == shared.search([request(3)], BEAM)[0]


class Failing(ToyModel):
    """Fails on one sentence, or on as many together as do not fit."""

    def __init__(self, toy: ToyDecoder, *, bad: int = -1, most: int = 99):
        super().__init__(toy)
        self.bad, self.most, self.sizes = bad, most, list[int]()

    def encode(self, source: torch.Tensor, lengths: torch.Tensor) -> Any:
        if self.bad in (source[:, 0] - 4).tolist():
            raise ValueError("bad sentence")
        return super().encode(source, lengths)

    def step(self, token: torch.Tensor, state: Any, memory: Any) -> Any:
        self.sizes.append(len(memory.sentence))
        if len(memory.sentence) > self.most:
            raise RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory")
        return super().step(token, state, memory)


def test_an_error_is_that_of_its_batch_alone(toy: ToyDecoder) -> None:
    shared = scheduler(Failing(toy, bad=5))
    futures: list[Future[Any]] = [shared.submit(request(i), GREEDY, batch_size=1) for i in (4, 5, 6)]
    assert futures[0].result(30)
    with pytest.raises(ValueError, match="bad sentence"):
        futures[1].result(30)
    assert futures[2].result(30)
    with pytest.raises(ValueError, match="bad sentence"):
        shared.search([request(i) for i in range(10)], GREEDY)
    assert shared.search([request(4)], GREEDY)


@pytest.mark.parametrize("options", [GREEDY, BEAM], ids=["greedy", "beam"])
def test_a_batch_too_big_for_the_memory_is_halved(toy: ToyDecoder, options: SearchConfig) -> None:
    model = Failing(toy, most=3)
    found = scheduler(model).search([request(i) for i in range(20)], options, batch_size=16)
    assert [tokens(outputs) for outputs in found] == [tokens(outputs) for outputs in run(toy, options, limit=9)[:20]]
    assert max(model.sizes) == 16
    assert min(i for i, size in enumerate(model.sizes) if size <= 3) < 6, "tried again with half as many each time"


def test_one_that_is_too_big_alone_is_named_and_the_others_are_not_lost(toy: ToyDecoder) -> None:
    shared = scheduler(Failing(toy, most=0))
    with pytest.raises(DataError, match=r"^line 8 \(1 tokens\): too little memory even for this one alone$"):
        shared.search([request(3, number=7)], GREEDY)


def test_a_prefix_that_nothing_can_begin_with_is_refused_at_once(toy: ToyDecoder) -> None:
    message = r"^line 3: token 2 of the forced prefix is the special token '</s>'; "
    with pytest.raises(DataError, match=message):
        scheduler(ToyModel(toy)).submit(Request([4, EOS], [5, EOS], 2), GREEDY)


def test_ctrl_c_ends_a_search_within_a_step(toy: ToyDecoder) -> None:
    toy.table[..., EOS] -= 50
    model = Gated(toy)
    model.gate.set()
    shared = scheduler(model, workers=2)
    endless = SearchConfig(beam_size=1, max_output_length=100_000)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background ignores it
    try:
        threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
        with pytest.raises(KeyboardInterrupt):
            shared.search([request(i) for i in range(30)], endless, batch_size=4)
    finally:
        signal.signal(signal.SIGINT, before)
    made = len(model.steps)
    time.sleep(0.05)
    assert len(model.steps) == made, "nobody works on in the background"
    assert len(shared.search([request(1)], GREEDY)[0][0].tokens) == 9


def test_a_scheduler_that_nobody_has_ends_with_its_threads(toy: ToyDecoder) -> None:
    shared = scheduler(ToyModel(toy))
    shared.search([request(1)], GREEDY)
    gone, before = weakref.ref(shared), threading.active_count()
    del shared
    gc.collect()
    assert gone() is None
    for _ in range(100):
        if threading.active_count() < before:
            break
        time.sleep(0.02)
    assert threading.active_count() < before
