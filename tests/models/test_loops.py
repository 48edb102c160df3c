"""Products that are laid out once for a loop: the numbers and gradients of plain ones, and only where they gain."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from mirada.config.options import ModelConfig
from mirada.kernels import loops
from mirada.kernels.private import PREPACKED, has_products
from mirada.models import build_model
from mirada.models import loops as views

pytestmark = pytest.mark.skipif(not has_products(*PREPACKED), reason="this torch has no products laid out once")
WORDS, WIDE = 30, 300  # a weight of 300 × 300 is large enough
SOURCE, TARGET = torch.randint(4, WORDS, (5, 7)), torch.randint(4, WORDS, (5, 6))
LENGTHS = torch.tensor([7, 6, 6, 3, 1])
SYSTEMS: dict[str, dict[str, Any]] = {
    "bahdanau": {"decoder": "bahdanau", "score": "additive", "rnn_type": "gru", "attention_size": WIDE},
    "luong": {"decoder": "luong", "score": "general", "rnn_type": "lstm", "input_feeding": True},
    "concat": {"decoder": "luong", "score": "concat", "rnn_type": "gru", "input_feeding": True, "attention_size": WIDE},
    "two layers": {
        "decoder": "bahdanau",
        "score": "dot",
        "rnn_type": "lstm",
        "dec_layers": 2,
        "recurrent_dropout": 0.3,
    },
}


def model_of(name: str) -> Any:
    torch.manual_seed(1)
    sizes = {"embedding_dim": 20, "hidden_size": WIDE, "dropout": 0.0}
    return build_model(ModelConfig(**sizes, **SYSTEMS[name]), source_vocab=WORDS, target_vocab=WORDS).train()


def run(model: Any) -> list[torch.Tensor]:
    """What a training forward gives, and every gradient."""
    torch.manual_seed(2)
    model.zero_grad()
    hidden = model(SOURCE, LENGTHS, TARGET).hidden
    (hidden * torch.linspace(-1, 1, hidden.numel()).view_as(hidden)).sum().backward()
    return [hidden.detach(), *(part.grad.clone() for part in model.parameters() if part.grad is not None)]


@pytest.mark.parametrize("name", SYSTEMS)
def test_a_loop_gives_the_plain_ones_numbers_and_gradients(name, monkeypatch):
    model, used, own = model_of(name), [], views.product
    monkeypatch.setattr(views, "product", lambda weight: used.append(tuple(weight.shape)) or own(weight))
    laid = run(model)
    monkeypatch.setattr(views, "gains", lambda weight: False)
    plain = run(model)
    assert len(used) >= 2
    assert len(laid) == len(plain)
    for one, other in zip(laid, plain, strict=True):
        assert float((one - other).norm()) <= 2e-5 * float(other.norm()) + 1e-7


def test_many_steps_of_one_product_against_float64():
    torch.manual_seed(0)
    weight, xs = torch.randn(260, 270), [torch.randn(n, 270) for n in (1, 5, 64)]
    found = []
    for dtype in (torch.float32, torch.float64):
        w = weight.to(dtype, copy=True).requires_grad_()
        parts = [x.to(dtype, copy=True).requires_grad_() for x in xs]
        times = loops.product(w) if dtype == torch.float32 else lambda x, w=w: x @ w.T
        sum((times(x).tanh() ** 2).sum() for x in parts).backward()
        found.append([w.grad, *(x.grad for x in parts)])
    for one, other in zip(*found, strict=True):
        assert float((one - other).norm() / other.norm()) < 1e-5


def test_a_frozen_weight_gets_no_gradient_and_one_backward_more_is_the_same():
    weight, x = torch.randn(260, 260), torch.randn(3, 260, requires_grad=True)
    out = loops.product(weight)(x).sum()
    out.backward()
    torch.testing.assert_close(x.grad, weight.sum(0).expand(3, -1), rtol=1e-4, atol=1e-4)
    own = weight.clone().requires_grad_()
    again = loops.product(own)(x.detach()).sum()
    again.backward(retain_graph=True)
    first = own.grad.clone()
    again.backward()
    torch.testing.assert_close(own.grad, 2 * first)


def test_it_is_used_where_it_gains():
    large, small = torch.zeros(256, 256), torch.zeros(255, 256)
    assert loops.gains(large)
    assert not loops.gains(small)
    assert not loops.gains(large.double())
    with torch.no_grad():
        assert not loops.gains(large)


def test_the_model_itself_is_left_as_it_is():
    model = model_of("bahdanau")
    before = dict(model._modules)
    run(model)
    assert dict(model._modules) == before
    assert "recurrent" not in vars(model.stack.cells[0])
    assert "forward" not in vars(model.context_gates)
