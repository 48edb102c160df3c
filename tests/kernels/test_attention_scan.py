"""The hand-written loops of both flows equal the plain ones: every value and every gradient, in float64."""

from __future__ import annotations

import pytest
import torch

from mirada.config.options import ModelConfig
from mirada.models import build_model

SCORES = ("additive", "dot", "scaled_dot", "general", "concat")
VOCAB = 20


def gradients(model, scan, weights):
    """Outputs and all gradients of a forward whose loop is `scan`."""
    source = torch.tensor([[5, 6, 7, 8, 9, 3], [10, 11, 3, 1, 1, 1], [3, 1, 1, 1, 1, 1]])
    lengths = torch.tensor([6, 3, 1])
    target = torch.tensor([[2, 4, 5, 6, 7], [2, 8, 9, 1, 1], [2, 1, 1, 1, 1]])
    model._scan = scan
    outputs = model.forward(source, lengths, target, with_attention=True)
    loss = (outputs.hidden * weights[0]).sum()
    names = [name for name, _ in model.named_parameters() if not name.startswith("output")]
    found = torch.autograd.grad(loss, [dict(model.named_parameters())[name] for name in names])
    return outputs, dict(zip(names, found, strict=True))


@pytest.mark.parametrize("cell", ["lstm", "gru"])
@pytest.mark.parametrize("score", SCORES)
@pytest.mark.parametrize("flow", ["bahdanau-state", "bahdanau-deep", "luong"])
def test_scan_is_the_plain_loop(flow, score, cell):
    decoder, _, readout = flow.partition("-")
    options = ModelConfig(
        decoder=decoder,
        score=score,
        rnn_type=cell,
        embedding_dim=8,
        hidden_size=6,
        dropout=0.0,
        readout=readout or None,
    )
    torch.manual_seed(3)
    model = build_model(options, source_vocab=VOCAB, target_vocab=VOCAB).double().train()
    weights = torch.randn(1, 3, 5, 8 if readout == "deep" else 6, dtype=torch.float64)
    assert model.stack.is_plain
    fast, fast_gradients = gradients(model, model._scan, weights)
    plain, plain_gradients = gradients(model, model._scan_plain, weights)
    torch.testing.assert_close(fast.hidden, plain.hidden, rtol=0, atol=1e-12)
    torch.testing.assert_close(fast.attention, plain.attention, rtol=0, atol=1e-12)
    for name, gradient in plain_gradients.items():
        torch.testing.assert_close(fast_gradients[name], gradient, rtol=0, atol=1e-12, msg=name)


@pytest.mark.parametrize("change", [{"dec_layers": 2}, {"recurrent_dropout": 0.3}])
def test_the_plain_loop_serves_where_the_scan_does_not_hold(change):
    options = ModelConfig(decoder="bahdanau", readout="state", embedding_dim=8, hidden_size=6, **change)
    model = build_model(options, source_vocab=VOCAB, target_vocab=VOCAB).train()
    assert not model.stack.is_plain
    model._scan = None  # would fail if it were called
    ids = torch.tensor([[5, 6, 3]])
    assert model.forward(ids, torch.tensor([3]), ids).hidden.shape == (1, 3, 6)
