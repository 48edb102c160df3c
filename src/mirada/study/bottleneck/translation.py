"""Experiments 1 and 2: quality by source length, and what a wider vector buys.

Both use the same runs: the classic system at several widths, one with attention at several widths, alike in everything
else (cell, one direction, embedding, updates), trained on sources of at most L and tested to 2L.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from statistics import fmean
from typing import Any, NamedTuple

import numpy as np

from mirada.config.configfile import parse
from mirada.data.corpus import chosen_files
from mirada.errors import ConfigError
from mirada.evaluation import compare as arithmetic
from mirada.evaluation.bootstrap import SEED, percentiles
from mirada.evaluation.compare import TASK_METRICS, Measured
from mirada.evaluation.lengths import filled
from mirada.evaluation.metrics import FloatArray, better
from mirada.study.bottleneck.pairs import split_pairs
from mirada.study.bottleneck.settings import BottleneckRequest, bounds
from mirada.study.compare.jobs import state
from mirada.study.compare.runs import RunSettings, SharedInput, System, share, trained_system
from mirada.study.compare.stored import read_outputs, read_tested
from mirada.study.compare.systems import ENDLESS, system_config, system_options


class TrainedSystems(NamedTuple):
    """The runs of both experiments, and what was done to the pairs."""

    systems: tuple[System, ...]
    shared: SharedInput
    limit: int  # L


class Span(NamedTuple):
    """A number and its 95 % interval."""

    value: float
    low: float
    high: float


def plan_translation(request: BottleneckRequest) -> TrainedSystems:
    """Split the pairs at L, write them down, and lay out the runs."""
    pairs, limit = split_pairs(request)
    settings, given = request.settings, chosen_files(parse({"data": request.data}).data)
    values = {
        "data": request.data if given else {"vocab_size": settings.vocabulary, **request.data},
        "model": {
            "embedding_dim": settings.embedding,
            "rnn_type": request.cell,
            "bidirectional": False,
            "reverse_source": True,  # as Sutskever et al. 2014 do for the fixed vector; all systems read the same
            "dropout": 0.1 if given else 0.0,
        },
        "training": {
            "max_updates": settings.updates,
            "epochs": ENDLESS,
            "patience": ENDLESS,
            "batch_size": settings.batch,
            "learning_rate": settings.learning_rate,
            "warmup_steps": min(100, settings.updates // 4),
            "valid_every": max(1, settings.updates // 6),
            "device": request.device,
        },
        "search": {"beam_size": 1},
    }
    shared = share(request.out / "translation", values, pairs)
    place = RunSettings(request.out / "translation", request.seeds, settings.batch, request.quiet)
    widths = [(f"classic-{request.cell}", width) for width in settings.classic_widths]
    widths += [(request.attention, width) for width in settings.attention_widths]
    if "capacity" not in request.parts:
        widths = [(name, width) for name, width in widths if width == settings.common_width]
    return TrainedSystems(tuple(_system(place, shared, name, width) for name, width in widths), shared, limit)


def _system(place: RunSettings, shared: SharedInput, name: str, width: int) -> System:
    model: dict[str, Any] = {**shared.values["model"], "hidden_size": width}
    if system_options(name)["decoder"] == "luong":
        model["input_feeding"] = False  # it would be a second difference from the classic system
    config = system_config({**shared.values, "model": model}, name)
    return trained_system(place, f"{name}-{width}", config)


def check_attention(name: str) -> None:
    """Raise ConfigError unless a system has attention and a recurrent decoder."""
    if system_options(name)["decoder"] not in ("bahdanau", "luong"):
        raise ConfigError(f"attention {name!r}: expected a system with attention and recurrence, such as luong-general")


class SystemOutputs(NamedTuple):
    """A system's outputs (by seed) on the items, or on some of them, and their measure."""

    outputs: list[list[str]]
    references: list[list[str]]

    def part(self, indices: Sequence[int]) -> SystemOutputs:
        """Only these items."""
        outputs = [[row[i] for i in indices] for row in self.outputs]
        return SystemOutputs(outputs, [self.references[i] for i in indices])


def finished(found: TrainedSystems) -> dict[str, SystemOutputs]:
    """Outputs of the systems that have a finished run, by name and width."""
    references = [item.references for item in found.shared.items]
    done = {system.name: [task for task in system.tasks if state(task.folder) == "done"] for system in found.systems}
    return {
        name: SystemOutputs([read_outputs(task.folder, len(references)) for task in tasks], references)
        for name, tasks in done.items()
        if tasks
    }


def parameters(found: TrainedSystems, name: str) -> int:
    """Weights of a system."""
    system = next(system for system in found.systems if system.name == name)
    done = next(task for task in system.tasks if state(task.folder) == "done")
    return int(read_tested(done.folder)["parameters"])


def lengths_results(request: BottleneckRequest, found: TrainedSystems) -> dict[str, Any]:
    """Experiment 1: quality by length at the common width, and what is lost from short sources to long ones."""
    metric = TASK_METRICS[found.shared.kind][0]
    lengths, unit = arithmetic.source_lengths([item.source for item in found.shared.items])
    wanted = bounds(found.limit)
    sides = [
        [i for i, n in enumerate(lengths) if n <= wanted.near],
        [i for i, n in enumerate(lengths) if wanted.far <= n <= wanted.limit],
        [i for i, n in enumerate(lengths) if n > wanted.limit],
    ]
    width = request.settings.common_width
    groups = finished(found)
    edges = filled(lengths, sorted({max(1, round(found.limit * part / 4)) for part in range(1, 9)}))
    systems: list[dict[str, Any]] = []
    falls: list[Fall] = []
    for name in (f"classic-{request.cell}-{width}", f"{request.attention}-{width}"):
        group = groups.get(name)
        if group is None:
            continue
        by_length = arithmetic.by_length(lengths, group.outputs, group.references, metric, edges=edges, draw_seeds=True)
        fall = measure_fall(group, sides[:2], metric)
        falls.append(fall)
        row = {"name": name, "parameters": parameters(found, name), **fall_numbers(fall)}
        row["beyond"] = beyond(group.part(sides[2]), metric) if sides[2] else None
        systems.append({**row, "by_length": [asdict(score) for score in by_length]})
    result = {"metric": metric, "unit": unit, **wanted._asdict(), "width": width, "systems": systems}
    if len(falls) == 2:
        result |= compare_falls(*falls, metric=metric)
    return result


class Fall(NamedTuple):
    """A system on short and on long sources: the metric on each bootstrap resample, each side drawn for itself."""

    short: Measured
    long: Measured


def measure_fall(group: SystemOutputs, sides: Sequence[Sequence[int]], metric: str) -> Fall:
    """Measure a system on short and on long sources."""
    parts = [group.part(side) for side in sides]
    short, long = (_measure(part, metric, seed=SEED + i) for i, part in enumerate(parts))
    return Fall(short, long)


def _measure(part: SystemOutputs, metric: str, *, seed: int = SEED) -> Measured:
    """What is said is of systems: their seeds are drawn again as well."""
    return arithmetic.measure(part.outputs, part.references, metric, seed=seed, draw_seeds=True)


def beyond(part: SystemOutputs, metric: str) -> dict[str, float]:
    """The measure on sources that are longer than any of training."""
    found = arithmetic.summarise(_measure(part, metric))
    return Span(found.value, found.low, found.high)._asdict()


def fall_numbers(fall: Fall) -> dict[str, Any]:
    """Both sides, and the change from short to long, each with its interval."""
    short, long = (arithmetic.summarise(side) for side in fall)
    change = Span(long.value - short.value, *percentiles(fall.long.resampled - fall.short.resampled))
    return {
        "short": Span(short.value, short.low, short.high)._asdict(),
        "long": Span(long.value, long.low, long.high)._asdict(),
        "change": change._asdict(),
    }


def compare_falls(classic: Fall, attention: Fall, *, metric: str) -> dict[str, Any]:
    """How much more quality the classic system loses: in points, and (where more is better) in its share kept."""
    sign = -1.0 if better(metric) == "lower" else 1.0
    lost = [sign * (fmean(fall.short.by_seed) - fmean(fall.long.by_seed)) for fall in (classic, attention)]
    resampled = [sign * (fall.short.resampled - fall.long.resampled) for fall in (classic, attention)]
    result: dict[str, Any] = {"more_lost": Span(lost[0] - lost[1], *percentiles(resampled[0] - resampled[1]))._asdict()}
    if sign > 0 and all(fmean(fall.short.by_seed) > 0 for fall in (classic, attention)):
        kept = [fmean(fall.long.by_seed) / fmean(fall.short.by_seed) for fall in (classic, attention)]
        shares = [_shares(fall) for fall in (classic, attention)]
        result["kept"] = kept
        result["less_kept"] = Span(kept[1] - kept[0], *percentiles(shares[1] - shares[0]))._asdict()
    return result


def _shares(fall: Fall) -> FloatArray:
    return np.asarray(fall.long.resampled / np.maximum(fall.short.resampled, 1e-9))


def capacity_results(request: BottleneckRequest, found: TrainedSystems) -> dict[str, Any]:
    """Experiment 2: quality against width on lengths seen in training, and the widest against attention."""
    metric = TASK_METRICS[found.shared.kind][0]
    lengths, _ = arithmetic.source_lengths([item.source for item in found.shared.items])
    short = [i for i, length in enumerate(lengths) if length <= found.limit]
    measured: dict[str, Measured] = {}
    rows: list[dict[str, Any]] = []
    for name, group in finished(found).items():
        part = group.part(short)
        measured[name] = _measure(part, metric)
        kind, _, width = name.rpartition("-")
        summary = arithmetic.summarise(measured[name])
        rows.append({"system": kind, "width": int(width), "parameters": parameters(found, name), **summary._asdict()})
    result: dict[str, Any] = {"metric": metric, "limit": found.limit, "items": len(short), "systems": rows}
    return result | compare_widths(request, rows, measured)


def compare_widths(
    request: BottleneckRequest, rows: Sequence[dict[str, Any]], measured: dict[str, Measured]
) -> dict[str, Any]:
    """The narrowest attention against the widest classic system, and what widening does to the latter."""
    kinds = {
        kind: [row for row in rows if row["system"] == kind] for kind in (f"classic-{request.cell}", request.attention)
    }
    classic, attention = kinds.values()
    if not classic or not attention:
        return {}
    widest, narrowest = max(classic, key=_width), min(classic, key=_width)
    small = min(attention, key=_width)
    names = [f"{row['system']}-{row['width']}" for row in (small, widest, narrowest)]
    found = [measured[name] for name in names]
    return {
        "widest": names[1],
        "narrowest": names[2],
        "attention": names[0],
        "attention_minus_widest": arithmetic.difference(found[0], found[1])._asdict(),
        "widest_minus_narrowest": arithmetic.difference(found[1], found[2])._asdict(),
    }


def _width(row: dict[str, Any]) -> int:
    return int(row["width"])
