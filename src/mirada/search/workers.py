"""How many threads torch uses for the products of one thread of ours, and how many of ours there should be.

Two threads that work on a batch each are faster than one batch on two cores: no core waits for the other's half.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import Future
from threading import Lock, Thread
from typing import TypeVar

import torch

Made = TypeVar("Made")
MOST = 8  # workers; with more of them Python itself, which they share, is what they wait for
SETTING = Lock()  # torch keeps one number for all threads to come; it is wrong for a moment while a thread sets its own
if hasattr(os, "register_at_fork"):  # nobody holds it while the process is copied
    os.register_at_fork(before=SETTING.acquire, after_in_parent=SETTING.release, after_in_child=SETTING.release)


def default_workers(device: torch.device) -> int:
    """One a core on a CPU, as far as that helps; a GPU has its own ways of doing much at once."""
    return min(own_threads(), MOST) if device.type == "cpu" else 1


def own_threads() -> int:
    """How many threads torch uses for the products of the calling thread."""
    with SETTING:
        return torch.get_num_threads()


def use_threads(count: int) -> None:
    """Let torch use so many threads for the products of the calling thread, and of no other.

    `torch.set_num_threads` also sets what every thread begins with that has not computed yet. That is put back, by a
    thread that ends at once, for the caller's own number would change again.
    """
    with SETTING:
        if torch.get_num_threads() == count:
            return
        found: list[int] = []
        _by_another(lambda: found.append(torch.get_num_threads()))
        torch.set_num_threads(count)
        _by_another(lambda: torch.set_num_threads(found[0]))


def _by_another(work: Callable[[], object]) -> None:
    thread = Thread(target=work)
    thread.start()
    thread.join()


def apart(work: Callable[[], Made]) -> Made:
    """Do work in a thread of its own and wait for it.

    In a copy of the process made by `fork`, a thread that used several cores before would wait for ever for helpers
    that were not copied; a new thread gets new ones.
    """
    done = Future[Made]()

    def worked() -> None:
        try:
            done.set_result(work())
        except BaseException as error:
            done.set_exception(error)

    Thread(target=worked, name="mirada").start()
    return done.result()
