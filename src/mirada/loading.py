"""Open a model wherever it is, by whatever engine it needs: the one place that chooses between torch and graphs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from mirada import runtime
from mirada.errors import ConfigError
from mirada.files import expanded
from mirada.hub import fetch, is_shared, located
from mirada.runtime.folder import is_exported

if TYPE_CHECKING:
    from mirada.translator import Translator


def load(
    folder: str | Path | Sequence[str | Path],
    *,
    device: str = "auto",
    precision: Literal["float32", "int8"] = "float32",
    workers: int | None = None,
    ensemble_mode: Literal["linear", "log_linear"] = "linear",
) -> Translator | runtime.Translator:
    """Load a model folder, several as an ensemble, an exported model, which needs no torch, or a model on the hub.

    A model on the hub is `hf:USER/NAME`, or USER/NAME where neither that nor a folder USER is here; a Path is never
    one. `ensemble_mode`: of several models the mean of the probabilities (linear) or of the log-probabilities
    (log_linear). Raises ModelFolderError, naming what is wrong with a folder, and ConfigError for models that are no
    ensemble or for a precision or device that an exported model has not.
    """
    folders = located_all(folder)
    if not folders:
        raise ConfigError("no model folder; give one, or several for an ensemble")
    exported = [where for where in folders if is_exported(where)]
    if len(folders) > 1 and exported:
        raise ConfigError(f"{exported[0]}: an exported model; an ensemble is made of the folders of trained models")
    if exported:
        return _exported(exported[0], device, precision, workers)
    from mirada import translator

    return translator.load(folders, device=device, precision=precision, workers=workers, ensemble_mode=ensemble_mode)


def located_all(folder: str | Path | Sequence[str | Path]) -> list[Path]:
    """The folder of every model that is named; raises ConfigError for what is no name."""
    names = [folder] if isinstance(folder, str | Path) else list(folder) if isinstance(folder, Iterable) else [folder]
    return [_found(one) for one in names]


def _found(name: str | Path) -> Path:
    """Where a model is, after it has been fetched if need be."""
    if not isinstance(name, str | Path):
        raise ConfigError(f"a model is named by its folder or as USER/NAME, not by {type(name).__name__}")
    if isinstance(name, str):
        name = fetch(name) if is_shared(name) else located(name)
    return expanded(name)


def _exported(where: Path, device: str, precision: str, workers: int | None) -> runtime.Translator:
    if device not in ("auto", "cpu"):
        raise ConfigError(f"{where}: an exported model runs on a CPU, not on device {device!r}")
    model = runtime.load(where, workers=workers)
    if precision == "int8" and model.precision != "int8":
        raise ConfigError(f"{where}: exported in {model.precision}; export the model with --precision int8")
    return model
