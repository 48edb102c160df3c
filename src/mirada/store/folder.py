"""The options of a model folder, readable without torch."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from mirada.config import configfile
from mirada.config.options import Config
from mirada.errors import ConfigError, ModelFolderError

CONFIG = "config.yaml"


def read_config(folder: Path) -> Config:
    """The options of a model folder; raises ModelFolderError if there are none."""
    if not folder.is_dir():
        raise ModelFolderError(_no_folder(folder))
    try:
        str(folder).encode("utf-8")
    except UnicodeEncodeError:
        raise ModelFolderError(f"{folder}: the name is not UTF-8; give the folder another name") from None
    if not (folder / CONFIG).is_file():
        raise ModelFolderError(f"{folder}: not a model folder ({CONFIG} is missing{_holds(folder)})")
    try:
        return configfile.load(folder / CONFIG, stored=True)
    except ConfigError as error:
        raise ModelFolderError(str(error)) from None


def _no_folder(folder: Path) -> str:
    """What stands here instead of a model folder, and what to do."""
    if folder.is_file() and (folder.parent / CONFIG).is_file():
        return f"{folder}: a file of a model; give its folder, {folder.parent}"
    if folder.exists():
        return f"{folder}: a file, expected a model folder; texts to translate are read from standard input or --input"
    if len(str(folder).split()) > 1:
        return f"{folder}: no such model folder; the model comes first, then what to do with it"
    return f"{folder}: no such model folder"


def _holds(folder: Path) -> str:
    """`; it holds the models a, b` where folders below are models."""
    with suppress(OSError):
        models = sorted(path.parent.name for path in folder.glob(f"*/{CONFIG}"))
        return f"; it holds the models {', '.join(models[:5])}{' …' if len(models) > 5 else ''}" if models else ""
    return ""
