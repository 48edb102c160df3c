"""Where to compute."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import TypeVar

import torch

from mirada.errors import ConfigError, DataError

Item = TypeVar("Item")
Made = TypeVar("Made")


def out_of_memory(error: BaseException) -> bool:
    """Tell whether an error says that the memory of a device, or of the machine, did not suffice."""
    if isinstance(error, MemoryError | torch.OutOfMemoryError):
        return True
    signs = ("out of memory", "not enough memory", "can't allocate memory", "DefaultCPUAllocator", "ALLOC_FAILED")
    return isinstance(error, RuntimeError) and any(sign in str(error) for sign in signs)


def halving(batch: list[Item], work: Callable[[list[Item]], list[Made]], name: Callable[[Item], str]) -> list[Made]:
    """Do the work on a batch; where the memory does not suffice, on its halves, one after the other.

    Raises DataError, naming the item, where not even one alone fits.
    """
    try:
        return work(batch)
    except (RuntimeError, MemoryError) as error:
        if not out_of_memory(error):
            raise
        if len(batch) == 1:
            raise DataError(f"{name(batch[0])}: too little memory even for this one alone") from None
    # Out of the handler: what the failed attempt held is free again.
    middle = len(batch) // 2
    return [*halving(batch[:middle], work, name), *halving(batch[middle:], work, name)]


def synchronous(device: torch.device) -> bool:
    """Whether what a device was asked for is done when the call is over; to read a number of another is to wait."""
    return device.type == "cpu"


def choose_device(name: str) -> torch.device:
    """`auto` takes a GPU if there is one; raises ConfigError for a device that is not there."""
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        device = torch.device(name)
    except RuntimeError:
        device = torch.device("meta")  # as unknown here as a kind that PyTorch has and mirada has not
    if device.type not in ("cpu", "cuda", "mps"):
        raise ConfigError(f"device {name!r} is unknown; use auto, cpu, cuda or cuda:N")
    if device.type == "mps" and not torch.backends.mps.is_available():
        raise ConfigError(f"device {name!r}: PyTorch finds no Apple GPU on this machine; use auto or cpu")
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise ConfigError(
            f"device {name!r}: this machine has {torch.cuda.device_count()} CUDA devices; use auto or cpu"
        )
    if device.type == "cuda":  # weights of recurrent layers are copied together, as kernels/recurrence.py means it
        warnings.filterwarnings("ignore", message="RNN module weights are not part of single contiguous chunk")
    return device
