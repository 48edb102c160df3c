"""Sequence-to-sequence models with and without attention: train, run, compare and look inside.

>>> import mirada
>>> model = mirada.load("runs/luong")
>>> model.translate(["", "How are you?"])[0]
''
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mirada.client import AsyncClient, Client
    from mirada.config.options import Config, SearchConfig
    from mirada.errors import ConfigError, DataError, MiradaError, ModelFolderError, TrainingError
    from mirada.notebook.comparing import Comparison, compare
    from mirada.notebook.explanation import Explanation
    from mirada.notebook.measuring import Evaluation
    from mirada.notebook.model import Model, load
    from mirada.notebook.training import train
    from mirada.texts import Scored, Translation
    from mirada.translator import Translator

    __version__: str

_HOMES = {
    "AsyncClient": "mirada.client",
    "Client": "mirada.client",
    "Comparison": "mirada.notebook.comparing",
    "Config": "mirada.config.options",
    "ConfigError": "mirada.errors",
    "DataError": "mirada.errors",
    "Evaluation": "mirada.notebook.measuring",
    "Explanation": "mirada.notebook.explanation",
    "MiradaError": "mirada.errors",
    "Model": "mirada.notebook.model",
    "ModelFolderError": "mirada.errors",
    "Scored": "mirada.texts",
    "SearchConfig": "mirada.config.options",
    "TrainingError": "mirada.errors",
    "Translation": "mirada.texts",
    "Translator": "mirada.translator",
    "compare": "mirada.notebook.comparing",
    "load": "mirada.notebook.model",
    "train": "mirada.notebook.training",
}

__all__ = [
    "AsyncClient",
    "Client",
    "Comparison",
    "Config",
    "ConfigError",
    "DataError",
    "Evaluation",
    "Explanation",
    "MiradaError",
    "Model",
    "ModelFolderError",
    "Scored",
    "SearchConfig",
    "TrainingError",
    "Translation",
    "Translator",
    "compare",
    "load",
    "train",
]


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used: `import mirada` itself is instant."""
    from importlib import import_module, metadata

    if name == "__version__":
        return metadata.version("mirada")
    if name not in _HOMES:
        raise AttributeError(f"module 'mirada' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    """The public names, and the version."""
    return ["__version__", *__all__]


class _Package(ModuleType):
    """Python sets `mirada.train` to the room of that name as soon as anything in it is imported: here it can be called.

    That is done here because the room stands below what a call needs.
    """

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "train" and isinstance(value, ModuleType):
            value.__class__ = _Train
        super().__setattr__(name, value)


class _Train(ModuleType):
    """The room `mirada.train` as the function `mirada.train`."""

    @property
    def __call__(self) -> Any:
        """Train a model: help(mirada.notebook.training.train)."""
        from mirada.notebook.training import train

        return train

    @property
    def __signature__(self) -> Any:
        from inspect import signature

        return signature(self.__call__)


sys.modules[__name__].__class__ = _Package
