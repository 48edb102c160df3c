"""Whether a resumable state is one that this training can have written: names, kinds, shapes, ranges."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from math import isfinite
from typing import Any

import torch
from pydantic import TypeAdapter, ValidationError
from torch import Tensor

from mirada.errors import ModelFolderError
from mirada.store.progress import Progress

MEASURES = ("loss", "ppl", "accuracy")  # of every validation; the metrics that were asked for stand beside them


def read_progress(metadata: Mapping[str, Any], metrics: Iterable[str], where: str) -> Progress:
    """Where a training stood; what an older version did not know has its default.

    Raises ModelFolderError, naming what cannot be.
    """
    found = _parsed(metadata.get("progress"))
    if found is None:
        raise ModelFolderError(f"{where}: its progress is damaged or from another version")
    counts = ("epoch", "position", "updates", "best_update", "bad_updates", "bad_in_a_row")
    wrong = [name for name in (*counts, "since_plateau", "without_improvement") if getattr(found, name) < 0]
    wrong += [
        name for name in ("epoch", "best_update", "validated", "bad_updates") if getattr(found, name) > found.updates
    ]
    wrong += ["rate_factor"] * (not 0 < found.rate_factor <= 1) + [
        name
        for name in ("seconds", "validated_at", "validation_seconds")
        if not 0 <= getattr(found, name) < float("inf")
    ]
    wrong += ["without_improvement"] * (found.without_improvement > len(found.validations))
    expected = {*MEASURES, *metrics}
    rows = [set(row) for row in found.validations]
    wrong += ["validations"] * any(row != expected | {"epoch", "update"} for row in rows)
    best = found.best_metrics
    wrong += ["best_metrics"] * (bool(best) and (set(best) != expected or not isfinite(best["loss"])))
    if wrong:
        value = str(getattr(found, wrong[0]))
        raise ModelFolderError(f"{where}: {wrong[0]} is {value[:60]}, which no training of these options has; altered?")
    return found


def _parsed(progress: Any) -> Progress | None:
    """All values of a Progress, each of its type, or nothing."""
    if not isinstance(progress, dict) or not set(progress) <= {entry.name for entry in fields(Progress)}:
        return None
    try:
        return TypeAdapter(Progress).validate_json(json.dumps(progress), strict=True)
    except ValidationError:
        return None


def check_tensors(
    found: Mapping[str, Tensor], weights: Mapping[str, Tensor], averaged: bool, updates: int, where: str
) -> None:
    """Raise ModelFolderError unless these are the weights, their average, Adam's moments and a random state."""
    random = torch.get_rng_state()
    needed = {f"model.{name}": value for name, value in weights.items()} | {"random": random}
    needed |= {f"average.{name}": value for name, value in weights.items()} if averaged else {}
    adam = {"step": torch.zeros(()), "exp_avg": None, "exp_avg_sq": None}
    own = {
        f"optimizer.{index}.{name}": value if like is None else like
        for index, value in enumerate(weights.values())
        for name, like in adam.items()
    }
    begun = {name.rsplit(".", 1)[0] for name in found if name in own}
    needed |= {name: value for name, value in own.items() if name.rsplit(".", 1)[0] in begun}
    problems = [f"{name} is missing" for name in needed if name not in found]
    problems += [f"{name[:80]} is of another training" for name in found if name not in {*needed, "random_cuda"}]
    problems += [
        f"{name} is {found[name].dtype} {list(found[name].shape)}, expected {like.dtype} {list(like.shape)}"
        for name, like in needed.items()
        if name in found and (found[name].dtype, found[name].shape) != (like.dtype, like.shape)
    ]
    problems += [] if problems else _strange_numbers(found, updates)
    if problems:
        raise ModelFolderError(f"{where}: {problems[0]}; choose another model_dir")


def _strange_numbers(found: Mapping[str, Tensor], updates: int) -> list[str]:
    """What is wrong with numbers of the right kind and shape."""
    rules: list[tuple[str, str, Callable[[Tensor], bool]]] = [
        ("", "holds values that are no numbers (NaN or infinite)", _finite),
        (".exp_avg_sq", "holds negative values, which no mean of squares is", lambda part: bool((part >= 0).all())),
        (
            ".step",
            f"is no number of updates up to {updates}",
            lambda part: 0 <= part.item() <= updates and not part.item() % 1,
        ),
    ]
    return [
        f"{name} {says}"
        for end, says, good in rules
        for name, part in found.items()
        if name.endswith(end) and part.is_floating_point() and part.numel() and not good(part)
    ]


def _counts(value: float, most: int) -> bool:
    return 0 <= value <= most and value == int(value)


def _finite(part: Tensor) -> bool:
    return all(bool(edge.isfinite()) for edge in part.aminmax())  # NaN would be both edges
