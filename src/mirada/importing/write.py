"""What was read from another toolkit, as a model folder: whole, checked by loading it, or not there."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from mirada.config import configfile
from mirada.config.options import Config
from mirada.data.tokenizer import Tokenizer
from mirada.errors import ConfigError, ModelFolderError
from mirada.files import new_folder
from mirada.store import checkpoint


class Imported(NamedTuple):
    """A model of another toolkit under mirada's names, and what a user should know about it, a line each."""

    toolkit: str
    options: Mapping[str, Any]  # of the model
    weights: Mapping[str, Tensor]
    tokenizers: tuple[Tokenizer, Tokenizer]
    notes: list[str]


def write_imported(found: Imported, source: Path, out: Path) -> Config:
    """Write the model folder; raises MiradaError where something stands there, ModelFolderError for a bad model."""
    config = _config(found, source, out)
    model = checkpoint.sketch(config, found.tokenizers)
    _check(found, source, dict(model.named_parameters()))
    checkpoint.fill(model, found.weights)
    with new_folder(out) as folder:
        checkpoint.write_start(folder, config, *found.tokenizers)
        checkpoint.write_model(folder, model, {"metrics": {}, "imported": found.toolkit}, config)
        checkpoint.load_model(folder, torch.device("cpu"))
    return config


def _config(found: Imported, source: Path, out: Path) -> Config:
    shared = bool(found.options.get("tied_embeddings"))
    kinds = dict(zip(("source_tokenizer", "target_tokenizer"), (one.kind for one in found.tokenizers), strict=True))
    try:
        return configfile.parse(
            {"model_dir": str(out), "data": {**kinds, "share_vocab": shared}, "model": dict(found.options)}
        )
    except ConfigError as error:
        raise ModelFolderError(f"{source}: cannot be a model of mirada ({error})") from None


def _check(found: Imported, source: Path, expected: Mapping[str, Tensor]) -> None:
    """Raise ModelFolderError unless the weights are those of the options and the vocabularies."""
    for name in sorted(set(expected) ^ set(found.weights)):
        fault = "are missing" if name in expected else "are too many"
        raise ModelFolderError(f"{source}: the weights {name} {fault}")
    for name, tensor in found.weights.items():
        if tensor.shape != expected[name].shape:
            raise ModelFolderError(
                f"{source}: the weights {name} are {list(tensor.shape)}, options and vocabularies need "
                f"{list(expected[name].shape)}"
            )
