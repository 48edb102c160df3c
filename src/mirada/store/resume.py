"""What a stopped training needs to go on exactly: collected into one file, and put back."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from math import isfinite
from pathlib import Path
from typing import Any

import torch
from pydantic import TypeAdapter, ValidationError
from torch import Tensor, nn

from mirada.config.options import Config, TrainingConfig
from mirada.errors import ModelFolderError, TrainingError
from mirada.store import checkpoint
from mirada.store.checkpoint import Archive

# Options that may change between a training and its continuation: they say when to stop, not what is learned.
BUDGET = {"epochs", "max_updates", "max_minutes", "patience", "device", "tensorboard", "save_every"}
# Where the pairs stand, and how they are read: whether they are the same pairs, their fingerprint says.
PLACES = {
    *(f"{part}{name}" for part in ("", "dev_") for name in ("src", "tgt", "tsv", "jsonl")),
    *("source_column", "target_column", "source_key", "target_key", "dev_size"),
}
# … unless the schedule's shape depends on the last update.
ENDING = {"epochs", "max_updates"}


@dataclass
class Progress:
    """Where a training stands; plain numbers, written as JSON."""

    data: str  # fingerprint of the pairs
    epoch: int = 0
    position: int = 0  # batches of this epoch that are done
    updates: int = 0
    seconds: float = 0.0
    rate_factor: float = 1.0  # what plateaus have made of the learning rate
    since_plateau: int = 0
    without_improvement: int = 0
    validated: int = -1  # update of the last validation
    best_update: int = 0
    best_metrics: dict[str, float] = field(default_factory=dict)
    bad_updates: int = 0
    bad_in_a_row: int = 0
    validations: list[dict[str, float]] = field(default_factory=list)

    def note_validation(self, metrics: dict[str, float], options: TrainingConfig, judge: str) -> bool:
        """Count a validation; True if it is the best so far by the metric `judge`."""
        from mirada.evaluation.metrics import better

        name = judged_by([*self.validations, metrics], judge)
        sign = -1.0 if name == "loss" or better(name) == "lower" else 1.0
        first = not self.best_metrics
        improved = isfinite(metrics[name]) and (first or sign * metrics[name] > sign * self.best_metrics[name])
        self.validated = self.updates
        self.validations.append({"epoch": self.epoch + 1, "update": self.updates, **metrics})
        if improved:
            self.best_metrics, self.best_update = metrics, self.updates
            self.without_improvement = self.since_plateau = 0
            return True
        self.without_improvement += 1
        self.since_plateau += 1
        if options.scheduling == "plateau" and self.since_plateau > options.plateau_patience:
            self.rate_factor, self.since_plateau = self.rate_factor * options.decrease_factor, 0
        return False


def tells_nothing(validations: Sequence[Mapping[str, float]], metric: str) -> bool:
    """Whether a metric has been one value in all validations so far, two at least: it tells no model from another."""
    values = {row[metric] for row in validations if isfinite(row[metric])}
    return metric != "loss" and len(validations) > 1 and len(values) < 2


def judged_by(validations: Sequence[Mapping[str, float]], metric: str) -> str:
    """What says which model is the best: the metric, or the loss as long as that tells nothing."""
    return "loss" if tells_nothing(validations, metric) else metric


def collect(
    progress: Progress, model: nn.Module, optimizer: torch.optim.Optimizer, average: dict[str, Tensor]
) -> Archive:
    """Everything that a continuation needs, as named tensors and a note."""
    tensors = {f"model.{name}": weights for name, weights in checkpoint.weights_of(model).items()}
    tensors |= {f"average.{name}": weights for name, weights in average.items()}
    for index, state in optimizer.state_dict()["state"].items():
        tensors |= {f"optimizer.{index}.{name}": value for name, value in state.items()}
    tensors["random"] = torch.get_rng_state()
    if torch.cuda.is_available():
        tensors["random_cuda"] = torch.cuda.get_rng_state()
    return Archive(tensors, {"progress": asdict(progress)})


def restore(
    archive: Archive, model: nn.Module, optimizer: torch.optim.Optimizer, average: dict[str, Tensor]
) -> Progress:
    """Put everything back; returns where the training stood.

    Raises ModelFolderError for a state that is not of this model.
    """
    _check(archive.tensors, model, average)
    checkpoint.put_weights(model, _part(archive, "model."))
    for name, weights in _part(archive, "average.").items():
        average[name].copy_(weights)
    state: dict[int, dict[str, Tensor]] = {}
    for name, value in _part(archive, "optimizer.").items():
        index, key = name.split(".", 1)
        state.setdefault(int(index), {})[key] = value
    optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})
    torch.set_rng_state(archive.tensors["random"])
    if torch.cuda.is_available() and "random_cuda" in archive.tensors:
        torch.cuda.set_rng_state(archive.tensors["random_cuda"])
    return Progress(**archive.note["progress"])


def read(folder: Path, config: Config, data: str) -> Archive | None:
    """The saved state in a folder, None if there is none to go on with.

    Raises TrainingError if it belongs to other options or other data: a folder is never silently started anew.
    """
    if not (folder / checkpoint.CONFIG).exists():
        return None
    changes = differences(checkpoint.read_config(folder), config)
    if changes:
        raise TrainingError(
            f"{folder} holds a training with other options ({'; '.join(changes[:3])}); "
            "choose another model_dir, or give the same options to go on"
        )
    if not (folder / checkpoint.RESUME).exists():
        return None
    archive = checkpoint.read_archive(folder / checkpoint.RESUME)
    progress = archive.note.get("progress")
    if not isinstance(progress, dict) or not _usable(progress):
        raise ModelFolderError(f"{folder / checkpoint.RESUME}: its progress is damaged or from another version")
    if progress["data"] != data:
        raise TrainingError(
            f"{folder} was trained on other pairs: the data files have changed; choose another model_dir"
        )
    return archive


def differences(stored: Config, given: Config) -> list[str]:
    """Options that a continuation may not change, as `name: stored, now given`."""
    found = []
    for block in ("data", "model", "training"):
        old, new = getattr(stored, block).model_dump(), getattr(given, block).model_dump()
        fixed = set(old) - BUDGET - PLACES
        if block == "training" and given.training.scheduling in ("cosine", "linear"):
            fixed |= ENDING
        found += [
            f"{name} was {_show(old[name])}, now {_show(new[name])}" for name in sorted(fixed) if old[name] != new[name]
        ]
    return found


def _usable(progress: dict[str, Any]) -> bool:
    """Whether these are all the values of a Progress, each of its type."""
    if set(progress) != {entry.name for entry in fields(Progress)}:
        return False
    try:
        found = TypeAdapter(Progress).validate_json(json.dumps(progress), strict=True)
    except ValidationError:
        return False
    return min(found.epoch, found.position, found.updates) >= 0


def _check(found: dict[str, Tensor], model: nn.Module, average: dict[str, Tensor]) -> None:
    """Raise ModelFolderError unless the names and shapes of the tensors are those of this model and its Adam."""
    own = checkpoint.weights_of(model)
    needed = {f"model.{name}": weights.shape for name, weights in own.items()}
    needed |= {f"average.{name}": weights.shape for name, weights in average.items()}
    needed["random"] = torch.get_rng_state().shape
    allowed = dict(needed)
    for index, weights in enumerate(own.values()):
        shapes = {"step": torch.Size(), "exp_avg": weights.shape, "exp_avg_sq": weights.shape}
        allowed |= {f"optimizer.{index}.{name}": shape for name, shape in shapes.items()}
    strange = [name for name, tensor in found.items() if name in allowed and tensor.shape != allowed[name]]
    strange += [name for name in found if name not in allowed and name != "random_cuda"]
    strange += [name for name in needed if name not in found]
    if strange:
        raise ModelFolderError(f"{checkpoint.RESUME}: {strange[0][:80]} is not as these options need it")


def _part(archive: Archive, prefix: str) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): value for name, value in archive.tensors.items() if name.startswith(prefix)}


def _show(value: Any) -> str:
    return "not given" if value is None else str(value)
