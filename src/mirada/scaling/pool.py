"""Workers and what they are given: an item in, a future out. A worker that dies is replaced, its item done again.

What workers do is `make`: called once in each, with the worker's environment, it gives the function that is called with
every item, so a model is loaded once a worker. It travels by pickle, between processes that belong together only.
"""

from __future__ import annotations

import pickle
import traceback
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, wait
from contextlib import suppress
from queue import Empty, SimpleQueue
from threading import Thread
from types import TracebackType
from typing import Any, NamedTuple, Protocol, Self

from mirada.errors import MiradaError

Do = Callable[[Any], Any]
Make = Callable[[], Do]
TRIES = 3  # of an item whose workers die
ADVICE = "with too little memory, fewer --workers or a smaller --batch-size help"


class WorkerDiedError(Exception):
    """A worker ended in the middle of its work; the message says how."""


class LostWorkError(MiradaError):
    """An item was given up, because worker after worker died of it."""


class Outcome(NamedTuple):
    """What became of an item: a value, or what `make` or the work on it raised."""

    value: Any
    error: Exception | None


class Replaceable(Protocol):
    """A worker: it can be started again after it has died."""

    def start(self) -> None:
        """Make it run, unless it does, and wait until it has a place to run on; raises WorkerDiedError."""

    def answer(self, item: Any) -> Outcome:
        """What becomes of an item; raises WorkerDiedError."""

    def stop(self) -> None:
        """End it, from any thread."""


class Workplace(Protocol):
    """Where items are done: in this process (Here) or by workers (Pool)."""

    most: int  # items that are under way at a time, so that memory is constant

    def submit(self, item: Any) -> Future[Any]:
        """Have an item done; `str(item)` is what messages call it."""

    def __enter__(self) -> Self: ...

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: Any) -> None: ...


class Here:
    """Work in this process: an item is done when it is submitted."""

    most = 1

    def __init__(self, make: Make):
        self._do = make()

    def submit(self, item: Any) -> Future[Any]:
        """Do it now."""
        done: Future[Any] = Future()
        try:
            done.set_result(self._do(item))
        except Exception as error:
            done.set_exception(error)
        return done

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: Any) -> None:
        """Nothing has to be ended."""


class QueuedItem(NamedTuple):
    """An item that somebody waits for."""

    item: Any
    future: Future[Any]


class Pool:
    """Workers that share a queue of items. `say` receives a line for each that has died."""

    def __init__(self, workers: list[Replaceable], say: Callable[[str], None]):
        self.most = 2 * len(workers) + 1  # one done, one waiting, and what the reader of results has in hand
        self._workers, self._say, self._closing = workers, say, False
        self._tasks: SimpleQueue[QueuedItem | None] = SimpleQueue()
        self._threads = [Thread(target=self._run, args=(worker,), daemon=True) for worker in workers]
        for thread in self._threads:
            thread.start()

    def submit(self, item: Any) -> Future[Any]:
        """Queue an item for the first worker that is free."""
        task = QueuedItem(item, Future())
        self._tasks.put(task)
        return task.future

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End all workers; what is not done yet is dropped."""
        self._closing = True
        with suppress(Empty):
            while True:
                self._tasks.get_nowait()
        for worker in self._workers:
            self._tasks.put(None)
            worker.stop()
        for thread in self._threads:
            thread.join(timeout=60)  # a training saves before it ends

    def _run(self, worker: Replaceable) -> None:
        """Take items as long as there are any; none is taken before the worker has its place on a busy cluster."""
        with suppress(Exception):  # it comes again with an item
            worker.start()
        while (task := self._tasks.get()) is not None:
            self._do(worker, task)
        worker.stop()  # one that was started while all were ended

    def _do(self, worker: Replaceable, task: QueuedItem) -> None:
        """Have an item done, by as many workers as it takes."""
        outcome = Outcome(None, None)
        for tries in range(1, TRIES + 1):
            try:
                worker.start()
                if self._closing:
                    return
                outcome = worker.answer(task.item)
            except WorkerDiedError as died:
                if self._closing:
                    return
                if tries < TRIES:
                    self._say(f"{task.item}: the worker {died}; a new one does this again (try {tries + 1} of {TRIES})")
                    continue
                outcome = Outcome(
                    None, LostWorkError(f"{task.item}: {TRIES} workers died of this, the last {died}; {ADVICE}")
                )
            except Exception as error:  # what cannot be sent
                outcome = Outcome(None, error)
            break
        if outcome.error is None:
            task.future.set_result(outcome.value)
        else:
            task.future.set_exception(outcome.error)


def in_order(place: Workplace, items: Iterable[Any], *, most: int | None = None) -> Iterator[tuple[Any, Future[Any]]]:
    """Items and what became of each, in their order; at most `most` are under way (None: as the place likes).

    Where `items` raises MiradaError, what came before is given first.
    """
    waiting: deque[tuple[Any, Future[Any]]] = deque()
    most = most or place.most
    source, failed = iter(items), None
    while True:
        try:
            item = next(source)
        except StopIteration:
            break
        except MiradaError as error:
            failed = error
            break
        waiting.append((item, place.submit(item)))
        while waiting and (len(waiting) >= most or waiting[0][1].done()):
            yield _done(*waiting.popleft())
    while waiting:
        yield _done(*waiting.popleft())
    if failed is not None:
        raise failed


def _done(item: Any, future: Future[Any]) -> tuple[Any, Future[Any]]:
    wait([future])
    return item, future


class Answering:
    """What runs in a worker of whatever kind: `make` at the first item, its function at every one."""

    def __init__(self, make: Make):
        self._make = make
        self._do: Do | None = None

    def __call__(self, item: Any) -> Outcome:
        """The outcome of an item, its error one that can travel."""
        try:
            if self._do is None:
                self._do = self._make()
            return Outcome(self._do(item), None)
        except Exception as error:
            if not isinstance(error, MiradaError):
                error.add_note("".join(traceback.format_exception(error)))
            return Outcome(None, _portable(error))


def _portable(error: Exception) -> Exception:
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:  # made of what is no text
        return RuntimeError(f"{type(error).__name__}: {error}")
    return error
