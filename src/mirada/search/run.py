"""What a scheduler's worker does: let a batch run, filled from a parcel and by those who join, or several in turn."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from threading import Lock

import torch

from mirada.data.batches import pad, pad_sources
from mirada.devices import out_of_memory
from mirada.errors import DataError
from mirada.kernels.private import without_fuser
from mirada.search.continuous import Done, NewRequests
from mirada.search.decode import Sentences, rules_of, running_batch
from mirada.search.decoder import ContinuousDecoder, Decoder
from mirada.search.memory import widened
from mirada.search.queue import OVERTAKING, Lane, Parcel, Queue, Task
from mirada.search.step import Hypothesis
from mirada.search.workers import use_threads

# Others join a running batch once they have waited through REST of its steps, if as many wait as are searched; if fewer
# do, through as many more, but never more than LONGEST: to encode one alone costs as much as to encode many.
REST, LONGEST = 8, 32
TURN = 32  # steps of a batch, at least, and two a sentence, before that of another lane has its turn
TRACKS = 4  # batches that take turns; each holds memory
CREW = 16  # sentences from which on a step is large enough to be shared out among threads of torch's
CACHED = 1 << 24  # bytes of weights from which on reading them is what a step of few sentences takes


def _nobody(size: int) -> None:
    """Nobody watches."""


@dataclass
class Shared:
    """What a scheduler and its workers share; all but the decoder is touched under the lock."""

    decoder: Decoder
    device: torch.device
    workers: int  # at most
    weight_bytes: int = 0  # of the model
    lock: Lock = field(default_factory=Lock)
    queue: Queue = field(default_factory=Queue)
    working: list[Worker] = field(default_factory=list)
    threads: int = 1  # of torch, for all workers together
    changes: int = 0  # requests, those who gave up, workers: so often has one come or gone
    watch: Callable[[int], object] = _nobody  # hears how large a batch is


class Worker:
    """A thread's batches, one a lane, which take turns: while one runs, what may join the others comes together."""

    def __init__(self, shared: Shared, place: int):
        self.shared, self.place = shared, place  # among the threads
        self.tracks: list[Track] = []
        self.track: Track | None = None  # that has its turn, or had it last
        self.most, self.clock = TRACKS, count()

    @property
    def idle(self) -> bool:
        """Whether it has nothing to do, and will look what waits."""
        return not any(track.tasks or track.parcel.tasks for track in self.tracks)

    def reserve(self, parcel: Parcel) -> bool:
        """Keep places for a parcel, if one of the batches has as many and it can join."""
        return any(track.reserve(parcel) for track in self.tracks)

    def work(self) -> None:
        """Let one batch after the other run, until nothing waits."""
        with torch.inference_mode(), without_fuser():
            while (track := self._next()) is not None:
                too_big = False
                try:
                    track.run({other.lane for other in self.tracks})
                except Exception as error:
                    too_big = out_of_memory(error)
                    if not too_big:
                        track.fail(error)
                if too_big:  # out of the handler: what the failed attempt held is free again
                    self._make_room(track)

    def _next(self) -> Track | None:
        """The batch that has waited longest for its turn; without one the worker is done."""
        shared, tracks = self.shared, self.tracks
        with shared.lock:
            tracks[:] = [track for track in tracks if not track.done]
            while len(tracks) < self.most and (parcel := shared.queue.take({track.lane for track in tracks})):
                tracks.append(Track(shared, parcel, next(self.clock)))
            if not tracks:
                shared.working.remove(self)
                shared.changes += 1
                return None
            if self.track is not None:
                self.track.waits_since = next(self.clock)
            self.track = min(tracks, key=lambda track: track.waits_since)
            return self.track

    def _make_room(self, track: Track) -> None:
        """A batch that was too big for the memory is searched again: alone, or half of it at a time."""
        if len(self.tracks) == 1:
            track.halve()
            return
        track.put_back()
        with self.shared.lock:
            self.most = 1
            self.tracks.remove(track)
            self.shared.queue.give_back(track.parcel)


class Track:
    """The batch of one lane, and the parcel that it is filled from. What is shared is touched under the lock."""

    def __init__(self, shared: Shared, parcel: Parcel, waits_since: int):
        self.shared, self.parcel, self.lane = shared, parcel, parcel.lane
        self.waits_since, self.done = waits_since, False  # for its turn
        self.tasks: dict[int, Task] = {}  # of the batch
        self.free = 0  # places that others may still take
        self.most = 1 << 62  # sentences that the memory has room for, as far as is known
        self._begin()

    def _begin(self) -> None:
        """An empty batch."""
        decoder, lane = self.shared.decoder, self.lane
        insert = decoder.insert if isinstance(decoder, ContinuousDecoder) else None
        self._batch = running_batch(decoder.step, insert, lane.options, with_attention=lane.with_attention)
        self._places_given, self._looked_at = 0, -1  # by the last look at who waits, and what had changed until then
        self._overtaking = OVERTAKING  # tasks that may still join past older ones of lanes that have no batch
        self._since = LONGEST  # steps since others joined, or had their turn

    def reserve(self, parcel: Parcel) -> bool:
        """Keep places for a parcel, if there are as many and it can join."""
        if self.done or self.parcel.tasks or self.lane != parcel.lane or self.free < len(parcel.tasks):
            return False
        self.free -= len(parcel.tasks)
        return True

    def run(self, lanes: Collection[Lane]) -> None:
        """Make steps until all are done, or, where others wait, the turn is over; `lanes` are those of the worker."""
        steps, self._since = 0, LONGEST
        while steps < TURN or steps < 2 * len(self.tasks) or not self._others_wait(lanes):
            new = [] if self._unchanged() else self._arrivals(lanes)
            if not new and self._batch.empty:
                self.done = True
                return
            done: list[Done] = []
            if not new:
                done = self._batch.step(self._places_given)
                steps, self._since = steps + 1, self._since + 1
            elif (arrived := self._read(new)) is not None:
                done = self._batch.insert(arrived, self._places_given)
                self._since = 0
                self.shared.watch(len(self.tasks))
            self._finish(done)

    def _unchanged(self) -> bool:
        """Whether nobody has come or gone since the last look, and nobody who waits could join: no need of a lock."""
        could_join = self.shared.queue.waiting and self._batch.can_grow
        return self._looked_at == self.shared.changes and not could_join

    def _others_wait(self, lanes: Collection[Lane]) -> bool:
        """Whether the worker has another batch, or could begin one."""
        with self.shared.lock:
            return len(lanes) > 1 or self.shared.queue.others_than(self.lane)

    def _drop_unwanted(self) -> None:
        """Drop the tasks that everybody has given up."""
        with self.shared.lock:
            unwanted = [task for task in self.tasks.values() if not task.wanted]
            for task in unwanted:
                del self.tasks[task.number]
        self._batch.drop({task.number for task in unwanted})
        for task in unwanted:
            task.left = True

    def _arrivals(self, lanes: Collection[Lane]) -> list[Task]:
        """Take as many tasks as the batch has room for; decide how many sentences may share a step."""
        self._drop_unwanted()
        shared, batch, new = self.shared, self._batch, list[Task]()
        with shared.lock:
            room = min(batch.room(self._places([])), self.most - len(self.tasks))
            while len(new) < room and (task := self._next_task(lanes, new)) is not None:
                new.append(task)
            self.tasks |= {task.number: task for task in new}
            self._places_given = places = self._places(list(self.tasks.values()))
            self._looked_at = shared.changes
            self.free = max(0, places - len(self.tasks)) if batch.can_grow else 0
            beside = max(len(shared.working), min(self.parcel.siblings, shared.workers))
            shared_out = len(self.tasks) >= CREW or shared.weight_bytes >= CACHED
            threads = max(1, shared.threads // beside) if shared_out else 1
        use_threads(threads)
        return new

    def _next_task(self, lanes: Collection[Lane], new: Sequence[Task]) -> Task | None:
        """The parcel's next task, if it can be read with the other new ones; once it is empty, the next parcel's."""
        queue = self.shared.queue
        while True:
            if (task := queue.next(self.parcel)) is not None:
                if len(new) < self._places([*new, task]):
                    return task
                queue.put_back(self.parcel, [task])
                return None
            if self.tasks and not new and not self._worth_joining():
                return None
            if (joining := queue.join(self.lane, lanes, self._overtaking)) is None:
                return None
            self._overtaking -= len(joining.tasks) if queue.behind(joining, lanes) else 0
            self.parcel = joining

    def _worth_joining(self) -> bool:
        """Whether those that wait have waited long enough, for so many."""
        waiting = self.shared.queue.coming(self.lane)
        return self._since >= LONGEST or self._since * waiting >= REST * len(self.tasks)

    def _places(self, tasks: Sequence[Task]) -> int:
        """How many sentences may share a step with these."""
        longest = max((len(task.request.source) for task in tasks), default=1)
        return min(self.most, self.lane.capacity.places(longest))

    def _read(self, tasks: Sequence[Task]) -> NewRequests | None:
        """Encode new sources. An error that is not the memory's is theirs alone: None."""
        try:
            return self._encoded(tasks)
        except Exception as error:
            if out_of_memory(error):
                raise
            self._fail(error, tasks)
            return None

    def _encoded(self, tasks: Sequence[Task]) -> NewRequests:
        """Encode new sources, and lay out what their searches must keep to."""
        decoder, device, lane = self.shared.decoder, self.shared.device, self.lane
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
        self._looked_at = -1
        with self.shared.lock:
            finished = [(self.tasks.pop(number), outputs) for number, outputs in done if number in self.tasks]
            for task, _ in finished:
                task.forget()
        for task, outputs in finished:
            task.finish([_cut(output, len(task.request.source)) for output in outputs])

    def _fail(self, error: BaseException, tasks: Sequence[Task]) -> None:
        """Some tasks end with an error."""
        self._looked_at = -1
        with self.shared.lock:
            for task in tasks:
                self.tasks.pop(task.number, None)
                task.forget()
        for task in tasks:
            task.fail(error)

    def fail(self, error: Exception) -> None:
        """The tasks of the batch end with an error, and the next batch begins afresh."""
        self._fail(error, list(self.tasks.values()))
        self._begin()

    def halve(self) -> None:
        """A batch that was too big for the memory is searched again, half of it at a time."""
        if len(self.tasks) == 1:
            [task] = self.tasks.values()
            name = f"line {task.request.number + 1} ({len(task.request.source) - 1} tokens)"
            self.fail(DataError(f"{name}: too little memory even for this one alone"))
            return
        self.most = max(1, len(self.tasks) // 2)
        self.put_back()

    def put_back(self) -> None:
        """The tasks of the batch are to be searched again, from their beginning."""
        with self.shared.lock:
            tasks, self.tasks = list(self.tasks.values()), {}
            self.shared.queue.put_back(self.parcel, tasks)
        self._begin()


def _cut(output: Hypothesis, width: int) -> Hypothesis:
    """Attention over the source alone, without the padding."""
    return output if output.attention is None else replace(output, attention=output.attention[:, :width])
