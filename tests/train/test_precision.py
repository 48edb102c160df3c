"""The precision of training's products: what is chosen and said, what is rounded and what is not, how one goes on."""

from pathlib import Path

import pytest
import torch

from cli_tools import flags, refusal
from mirada.kernels.private import has_bf16, has_exact_medium
from mirada.store import checkpoint
from mirada.train import loop, precision
from training_tools import SMALL, different, trains, weights, write_data


@pytest.fixture
def data(tmp_path: Path) -> dict[str, object]:
    return write_data(tmp_path)


def able(monkeypatch: pytest.MonkeyPatch, yes: bool) -> None:
    monkeypatch.setattr(precision, "has_bf16", lambda: yes)
    monkeypatch.setattr(precision, "has_exact_medium", lambda: False)


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
        (True, "precision bf16: the cpu here is faster with products of bfloat16 (--precision)"),
        (False, "precision float32: the cpu here gains nothing by products of bfloat16 (--precision)"),
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
    line = "precision bf16: the cpu here gains nothing by products of bfloat16; use float32, or auto in a new folder"
    assert refusal("train", *given, "--model-dir", tmp_path / "m") == line


def test_bf16_is_refused_where_it_would_be_slow(data, tmp_path, monkeypatch):
    able(monkeypatch, False)
    given = flags({name.replace("-", "_"): value for name, value in (SMALL | data).items()})
    line = "precision bf16: the cpu here gains nothing by products of bfloat16; use float32, or auto in a new folder"
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


def test_float32_is_float32_by_whichever_library():
    """Products and gradients as in float64 to the precision of float32, where bfloat16 would be off by a hundredth."""
    torch.manual_seed(0)
    x, w = torch.randn(64, 512, requires_grad=True), torch.randn(512, 384)
    exact = x.detach().double().requires_grad_()
    with precision.products("float32", torch.device("cpu")):
        product = x @ w
        product.square().sum().backward()
    wanted = exact @ w.double()
    wanted.square().sum().backward()
    assert float((product - wanted).detach().norm() / wanted.detach().norm()) < 1e-6
    assert float((x.grad - exact.grad).norm() / exact.grad.norm()) < 1e-6


@pytest.mark.parametrize(("exact", "within"), [(True, "medium"), (False, "highest")])
def test_float32_takes_the_faster_products_that_round_nothing(data, tmp_path, monkeypatch, exact, within):
    found = seen(monkeypatch)
    monkeypatch.setattr(precision, "has_exact_medium", lambda: exact)
    trains(tmp_path / "m", data, {"max-updates": 2})
    assert found == [within] * 2
    assert torch.get_float32_matmul_precision() == "highest"


def test_what_is_known_of_this_cpu_is_one_thing_or_the_other():
    assert not (has_bf16() and has_exact_medium())


@pytest.mark.skipif(not (has_bf16() or has_exact_medium()), reason="this CPU's products are one library's")
def test_attention_is_then_made_of_whole_products():
    """torch's fused attention would take its blocks one by one, and many times as long."""
    torch.manual_seed(0)
    query, key, value = (torch.randn(2, 4, 9, 16, requires_grad=True) for _ in range(3))
    attend = torch.nn.functional.scaled_dot_product_attention
    wanted = torch.autograd.grad(attend(query, key, value, is_causal=True).tanh().sum(), (query, key, value))
    kind = "bf16" if has_bf16() else "float32"
    with precision.products(kind, torch.device("cpu")):
        assert not torch.backends.cuda.flash_sdp_enabled()
        output = attend(query, key, value, is_causal=True)
    found = torch.autograd.grad(output.tanh().sum(), (query, key, value))
    assert torch.backends.cuda.flash_sdp_enabled()
    for one, other in zip(found, wanted, strict=True):
        assert float((one - other).norm() / other.norm()) < (0.02 if kind == "bf16" else 1e-5)
