"""What all tests share: one thread, and a tiny model folder for every decoder."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, settings

import browser_tools
import tiny
from cli_tools import works
from mirada.translator import Translator, load

torch.set_num_threads(1)
os.environ["LC_ALL"] = "C.UTF-8"  # messages are English, whatever the machine speaks
# A slow machine is no failure, and the same examples every time: new ones are what `make faults` is for.
settings.register_profile(
    "mirada", derandomize=True, deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("mirada")


@pytest.fixture(scope="session", params=list(tiny.MODELS))
def model_folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder to read from, for each decoder; parametrise it indirectly to choose some, or those of tiny.SPECIAL."""
    where = tmp_path_factory.mktemp("models") / request.param
    return tiny.write_folder(where, *tiny.SPECIAL.get(request.param, (request.param,)))


@pytest.fixture(scope="session")
def translator(model_folder: Path) -> Translator:
    """The model of `model_folder`, loaded on the CPU."""
    return load(model_folder, device="cpu")


@pytest.fixture(scope="session")
def exported_folder(model_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The model of `model_folder` as ONNX graphs."""
    folder = tmp_path_factory.mktemp("exported") / model_folder.name
    works("export", model_folder, "--to", "onnx", "--out", folder)
    return folder


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    """The browser that pages are tested in."""
    yield from browser_tools.browser()
