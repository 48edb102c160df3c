"""One model at work for many requests: what waits with equal options is searched together; a bounded queue.

Groups of texts go to the translator's scheduler from several threads: there those with equal options share steps, and
newcomers join a batch that runs.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from threading import Condition, Thread
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from mirada.serving.errors import RetiredError, full

if TYPE_CHECKING:
    from mirada.config.options import SearchConfig
    from mirada.translator import Translation, Translator

Result = TypeVar("Result")
AT_ONCE = 2  # threads for scores, traces and steps, so that a long trace does not stop all others


class Wanted(NamedTuple):
    """One text to be translated. Of texts that are drawn by chance the number says which."""

    text: str
    prefix: str
    number: int


class Job(NamedTuple):
    """A wanted text, what it may share a batch with, and where its outputs go."""

    wanted: Wanted
    key: tuple[SearchConfig, bool, object]
    future: Future[list[Translation]]


class Engine:
    """A translator with its queue. All methods may be called from any thread.

    `searches` groups of texts are handed over at once; `on_batch` hears how large each is.
    """

    def __init__(
        self,
        translator: Translator,
        *,
        queue_size: int,
        batch_size: int,
        searches: int = 1,
        on_batch: Callable[[int], None] | None = None,
    ):
        self.translator, self.queue_size, self.batch_size = translator, queue_size, batch_size
        self._on_batch = on_batch or (lambda size: None)
        self._waiting: deque[Job] = deque()
        self._change = Condition()
        self._retired, self._asides = False, 0
        self._aside = ThreadPoolExecutor(AT_ONCE, thread_name_prefix="aside")
        self._threads = [Thread(target=self._work, daemon=True, name="search") for _ in range(searches)]
        for thread in self._threads:
            thread.start()

    @property
    def waiting(self) -> int:
        """Texts and other tasks that have been accepted and are not begun."""
        return len(self._waiting) + self._asides

    def translate(
        self, wanted: Sequence[Wanted], options: SearchConfig, *, with_attention: bool = False
    ) -> list[Future[list[Translation]]]:
        """Queue texts, all or none; cancelling a future frees its place. Raises RefusedError if full, RetiredError."""
        alone = object() if options.sample else None  # what chance plays a part in shares no batch with other requests
        jobs = [Job(one, (options, with_attention, alone), Future()) for one in wanted]
        with self._change:
            self._check(len(jobs))
            self._waiting.extend(jobs)
            self._change.notify()
        return [job.future for job in jobs]

    def aside(self, function: Callable[[], Result]) -> Future[Result]:
        """Queue anything else that the model is to do. Raises RefusedError if the queue is full, RetiredError."""
        with self._change:
            self._check(1)
            self._asides += 1
        future = self._aside.submit(self._begun, function)
        future.add_done_callback(lambda done: self._forget() if done.cancelled() else None)
        return future

    def retire(self) -> None:
        """Take no more work; what has been accepted is still done."""
        with self._change:
            self._retired = True
            self._change.notify_all()
        self._aside.shutdown(wait=False)

    def join(self, seconds: float) -> None:
        """Wait for the accepted texts of a retired engine."""
        for thread in self._threads:
            thread.join(seconds)

    def _check(self, more: int) -> None:
        if self._retired:
            raise RetiredError
        if self.waiting + more > self.queue_size:
            raise full(self.waiting, self.queue_size)

    def _begun(self, function: Callable[[], Result]) -> Result:
        self._forget()
        return function()

    def _forget(self) -> None:
        with self._change:
            self._asides -= 1

    def _work(self) -> None:
        while jobs := self._next():
            self._on_batch(len(jobs))
            try:
                outputs = self._search(jobs)
            except BaseException as error:  # goes to whoever waits, whatever it is
                for job in jobs:
                    job.future.set_exception(error)
            else:
                for job, found in zip(jobs, outputs, strict=True):
                    job.future.set_result(found)

    def _next(self) -> list[Job]:
        """The oldest job and all that wait with the same key, as many as a batch holds; none: the end."""
        while True:
            with self._change:
                while not self._waiting and not self._retired:
                    self._change.wait()
                if not self._waiting:
                    return []
                key = self._waiting[0].key
                taken, rest = list[Job](), deque[Job]()
                for job in self._waiting:
                    (taken if job.key == key and len(taken) < self.batch_size else rest).append(job)
                self._waiting = rest
            running = [job for job in taken if job.future.set_running_or_notify_cancel()]
            if running:
                return running

    def _search(self, jobs: list[Job]) -> list[list[Translation]]:
        options, with_attention, _ = jobs[0].key
        prefixes = [job.wanted.prefix for job in jobs]
        return self.translator.search(
            [job.wanted.text for job in jobs],
            options=options,
            prefixes=prefixes if any(prefixes) else None,
            batch_size=self.batch_size,
            with_attention=with_attention,
            first=jobs[0].wanted.number,
        )


def cancel(futures: Sequence[Future[Result]]) -> None:
    """Free the places of what nobody waits for any more."""
    for future in futures:
        with suppress(RuntimeError):
            future.cancel()
