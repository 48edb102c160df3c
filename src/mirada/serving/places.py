"""What is served: folders by name, their languages, and what can be said of a model that is not loaded."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

import torch
from safetensors import SafetensorError, safe_open

from mirada.config.serving import ServeConfig
from mirada.errors import ConfigError, ModelFolderError
from mirada.files import expanded
from mirada.hub import located
from mirada.models import build_model
from mirada.serving.schemas import ModelAnswer
from mirada.store.checkpoint import WEIGHTS, read_config, read_tokenizers

UNKNOWN = "und"  # ISO 639-2: undetermined


class Place(NamedTuple):
    """A served model's name, folder and languages."""

    name: str
    folder: Path
    source: str
    target: str


def places(settings: ServeConfig) -> dict[str, Place]:
    """The models to be served, by name; raises ConfigError for two with one name, and for what is not understood."""
    found: dict[str, Place] = {}
    for model in settings.models:
        name, equals, folder = model.partition("=")
        path = expanded(located(folder if equals else model))
        name = name if equals else expanded(model).resolve().name
        if name in found:
            raise ConfigError(f"models: two are named {name!r}; give one another name: NAME={path}")
        found[name] = Place(name, path, UNKNOWN, UNKNOWN)
    if not found:
        raise ConfigError("models: none is given; name a model folder: mirada serve FOLDER")
    spoken = {name: _languages(place.folder) for name, place in found.items()}
    for text in settings.languages:
        name, _, pair = text.partition("=")
        source, dash, target = pair.partition("-")
        if name not in found or not (source and dash and target):
            raise ConfigError(f"languages: expected NAME=SOURCE-TARGET of a served NAME (a=en-es), got {text!r}")
        spoken[name] = (source, target)
    return {name: place._replace(source=spoken[name][0], target=spoken[name][1]) for name, place in found.items()}


def _languages(folder: Path) -> tuple[str, str]:
    """Languages by the endings of the files that a model was trained on: train.en and train.es."""
    data = read_config(folder).data
    return _ending(data.src), _ending(data.tgt)


def _ending(path: str | None) -> str:
    parts = [part[1:] for part in Path(path or "").suffixes if part not in (".gz", ".xz")]
    return parts[-1] if parts and len(parts[-1]) in (2, 3) else UNKNOWN


def card(place: Place) -> ModelAnswer:
    """What can be said of a model without loading it; raises ModelFolderError."""
    config = read_config(place.folder)
    sides = read_tokenizers(place.folder, config)
    with torch.device("meta"):
        sketch = build_model(config.model, source_vocab=len(sides[0]), target_vocab=len(sides[1]))
    return ModelAnswer(
        name=place.name,
        source=place.source,
        target=place.target,
        system={**config.model.model_dump(), "score": config.model.score_name},
        search=config.search.model_dump(),
        source_vocabulary=len(sides[0]),
        target_vocabulary=len(sides[1]),
        parameters=sum(parameter.numel() for parameter in sketch.parameters()),
        metrics=_metrics(place.folder),
        loaded=False,
    )


def _metrics(folder: Path) -> dict[str, Any]:
    """The metrics in the header of the weights."""
    try:
        with safe_open(folder / WEIGHTS, framework="pt") as stream:
            metadata = json.loads((stream.metadata() or {}).get("note", "{}"))
        return dict(metadata.get("metrics") or {})
    except (SafetensorError, OSError, ValueError, AttributeError, TypeError):
        raise ModelFolderError(f"{folder / WEIGHTS}: missing or damaged; the folder holds no complete model") from None
