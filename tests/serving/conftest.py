"""A service over tiny models, in this process."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

import tiny
from mirada.config.serving import ServeConfig
from mirada.serving.app import build


@pytest.fixture(scope="session")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A folder for each tiny model."""
    root = tmp_path_factory.mktemp("served")
    return {name: tiny.write_folder(root / name, name) for name in tiny.MODELS}


def settings_for(folders: dict[str, Path], **options: Any) -> ServeConfig:
    """Settings that serve these folders."""
    models = tuple(f"{name}={folder}" for name, folder in folders.items())
    return ServeConfig(**{"models": models, "device": "cpu", "reload_seconds": 0, **options})


@pytest.fixture(scope="session")
def client(folders: dict[str, Path]) -> Iterator[TestClient]:
    """A client of a service with all four systems."""
    app, _ = build(settings_for(folders, languages=("luong=en-es",)))
    with TestClient(app) as client:
        yield client
