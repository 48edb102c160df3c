"""Several processes that train one model: each takes its share of every update's batches, and all take the same step.

`torchrun` (or `accelerate launch`) starts them and tells each its place; torch.distributed adds up their gradients. The
sum over an update's batches is the same however many processes share them, so N processes with one batch each are one
process with `accum_count` N. Only the first writes and prints.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, NamedTuple, TypeVar

import torch
from torch import Tensor, nn

from mirada.errors import TrainingError

PLACE = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
PATIENCE = timedelta(minutes=30)  # of the others, while the first reads data and learns tokenisers
Item = TypeVar("Item")


class Processes(NamedTuple):
    """Those that train together: this one's place among them, and how many they are."""

    rank: int
    size: int

    @property
    def first(self) -> bool:
        """Whether this one writes and prints."""
        return self.rank == 0

    def share(self, items: list[Item]) -> list[Item]:
        """This process's part of what all have to do."""
        return items[self.rank :: self.size]

    def add_gradients(self, parameters: Iterable[nn.Parameter], value: Tensor) -> Tensor:
        """Make every gradient, and `value` [], the sum over the processes; returns that of `value`.

        A process that had nothing to do counts as zero. Raises TrainingError if another process has ended.
        """
        if self.size == 1:
            return value
        learning = [parameter for parameter in parameters if parameter.requires_grad]
        for parameter in learning:
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
        parts = [parameter.grad for parameter in learning if parameter.grad is not None]
        flat = torch.cat([*(part.flatten() for part in parts), value[None].to(parts[0])])
        self._reduce(flat, torch.distributed.ReduceOp.SUM)
        for part, summed in zip(parts, flat[:-1].split([part.numel() for part in parts]), strict=True):
            part.copy_(summed.view_as(part))
        return flat[-1]

    def sum(self, values: Tensor) -> Tensor:
        """The sum of the processes' values, which are float64 on the CPU."""
        return values if self.size == 1 else self._agree(values, torch.distributed.ReduceOp.SUM)

    def most(self, *values: float) -> list[float]:
        """The largest of the processes' values, each: what all go by where clocks and signals differ."""
        if self.size == 1:
            return list(values)
        return list(map(float, self._agree(torch.tensor(values, dtype=torch.float64), torch.distributed.ReduceOp.MAX)))

    def gather(self, own: list[Item], count: int) -> list[Item]:
        """Put the parts of `count` things that `share` gave out together again, in every process."""
        if self.size == 1:
            return own
        parts: list[list[Item]] = [[] for _ in range(self.size)]
        with _others_alive(self.size):
            torch.distributed.all_gather_object(parts, own)
        return [parts[i % self.size][i // self.size] for i in range(count)]

    def wait_for_first(self) -> None:
        """Wait, unless this is the first, until the first calls this as well."""
        if self.size > 1:
            with _others_alive(self.size):
                torch.distributed.barrier()

    def _agree(self, values: Tensor, how: Any) -> Tensor:
        there = values.cuda() if torch.distributed.get_backend() == "nccl" else values.clone()
        self._reduce(there, how)
        return there.cpu()

    def _reduce(self, values: Tensor, how: Any) -> None:
        with _others_alive(self.size):
            torch.distributed.all_reduce(values, op=how)


ALONE = Processes(0, 1)


def started_together() -> bool:
    """Whether this process is one of several that torchrun or the like has started."""
    return all(name in os.environ for name in PLACE) and os.environ["WORLD_SIZE"] != "1"


def is_first() -> bool:
    """Whether this process is the one that speaks."""
    return not started_together() or os.environ["RANK"] == "0"


@contextmanager
def joined() -> Iterator[Processes]:
    """Those that were started together, by what their starter wrote into the environment; this one alone otherwise."""
    if not started_together():
        yield ALONE
        return
    if torch.cuda.is_available():
        torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")) % torch.cuda.device_count())
    torch.distributed.init_process_group("nccl" if torch.cuda.is_available() else "gloo", timeout=PATIENCE)
    try:
        yield Processes(torch.distributed.get_rank(), torch.distributed.get_world_size())
    finally:
        torch.distributed.destroy_process_group()


@contextmanager
def _others_alive(size: int) -> Iterator[None]:
    """Turn the transport's error into one line."""
    try:
        yield
    except RuntimeError:
        raise TrainingError(
            f"another of the {size} processes has ended; the same command goes on from the last save"
        ) from None
