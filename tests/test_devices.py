"""Where to compute, or why not there."""

from __future__ import annotations

import re

import pytest
import torch

from mirada.devices import choose_device
from mirada.errors import ConfigError


@pytest.fixture
def gpus(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> int:
    """A machine with so many GPUs, as PyTorch would tell it."""
    count = int(request.param)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: count > 0)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: count)
    return count


def refuses(message: str) -> pytest.RaisesExc[ConfigError]:
    return pytest.raises(ConfigError, match=f"^{re.escape(message)}$")


@pytest.mark.parametrize(("gpus", "expected"), [(0, "cpu"), (1, "cuda"), (8, "cuda")], indirect=["gpus"])
def test_auto_takes_a_gpu_if_there_is_one(gpus, expected):
    assert choose_device("auto") == torch.device(expected)
    assert choose_device("cpu") == torch.device("cpu")


@pytest.mark.parametrize("gpus", [2], indirect=True)
def test_a_gpu_by_its_number(gpus):
    assert choose_device("cuda:1") == torch.device("cuda", 1)
    with refuses("device 'cuda:2': this machine has 2 CUDA devices; use auto or cpu"):
        choose_device("cuda:2")


@pytest.mark.parametrize("gpus", [0], indirect=True)
def test_no_gpu(gpus):
    with refuses("device 'cuda': this machine has 0 CUDA devices; use auto or cpu"):
        choose_device("cuda")


@pytest.mark.parametrize("name", ["gpu", "", "0", "cuda:x", "meta", "xpu"])
def test_an_unknown_device(name):
    with refuses(f"device {name!r} is unknown; use auto, cpu, cuda or cuda:N"):
        choose_device(name)


@pytest.mark.parametrize("there", [True, False])
def test_an_apple_gpu(monkeypatch, there):
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: there)
    if there:
        assert choose_device("mps") == torch.device("mps")
        return
    with refuses("device 'mps': PyTorch finds no Apple GPU on this machine; use auto or cpu"):
        choose_device("mps")
