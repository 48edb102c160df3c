"""The loops with a backward written by hand against autograd through the same loops, step by step."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from mirada.models import AnyModel, bahdanau, luong
from systems import BATCH, COPIES, SCORES, assert_same, build

SIZES = {"embedding_dim": 4, "hidden_size": 6, "encoder_hidden_size": 6, "bidirectional": False}
DROPS = {"dropout": 0.4, "recurrent_dropout": 0.3, "enc_layers": 2}
FLOWS: list[dict[str, Any]] = [
    {"decoder": "bahdanau", "readout": "state"},
    {"decoder": "bahdanau", "readout": "deep", "copy_attn": True},  # gradients reach contexts and weights too
    {"decoder": "luong"},
    {"decoder": "luong", "copy_attn": True, "attentional_bias": True},
    {"decoder": "luong", "attentional": "linear"},
]


def values(model: AnyModel) -> dict[str, Tensor]:
    """What `forward` gives, and every parameter's gradient of a number in which each output has a weight of its own."""
    torch.manual_seed(4)  # of the dropout
    outputs = model(*BATCH, COPIES if model.copy_gate is not None else None, with_attention=True)
    logits = model.logits(outputs.hidden, outputs.copying)
    logits = logits.masked_fill(logits.isneginf(), 0)  # of words that a copy writes as well
    weights = torch.randn(logits.shape, dtype=torch.float64, generator=torch.Generator().manual_seed(7)).to(logits)
    parameters = dict(model.named_parameters())
    grads = torch.autograd.grad((logits * weights).sum(), parameters.values())
    return {"logits": logits, "attention": outputs.attention, **dict(zip(parameters, grads, strict=True))}


def by_steps(model: AnyModel, monkeypatch: pytest.MonkeyPatch) -> dict[str, Tensor]:
    """The same by the plain loop."""
    with monkeypatch.context() as patch:
        for flow in (bahdanau, luong):
            patch.setattr(flow, "only_query", lambda *_: None)
        return values(model)


def assert_both_roads_meet(model: AnyModel, monkeypatch: pytest.MonkeyPatch, what: object) -> None:
    wanted = by_steps(model, monkeypatch)
    for name, value in values(model).items():
        assert_same(value, wanted[name], 1e-11 * max(1, wanted[name].abs().max().item()), (what, name))


@pytest.fixture(autouse=True)
def scans(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the scans that were called: no loop is compared with itself."""
    called: list[str] = []
    for flow, name in ((bahdanau, "bahdanau_scan"), (luong, "luong_scan")):
        scan = getattr(flow, name)
        monkeypatch.setattr(flow, name, lambda *args, scan=scan, name=name: called.append(name) or scan(*args))
    return called


@pytest.mark.parametrize("cell", ["lstm", "gru"])
@pytest.mark.parametrize("flow", FLOWS)
def test_outputs_and_gradients_are_the_plain_loops(
    flow: dict[str, Any], cell: str, monkeypatch: pytest.MonkeyPatch, scans: list[str]
) -> None:
    """With padding, for every score: dot's keys are the states themselves, both with a gradient."""
    for score in SCORES:
        options = {**SIZES, **flow, "rnn_type": cell, "score": score}
        assert_both_roads_meet(build(options), monkeypatch, options)
    assert scans == [f"{flow['decoder']}_scan"] * len(SCORES)


@pytest.mark.parametrize("cell", ["lstm", "gru"])
@pytest.mark.parametrize("decoder", ["bahdanau", "luong"])
def test_with_dropout_they_are_the_plain_loops(
    decoder: str, cell: str, monkeypatch: pytest.MonkeyPatch, scans: list[str]
) -> None:
    """In training, with the same masks; tied embeddings have a gradient from two places."""
    options = {**SIZES, **DROPS, "decoder": decoder, "rnn_type": cell, "tied_embeddings": True}
    assert_both_roads_meet(build(options).train(), monkeypatch, options)
    assert len(scans) == 1


def test_what_is_more_is_left_to_the_plain_loop(scans: list[str]) -> None:
    for more in (
        {"coverage": True, "score": "additive"},
        {"attention_window": "local-p"},
        {"input_feeding": False},
        {"dec_layers": 2},
    ):
        build({**SIZES, "decoder": "luong", **more})(*BATCH)
    assert scans == []


def test_a_scan_is_run_back_once_and_in_part() -> None:
    """With only the score's weights to train; a second time there is nothing left to run back."""
    model = build({**SIZES, "decoder": "bahdanau", "score": "additive"})
    model.requires_grad_(False)
    weights = model.score.v_a.requires_grad_(True)
    loss = model(*BATCH).hidden.sin().sum()
    (grad,) = torch.autograd.grad(loss, weights, retain_graph=True)
    with pytest.raises(RuntimeError, match="a scan is run back once; with retain_graph let the model run again"):
        torch.autograd.grad(loss, weights)
    with torch.no_grad():
        weights += 1e-6 * grad
        slope = (model(*BATCH).hidden.sin().sum() - loss).item() / 1e-6
    assert slope == pytest.approx((grad * grad).sum().item(), rel=1e-3)


@pytest.mark.parametrize("precision", ["highest", "medium"])
@pytest.mark.parametrize("options", [{"decoder": "bahdanau", "rnn_type": "gru"}, {"decoder": "luong"}])
def test_wide_weights_in_single_precision(
    options: dict[str, Any], precision: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Weights that are wide enough are oneDNN's on a CPU; of `medium` only as much is asked as bfloat16 can give."""
    model = build({**options, "embedding_dim": 8, "hidden_size": 200}, dtype=torch.float32)
    nn.utils.vector_to_parameters(nn.utils.parameters_to_vector(model.parameters()) / 4, model.parameters())
    torch.set_float32_matmul_precision(precision)
    try:
        found = values(model)
    finally:
        torch.set_float32_matmul_precision("highest")
    for name, exact in by_steps(model.double(), monkeypatch).items():
        error = (found[name].double() - exact).abs().max() / exact.abs().max().clamp(min=1e-3)
        assert error < (2e-5 if precision == "highest" else 5e-2), name
