"""Open a model wherever it is, by whatever engine it needs: the one place that chooses between torch and graphs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

from mirada import runtime
from mirada.errors import ConfigError
from mirada.runtime.folder import is_exported

if TYPE_CHECKING:
    from mirada.translator import Translator


def load(
    folder: str | Path,
    *,
    device: str = "auto",
    precision: Literal["float32", "int8"] = "float32",
    workers: int | None = None,
) -> Translator | runtime.Translator:
    """Load a model folder, or the folder of an exported model, which needs no torch.

    Raises ModelFolderError, naming what is wrong with it, and ConfigError for a precision or device that an exported
    model has not.
    """
    where = Path(folder).expanduser()
    if is_exported(where):
        return _exported(where, device, precision, workers)
    from mirada import translator

    return translator.load(where, device=device, precision=precision, workers=workers)


def _exported(where: Path, device: str, precision: str, workers: int | None) -> runtime.Translator:
    if device not in ("auto", "cpu"):
        raise ConfigError(f"{where}: an exported model runs on a CPU, not on device {device!r}")
    model = runtime.load(where, workers=workers)
    if precision == "int8" and model.precision != "int8":
        raise ConfigError(f"{where}: exported in {model.precision}; export the model with --precision int8")
    return model
