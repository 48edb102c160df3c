"""The N best models of a training, each a folder that loads, for `mirada average`."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from math import isfinite
from pathlib import Path

from torch import nn

from mirada.config.options import Config
from mirada.store import checkpoint
from mirada.store.progress import judged_by, sign_of

KEPT = "kept"


def keep_best(
    folder: Path, model: nn.Module, config: Config, validations: Sequence[Mapping[str, float]], judge: str
) -> None:
    """Keep the model of the last validation if it is among the `keep_best` best, and no longer those that are not."""
    name = judged_by(validations, judge)
    measured = [row for row in validations if isfinite(row[name])]
    best = sorted(measured, key=lambda row: (-sign_of(name) * row[name], row["update"]))[: config.training.keep_best]
    wanted = {_name(row) for row in best}
    if _name(validations[-1]) in wanted:
        place = folder / KEPT / _name(validations[-1])
        place.mkdir(parents=True, exist_ok=True)
        checkpoint.write_start(place, config, *checkpoint.read_tokenizers(folder, config))
        metrics = {name: value for name, value in validations[-1].items() if name not in ("epoch", "update")}
        metadata = {"metrics": metrics, "updates": int(validations[-1]["update"]), "best": False}
        checkpoint.write_model(place, model, metadata, config)
    for old in (folder / KEPT).glob("update-*"):
        if old.name not in wanted:
            shutil.rmtree(old)


def _name(row: Mapping[str, float]) -> str:
    return f"update-{int(row['update']):07}"
