"""Which sentences share a batch, how many cores it has, and one caller that waits for all of them."""

from __future__ import annotations

import threading
from typing import Any

import pytest
import torch

from mirada.config.options import SearchConfig
from mirada.data.vocabulary import EOS
from mirada.fast.prepacked import prepacked
from mirada.search.queue import Capacity, Lane, Queue, Request
from mirada.search.run import CACHED
from mirada.search.scheduler import Scheduler, search_all
from mirada.search.waiting import Together

CPU = torch.device("cpu")


def parcels(count: int, *, size: int, beam_size: int = 1, full: int = 128, dealt: bool = False) -> list[list[int]]:
    """Lengths of the sources in each parcel, of sentences of 1 to `count` tokens, for two workers."""
    lane = Lane(SearchConfig(beam_size=beam_size), Capacity(size, 1 << 30), with_attention=False)
    wanted = [Request([5] * (i + 1), [], i) for i in range(count)]
    _, made = Queue().add(wanted, [9] * count, lane, 2, full=full, dealt=dealt)
    return [[len(task.request.source) for task in parcel.tasks] for parcel in made]


def test_small_batches_go_to_a_parcel_a_worker():
    assert parcels(6, size=2) == [[6, 5, 2, 1], [4, 3]]


def test_batches_with_full_steps_are_a_parcel_each():
    assert parcels(6, size=2, full=1) == [[6, 5], [4, 3], [2, 1]]
    assert parcels(6, size=2, full=9, beam_size=5) == [[6, 5], [4, 3], [2, 1]], "rows are beams of sentences"
    assert parcels(6, size=2, full=10, beam_size=5) == [[6, 5, 2, 1], [4, 3]]


def test_few_sentences_are_dealt_out_to_all_workers():
    assert parcels(5, size=64) == [[5, 4, 3, 2, 1]], "others may join them"
    assert parcels(5, size=64, dealt=True) == [[5, 3, 1], [4, 2]]
    assert parcels(1, size=64, dealt=True) == [[1]]
    assert parcels(0, size=64, dealt=True) == []


def noting(model: Any) -> tuple[Any, list[tuple[int, int]]]:
    """A model, and for each of its steps which thread makes it and how many torch has for it."""
    fast, noted = prepacked(model), list[tuple[int, int]]()
    step = fast.step
    fast.step = lambda *given: (noted.append((threading.get_ident(), torch.get_num_threads())), step(*given))[1]
    return fast, noted


def short(count: int) -> list[Request]:
    return [Request([5, *divmod(i, 2), EOS], [], i) for i in range(count)]


@pytest.mark.parametrize(
    ("sentences", "weight_bytes", "expected"), [(1, 0, 1), (15, 0, 1), (16, 0, 2), (1, CACHED, 2), (1, CACHED - 1, 1)]
)
def test_a_small_step_has_one_thread(translator, sentences, weight_bytes, expected):
    model, noted = noting(translator.model)
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        scheduler = Scheduler(model, device=CPU, vocabulary=1, weight_bytes=weight_bytes)
        scheduler.search(short(sentences), SearchConfig(beam_size=1, max_output_length=2), batch_size=64)
        assert noted[0][1] == expected
        assert torch.get_num_threads() == 2, "the caller keeps its own"
    finally:
        torch.set_num_threads(before)


def test_requests_one_after_the_other_have_the_same_thread(translator):
    model, noted = noting(translator.model)
    scheduler = Scheduler(model, device=CPU, vocabulary=1, workers=3)
    for request in short(20):
        scheduler.search([request], SearchConfig(beam_size=1, max_output_length=2))
    assert len({thread for thread, _ in noted}) == 1


def test_requests_that_come_together_have_a_thread_each(translator):
    model, noted = noting(translator.model)
    scheduler = Scheduler(model, device=CPU, vocabulary=1, workers=2)
    met = threading.Barrier(2, timeout=20)
    step = model.step
    first = threading.local()

    def both(*given):
        if not hasattr(first, "seen"):
            first.seen = met.wait()
        return step(*given)

    model.step = both
    scheduler.search(short(2), SearchConfig(beam_size=1, max_output_length=2))
    assert len({thread for thread, _ in noted}) == 2


def test_nothing_to_wait_for_is_there_at_once(translator):
    assert Together(0).wait() == []
    assert search_all(translator.model, [], SearchConfig(), batch_size=2, device=CPU) == []


def test_all_outputs_come_in_the_order_of_the_requests():
    together = Together(2)
    second, first = together.answers[::-1]
    threading.Timer(0.05, lambda: (second.set_result(["b"]), first.set_result(["a"]))).start()
    assert together.wait() == [["a"], ["b"]]


def test_the_first_error_in_the_order_of_the_requests_is_raised():
    together = Together(3)
    together.answers[2].set_exception(ValueError("third"))
    together.answers[1].set_exception(ValueError("second"))
    together.answers[0].set_result([])
    with pytest.raises(ValueError, match="second"):
        together.wait()
