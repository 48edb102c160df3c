"""Sequence-to-sequence models with and without attention: train, run, compare and look inside.

>>> import mirada
>>> model = mirada.load("runs/luong")
>>> model.translate(["How are you?"])
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mirada.client import AsyncClient, Client
    from mirada.config.options import Config
    from mirada.errors import MiradaError
    from mirada.loading import load
    from mirada.train.loop import train
    from mirada.translator import Translation, Translator

__all__ = ["AsyncClient", "Client", "Config", "MiradaError", "Translation", "Translator", "load", "train"]

_HOMES = {
    "AsyncClient": "mirada.client",
    "Client": "mirada.client",
    "Config": "mirada.config.options",
    "MiradaError": "mirada.errors",
    "Translation": "mirada.translator",
    "Translator": "mirada.translator",
    "load": "mirada.loading",
    "train": "mirada.train.loop",
}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used: `import mirada` itself is instant."""
    from importlib import import_module

    if name not in _HOMES:
        raise AttributeError(f"module 'mirada' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
