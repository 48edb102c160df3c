"""How a training is asked to stop: Ctrl-C, SIGTERM and a closed terminal."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from mirada.errors import TrainingError

# A system without one of them (Windows has no SIGHUP) has the others.
STOPPING = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGBREAK") if hasattr(signal, name))


class InterruptedTrainingError(TrainingError):
    """Training was asked to stop (Ctrl-C, SIGTERM) and has saved where it was."""

    def __init__(self, message: str, number: int):
        super().__init__(message)
        self.exit_code = 128 + number

    def __reduce__(self) -> tuple[type[InterruptedTrainingError], tuple[str, int]]:
        """It may come from another process."""
        return type(self), (str(self), self.exit_code - 128)


class StopRequest:
    """The signal that asked for a stop, 0 while none has."""

    def __init__(self) -> None:
        self.number = 0


@contextmanager
def listening(request: StopRequest, asked: Callable[[], None]) -> Iterator[None]:
    """Let a first signal be noted in `request`, and `asked` be called; a second stops at once.

    A signal that is ignored (nohup, a shell's background job) stays ignored. Raises InterruptedTrainingError for the
    second signal.
    """

    def ask(number: int, _frame: FrameType | None) -> None:
        again, request.number = bool(request.number), number
        if again:
            raise KeyboardInterrupt
        asked()

    numbers = [number for number in STOPPING if signal.getsignal(number) is not signal.SIG_IGN]
    try:
        before = {number: signal.signal(number, ask) for number in numbers}
    except ValueError:  # not in the main thread: signals are someone else's business
        before = {}
    try:
        yield
    except KeyboardInterrupt:
        if not request.number:
            raise
        message = "stopped at once, in the middle of an update; the same command goes on from the last save"
        raise InterruptedTrainingError(message, request.number) from None
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
