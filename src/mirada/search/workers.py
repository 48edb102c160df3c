"""Several jobs at once in one process: threads that share the weights, each with its share of the cores.

Two threads that work on a batch each are faster than one batch on two cores: no core waits for the other's half.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from typing import TypeVar

import torch

Job = TypeVar("Job")
Made = TypeVar("Made")
MOST = 8  # threads; with more of them Python itself, which they share, is what they wait for


class StoppedError(Exception):
    """Raised inside a job that goes on although nobody wants its result any more."""


def default_workers(device: torch.device) -> int:
    """One a core on a CPU, as far as that helps; a GPU has its own ways of doing much at once."""
    return min(torch.get_num_threads(), MOST) if device.type == "cpu" else 1


def spread(jobs: Sequence[Job], work: Callable[[Job, Event], Made], workers: int) -> list[Made]:
    """Do the work on every job; results in the order of the jobs, and the first error in that order.

    `work` is also told when to give up: after an error elsewhere or Ctrl-C it may raise `StoppedError`.
    """
    workers = min(workers, len(jobs))
    stop = Event()
    if workers <= 1:
        return [work(job, stop) for job in jobs]
    threads = torch.get_num_threads()
    share = max(1, threads // workers)
    try:
        with ThreadPoolExecutor(workers, initializer=torch.set_num_threads, initargs=(share,)) as pool:
            try:
                return list(pool.map(lambda job: work(job, stop), jobs))
            finally:
                stop.set()
    finally:
        torch.set_num_threads(threads)  # what the next new thread starts with
