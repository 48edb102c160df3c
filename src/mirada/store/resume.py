"""What a stopped training needs to go on exactly: collected into one file, and put back."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from mirada.config.options import Config
from mirada.errors import ModelFolderError, TrainingError
from mirada.store import checkpoint
from mirada.store.checkpoint import Archive
from mirada.store.progress import Progress
from mirada.store.state import check_tensors, read_progress

# Options that may change between a training and its continuation: they say when to stop, not what is learned.
BUDGET = {"epochs", "max_updates", "max_minutes", "patience", "device", "tensorboard", "save_every", "keep_best"}
# Where the pairs stand, and how they are read: whether they are the same pairs, their fingerprint says.
PLACES = {
    *(f"{part}{name}" for part in ("", "dev_") for name in ("src", "tgt", "tsv", "jsonl", "dataset")),
    *("prepared", "prepare_above"),
    *("source_column", "target_column", "source_key", "target_key", "dev_size"),
    *("init_from", "source_embeddings", "target_embeddings"),
}
# … unless the schedule's shape depends on the last update.
ENDING = {"epochs", "max_updates", "max_minutes"}


class Saved(NamedTuple):
    """A state to go on with: its tensors, and where the training stood."""

    tensors: dict[str, Tensor]
    progress: Progress


def collect(
    progress: Progress, model: nn.Module, optimizer: torch.optim.Optimizer, average: dict[str, Tensor], config: Config
) -> Archive:
    """Everything that a continuation needs, as named tensors and metadata."""
    tensors = {f"model.{name}": weights for name, weights in checkpoint.weights_of(model).items()}
    tensors |= {f"average.{name}": weights for name, weights in average.items()}
    for index, state in optimizer.state_dict()["state"].items():
        tensors |= {f"optimizer.{index}.{name}": value for name, value in state.items()}
    tensors["random"] = torch.get_rng_state()
    if torch.cuda.is_available():
        tensors["random_cuda"] = torch.cuda.get_rng_state()
    return Archive(tensors, {"progress": asdict(progress), "model": checkpoint.shaping(config)})


def restore(saved: Saved, model: nn.Module, optimizer: torch.optim.Optimizer, average: dict[str, Tensor]) -> Progress:
    """Put everything back; returns where the training stood.

    Raises ModelFolderError for a state that is not of this model.
    """
    weights = checkpoint.weights_of(model)
    check_tensors(saved.tensors, weights, bool(average), saved.progress.updates, checkpoint.RESUME)
    _restore_random(saved.tensors)
    checkpoint.put_weights(model, _part(saved, "model."))
    for name, value in _part(saved, "average.").items():
        average[name].copy_(value)
    state: dict[int, dict[str, Tensor]] = {}
    for name, value in _part(saved, "optimizer.").items():
        index, key = name.split(".", 1)
        state.setdefault(int(index), {})[key] = value
    optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})
    return saved.progress


def _restore_random(tensors: dict[str, Tensor]) -> None:
    try:
        torch.set_rng_state(tensors["random"])
        if torch.cuda.is_available() and "random_cuda" in tensors:
            torch.cuda.set_rng_state(tensors["random_cuda"])
    except (RuntimeError, TypeError) as error:
        raise ModelFolderError(f"{checkpoint.RESUME}: its random state is none of PyTorch's ({error})") from None


def read(folder: Path, config: Config, data: str) -> Saved | None:
    """The saved state in a folder, None if there is none to go on with.

    Raises TrainingError if it belongs to other options or other data: a folder is never silently started anew.
    """
    from mirada.evaluation.metrics import resolve

    if not (folder / checkpoint.CONFIG).exists():
        return None
    changes = differences(checkpoint.read_config(folder), config)
    if changes:
        raise TrainingError(
            f"{folder} holds a training with other options ({'; '.join(changes[:3])}); "
            "choose another model_dir (init_from begins there with these weights), or give the same options to go on"
        )
    if not (folder / checkpoint.RESUME).exists():
        return None
    sketch = checkpoint.sketch(config, checkpoint.read_tokenizers(folder, config))
    numbers = sum(map(torch.numel, sketch.parameters()))  # model, average, Adam's two moments
    most = checkpoint.HEADER_BYTES + 4 * 8 * numbers
    archive = checkpoint.read_archive(folder / checkpoint.RESUME, most=most)
    checkpoint.check_options(folder, archive.metadata, config)
    metrics = resolve(config.training.valid_metrics)
    progress = read_progress(archive.metadata, metrics, str(folder / checkpoint.RESUME))
    if progress.data != data:
        raise TrainingError(
            f"{folder} was trained on other pairs: the data files have changed; choose another model_dir"
        )
    return Saved(archive.tensors, progress)


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


def _part(saved: Saved, prefix: str) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): value for name, value in saved.tensors.items() if name.startswith(prefix)}


def _show(value: Any) -> str:
    return "not given" if value is None else str(value)
