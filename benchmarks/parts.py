"""Where an update's time goes: a stopwatch that changes hands at the model's verbs, and torch's profiler.

Watching costs a little, so it is a training of its own, after the one that was measured. The stopwatch stands at
`encode`, `forward`, torch's backward, and the gradient of the encoder's states, which comes when the decoder's backward
is done. Gradients of the output layer are made with the loss and count there.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch

from mirada.models.bahdanau import Bahdanau
from mirada.models.base import Memory
from mirada.models.luong import Luong
from mirada.models.transformer import Transformer

DATA, ENCODER, DECODER = "data", "encoder", "attention and decoder"
LOSS, BACK_DECODER, BACK_ENCODER, STEP = "output and loss", "backward: decoder", "backward: encoder", "optimiser"
PARTS = (DATA, ENCODER, DECODER, LOSS, BACK_DECODER, BACK_ENCODER, STEP)
SHOWN = 12  # operations


class Operation(NamedTuple):
    """One of torch's operations in an average update."""

    name: str
    ms: float  # without what it calls
    calls: float


class Stopwatch:
    """Time goes to one part until another is named."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = defaultdict(float)
        self._part, self._since = DATA, time.perf_counter()

    def now(self, part: str) -> None:
        """From here on, time is this part's."""
        moment = time.perf_counter()
        self.seconds[self._part] += moment - self._since
        self._part, self._since = part, moment


class Watch:
    """Stands where the progress bar would: some updates under the stopwatch, then some under the profiler."""

    def __init__(self, warmup: int, timed: int, profiled: int):
        self.stopwatch = Stopwatch()
        self.warmup, self.timed, self.profiled = warmup, timed, profiled
        self.parts: dict[str, float] = {}  # ms an update
        self.operations: list[Operation] = []
        self._profiler: Any = None

    @property
    def total(self) -> int:
        """Updates in all."""
        return self.warmup + self.timed + self.profiled

    def note(self, line: str) -> None:
        """Nobody reads along."""

    def start(self, name: str, total: int, done: int) -> None:
        """The training begins."""

    def stop(self) -> None:
        """The training has ended."""

    def update(self, done: int, tokens: int, loss: float) -> None:
        """An update has ended."""
        self.stopwatch.now(DATA)
        if done == self.warmup:
            self.stopwatch.seconds.clear()
        if done == self.warmup + self.timed:
            spent = self.stopwatch.seconds
            self.parts = {part: 1000 * spent[part] / self.timed for part in PARTS if part in spent}
            self._profiler = torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU])
            self._profiler.start()
        if done == self.total:
            self._profiler.stop()
            self.operations = _operations(self._profiler, self.profiled)
            self.stopwatch.now(DATA)


def _operations(profiler: Any, updates: int) -> list[Operation]:
    found = [
        Operation(row.key, row.self_cpu_time_total / 1000 / updates, row.count / updates)
        for row in profiler.key_averages()
    ]
    return sorted(found, key=lambda operation: -operation.ms)[:SHOWN]


@contextmanager
def watching(stopwatch: Stopwatch) -> Iterator[None]:
    """Let the models' verbs and the backward tell the stopwatch, and put them back afterwards."""
    places: list[tuple[Any, str, Callable[..., Any]]] = [(torch.autograd, "backward", _backward)]
    for kind in (Bahdanau, Luong, Transformer):
        places += [(kind, "encode", _encode), (kind, "forward", _forward)]
    before = [getattr(owner, name) for owner, name, _ in places]
    for (owner, name, around), inner in zip(places, before, strict=True):
        setattr(owner, name, around(inner, stopwatch))
    try:
        yield
    finally:
        for (owner, name, _), inner in zip(places, before, strict=True):
            setattr(owner, name, inner)


def _encode(inner: Callable[..., Memory], stopwatch: Stopwatch) -> Callable[..., Memory]:
    def encode(*arguments: Any, **named: Any) -> Memory:
        stopwatch.now(ENCODER)
        memory = inner(*arguments, **named)
        if memory.states.requires_grad:
            memory.states.register_hook(lambda _: stopwatch.now(BACK_ENCODER))
        stopwatch.now(DECODER)
        return memory

    return encode


def _forward(inner: Callable[..., Any], stopwatch: Stopwatch) -> Callable[..., Any]:
    def forward(*arguments: Any, **named: Any) -> Any:
        stopwatch.now(DECODER)
        outputs = inner(*arguments, **named)
        stopwatch.now(LOSS)
        return outputs

    return forward


def _backward(inner: Callable[..., None], stopwatch: Stopwatch) -> Callable[..., None]:
    def backward(*arguments: Any, **named: Any) -> None:
        stopwatch.now(BACK_DECODER)
        inner(*arguments, **named)
        stopwatch.now(STEP)

    return backward
