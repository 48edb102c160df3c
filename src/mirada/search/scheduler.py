"""One scheduler for all who search: requests in, futures out. All about batches is decided here, and nowhere else.

    scheduler = Scheduler(decoder, device=device, vocabulary=len(tokenizer), workers=2, most_waiting=1000)
    future = scheduler.submit(Request(ids, prefix, number), options)     # from any thread; at once
    outputs = future.result(timeout=10)                                  # list[Hypothesis], best first
    future.cancel()                                                      # its place is free with the next step

`submit` never waits: it raises QueueFullError where `most_waiting` requests wait already, and DataError for a prefix
that no output can begin with. Futures are those of `concurrent.futures`: `asyncio.wrap_future(future)` awaits one, and
cancelling that cancels this. Requests with equal options share steps, and a new one joins a batch that runs, where the
decoder can have that (all but the plain Transformer); batches of different options take turns. Equal requests are
searched once. An error of the decoder goes to
the futures of the batch, and the next batch begins afresh. A batch that is too big for the memory is halved and
searched again; one request alone that is too big gets a DataError.

`search` is for a list: it waits, gives results in the order of the requests, and on Ctrl-C, or an error, cancels what
is left and returns when nothing of it runs any more.

Work is done by threads of the scheduler alone, never by the caller's, so a copy of the process made by `fork` has a
scheduler that works (what the parent waits for, only the parent gets). They end with the scheduler.
"""

from __future__ import annotations

import os
import time
import weakref
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial

import torch

from mirada.config.options import SearchConfig
from mirada.data.vocabulary import EOS
from mirada.search.continuous import FULL
from mirada.search.decode import check_prefix
from mirada.search.decoder import Decoder
from mirada.search.queue import (
    MOST_SENTENCES,
    Capacity,
    Lane,
    Outputs,
    Parcel,
    QueueFullError,
    Request,
    Task,
    Waiter,
    automatic,
)
from mirada.search.run import Shared, Worker
from mirada.search.waiting import Together
from mirada.search.workers import own_threads
from mirada.texts import output_limit

__all__ = ["QueueFullError", "Request", "Scheduler", "search_all", "with_end"]

FILLING = 10**9  # products of a step from which on, of a small model, its rows are not faster together


def with_end(ids: list[int], most: int) -> list[int]:
    """A source as the model reads it: cut to `most` tokens, then </s>."""
    return [*ids[:most], EOS]


class Scheduler:
    """Searches with one decoder for many callers; see the module's own lines for how to use it.

    `workers` batches at most run side by side, each in a thread with its share of the cores. `vocabulary` is the number
    of target tokens: it decides how large a batch is where no `batch_size` is given; `weights` those of the model: they
    decide how many rows fill a step, and their bytes whether the few rows of one have several threads.
    """

    def __init__(
        self,
        decoder: Decoder,
        *,
        device: torch.device,
        vocabulary: int,
        weights: int = 0,
        weight_bytes: int = 0,
        workers: int = 1,
        most_waiting: int | None = None,
    ):
        self.vocabulary, self.workers, self.most_waiting = vocabulary, workers, most_waiting
        self._full = max(FULL, FILLING // weights) if weights else FULL
        self._weight_bytes = weight_bytes
        self._begin(decoder, device)
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=partial(_begin_again, weakref.ref(self)))

    def _begin(self, decoder: Decoder, device: torch.device) -> None:
        self._shared = Shared(decoder, device, self.workers, self._weight_bytes)
        self._threads = [ThreadPoolExecutor(1, thread_name_prefix="mirada") for _ in range(self.workers)]

    def submit(
        self,
        request: Request,
        options: SearchConfig,
        *,
        batch_size: int | None = None,
        with_attention: bool = False,
    ) -> Future[Outputs]:
        """The future outputs of one request, best first."""
        return self.submit_all([request], options, batch_size=batch_size, with_attention=with_attention)[0]

    def submit_all(
        self,
        requests: Sequence[Request],
        options: SearchConfig,
        *,
        batch_size: int | None = None,
        with_attention: bool = False,
    ) -> list[Future[Outputs]]:
        """The same of several: all are taken, or none."""
        futures = [Future[Outputs]() for _ in requests]
        tasks = self._add(requests, options, batch_size, with_attention, futures, bounded=True)
        for future, task in zip(futures, tasks, strict=True):
            future.add_done_callback(partial(self._cancelled, task))
        return futures

    def watch(self, function: Callable[[int], object]) -> None:
        """Let a function hear how many requests share a step, whenever new ones have joined."""
        self._shared.watch = function

    @property
    def waiting(self) -> int:
        """Requests that wait: a batch has none of them yet."""
        return self._shared.queue.waiting

    def search(
        self,
        requests: Sequence[Request],
        options: SearchConfig,
        *,
        batch_size: int | None = None,
        with_attention: bool = False,
    ) -> list[Outputs]:
        """The outputs of every request, in the order of the requests; raises the first error in that order.

        `batch_size` sentences share a step at most; None: as many as are fast and fit (queue.automatic).
        """
        together = Together(len(requests))
        tasks = self._add(requests, options, batch_size, with_attention, together.answers, bounded=False)
        try:
            return together.wait()
        except BaseException:
            for task in tasks:
                self._give_up(task)
            while any(task.wanted == 0 and not task.left for task in tasks):
                time.sleep(0.001)  # a step at most
            raise

    def _add(
        self,
        requests: Sequence[Request],
        options: SearchConfig,
        batch_size: int | None,
        with_attention: bool,
        waiters: Sequence[Waiter],
        *,
        bounded: bool,
    ) -> list[Task]:
        for request in requests:
            check_prefix(f"line {request.number + 1}", request.prefix)
        share = MOST_SENTENCES if bounded else -(-len(requests) // (2 * self.workers))
        by_itself = automatic(self.vocabulary, options, share)
        capacity = by_itself if batch_size is None else Capacity(batch_size, 1 << 62)
        spelling = next((request.rest.spelling for request in requests if request.rest), None)
        lane = Lane(_without_lengths(options), capacity, with_attention, spelling)
        threads, shared = own_threads(), self._shared
        limits = [output_limit(len(request.source) - 1, options) for request in requests]
        with shared.lock:
            if bounded and self.most_waiting is not None and shared.queue.waiting + len(requests) > self.most_waiting:
                raise QueueFullError(f"{shared.queue.waiting} requests wait already; try again later")
            tasks, parcels = shared.queue.add(requests, limits, lane, self.workers, full=self._full, dealt=not bounded)
            for task, waiter in zip(tasks, waiters, strict=True):
                task.wanted += 1
                task.waiters.append(waiter)
            shared.threads = threads
            shared.changes += 1
            for parcel in parcels:
                self._hire(parcel)
        return tasks

    def _hire(self, parcel: Parcel) -> None:
        """Start a worker for a parcel, unless all are at work, one has nothing else, or a batch has room for it.

        It is the first thread that is free, so that requests one after the other have the same one: each of torch's
        callers has helpers of its own, which stay busy for a while after a product.
        """
        shared = self._shared
        joins = parcel.siblings == 1 and any(worker.reserve(parcel) for worker in shared.working)
        idle = sum(worker.idle for worker in shared.working)
        if len(shared.working) < self.workers and not joins and idle < shared.queue.parcels:
            place = min(set(range(self.workers)) - {worker.place for worker in shared.working})
            shared.working.append(worker := Worker(shared, place))
            shared.changes += 1
            self._threads[place].submit(worker.work)

    def _cancelled(self, task: Task, future: Future[Outputs]) -> None:
        """A future is done; if because it was cancelled, nobody waits for its outputs."""
        if future.cancelled():
            self._give_up(task)
            future.set_running_or_notify_cancel()

    def _give_up(self, task: Task) -> None:
        """One who waited does no more: where nobody else does, the task is dropped."""
        shared = self._shared
        with shared.lock:
            task.wanted -= 1
            shared.changes += 1
            if not task.wanted and not task.taken:
                shared.queue.waiting -= 1
                task.left = True
            if not task.wanted:
                task.forget()


def search_all(
    decoder: Decoder,
    requests: Sequence[Request],
    options: SearchConfig,
    *,
    batch_size: int,
    device: torch.device,
    with_attention: bool = False,
    workers: int = 1,
) -> list[Outputs]:
    """Search once, with a scheduler of its own."""
    scheduler = Scheduler(decoder, device=device, vocabulary=1, workers=workers)
    return scheduler.search(requests, options, batch_size=batch_size, with_attention=with_attention)


def _without_lengths(options: SearchConfig) -> SearchConfig:
    """Options without those that each request has its own limit from."""
    return options.model_copy(update=dict.fromkeys(("max_output_length", "max_length_ratio", "max_length_offset")))


def _begin_again(reference: weakref.ref[Scheduler]) -> None:
    """In a copy of the process no thread but one is left."""
    if (scheduler := reference()) is not None:
        scheduler._begin(scheduler._shared.decoder, scheduler._shared.device)
