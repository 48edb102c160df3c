"""One model at work for many requests: texts go to its scheduler, where they join the batch that runs; bounded.

What the scheduler cannot do, scores, traces and steps, is done aside. Both together are what waits for a model.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from threading import Lock
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from mirada.serving.errors import RetiredError, full

if TYPE_CHECKING:
    from mirada.config.options import SearchConfig
    from mirada.data.tokenizer import Piece
    from mirada.search.queue import Outputs
    from mirada.translator import Translation, Translator

Result = TypeVar("Result")
AT_ONCE = 2  # threads for scores, traces and steps, so that a long trace does not stop all others


class Wanted(NamedTuple):
    """One text to be translated. Of texts that are drawn by chance the number says which."""

    text: str
    prefix: str
    number: int


class Coming(NamedTuple):
    """What a text will have: hypotheses first, which whoever waits for them reads as text."""

    future: Future[Outputs]
    read: Callable[[Outputs], list[Translation]]


class Engine:
    """A translator, how much may wait for it, and whether it still takes anything. Callers may be in any thread."""

    def __init__(self, translator: Translator, *, queue_size: int, batch_size: int):
        self.translator, self.queue_size, self.batch_size = translator, queue_size, batch_size
        self._lock, self._retired, self._asides = Lock(), False, 0
        self._aside = ThreadPoolExecutor(AT_ONCE, thread_name_prefix="aside")

    @property
    def waiting(self) -> int:
        """Texts and other tasks that have been accepted and are not begun."""
        return self.translator.scheduler.waiting + self._asides

    def translate(
        self, wanted: Sequence[Wanted], options: SearchConfig, *, with_attention: bool = False
    ) -> list[Coming]:
        """Queue texts, all or none; cancelling a future frees its place. Raises RefusedError if full, RetiredError."""
        if not wanted:
            return []
        translator, prefixes = self.translator, [one.prefix for one in wanted]
        texts, starts = [one.text for one in wanted], prefixes if any(prefixes) else None
        pieces, requests = translator.requests(texts, options, starts, wanted[0].number)
        attends = with_attention or options.replace_unk
        with self._lock:
            self._check(len(requests))
            futures = translator.scheduler.submit_all(
                [*requests.values()], options, batch_size=self.batch_size, with_attention=attends
            )
        coming = dict(zip(requests, futures, strict=True))

        def read(row: list[Piece], prefix: str, found: Outputs) -> list[Translation]:
            return translator.read_back(row, found, options, prefix)

        return [Coming(coming.get(i) or _nothing(), partial(read, row, prefixes[i])) for i, row in enumerate(pieces)]

    def aside(self, function: Callable[[], Result]) -> Future[Result]:
        """Queue anything else that the model is to do. Raises RefusedError if the queue is full, RetiredError."""
        with self._lock:
            self._check(1)
            self._asides += 1
            future = self._aside.submit(self._begun, function)
        future.add_done_callback(lambda done: self._forget() if done.cancelled() else None)
        return future

    def retire(self) -> None:
        """Take no more work; what has been accepted is still done."""
        with self._lock:
            self._retired = True
        self._aside.shutdown(wait=False)

    def _check(self, more: int) -> None:
        if self._retired:
            raise RetiredError
        if (waiting := self.waiting) + more > self.queue_size:
            raise full(waiting, self.queue_size)

    def _begun(self, function: Callable[[], Result]) -> Result:
        self._forget()
        return function()

    def _forget(self) -> None:
        with self._lock:
            self._asides -= 1


def cancel(futures: Iterable[Future[Result]]) -> None:
    """Free the places of what nobody waits for any more."""
    for future in futures:
        with suppress(RuntimeError):
            future.cancel()


def _nothing() -> Future[Outputs]:
    """What a text without tokens has, at once."""
    future: Future[Outputs] = Future()
    future.set_result([])
    return future
