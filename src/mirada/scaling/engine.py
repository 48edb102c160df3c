"""Which workers, how many, and on what: the one place that chooses between this process, processes and Ray."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from typing import Literal, NamedTuple

from mirada.scaling.pool import Here, Make, Pool, Replaceable, Workplace
from mirada.scaling.processes import ProcessWorker

MOST = 8  # workers of a machine, unless more are asked for: each holds a model


class EngineChoice(NamedTuple):
    """What `--engine`, `--workers` and `--ray-address` say; `gpus`: each worker gets one, where there are any."""

    kind: Literal["local", "processes", "ray"] = "local"
    workers: int | None = None
    address: str | None = None
    gpus: bool = True


LOCAL = EngineChoice()


@contextmanager
def workplace(
    choice: EngineChoice, make: Make, say: Callable[[str], None], *, items: int | None = None
) -> Iterator[Workplace]:
    """Where items are done by what `make` makes; raises ConfigError for an engine that is not to be had.

    No more workers are started than there are `items`, where their number is known.
    """
    if choice.kind == "local" or items == 0:
        yield Here(make)
    elif choice.kind == "processes":
        with Pool(_processes(choice, make, items), say) as pool:
            yield pool
    else:
        from mirada.scaling.ray_workers import disconnect

        actors = _actors(choice, make, items)
        try:
            # Ray says there what has died; standard output is for data
            with redirect_stdout(sys.stderr), Pool(actors, say) as pool:
                yield pool
        finally:
            disconnect()


def _processes(choice: EngineChoice, make: Make, items: int | None) -> list[Replaceable]:
    """They share the cores, and take the GPUs in turn."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    devices = visible_gpus() if choice.gpus else []
    count = _at_most(items, choice.workers or len(devices) or min(cores, MOST))
    threads = os.environ.get("OMP_NUM_THREADS") or str(max(1, cores // count))
    environments = [{"OMP_NUM_THREADS": threads} for _ in range(count)]
    for number, environment in enumerate(environments if devices else []):
        environment["CUDA_VISIBLE_DEVICES"] = devices[number % len(devices)]
    return [ProcessWorker(make, environment) for environment in environments]


def _actors(choice: EngineChoice, make: Make, items: int | None) -> list[Replaceable]:
    from mirada.scaling.ray_workers import RayWorker, connect

    found = connect(choice.address, choice.workers)
    devices = int(found.get("GPU", 0)) if choice.gpus else 0
    count = _at_most(items, choice.workers or devices or max(1, int(found.get("CPU", 1))))
    share = 1 / -(-count // devices) if devices else 0.0  # several workers on a GPU, if there are more of them
    return [RayWorker(make, gpus=share) for _ in range(count)]


def _at_most(items: int | None, count: int) -> int:
    return count if items is None else min(items, count)


def visible_gpus() -> list[str]:
    """The GPUs that this process may use, as CUDA_VISIBLE_DEVICES names them."""
    try:
        import torch
    except ImportError:  # exported models do without
        return []
    given = [name for name in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if name]
    count = torch.cuda.device_count()
    return given[:count] or [str(number) for number in range(count)]
