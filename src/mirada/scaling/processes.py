"""Workers that are processes of this machine."""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping
from contextlib import suppress
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from queue import SimpleQueue
from threading import Thread
from typing import Any

from mirada.scaling.pool import Answering, Make, Outcome, WorkerDiedError


class ProcessWorker:
    """A process that is spawned with `environment` on top of this one's."""

    def __init__(self, make: Make, environment: Mapping[str, str]):
        self._make, self._environment = make, environment
        self._process: SpawnProcess | None = None
        self._end: Connection[Any, Any] | None = None

    def start(self) -> None:
        """Spawn the process, unless it runs."""
        if self._process is not None:
            return
        context = get_context("spawn")  # threads of this process, torch's for one, survive no fork
        self._end, other = context.Pipe()
        process = context.Process(target=serve, args=(other, self._make, dict(self._environment)), daemon=False)
        process.start()
        self._process = process
        other.close()  # so that its end is seen here

    def answer(self, item: Any) -> Outcome:
        """Hand over an item and wait for what becomes of it."""
        if self._end is None or self._process is None:
            raise WorkerDiedError("has not started")
        try:
            self._end.send(item)
            return Outcome(*self._end.recv())
        except (EOFError, OSError):
            process, self._process = self._process, None
            self._end.close()
            process.join()
            raise WorkerDiedError(ended(process.exitcode)) from None

    def stop(self) -> None:
        """Ask the process to end, as the end of this one would."""
        if self._process is not None:
            self._process.terminate()


def ended(code: int | None) -> str:
    """How a process ended, by its exit code."""
    return f"was ended by signal {-code}" if code is not None and code < 0 else f"ended with exit code {code}"


def serve(end: Connection[Any, Any], make: Make, environment: dict[str, str]) -> None:
    """Answer items until nobody asks any more. Ctrl-C is for the process that asks."""
    os.environ.update(environment)  # before torch is loaded, which looks once
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    items: SimpleQueue[Any] = SimpleQueue()
    Thread(target=_receive, args=(end, items), daemon=True).start()
    answering = Answering(make)
    with suppress(BrokenPipeError):  # whoever asked is gone
        while True:
            end.send(answering(items.get()))


def _receive(end: Connection[Any, Any], items: SimpleQueue[Any]) -> None:
    """Take items as they come; when whoever sent them is gone, stop as SIGTERM does: a training saves first."""
    try:
        while True:
            items.put(end.recv())
    except (EOFError, OSError):
        os.kill(os.getpid(), signal.SIGTERM)
