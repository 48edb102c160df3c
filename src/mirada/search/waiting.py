"""One caller that waits for many outputs at once: a lock for all of them, where futures have one each."""

from __future__ import annotations

from threading import Event, Lock

from mirada.search.queue import Outputs


class Together:
    """The outputs of `count` requests, in their order; `answers[i]` is what the task of the i-th one tells."""

    def __init__(self, count: int):
        self._lock, self._all_told, self._left = Lock(), Event(), count
        self.answers = [Answer(self) for _ in range(count)]
        if not count:
            self._all_told.set()

    def told(self) -> None:
        """One more is there, or will never be."""
        with self._lock:
            self._left -= 1
            if not self._left:
                self._all_told.set()

    def wait(self) -> list[Outputs]:
        """All of them; raises the first error in their order."""
        self._all_told.wait()
        return [answer.outputs() for answer in self.answers]


class Answer:
    """The outputs of one of those requests."""

    __slots__ = ("_error", "_outputs", "_together")

    def __init__(self, together: Together):
        self._together = together
        self._outputs: Outputs = []
        self._error: BaseException | None = None

    def set_result(self, outputs: Outputs, /) -> None:
        """They are there."""
        self._outputs = outputs
        self._together.told()

    def set_exception(self, error: BaseException, /) -> None:
        """They will never be."""
        self._error = error
        self._together.told()

    def outputs(self) -> Outputs:
        """Once all have told; raises the error that came instead."""
        if self._error is not None:
            raise self._error
        return self._outputs
