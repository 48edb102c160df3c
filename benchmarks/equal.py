"""The classic system that a system with attention is held against: equal pairs, tokens, updates, and weights."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mirada.config.configfile import dump, parse
from mirada.config.model import applicable
from mirada.config.options import Config
from mirada.files import write_text
from mirada.store import checkpoint
from mirada.study.compare.systems import ENDLESS, Vocabularies, count_weights, match_weights


def write_classic(folder: Path, out: Path) -> None:
    """Write the options of the classic system for the training that is done in `folder`.

    Raises SystemExit if there is none.
    """
    if not (folder / checkpoint.RESUME).exists():
        raise SystemExit(
            f"{folder}: no training there, whose weights and updates the classic system gets; run it first"
        )
    updates, _ = progress(folder)
    stored, sizes = checkpoint.read_config(folder), vocabularies(folder)
    classic = parse(without_attention(stored, updates), where=str(folder))
    write_text(out, dump(match_weights(classic, count_weights(stored.model, sizes), sizes)))


def without_attention(stored: Config, updates: int) -> dict[str, Any]:
    """The options of a system with attention less all that is of attention, for so many updates.

    Where the output layer is the embedding, the state is as wide as the embedding; a direction of the encoder is as
    wide as the state, which it has to fill alone.
    """
    values = stored.model_dump(exclude={"model_dir"})
    model = {name: value for name, value in values["model"].items() if name not in ("score", "encoder_hidden_size")}
    model = applicable({**model, "decoder": "classic"})
    if model["tied_softmax"]:
        model["embedding_dim"] = model["hidden_size"]
    ends = {"max_updates": updates, "epochs": ENDLESS, "patience": ENDLESS, "max_minutes": None, "coverage_weight": 1.0}
    return {**values, "model": model, "training": {**values["training"], **ends}}


def progress(folder: Path) -> tuple[int, float]:
    """Updates of a training so far, and its seconds, of all times that it went on."""
    found = checkpoint.read_archive(folder / checkpoint.RESUME).metadata["progress"]
    return found["updates"], found["seconds"]


def weights(folder: Path) -> int:
    """Trained weights of a model, shared ones once."""
    return count_weights(checkpoint.read_config(folder).model, vocabularies(folder))


def vocabularies(folder: Path) -> Vocabularies:
    """How many tokens each side has."""
    source, target = checkpoint.read_tokenizers(folder, checkpoint.read_config(folder))
    return Vocabularies(len(source), len(target))
