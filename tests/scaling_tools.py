"""Work for workers that can be started anywhere: doubling, failing, and dying once or always."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from mirada.errors import DataError

if TYPE_CHECKING:  # a worker that only doubles does without
    import pytest

    from mirada.scaling.searching import LineBlock, SearchJob

SIDES = (
    "the red fox sees the cat",
    "a cat sleeps under the old tree, near the house",
    "where does the fox sleep?",
    "a man and a cat see the house",
    "the book is under the tree",
)
MANY = [f"{first} {second}" for first in SIDES for second in SIDES]  # 25, all different
GIVEN = "".join(f"{line}\n" for line in ["", *MANY])


class Item(NamedTuple):
    """A number, and what happens on the way."""

    number: int
    do: str = "double"

    def __str__(self) -> str:
        return f"item {self.number}"


def die() -> None:
    """End as a process that the system kills."""
    os.kill(os.getpid(), signal.SIGKILL)


def make(notes: Path) -> Callable[[Item], Any]:
    """What doubles; in `notes` there is a line for each time this was called."""
    with notes.open("a") as stream:
        stream.write(f"made {os.environ.get('OMP_NUM_THREADS')} {os.environ.get('CUDA_VISIBLE_DEVICES', '')}\n")

    def work(item: Item) -> Any:
        if item.do == "die":
            die()
        if item.do == "die once" and not (mark := notes.with_suffix(".died")).exists():
            mark.touch()
            die()
        if item.do == "wait":
            time.sleep(60)
        if item.do == "refuse":
            raise DataError(f"line {item.number}: no number")
        if item.do == "break":
            raise Unportable(item.number, "broke")
        if item.do == "torch":
            import torch

            return os.getcwd(), hasattr(torch, "Tensor")
        return 2 * item.number

    return work


class Unportable(Exception):
    """An error that cannot be read back from a pickle."""

    def __init__(self, number: int, what: str):
        super().__init__(f"{number} {what}")


def refuses() -> Callable[[Item], Any]:
    """What cannot be made, as a model that is not there."""
    raise DataError("no such model")


def search_dying_once(job: SearchJob, mark: Path) -> Callable[[LineBlock], Any]:
    """What `make_search` makes, in a worker that is killed at the third block, the first time."""
    from mirada.scaling.searching import make_search

    search = make_search(job)

    def work(block: LineBlock) -> Any:
        if block.first >= 8 and not mark.exists():
            mark.touch()
            die()
        return search(block)

    return work


def dying_once(monkeypatch: pytest.MonkeyPatch, mark: Path) -> None:
    """Let the first worker that takes the third block be killed."""
    monkeypatch.setattr("mirada.scaling.searching.make_search", partial(search_dying_once, mark=mark))
