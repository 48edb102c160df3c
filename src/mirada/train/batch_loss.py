"""The loss of a batch under a model, whichever loss is the model's, and its gradients."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import pad

from mirada.config.options import Config
from mirada.data.batches import Batch
from mirada.data.vocabulary import PAD
from mirada.models import AnyModel
from mirada.models.base import Network, Outputs
from mirada.models.embedding import OutputLayer
from mirada.train.copy_loss import copying_loss
from mirada.train.loss import Divisor, Loss, sequence_loss
from mirada.train.precision import lowered


def batch_loss(
    model: Network, batch: Batch, *, smoothing: float, divisor: Divisor = 1.0, coverage: float = 0.0
) -> Loss:
    """Run the model over known targets and compare: `sequence_loss`, or `copying_loss` of a model that copies.

    In training mode the output layer's dropout acts. `coverage` is the weight λ of the coverage loss, which is added to
    what is minimised (See, Liu & Manning 2017, equation 13).
    """
    outputs = model.forward(batch.source, batch.lengths, batch.target_in, batch.copies, with_attention=coverage > 0)
    with torch.autocast(outputs.hidden.device.type, enabled=False):  # whatever the products before, losses are exact
        loss = _word_loss(model.output, outputs, batch, smoothing=smoothing, divisor=divisor)
    if outputs.attention is None or coverage == 0:
        return loss
    again = coverage_loss(outputs.attention, batch.target_out != PAD) / divisor
    return loss._replace(smoothed=loss.smoothed + coverage * again)


def gradients(model: AnyModel, config: Config, batch: Batch, tokens: Divisor) -> Tensor:
    """Add to the gradients a batch's part of a mean loss over so many tokens; returns the batch's −Σ log p."""
    options, device = config.training, model.output.weight.device
    coverage = options.coverage_weight if config.model.coverage else 0.0
    with lowered(config, device):
        loss = batch_loss(model, batch, smoothing=options.label_smoothing, divisor=tokens, coverage=coverage)
    loss.smoothed.backward()
    return loss.nll


def coverage_loss(weights: Tensor, real: Tensor) -> Tensor:
    """Σ_t Σ_j min(α_tj, c_tj) of weights `[B, T, S]` at real steps `[B, T]`, c_t the sum of the weights before t."""
    before = pad(weights.cumsum(1)[:, :-1], (0, 0, 1, 0))
    return torch.minimum(weights, before).sum(-1).masked_fill(~real, 0).sum()


def _word_loss(output: OutputLayer, outputs: Outputs, batch: Batch, *, smoothing: float, divisor: Divisor) -> Loss:
    hidden = output.dropped(outputs.hidden)
    if outputs.copying is not None:
        return copying_loss(hidden, output, outputs.copying, batch.target_out, smoothing=smoothing, divisor=divisor)
    return sequence_loss(hidden, output.weight, output.bias, batch.target_out, smoothing=smoothing, divisor=divisor)
