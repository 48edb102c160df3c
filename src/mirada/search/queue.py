"""What waits to be searched: tasks in parcels, parcels by the order in which they came."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Sequence
from concurrent.futures import InvalidStateError
from contextlib import suppress
from itertools import chain, count
from typing import NamedTuple, Protocol

from mirada.config.options import SearchConfig
from mirada.data.beginnings import Rest, Spelling
from mirada.errors import MiradaError
from mirada.search.step import Hypothesis

# An automatic batch: numbers that a step's logits hold, sentences, and padded source positions, at most.
LOGITS, MOST_SENTENCES, POSITIONS = 1 << 22, 512, 1 << 14
LEAST_SENTENCES = 64  # of an automatic batch, where there are so many

Outputs = list[Hypothesis]
OVERTAKING = 64  # requests that may join a batch past older ones with other options that no batch has a turn for


class QueueFullError(MiradaError):
    """So many requests wait that another one is refused."""


class Request(NamedTuple):
    """One source to be searched: ids with </s>, the forced beginning of its output, and a number for sampling.

    `copies`: what each source token would write (data/copying.py), for a model that copies. `others`: the source in the
    tokens of each further model of an ensemble, where they are not those of the first. `rest`: what the tokens behind
    the forced ones must spell (data/beginnings.py).
    """

    source: list[int]
    prefix: list[int]
    number: int
    copies: tuple[int, ...] = ()
    others: tuple[tuple[int, ...], ...] = ()
    rest: Rest | None = None


class Capacity(NamedTuple):
    """How large a batch may be: sentences, and source positions with padding."""

    sentences: int
    positions: int

    def places(self, longest: int) -> int:
        """How many sentences, where the longest source has so many tokens."""
        return max(1, min(self.sentences, self.positions // longest))


def automatic(vocabulary: int, options: SearchConfig, share: int = MOST_SENTENCES) -> Capacity:
    """Capacity that is fast and bounds the memory: a step's logits, sentences × hypotheses × vocabulary, stay few.

    `share`: sentences that are half of a worker's part, so that none is done long before the others.
    """
    most = min(MOST_SENTENCES, max(LEAST_SENTENCES, share))
    return Capacity(max(1, min(most, LOGITS // (_beams(options) * vocabulary))), POSITIONS)


class Lane(NamedTuple):
    """What requests must have in common to share steps; how long an output may be is each one's own."""

    options: SearchConfig
    capacity: Capacity
    with_attention: bool
    spelling: Spelling | None = None  # where some outputs begin with a text that ends inside a word


Key = tuple[object, ...]
Known = dict[Key, "Task"]  # those of a lane on their way, by what makes results equal


class Waiter(Protocol):
    """Who waits for the outputs of a request: a future, or one of those who wait together (waiting.py)."""

    def set_result(self, outputs: Outputs, /) -> None:
        """They are there."""

    def set_exception(self, error: BaseException, /) -> None:
        """They will never be."""


class Task:
    """A request on its way, and all who wait for it."""

    __slots__ = ("home", "key", "left", "limit", "number", "request", "taken", "waiters", "wanted")

    def __init__(self, number: int, request: Request, limit: int, *, key: Key, home: Known):
        self.number, self.request, self.limit = number, request, limit  # of tokens of an output
        self.key, self.home = key, home
        self.waiters: list[Waiter] = []
        self.wanted = 0  # waiters that have not given up
        self.taken = False  # a worker has it
        self.left = False  # nobody works on it any more

    def forget(self) -> None:
        """It is done, or nobody wants it: an equal request is a new task."""
        if self.home.get(self.key) is self:
            del self.home[self.key]

    def finish(self, outputs: Outputs) -> None:
        """Give the outputs to all who wait."""
        self.left = True
        for waiter in self.waiters:
            with suppress(InvalidStateError):  # a future that was cancelled meanwhile
                waiter.set_result(list(outputs))

    def fail(self, error: BaseException) -> None:
        """Give an error to all who wait."""
        self.left = True
        for waiter in self.waiters:
            with suppress(InvalidStateError):
                waiter.set_exception(error)


class Parcel(NamedTuple):
    """Tasks that came together, longest source first, for one worker; `siblings` of them came together."""

    number: int  # the older, the smaller
    lane: Lane
    siblings: int
    tasks: deque[Task]


class Queue:
    """All parcels that wait. Whoever uses it holds the scheduler's lock."""

    def __init__(self) -> None:
        self.waiting = 0  # tasks that no worker has and somebody wants
        self._parcels: dict[Lane, deque[Parcel]] = {}  # of each lane that has some, the oldest first
        self._numbers = count()
        self._lanes: dict[Lane, Known] = {}

    def add(
        self, requests: Sequence[Request], limits: Sequence[int], lane: Lane, workers: int, *, full: int, dealt: bool
    ) -> tuple[list[Task], list[Parcel]]:
        """The task of each request, equal ones in common with those on their way, and the parcels of the new ones.

        Similar lengths share a batch, longest first. Batches of more than `full` rows make a parcel each: workers take
        one after the other, each as wide as its own sources. Of smaller ones every so manieth goes to one parcel a
        worker, so that sentences join where others are done. Fewer batches than workers are `dealt` out to all, if that
        is asked for: no other caller's can join them then. What shares a step with what, and so how numbers are
        rounded, is decided here: for those who search alone it is the same every time.
        """
        self._lanes = {known: tasks for known, tasks in self._lanes.items() if tasks}
        home = self._lanes.setdefault(lane, {})
        tasks, new = [], []
        for request, limit in zip(requests, limits, strict=True):
            key = _key(request, limit, sampled=lane.options.sample)
            task = home.get(key)
            if task is None:
                task = home[key] = Task(next(self._numbers), request, limit, key=key, home=home)
                new.append(task)
            tasks.append(task)
        new.sort(key=lambda task: -len(task.request.source))
        batches = list(_batches(new, lane.capacity))
        if dealt and len(batches) < workers:
            batches = [new[i::workers] for i in range(min(workers, len(new)))]
        drained = bool(batches) and len(batches[0]) * _beams(lane.options) > full
        siblings = len(batches) if drained else min(workers, len(batches))
        parcels = [
            Parcel(next(self._numbers), lane, siblings, deque(chain.from_iterable(batches[i::siblings])))
            for i in range(siblings)
        ]
        if parcels:
            self._parcels.setdefault(lane, deque()).extend(parcels)
        self.waiting += len(new)
        return tasks, parcels

    @property
    def parcels(self) -> int:
        """How many wait."""
        return sum(map(len, self._parcels.values()))

    def take(self, lanes: Collection[Lane] = ()) -> Parcel | None:
        """The oldest parcel; for a worker that has batches of some lanes, of another lane, and one that came alone."""
        oldest = self._oldest(lanes)
        return None if oldest is None or (lanes and oldest.siblings > 1) else self._taken(oldest)

    def join(self, lane: Lane, lanes: Collection[Lane], overtaking: int) -> Parcel | None:
        """The oldest parcel of a lane, for a batch that runs, if it came alone.

        Where older ones wait for which the worker has no batch, only if it has `overtaking` tasks at most.
        """
        mine = self._parcels[lane][0] if lane in self._parcels else None
        if mine is None or mine.siblings > 1 or (self.behind(mine, lanes) and len(mine.tasks) > overtaking):
            return None
        return self._taken(mine)

    def coming(self, lane: Lane) -> int:
        """How many tasks of a lane wait, at least: those of its oldest parcel, and one of each other."""
        parcels = self._parcels.get(lane)
        return len(parcels[0].tasks) + len(parcels) - 1 if parcels else 0

    def behind(self, parcel: Parcel, lanes: Collection[Lane]) -> bool:
        """Whether older ones than this wait, of other lanes than some."""
        oldest = self._oldest(lanes)
        return oldest is not None and oldest.number < parcel.number

    def others_than(self, lane: Lane) -> bool:
        """Whether parcels of other lanes wait."""
        return len(self._parcels) > (lane in self._parcels)

    def _oldest(self, lanes: Collection[Lane]) -> Parcel | None:
        """The oldest parcel of all lanes but some."""
        return min((parcels[0] for lane, parcels in self._parcels.items() if lane not in lanes), default=None)

    def _taken(self, parcel: Parcel) -> Parcel:
        """Take the first parcel of its lane."""
        parcels = self._parcels[parcel.lane]
        parcels.popleft()
        if not parcels:
            del self._parcels[parcel.lane]
        return parcel

    def give_back(self, parcel: Parcel) -> None:
        """A parcel that was taken waits again, before the others of its lane."""
        self._parcels.setdefault(parcel.lane, deque()).appendleft(parcel)

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


def _key(request: Request, limit: int, *, sampled: bool) -> Key:
    """Equal requests have one result in common; when sampling the number makes a difference."""
    number = request.number if sampled else -1
    return (tuple(request.source), tuple(request.prefix), request.copies, request.others, request.rest, limit, number)


def _beams(options: SearchConfig) -> int:
    """Rows of a sentence in a step."""
    return options.n_best if options.sample else options.beam_size


def _batches(tasks: Sequence[Task], capacity: Capacity) -> Iterable[list[Task]]:
    start = 0
    while start < len(tasks):
        size = capacity.places(len(tasks[start].request.source))
        yield list(tasks[start : start + size])
        start += size
