"""Models on the Hugging Face hub: `hf:USER/NAME` to fetch one, `push` to share one. Safetensors, JSON and YAML only.

huggingface_hub does the talking: its cache, HF_TOKEN, HF_ENDPOINT and HF_HUB_OFFLINE are honoured.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from mirada.errors import ConfigError, MiradaError, ModelFolderError

PREFIX = "hf:"
NAME = re.compile(r"([\w.-]+/[\w.-]+)(?:@([\w./-]+))?")
# What is fetched and what is shared: nothing else of a repository is looked at.
MODEL = ("config.yaml", "model.safetensors", "source.json", "target.json", "metrics.json")
EXPORTED = ("export.json", "encode.onnx", "start.onnx", "step.onnx")
CARD = "README.md"


def located(name: str) -> str:
    """A model's folder as the command line takes it: a path as it is, `hf:USER/NAME[@REVISION]` fetched.

    Raises ConfigError for what is no such name, ModelFolderError where the hub does not give it.
    """
    return str(fetch(name.removeprefix(PREFIX))) if name.startswith(PREFIX) else name


def is_shared(name: str) -> bool:
    """Whether this may be a model on the hub: USER/NAME, and no such path here."""
    return NAME.fullmatch(name) is not None and not Path(name).exists() and not Path(name).parent.is_dir()


def fetch(name: str) -> Path:
    """The folder of USER/NAME or USER/NAME@REVISION, from the cache where it is there; raises as `located` does."""
    repository, revision = _parsed(name)
    library = _library()
    try:
        folder = library.snapshot_download(
            repository,
            revision=revision,
            allow_patterns=[*MODEL, *EXPORTED],
            endpoint=os.environ.get("HF_ENDPOINT"),
            cache_dir=os.environ.get("HF_HUB_CACHE"),
            local_files_only=os.environ.get("HF_HUB_OFFLINE", "") in ("1", "true", "yes"),
        )
    except Exception as error:  # its own errors, those of the HTTP client, and the system's
        raise ModelFolderError(f"{name}: the hub does not give it ({_reason(error)})") from None
    return Path(folder)


def push(folder: Path, name: str, card: str, *, private: bool) -> str:
    """Upload a model folder with its card, as one commit; returns its address. Raises MiradaError where that fails."""
    repository, revision = _parsed(name)
    files = [part for part in (*MODEL, *EXPORTED) if (folder / part).is_file()]
    if "config.yaml" not in files or not {"model.safetensors", "step.onnx"} & set(files):
        raise ModelFolderError(f"{folder}: neither a model folder nor an exported model")
    library = _library()
    api = library.HfApi(endpoint=os.environ.get("HF_ENDPOINT"))
    changes = [library.CommitOperationAdd(part, str(folder / part)) for part in files]
    changes.append(library.CommitOperationAdd(CARD, card.encode()))
    try:
        api.create_repo(repository, private=private, exist_ok=True)
        done = api.create_commit(repository, changes, commit_message="A mirada model", revision=revision)
    except Exception as error:  # as above
        raise MiradaError(f"{name}: the hub did not take it ({_reason(error)})") from None
    return str(done.commit_url)


def _parsed(name: str) -> tuple[str, str | None]:
    match = NAME.fullmatch(name)
    if match is None:
        raise ConfigError(f"{name!r} is no name of a model on the hub; expected USER/NAME or USER/NAME@REVISION")
    return match[1], match[2]


def _library() -> Any:
    try:
        import huggingface_hub
    except ModuleNotFoundError:
        raise ConfigError("models on the hub need huggingface_hub: pip install 'mirada[hub]'") from None
    return huggingface_hub


def _reason(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return (lines[0] if lines else type(error).__name__)[:200]
