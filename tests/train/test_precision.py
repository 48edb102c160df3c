"""The precision of training's products: what is chosen and said, what is rounded and what is not, how one goes on."""

from pathlib import Path

import pytest
import torch

from cli_tools import flags, refusal
from mirada.kernels.private import has_bf16
from mirada.store import checkpoint
from mirada.train import loop, precision
from training_tools import SMALL, different, trains, weights, write_data


@pytest.fixture
def data(tmp_path: Path) -> dict[str, object]:
    return write_data(tmp_path)


def able(monkeypatch: pytest.MonkeyPatch, yes: bool) -> None:
    monkeypatch.setattr(precision, "has_bf16", lambda: yes)


def seen(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """torch's own setting whenever gradients are made."""
    found, own = [], loop._gradients

    def watching(*arguments: object) -> float:
        found.append(torch.get_float32_matmul_precision())
        return own(*arguments)

    monkeypatch.setattr(loop, "_gradients", watching)
    return found


def stored(folder: Path) -> str:
    return checkpoint.read_config(folder).training.precision


@pytest.mark.parametrize(
    ("asked", "has", "within"), [("float32", True, "highest"), ("bf16", True, "medium"), ("auto", True, "medium")]
)
def test_products_are_rounded_in_updates_and_nowhere_else(data, tmp_path, monkeypatch, asked, has, within):
    able(monkeypatch, has)
    found = seen(monkeypatch)
    trains(tmp_path / "m", data, {"precision": asked, "max-updates": 3})
    assert found == [within] * 3
    assert torch.get_float32_matmul_precision() == "highest"
    assert stored(tmp_path / "m") == ("float32" if asked == "float32" else "bf16")


def test_auto_says_what_it_chose_and_why(data, tmp_path, monkeypatch):
    for has, line in (
        (True, "precision bf16: the cpu here has AMX or AVX512-BF16 (--precision)"),
        (False, "precision float32: the cpu here has no AMX or AVX512-BF16 (--precision)"),
    ):
        able(monkeypatch, has)
        assert line in trains(tmp_path / f"m{has}", data, {"precision": "auto", "max-updates": 1}).split("\n")
    assert "precision" not in trains(tmp_path / "m", data, {"max-updates": 1})


def test_a_training_goes_on_in_the_precision_it_had(data, tmp_path, monkeypatch):
    able(monkeypatch, True)
    options = data | {"precision": "auto", "valid-every": 2}
    trains(tmp_path / "whole", options, {"max-updates": 4})
    trains(tmp_path / "m", options, {"max-updates": 2})
    trains(tmp_path / "m", options, {"max-updates": 4})
    assert different(weights(tmp_path / "whole"), weights(tmp_path / "m")) == []
    able(monkeypatch, False)
    given = flags({name.replace("-", "_"): value for name, value in (SMALL | options | {"max-updates": 6}).items()})
    line = "precision bf16: the cpu here has no AMX or AVX512-BF16; use float32, or auto in a new folder"
    assert refusal("train", *given, "--model-dir", tmp_path / "m") == line


def test_bf16_is_refused_where_it_would_be_slow(data, tmp_path, monkeypatch):
    able(monkeypatch, False)
    given = flags({name.replace("-", "_"): value for name, value in (SMALL | data).items()})
    line = "precision bf16: the cpu here has no AMX or AVX512-BF16; use float32, or auto in a new folder"
    assert refusal("train", *given, "--precision", "bf16", "--model-dir", tmp_path / "m") == line
    assert not (tmp_path / "m").exists()


@pytest.mark.skipif(not has_bf16(), reason="this CPU has no fast products of bfloat16")
def test_rounded_gradients_are_near_the_exact_ones():
    torch.manual_seed(0)
    x, w = torch.randn(256, 256, requires_grad=True), torch.randn(256, 256)
    grads = []
    for kind in ("float32", "bf16"):
        with precision.products(kind, torch.device("cpu")):
            (grad,) = torch.autograd.grad((x @ w).tanh().sum(), x)
        grads.append(grad)
    assert not torch.equal(*grads)
    assert float((grads[0] - grads[1]).norm() / grads[0].norm()) < 0.02


@pytest.mark.skipif(not has_bf16(), reason="this CPU has no fast products of bfloat16")
def test_rounded_attention_is_made_of_whole_products_and_is_near_the_exact_one():
    """torch's fused attention would round its blocks one by one, and take many times as long."""
    torch.manual_seed(0)
    query, key, value = (torch.randn(2, 4, 9, 16, requires_grad=True) for _ in range(3))
    grads = []
    for kind in ("float32", "bf16"):
        with precision.products(kind, torch.device("cpu")):
            assert torch.backends.cuda.flash_sdp_enabled() == (kind == "float32")
            output = torch.nn.functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        grads.append(torch.autograd.grad(output.tanh().sum(), (query, key, value)))
    assert torch.backends.cuda.flash_sdp_enabled()
    for one, other in zip(*grads, strict=True):
        assert float((one - other).norm() / one.norm()) < 0.02
