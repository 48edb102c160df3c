"""Sequence-to-sequence models with and without attention: train, run, compare and look inside.

>>> import mirada
>>> model = mirada.load("runs/luong")
>>> model.translate(["How are you?"])
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mirada.client import AsyncClient, Client
    from mirada.config.options import Config, SearchConfig
    from mirada.errors import MiradaError
    from mirada.loading import load
    from mirada.texts import Scored, Translation
    from mirada.train.loop import train
    from mirada.translator import Translator

    __version__: str

_HOMES = {
    "AsyncClient": "mirada.client",
    "Client": "mirada.client",
    "Config": "mirada.config.options",
    "MiradaError": "mirada.errors",
    "Scored": "mirada.texts",
    "SearchConfig": "mirada.config.options",
    "Translation": "mirada.texts",
    "Translator": "mirada.translator",
    "load": "mirada.loading",
    "train": "mirada.train.loop",
}

__all__ = [
    "AsyncClient",
    "Client",
    "Config",
    "MiradaError",
    "Scored",
    "SearchConfig",
    "Translation",
    "Translator",
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
