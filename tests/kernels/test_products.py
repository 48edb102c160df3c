"""Products laid out once are the plain products, and so are the trainings that are made of them."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from mirada.config.options import ModelConfig
from mirada.kernels.products import FEWEST_USES, SMALLEST, Product, tanh_
from mirada.models import build_model

LARGE = (300, 130)  # more weights than SMALLEST


@pytest.mark.parametrize("rows", [1, 3, 64])
@pytest.mark.parametrize("turned", [False, True])
def test_a_product_laid_out_once_is_the_product(rows: int, turned: bool) -> None:
    torch.manual_seed(5)
    w = torch.randn(LARGE)
    if turned:
        w = torch.randn(LARGE[::-1]).T  # as the backward gives it
    product = Product(w, rows=64, uses=FEWEST_USES)  # laid out for 64 rows, good for any
    assert product._packed is not None
    x, other = torch.randn(rows, LARGE[1]), torch.randn(rows, LARGE[0])
    exact = x.double() @ w.double().T
    torch.testing.assert_close(product(x).double(), exact, rtol=1e-5, atol=1e-4)
    torch.testing.assert_close(product.added(x, other).double(), exact + other.double(), rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize(
    ("w", "uses"),
    [
        (torch.ones(LARGE, dtype=torch.float64), 100),
        (torch.ones(LARGE), FEWEST_USES - 1),
        (torch.ones(1, SMALLEST - 1), 100),
        (torch.ones(LARGE, dtype=torch.bfloat16), 100),
    ],
)
def test_what_gains_nothing_is_not_laid_out(w: Tensor, uses: int) -> None:
    product = Product(w, rows=2, uses=uses)
    assert product._packed is None
    x, other = torch.ones(2, w.size(1), dtype=w.dtype), torch.ones(2, w.size(0), dtype=w.dtype)
    assert torch.equal(product(x), torch.full_like(other, w.size(1)))
    assert torch.equal(product.added(x, other), product(x) + 1)


def test_tanh_by_the_sigmoid() -> None:
    x = torch.cat((torch.linspace(-20, 20, 100_001), torch.tensor([0.0, 1e-30, float("inf"), float("-inf"), 3e38])))
    exact = x.double().tanh()
    assert (tanh_(x.clone()).double() - exact).abs().max() < 2.5e-7
    assert (tanh_(x.double()) - exact).abs().max() < 1e-15
    assert tanh_(torch.tensor([float("nan")])).isnan().all()


def gradients(model: torch.nn.Module, batch: tuple[Tensor, Tensor, Tensor]) -> dict[str, Tensor]:
    """The outputs, and every weight's gradient of a sum that weighs each output on its own."""
    hidden = model(*batch).hidden
    torch.manual_seed(7)
    (hidden * torch.randn(hidden.shape, dtype=torch.float64).to(hidden.dtype)).sum().backward()
    grads = {name: weights.grad for name, weights in model.named_parameters() if weights.grad is not None}
    return {"hidden": hidden.detach(), **grads}


@pytest.mark.parametrize("cell", ["lstm", "gru"])
@pytest.mark.parametrize(
    "flow",
    [
        {"decoder": "bahdanau"},
        {"decoder": "bahdanau", "score": "general", "readout": "state"},
        {"decoder": "luong", "score": "general"},
        {"decoder": "luong", "score": "concat"},
        {"decoder": "luong", "input_feeding": False},
        {"decoder": "classic"},
    ],
)
def test_training_in_single_precision_is_the_plain_one_in_double(flow: dict[str, object], cell: str) -> None:
    """Wide enough for the products laid out once, which double precision does not use."""
    torch.manual_seed(5)
    options = ModelConfig.model_validate(
        {**flow, "rnn_type": cell, "embedding_dim": 100, "hidden_size": 200, "dropout": 0.0}
    )
    single = build_model(options, source_vocab=30, target_vocab=30)
    double = build_model(options, source_vocab=30, target_vocab=30).double()
    double.load_state_dict(single.state_dict())
    batch = (torch.randint(4, 30, (5, 9)), torch.tensor([9, 8, 5, 2, 1]), torch.randint(4, 30, (5, 7)))
    fast, exact = gradients(single, batch), gradients(double, batch)
    assert fast.keys() == exact.keys()
    for name, wanted in exact.items():
        error = (fast[name].double() - wanted).abs().max() / wanted.abs().max().clamp(min=1e-3)
        assert error < 2e-5, name
