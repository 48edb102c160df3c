"""Several models of one training, or of trainings with one beginning, as one: the mean of their weights."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import torch

from mirada.errors import ModelFolderError
from mirada.store import checkpoint


def average_models(folders: Sequence[Path], out: Path) -> None:
    """Write a model folder whose weights are the mean of the given models', each weight added up in float64.

    Raises ModelFolderError if a model has other options or vocabularies than the first, or if `out` holds one already.
    """
    if out.exists() and any(out.iterdir() if out.is_dir() else [out]):
        raise ModelFolderError(f"{out}: exists already; choose another --out")
    cpu = torch.device("cpu")
    first = checkpoint.load_model(folders[0], cpu)
    sums = {name: weights.double() for name, weights in checkpoint.weights_of(first.model).items()}
    for folder in folders[1:]:
        other = checkpoint.load_model(folder, cpu)
        _check_alike(folders[0], folder, first, other)
        for name, weights in checkpoint.weights_of(other.model).items():
            sums[name] += weights
    checkpoint.put_weights(first.model, {name: weights / len(folders) for name, weights in sums.items()})
    out.mkdir(parents=True, exist_ok=True)
    config = first.config.model_copy(update={"model_dir": str(out)})
    checkpoint.write_start(out, config, first.source, first.target)
    checkpoint.write_model(out, first.model, {"averaged": [str(folder) for folder in folders]}, config)


def _check_alike(first: Path, folder: Path, one: checkpoint.Loaded, other: checkpoint.Loaded) -> None:
    options = [checkpoint.shaping(loaded.config) for loaded in (one, other)]
    wrong = [name for name in options[0] if options[0][name] != options[1][name]]
    if wrong:
        name = wrong[0]
        raise ModelFolderError(
            f"{folder}: {name} is {options[1][name]}, but {options[0][name]} in {first}; only equal models have a mean"
        )
    for name in checkpoint.TOKENIZERS:
        if (first / name).read_bytes() != (folder / name).read_bytes():
            raise ModelFolderError(f"{folder / name}: not the vocabulary of {first}; only equal models have a mean")
