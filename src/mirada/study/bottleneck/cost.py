"""Experiment 4: what attention over the source costs as it grows, for each score function, in time and in memory.

All are timed in turn, in an order drawn anew each turn, so that whatever else the machine does hits them alike; what is
reported is the median of the ratios within a turn, and a bootstrap interval of that median.
"""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable, Mapping
from functools import partial
from random import Random
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from mirada.config.options import ModelConfig
from mirada.devices import choose_device
from mirada.evaluation.bootstrap import SAMPLES, SEED, percentiles
from mirada.evaluation.metrics import FloatArray
from mirada.models import build_model
from mirada.models.attention import attend, build_score
from mirada.models.base import Memory
from mirada.study.bottleneck.settings import BottleneckRequest, Settings

SCORES = ("dot", "scaled_dot", "general", "additive", "concat")
REFERENCE = "dot"
STEPS = ("classic", "dot", "general", "additive")  # whole decoder steps


def cost_results(request: BottleneckRequest, show: Callable[[str], None]) -> dict[str, Any]:
    """Time and memory of attention and of a whole step, at each source length."""
    settings, device = request.settings, choose_device(request.device)
    attention, steps = [], []
    with torch.inference_mode():
        for length in settings.cost_lengths:
            show(f"one step with {length} source words")
            attention.append({"length": length, "scores": _attention_costs(settings, length, device)})
            steps.append({"length": length, "systems": _steps(settings, length, device)})
    where = {"threads": torch.get_num_threads(), "device": str(device)}
    return {**where, "reference": REFERENCE, "attention": attention, "steps": steps}


def cost_sizes(request: BottleneckRequest) -> dict[str, Any]:
    """What the measurements are made with."""
    settings = request.settings
    return {
        "width": settings.cost_width,
        "batch": settings.cost_batch,
        "vocabulary": settings.cost_vocabulary,
        "repeats": settings.cost_repeats,
        "lengths": settings.cost_lengths,
    }


def _attention_costs(settings: Settings, length: int, device: torch.device) -> list[dict[str, Any]]:
    """Attention with every score function: scores, softmax and context; the keys are made before, once a sentence."""
    width = settings.cost_width
    torch.manual_seed(1)
    states = torch.randn(settings.cost_batch, length, width, device=device)
    mask = torch.ones(settings.cost_batch, length, dtype=torch.bool, device=device)
    query = torch.randn(settings.cost_batch, 1, width, device=device)
    calls: dict[str, Callable[[], Any]] = {}
    keys: dict[str, int] = {}
    for name in SCORES:
        score: Any = build_score(name, query_size=width, memory_size=width, attention_size=width).to(device)
        memory = Memory(states, mask, score.project(states), None)
        keys[name] = 0 if memory.keys is states else _size(memory.keys)
        calls[name] = partial(attend, score, query, memory)
    made = {name: bytes_made(call) for name, call in calls.items()}
    timed = interleaved(calls, settings.cost_repeats, device)
    return [{"name": name, "bytes": made[name], "key_bytes": keys[name], **timed[name]} for name in SCORES]


def _steps(settings: Settings, length: int, device: torch.device) -> list[dict[str, Any]]:
    """A whole decoder step, output layer included: without attention, and with each of three scores."""
    torch.manual_seed(1)
    source = torch.randint(4, settings.cost_vocabulary, (settings.cost_batch, length), device=device)
    lengths = torch.full((settings.cost_batch,), length, device=device)
    calls: dict[str, Callable[[], Any]] = {}
    for name in STEPS:
        options = _step_options(name, settings.cost_width)
        model = build_model(options, source_vocab=settings.cost_vocabulary, target_vocab=settings.cost_vocabulary)
        model = model.to(device).eval()
        memory = model.encode(source, lengths)
        state: Any = model.start(memory)
        token = source[:, 0]
        calls[name] = partial(model.step, token, state, memory)
    timed = interleaved(calls, settings.cost_repeats, device, reference="classic")
    return [{"name": name, **timed[name]} for name in STEPS]


def _step_options(name: str, width: int) -> ModelConfig:
    shared: dict[str, Any] = {"embedding_dim": width, "hidden_size": width, "bidirectional": False}
    if name == "classic":
        return ModelConfig(decoder="classic", **shared)
    return ModelConfig.model_validate({**shared, "decoder": "luong", "score": name, "input_feeding": False})


def interleaved(
    calls: Mapping[str, Callable[[], Any]], repeats: int, device: torch.device, *, reference: str = REFERENCE
) -> dict[str, dict[str, Any]]:
    """Time every call once a turn: median seconds, and the median ratio to the reference with its 95 % interval."""
    for call in calls.values():  # what is done once only
        call()
    times = {name: np.empty(repeats) for name in calls}
    order, rng = list(calls), Random(SEED)
    for turn in range(repeats):
        rng.shuffle(order)  # or one would always come after the call that leaves the caches worst
        for name in order:
            times[name][turn] = _seconds(calls[name], device)
    return {
        name: {"seconds": float(np.median(found)), **ratio(found, times[reference])} for name, found in times.items()
    }


def _seconds(call: Callable[[], Any], device: torch.device) -> float:
    _settle(device)
    begun = time.perf_counter()
    call()
    _settle(device)
    return time.perf_counter() - begun


def _settle(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def ratio(times: FloatArray, reference: FloatArray, *, samples: int = SAMPLES) -> dict[str, float]:
    """Median over turns of the ratio within a turn, and the bootstrap interval of that median."""
    ratios = times / reference
    draws = np.random.default_rng(SEED).integers(len(ratios), size=(samples, len(ratios)))
    low, high = percentiles(np.median(ratios[draws], axis=1))
    return {"ratio": float(np.median(ratios)), "low": low, "high": high}


def bytes_made(call: Callable[[], Any]) -> int:
    """Most bytes that exist at one time of what a call makes, its result included."""
    with _Watch() as watch:
        result = call()
        del result
    return int(watch.most)


def _size(tensor: Tensor) -> int:
    return tensor.numel() * tensor.element_size()


class _Watch(TorchDispatchMode):
    """Counts the storages that operations make, until they are freed: the same on every device and every run."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.live = 0
        self.most = 0
        self._known: weakref.WeakSet[Any] = weakref.WeakSet()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run the operation and count what is new in its result."""
        result = func(*args, **(kwargs or {}))
        given = {leaf.untyped_storage().data_ptr() for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, Tensor)}
        for leaf in tree_leaves(result):
            if isinstance(leaf, Tensor) and leaf.untyped_storage().data_ptr() not in given:
                self._add(leaf.untyped_storage())
        return result

    def _add(self, storage: Any) -> None:
        if storage in self._known:
            return
        self._known.add(storage)
        self.live += storage.nbytes()
        self.most = max(self.most, self.live)
        weakref.finalize(storage, self._free, storage.nbytes())

    def _free(self, size: int) -> None:
        self.live -= size
