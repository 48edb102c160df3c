"""The options of a model folder, readable without torch."""

from __future__ import annotations

from pathlib import Path

from mirada.config import configfile
from mirada.config.options import Config
from mirada.errors import ConfigError, ModelFolderError

CONFIG = "config.yaml"


def read_config(folder: Path) -> Config:
    """The options of a model folder; raises ModelFolderError if there are none."""
    if not folder.is_dir():
        raise ModelFolderError(f"{folder}: no such model folder")
    if not (folder / CONFIG).is_file():
        raise ModelFolderError(f"{folder}: not a model folder ({CONFIG} is missing)")
    try:
        return configfile.load(folder / CONFIG, stored=True)
    except ConfigError as error:
        raise ModelFolderError(str(error)) from None
