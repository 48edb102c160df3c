"""The loss of models that copy, against the mixture written out, in float64."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from mirada.models.copying import Copying, mixture
from mirada.models.embedding import OutputLayer
from mirada.train import copy_loss
from mirada.train.copy_loss import copying_loss

VOCAB, WIDTH, STEPS, SOURCE = 9, 5, 6, 4
IDS = torch.tensor([[9, 5, 9, 3], [9, 10, 4, 3]])[:, None].expand(2, STEPS, SOURCE)
# Words of the vocabulary that the source has and has not, copied words, </s>, padding.
TARGETS = torch.tensor([[5, 4, 9, 9, 3, 1], [10, 0, 7, 3, 1, 1]])


class Parts:
    """Random parts of a loss, all with gradients."""

    def __init__(self) -> None:
        torch.manual_seed(3)
        self.output = OutputLayer(WIDTH, VOCAB).double()
        torch.nn.init.normal_(self.output.bias)
        self.hidden = torch.randn(2, STEPS, WIDTH).double().requires_grad_()
        self.gate = torch.randn(2, STEPS).double().requires_grad_()
        self.scores = torch.randn(2, STEPS, SOURCE).double().requires_grad_()

    @property
    def copied(self) -> Copying:
        return Copying(self.gate, self.scores.softmax(-1), IDS)

    def gradients(self, loss: Tensor) -> tuple[Tensor, ...]:
        return torch.autograd.grad(loss, (self.hidden, self.gate, self.scores, *self.output.parameters()))


def written_out(parts: Parts, smoothing: float) -> Tensor:
    """The same sum in one expression that holds everything."""
    logits, real = parts.hidden @ parts.output.weight.T + parts.output.bias, TARGETS != 1
    log_p = mixture(logits, parts.copied)[real].gather(1, TARGETS[real][:, None])[:, 0]
    own = logits[real][:, [0, *range(3, VOCAB)]].log_softmax(-1)
    return -((1 - smoothing) * log_p + smoothing * own.mean(-1)).sum()


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("rows", [1, 3, 512])
def test_the_loss_is_the_mixtures(smoothing: float, rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Value and every gradient, however many rows have logits at once."""
    monkeypatch.setattr(copy_loss, "ROWS", rows)
    parts = Parts()
    found = copying_loss(parts.hidden, parts.output, parts.copied, TARGETS, smoothing=smoothing, divisor=2.0)
    expected = written_out(parts, smoothing) / 2
    torch.testing.assert_close(found.smoothed, expected, rtol=0, atol=1e-12)
    torch.testing.assert_close(found.nll, written_out(parts, 0.0).detach(), rtol=0, atol=1e-12)
    torch.testing.assert_close(parts.gradients(found.smoothed), parts.gradients(expected), rtol=0, atol=1e-12)


def test_right_guesses_are_counted_over_vocabulary_and_source() -> None:
    parts = Parts()
    with torch.no_grad():
        log_p = mixture(parts.hidden @ parts.output.weight.T + parts.output.bias, parts.copied)
        targets = torch.where(TARGETS == 1, TARGETS, log_p.argmax(-1))
        targets[0, 0] = 4 if targets[0, 0] != 4 else 5
        found = copying_loss(parts.hidden, parts.output, parts.copied, targets, smoothing=0.1)
    assert found.correct.item() == (TARGETS != 1).sum() - 1


@pytest.mark.parametrize("change", [lambda p: p.scores.data.mul_(1e6), lambda p: p.gate.data.fill_(-1e6)])
def test_weights_that_vanish_leave_numbers(change: Callable[[Parts], object]) -> None:
    parts = Parts()
    change(parts)
    found = copying_loss(parts.hidden, parts.output, parts.copied, TARGETS, smoothing=0.1)
    assert found.smoothed.isfinite()
    assert all(gradient.isfinite().all() for gradient in parts.gradients(found.smoothed))
