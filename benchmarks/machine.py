"""What the machine can do while it is measured: its matrix rate, who else is using it, and what it is.

`python -m benchmarks.machine [--threads N]` prints it.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import torch

# Rows × inputs × outputs of products that a model of the workloads makes: the output layer's, a square, the gates'.
SHAPES = ((1024, 512, 8000), (1024, 1024, 1024), (1024, 512, 1536))
SECONDS = 0.05  # for each shape and each kind of product, unless said otherwise
BUSY = 0.05  # cores of others above which a figure says so
TICKS = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100


class Rates(NamedTuple):
    """Floating-point (or integer) operations a second, in thousands of millions, at the threads in use."""

    linear: float  # torch's own product of float32 numbers, as nn.Linear uses it
    prepacked: float | None  # oneDNN's float32 product with the weight packed before; None: torch was built without it
    int8: float | None  # int8 × int8 → int32

    def best(self) -> float:
        """The faster of the two in float32."""
        return max(self.linear, self.prepacked or 0.0)


def measure_rates(seconds: float | None = None, *, precision: str | None = None, device: str = "cpu") -> Rates:
    """The best product of the shapes, each tried for so many seconds and each kind; torch's own as training has it.

    `precision`: that of the training; None: torch's own products as they are outside of one. A GPU has torch's alone.
    """
    seconds = SECONDS if seconds is None else seconds
    kinds = (_linear, _prepacked, _int8) if device == "cpu" else (_linear,)
    with torch.inference_mode(), _products(precision, device), torch.device(device):
        linear, *others = (_best([_rate(kind, shape, seconds, device) for shape in SHAPES]) for kind in kinds)
    if linear is None:
        raise RuntimeError("torch has no matrix product")
    return Rates(linear, *(others or (None, None)))


def _products(precision: str | None, device: str) -> AbstractContextManager[None]:
    if precision is None:
        return nullcontext()
    from mirada.train.precision import products  # other toolkits' environments, which use this file, have no mirada

    return products(precision, torch.device(device))


def middle(rates: Sequence[Rates]) -> Rates:
    """The median of each rate over several measurements."""
    known = [[rate for rate in kind if rate is not None] for kind in zip(*rates, strict=True)]
    return Rates(median(known[0]), *(median(kind) if kind else None for kind in known[1:]))


def _best(rates: list[float | None]) -> float | None:
    return max((rate for rate in rates if rate is not None), default=None)


def _rate(
    kind: Callable[[int, int, int], Callable[[], Any]], shape: tuple[int, int, int], seconds: float, device: str
) -> Any:
    try:
        product = kind(*shape)
        product()
    except (AttributeError, RuntimeError, NotImplementedError):  # this torch, or this processor, has no such product
        return None
    together = 1 if device == "cpu" else 20  # a GPU is given some before it is waited for
    wait(device)
    fastest, end = float("inf"), time.perf_counter() + seconds
    while (begun := time.perf_counter()) < end:
        for _ in range(together):
            product()
        wait(device)
        fastest = min(fastest, (time.perf_counter() - begun) / together)
    return 2 * shape[0] * shape[1] * shape[2] / fastest / 1e9


def wait(device: str) -> None:
    """Wait until a device has done what it was asked for."""
    if device != "cpu":
        torch.cuda.synchronize()


def _linear(rows: int, inputs: int, outputs: int) -> Callable[[], Any]:
    x, w, b = torch.randn(rows, inputs), torch.randn(outputs, inputs), torch.zeros(outputs)
    return lambda: torch.nn.functional.linear(x, w, b)


def _prepacked(rows: int, inputs: int, outputs: int) -> Callable[[], Any]:
    x, w, b = torch.randn(rows, inputs), torch.randn(outputs, inputs), torch.zeros(outputs)
    packed = torch.ops.mkldnn._reorder_linear_weight(w, rows)
    return lambda: torch.ops.mkldnn._linear_pointwise(x, packed, b, "none", [], "")


def _int8(rows: int, inputs: int, outputs: int) -> Callable[[], Any]:
    x, w = (torch.randint(-127, 128, size, dtype=torch.int8) for size in ((rows, inputs), (inputs, outputs)))
    return lambda: torch._int_mm(x, w)


class Reading(NamedTuple):
    """Seconds so far: of the clock, of all processors at work, stolen by the host, and of this process's tree."""

    clock: float
    busy: float
    stolen: float
    own: float


class Load(NamedTuple):
    """Cores in use over a while, on average."""

    others: float | None  # other processes; None: this system does not tell
    stolen: float | None  # taken by the host of a virtual machine
    own: float | None


def reading() -> Reading | None:
    """Where the counters stand; None where there is no /proc."""
    try:
        fields = [int(field) for field in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
    except OSError:
        return None
    user, nice, system, _, _, irq, softirq, stolen = fields
    busy = user + nice + system + irq + softirq
    return Reading(time.perf_counter(), busy / TICKS, stolen / TICKS, _own_seconds())


def load_between(before: Reading | None, after: Reading | None) -> Load:
    """Who used the processors between two readings."""
    if before is None or after is None:
        return Load(None, None, None)
    seconds = max(1e-9, after.clock - before.clock)
    own, busy = after.own - before.own, after.busy - before.busy
    return Load(max(0.0, busy - own) / seconds, (after.stolen - before.stolen) / seconds, own / seconds)


def _own_seconds() -> float:
    """Processor seconds of this process, of its descendants, and of those of them that have ended."""
    parents: dict[int, int] = {}
    spent: dict[int, int] = {}
    for entry in os.scandir("/proc"):
        if entry.name.isdigit():
            try:
                fields = Path(entry.path, "stat").read_text().rpartition(")")[2].split()
            except OSError:  # it has just ended
                continue
            pid = int(entry.name)
            parents[pid], spent[pid] = int(fields[1]), sum(map(int, fields[11:15]))
    return sum(ticks for pid, ticks in spent.items() if _descends(pid, os.getpid(), parents)) / TICKS


def _descends(pid: int, ancestor: int, parents: dict[int, int]) -> bool:
    while pid and pid != ancestor:
        pid = parents.get(pid, 0)
    return pid == ancestor


def peak_megabytes(device: str = "cpu") -> float:
    """The most memory this process has held at once, on a GPU since it was last asked."""
    if device != "cpu":
        most = torch.cuda.max_memory_allocated() / (1 << 20)
        torch.cuda.reset_peak_memory_stats()
        return most
    unit = 1 << 20 if sys.platform == "darwin" else 1 << 10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit


def facts(device: str = "cpu") -> dict[str, Any]:
    """What the machine and its software are."""
    return {
        "cpu": _processor(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "threads": torch.get_num_threads(),
        "instructions": torch.backends.cpu.get_cpu_capability(),
        "torch": torch.__version__,
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.release()}",
        **({} if device == "cpu" else {"gpu": torch.cuda.get_device_name(), "cuda": torch.version.cuda}),
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").split("\n")
    except OSError:
        return platform.processor() or platform.machine()
    found = dict(line.replace("\t", "").split(":", 1) for line in lines if ":" in line)
    numbers = [f"{name} {found[name].strip()}" for name in ("cpu family", "model") if name in found]
    return f"{found.get('model name', platform.machine()).strip()} ({', '.join(numbers)})"


def main() -> None:
    """Print the facts, the rates, and who uses the machine meanwhile."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, help="threads of torch [its own choice]")
    if threads := parser.parse_args().threads:
        torch.set_num_threads(threads)
    before = reading()
    rates = measure_rates(0.2)
    load = load_between(before, reading())
    print(json.dumps({**facts(), "rates": rates._asdict(), "load": load._asdict()}, indent=1))


if __name__ == "__main__":
    main()
