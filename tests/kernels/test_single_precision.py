"""The fast tanh, and training in single precision, where torch has layers of its own, against double precision."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from mirada.config.options import ModelConfig
from mirada.kernels.energy import tanh_
from mirada.models import build_model


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
    """On a CPU, torch's layers go to oneDNN in single precision only."""
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
