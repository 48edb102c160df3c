"""What waits to be searched: tasks in parcels, parcels by the order in which they came."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from itertools import chain, count
from typing import NamedTuple

from mirada.config.options import SearchConfig
from mirada.errors import MiradaError
from mirada.search.step import Hypothesis

# An automatic batch: numbers that a step's logits hold, sentences, and padded source positions, at most.
LOGITS, MOST_SENTENCES, POSITIONS = 1 << 22, 512, 1 << 14

Outputs = list[Hypothesis]


class QueueFullError(MiradaError):
    """So many requests wait that another one is refused."""


class Request(NamedTuple):
    """One source to be searched: ids with </s>, the forced beginning of its output, and a number for sampling.

    `copies`: what each source token would write (data/copying.py), for a model that copies. `others`: the source in the
    tokens of each further model of an ensemble, where they are not those of the first.
    """

    source: list[int]
    prefix: list[int]
    number: int
    copies: tuple[int, ...] = ()
    others: tuple[tuple[int, ...], ...] = ()


class Capacity(NamedTuple):
    """How large a batch may be: sentences, and source positions with padding."""

    sentences: int
    positions: int

    def places(self, longest: int) -> int:
        """How many sentences, where the longest source has so many tokens."""
        return max(1, min(self.sentences, self.positions // longest))


def automatic(vocabulary: int, options: SearchConfig) -> Capacity:
    """Capacity that is fast and bounds the memory: a step's logits, sentences × hypotheses × vocabulary, stay few."""
    hypotheses = options.n_best if options.sample else options.beam_size
    return Capacity(max(1, min(MOST_SENTENCES, LOGITS // (hypotheses * vocabulary))), POSITIONS)


class Lane(NamedTuple):
    """What requests must have in common to share steps."""

    options: SearchConfig
    capacity: Capacity
    with_attention: bool


Key = tuple[object, ...]
Known = dict[Key, "Task"]  # those of a lane on their way, by what makes results equal


class Task:
    """A request on its way, and all who wait for it."""

    __slots__ = ("futures", "home", "left", "number", "request", "taken", "wanted")

    def __init__(self, number: int, request: Request, home: Known):
        self.number, self.request, self.home = number, request, home
        self.futures: list[Future[Outputs]] = []
        self.wanted = 0  # futures that nobody cancelled
        self.taken = False  # a worker has it
        self.left = False  # nobody works on it any more

    def forget(self, options: SearchConfig) -> None:
        """It is done, or nobody wants it: an equal request is a new task."""
        if self.home.get(key := _key(self.request, options)) is self:
            del self.home[key]

    def finish(self, outputs: Outputs) -> None:
        """Give the outputs to all who wait."""
        self.left = True
        for future in self.futures:
            with suppress(InvalidStateError):  # cancelled meanwhile
                future.set_result(list(outputs))

    def fail(self, error: BaseException) -> None:
        """Give an error to all who wait."""
        self.left = True
        for future in self.futures:
            with suppress(InvalidStateError):
                future.set_exception(error)


class Parcel(NamedTuple):
    """Tasks that came together, longest source first, for one worker; `siblings` of them came together."""

    lane: Lane
    siblings: int
    tasks: deque[Task]


class Queue:
    """All parcels that wait. Whoever uses it holds the scheduler's lock."""

    def __init__(self) -> None:
        self.parcels: deque[Parcel] = deque()
        self.waiting = 0  # tasks that no worker has and somebody wants
        self._numbers = count()
        self._lanes: dict[Lane, Known] = {}

    def add(self, requests: Sequence[Request], lane: Lane, workers: int) -> tuple[list[Task], list[Parcel]]:
        """The task of each request, equal ones in common with those on their way, and the parcels of the new ones.

        Similar lengths share a batch, longest first. Every so manieth batch goes to one parcel, so that parcels are
        equally long. What shares a step with what, and so how numbers are rounded, is decided here: for those who
        search alone it is the same every time.
        """
        self._lanes = {known: tasks for known, tasks in self._lanes.items() if tasks}
        home = self._lanes.setdefault(lane, {})
        tasks, new = [], []
        for request in requests:
            key = _key(request, lane.options)
            task = home.get(key)
            if task is None:
                task = home[key] = Task(next(self._numbers), request, home)
                new.append(task)
            tasks.append(task)
        new.sort(key=lambda task: -len(task.request.source))
        batches = list(_batches(new, lane.capacity))
        siblings = min(workers, len(batches))
        parcels = [Parcel(lane, siblings, deque(chain.from_iterable(batches[i::siblings]))) for i in range(siblings)]
        self.parcels += parcels
        self.waiting += len(new)
        return tasks, parcels

    def take(self, lane: Lane | None) -> Parcel | None:
        """The oldest parcel; with a lane given, only if it came alone and is of that lane, so that it can join."""
        if not self.parcels:
            return None
        oldest = self.parcels[0]
        if lane is not None and (oldest.siblings > 1 or oldest.lane != lane):
            return None
        return self.parcels.popleft()

    def next(self, parcel: Parcel) -> Task | None:
        """The next of a parcel's tasks that somebody wants."""
        while parcel.tasks:
            if (task := parcel.tasks.popleft()).wanted:
                task.taken = True
                self.waiting -= 1
                return task
        return None

    def put_back(self, parcel: Parcel, tasks: Sequence[Task]) -> None:
        """Tasks that a worker had are to be taken again, before the others of their parcel."""
        parcel.tasks.extendleft(reversed(tasks))
        self.waiting += len(tasks)
        for task in tasks:
            task.taken = False


def _key(request: Request, options: SearchConfig) -> Key:
    """Equal requests have one result in common; when sampling the number makes a difference."""
    number = request.number if options.sample else -1
    return (tuple(request.source), tuple(request.prefix), request.copies, request.others, number)


def _batches(tasks: Sequence[Task], capacity: Capacity) -> Iterable[list[Task]]:
    start = 0
    while start < len(tasks):
        size = capacity.places(len(tasks[start].request.source))
        yield list(tasks[start : start + size])
        start += size
