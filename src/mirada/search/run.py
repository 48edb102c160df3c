"""What a scheduler's worker does: take a parcel, and let a batch run until it and all who joined are done."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from threading import Lock

import torch

from mirada.data.batches import pad, pad_sources
from mirada.devices import out_of_memory
from mirada.errors import DataError
from mirada.search.continuous import Done, NewRequests, RunningBatch
from mirada.search.decode import Sentences, rules_of, running_batch
from mirada.search.decoder import ContinuousDecoder, Decoder
from mirada.search.memory import widened
from mirada.search.queue import OVERTAKING, Lane, Parcel, Queue, Task
from mirada.search.step import Hypothesis
from mirada.search.workers import use_threads

REST = 8  # steps of a batch, at least, from one joining to the next: to encode a sentence alone costs as much as two


def _nobody(size: int) -> None:
    """Nobody watches."""


@dataclass
class Shared:
    """What a scheduler and its workers share; all but the decoder is touched under the lock."""

    decoder: Decoder
    device: torch.device
    lock: Lock = field(default_factory=Lock)
    queue: Queue = field(default_factory=Queue)
    working: list[Worker] = field(default_factory=list)
    threads: int = 1  # of torch, for all workers together
    watch: Callable[[int], object] = _nobody  # hears how large a batch is


class Worker:
    """A worker's batch, and the parcel that it is filled from. What is shared is touched under the scheduler's lock."""

    def __init__(self, shared: Shared):
        self.shared = shared
        self.parcel: Parcel | None = None
        self.tasks: dict[int, Task] = {}  # of the batch
        self.free = 0  # places that others may still take
        self.most = 1 << 62  # sentences that the memory has room for, as far as is known
        self.overtaking = 0  # tasks that may still join past older ones of other lanes
        self.rest = 0  # steps until others may join

    def reserve(self, parcel: Parcel) -> bool:
        """Keep places for a parcel, if there are as many and it can join."""
        mine = self.parcel
        if mine is None or mine.tasks or mine.lane != parcel.lane or self.free < len(parcel.tasks):
            return False
        self.free -= len(parcel.tasks)
        return True

    def work(self) -> None:
        """Search parcel after parcel, until none waits."""
        with torch.inference_mode():
            while (lane := self._lane()) is not None:
                too_big = False
                try:
                    self._follow(lane)
                except Exception as error:
                    too_big = out_of_memory(error)
                    if not too_big:
                        self._fail(error, list(self.tasks.values()))
                if too_big:  # out of the handler: what the failed attempt held is free again
                    self._halve()

    def _lane(self) -> Lane | None:
        """Of the parcel that is to be searched next; without one the worker is done."""
        shared = self.shared
        with shared.lock:
            if self.parcel is None or not self.parcel.tasks:
                self.parcel, self.most = shared.queue.take(), 1 << 62
            if self.parcel is None:
                shared.working.remove(self)
            return None if self.parcel is None else self.parcel.lane

    def _follow(self, lane: Lane) -> None:
        """Let a batch run until its parcel and all who joined are done."""
        decoder = self.shared.decoder
        insert = decoder.insert if isinstance(decoder, ContinuousDecoder) else None
        batch = running_batch(decoder.step, insert, lane.options, with_attention=lane.with_attention)
        self.overtaking, self.rest = OVERTAKING, 0
        while True:
            self._drop_unwanted(batch)
            new, places = self._arrivals(batch, lane)
            if not new and batch.empty:
                return
            done: list[Done] = []
            if not new:
                done = batch.step(places)
                self.rest -= 1
            elif (arrived := self._read(new, lane)) is not None:
                done = batch.insert(arrived, places)
                self.rest = REST
                self.shared.watch(len(self.tasks))
            self._finish(done)

    def _drop_unwanted(self, batch: RunningBatch) -> None:
        """Drop the tasks that everybody has given up."""
        with self.shared.lock:
            unwanted = [task for task in self.tasks.values() if not task.wanted]
            for task in unwanted:
                del self.tasks[task.number]
        batch.drop({task.number for task in unwanted})
        for task in unwanted:
            task.left = True

    def _arrivals(self, batch: RunningBatch, lane: Lane) -> tuple[list[Task], int]:
        """Take as many tasks as the batch has room for; also how many sentences may share a step."""
        shared, new = self.shared, list[Task]()
        with shared.lock:
            room = min(batch.room(self._places(lane, [])), self.most - len(self.tasks))
            while len(new) < room and (task := self._next(lane, new)) is not None:
                new.append(task)
            self.tasks |= {task.number: task for task in new}
            places = self._places(lane, list(self.tasks.values()))
            self.free = max(0, places - len(self.tasks)) if batch.can_grow else 0
            siblings = self.parcel.siblings if self.parcel is not None else 1
            threads = max(1, shared.threads // max(len(shared.working), siblings))
        use_threads(threads)
        return new, places

    def _next(self, lane: Lane, new: Sequence[Task]) -> Task | None:
        """The parcel's next task, if it can be read with the other new ones; once it is empty, the next parcel's."""
        queue = self.shared.queue
        while self.parcel is not None:
            if (task := queue.next(self.parcel)) is not None:
                if len(new) < self._places(lane, [*new, task]):
                    return task
                queue.put_back(self.parcel, [task])
                return None
            if (self.rest > 0 and self.tasks) or (joining := queue.join(lane, self.overtaking)) is None:
                return None
            self.overtaking -= len(joining.tasks) if queue.behind(joining) else 0
            self.parcel = joining
        return None

    def _places(self, lane: Lane, tasks: Sequence[Task]) -> int:
        """How many sentences may share a step with these."""
        longest = max((len(task.request.source) for task in tasks), default=1)
        return min(self.most, lane.capacity.places(longest))

    def _read(self, tasks: Sequence[Task], lane: Lane) -> NewRequests | None:
        """Encode new sources. An error that is not the memory's is theirs alone: None."""
        try:
            return self._encoded(tasks, lane)
        except Exception as error:
            if out_of_memory(error):
                raise
            self._fail(error, tasks)
            return None

    def _encoded(self, tasks: Sequence[Task], lane: Lane) -> NewRequests:
        """Encode new sources, and lay out what their searches must keep to."""
        decoder, device = self.shared.decoder, self.shared.device
        requests = [task.request for task in tasks]
        limits = torch.tensor([task.limit for task in tasks])
        prefix = pad([request.prefix for request in requests], device)[0]
        rests = [request.rest.text if request.rest else "" for request in requests]
        rules = rules_of(Sentences(limits.to(device), prefix, None, rests, lane.spelling), lane.options)
        copies = [pad([request.copies for request in requests], device)[0]] if requests[0].copies else []
        sources, others = [request.source for request in requests], [request.others for request in requests]
        memory = decoder.encode(*pad_sources(sources, others, device), *copies)
        state = decoder.start(memory)
        seeds = [request.number for request in requests]
        return NewRequests([task.number for task in tasks], seeds, rules, widened(memory), state)

    def _finish(self, done: Sequence[Done]) -> None:
        if not done:
            return
        with self.shared.lock:
            finished = [(self.tasks.pop(number), outputs) for number, outputs in done if number in self.tasks]
            for task, _ in finished:
                task.forget()
        for task, outputs in finished:
            task.finish([_cut(output, len(task.request.source)) for output in outputs])

    def _fail(self, error: BaseException, tasks: Sequence[Task]) -> None:
        """Some tasks end with an error."""
        with self.shared.lock:
            for task in tasks:
                self.tasks.pop(task.number, None)
                task.forget()
        for task in tasks:
            task.fail(error)

    def _halve(self) -> None:
        """A batch that was too big for the memory is searched again, half of it at a time."""
        if len(self.tasks) == 1:
            [task] = self.tasks.values()
            name = f"line {task.request.number + 1} ({len(task.request.source) - 1} tokens)"
            self._fail(DataError(f"{name}: too little memory even for this one alone"), [task])
            return
        with self.shared.lock:
            tasks, self.tasks = list(self.tasks.values()), {}
            self.most = max(1, len(tasks) // 2)
            if self.parcel is not None:
                self.shared.queue.put_back(self.parcel, tasks)


def _cut(output: Hypothesis, width: int) -> Hypothesis:
    """Attention over the source alone, without the padding."""
    return output if output.attention is None else replace(output, attention=output.attention[:, :width])
