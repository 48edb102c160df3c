"""Where a torch has not the private calls: one clear line, the plain model, and no crash."""

from __future__ import annotations

import builtins

import pytest
import torch

from mirada.fast.prepacked import can_prepack, prepacked
from mirada.kernels import private
from systems import build


@pytest.fixture
def bare_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    """A torch whose operations have other names, without the probe for VNNI and without the fuser's module."""
    monkeypatch.setattr(private, "PREPACKED", ("mkldnn", ("_gone",)))
    monkeypatch.setattr("mirada.fast.prepacked.PREPACKED", private.PREPACKED)
    monkeypatch.delattr("torch.cpu._is_vnni_supported")
    real = builtins.__import__

    def refuse(name: str, *rest: object) -> object:
        if name == "torch.jit._fuser":
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", refuse)


def test_a_torch_without_private_calls_gives_the_plain_model_and_a_line(bare_torch: None) -> None:
    model = build({"decoder": "luong", "score": "general", "hidden_size": 6, "embedding_dim": 4}, dtype=torch.float32)
    assert not can_prepack(model, "float32")
    assert not can_prepack(model, "int8")
    assert prepacked(model) is model
    assert not private.has_vnni()
    line = f"torch {torch.__version__} has no products laid out once (_gone): searching is slower"
    assert private.missing() == line
    with private.without_fuser():
        pass


def test_this_torch_lacks_nothing() -> None:
    assert private.missing() == ""
    assert private.has_products(*private.INT8)
