"""The precision of training's products: what is chosen and said, what is rounded and what is not, how one goes on."""

import copy
from contextlib import nullcontext
from pathlib import Path

import pytest
import torch

from cli_tools import flags, refusal
from mirada.config.configfile import parse
from mirada.data.batches import Batch
from mirada.kernels.private import has_bf16, has_exact_medium
from mirada.models import transformer
from mirada.store import checkpoint
from mirada.train import precision, update
from mirada.train.batch_loss import batch_loss
from systems import BATCH, COPIES, TARGET, build
from training_tools import SMALL, different, trains, weights, write_data


@pytest.fixture
def data(tmp_path: Path) -> dict[str, object]:
    return write_data(tmp_path)


def able(monkeypatch: pytest.MonkeyPatch, yes: bool) -> None:
    monkeypatch.setattr(precision, "has_bf16", lambda: yes)
    monkeypatch.setattr(precision, "has_exact_medium", lambda: False)


def seen(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """torch's own setting whenever gradients are made."""
    found, own = [], update.gradients

    def watching(*arguments: object) -> torch.Tensor:
        found.append(torch.get_float32_matmul_precision())
        return own(*arguments)

    monkeypatch.setattr(update, "gradients", watching)
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


TRANSFORMER = {"decoder": "transformer", "embedding_dim": 64, "num_heads": 4, "ff_size": 128, "dropout": 0.0}


@pytest.mark.parametrize(
    "more",
    [
        {"norm": "pre", "enc_layers": 2, "dec_layers": 2},
        {"norm": "post"},
        {"copy_attn": True, "copy_head": 2},
    ],
)
@pytest.mark.parametrize("fused", [False, True])
def test_a_transformer_in_bfloat16_is_near_the_one_in_float64(more, fused, monkeypatch):
    """As on a GPU: layers under autocast, the loss and what it is made of in float32, gradients float32 as weights."""
    monkeypatch.setattr(transformer, "synchronous", lambda _: not fused)
    model = build({**TRANSFORMER, **more}).train()
    for part in model.parameters():
        part.data /= 4  # small enough that the softmax is not all of one position
    rounded = copy.deepcopy(model).float()
    batch = Batch(*BATCH, TARGET.roll(-1, 1), 1, COPIES if "copy_attn" in more else None)
    batch_loss(model, batch, smoothing=0.1).smoothed.backward()
    with torch.autocast("cpu", torch.bfloat16):
        loss = batch_loss(rounded, batch, smoothing=0.1)
    loss.smoothed.backward()
    assert {loss.smoothed.dtype, loss.nll.dtype} == {torch.float32}
    assert {part.grad.dtype for part in rounded.parameters()} == {torch.float32}
    wanted, found = (torch.cat([part.grad.flatten() for part in one.parameters()]) for one in (model, rounded))
    error = float((found - wanted).norm() / wanted.norm())
    assert 1e-4 < error < 0.03  # it was rounded, and no more than that


@pytest.mark.parametrize(
    ("asked", "decoder", "device", "wanted"),
    [
        ("bf16", "transformer", "cuda", True),
        ("float32", "transformer", "cuda", False),
        ("bf16", "luong", "cuda", False),
        ("bf16", "transformer", "cpu", False),
    ],
)
def test_bfloat16_is_for_a_transformers_layers_on_a_gpu(asked, decoder, device, wanted, monkeypatch):
    asked_for = []
    monkeypatch.setattr(torch, "autocast", lambda *arguments: asked_for.append(arguments) or nullcontext())
    config = parse({"model": {"decoder": decoder}, "training": {"precision": asked}})
    with precision.lowered(config, torch.device(device)):
        assert asked_for == [("cuda", torch.bfloat16)] * wanted


@pytest.mark.parametrize(("kind", "matmul", "recurrent"), [("float32", "highest", False), ("bf16", "medium", True)])
def test_a_gpu_rounds_nothing_unasked(kind, matmul, recurrent):
    """torch lets cuDNN round a recurrence's float32 to TF32, and no other product, unless it is told otherwise."""
    before = torch.backends.cudnn.allow_tf32
    with precision.products(kind, torch.device("cuda")):
        assert torch.get_float32_matmul_precision() == matmul
        assert torch.backends.cudnn.allow_tf32 == recurrent
    assert torch.backends.cudnn.allow_tf32 == before
