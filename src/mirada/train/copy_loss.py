"""The loss of models that copy, without ever holding all logits: that of copying.py's `mixture`.

For each real target token: (1 − ε)·(−log P(y)) + ε·mean over the vocabulary of −log P_vocab. The second term smooths
what the model says of itself; a copied word has no such choice.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import linear, logsigmoid
from torch.utils.checkpoint import checkpoint

from mirada.data.vocabulary import BOS, PAD
from mirada.models.copying import Copying, mixture, without_specials
from mirada.models.embedding import OutputLayer
from mirada.train.loss import ROWS, Divisor, Loss, over_rows, rows_of


def copying_loss(
    hidden: Tensor, output: OutputLayer, copied: Copying, targets: Tensor, *, smoothing: float, divisor: Divisor = 1.0
) -> Loss:
    """Loss of hidden states `[B, T, R]` and what steps copy against targets `[B, T]`, padding left out.

    Right guesses are counted only where no gradient is wanted: on dev.
    """
    rows, wanted, kept = rows_of(hidden, targets)
    copied = Copying(*(part[targets != PAD] if kept is None else part.flatten(0, 1) for part in copied))
    copied = copied._replace(gate=copied.gate.to(hidden.dtype), weights=copied.weights.to(hidden.dtype))
    said = [_said(rows[part], output, wanted[part], smoothing) for part in _chunks(len(rows))]
    own, evenly = (torch.cat(part) for part in zip(*said, strict=True))  # [n] log P_vocab(y), mean of log P_vocab
    log_p = spoken(own, copied, wanted)
    if kept is not None:
        log_p, evenly = log_p * kept, evenly * kept
    smoothed = -((1 - smoothing) * log_p + smoothing * evenly).sum() / divisor
    correct = log_p.new_zeros(())
    if not torch.is_grad_enabled():
        right = [_right(rows[part], output, copied, wanted, part) for part in _chunks(len(rows))]
        correct = over_rows(torch.cat(right).to(hidden.dtype), kept)
    return Loss(smoothed, -log_p.detach().sum(), correct)


def spoken(own: Tensor, copied: Copying, targets: Tensor) -> Tensor:
    """log P(y) `[n]` = log(p_gen P_vocab(y) + (1 − p_gen) Σ α) from log P_vocab(y), −∞ for a source's own word."""
    mass = (copied.weights * (copied.ids == targets[:, None])).sum(-1)  # [n]
    tiny = torch.finfo(mass.dtype).tiny  # a weight that vanished: no gradient, but a number
    return torch.logaddexp(logsigmoid(copied.gate) + own, logsigmoid(-copied.gate) + mass.clamp(min=tiny).log())


def _chunks(count: int) -> list[slice]:
    return [slice(start, start + ROWS) for start in range(0, count, ROWS)] or [slice(0, 0)]


def _said(hidden: Tensor, output: OutputLayer, targets: Tensor, smoothing: float) -> tuple[Tensor, Tensor]:
    """`_own_words` of a chunk, whose logits are made again for the backward rather than kept."""
    found: tuple[Tensor, Tensor] = checkpoint(
        _own_words,
        *(hidden, output.weight, output.bias, targets, smoothing),
        use_reentrant=False,
        preserve_rng_state=False,  # nothing in it is random
    )
    return found


def _own_words(
    hidden: Tensor, weight: Tensor, bias: Tensor, targets: Tensor, smoothing: float
) -> tuple[Tensor, Tensor]:
    """log P_vocab of the targets, −∞ for what the vocabulary has not; and its mean over the vocabulary, if wanted."""
    logits = without_specials(linear(hidden, weight, bias))  # [n, V]
    total = logits.logsumexp(-1)
    beyond = targets >= len(weight)
    own = logits.gather(1, targets.masked_fill(beyond, 0)[:, None])[:, 0] - total
    own = own.masked_fill(beyond, -torch.inf)
    if not smoothing:
        return own, torch.zeros_like(own)
    choices = logits[:, max(PAD, BOS) + 1 :].sum(-1) + logits[:, : min(PAD, BOS)].sum(-1)
    return own, choices / (len(weight) - 2) - total


def _right(hidden: Tensor, output: OutputLayer, copied: Copying, targets: Tensor, part: slice) -> Tensor:
    log_p = mixture(linear(hidden, output.weight, output.bias), Copying(*(each[part] for each in copied)))
    return log_p.gather(1, targets[part][:, None])[:, 0] == log_p.amax(-1)
