"""Label-smoothed cross entropy from the hidden states, without ever holding all logits.

For each real target token: (1 − ε)·(−log p(y)) + ε·mean over the vocabulary of −log p (the convention of PyTorch and
fairseq). The negative log-likelihood is returned beside it, unsmoothed: perplexities are made from that.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

ROWS = 2048  # tokens whose logits exist at the same time


class Loss(NamedTuple):
    """Sums over the real tokens of a batch."""

    smoothed: Tensor  # [] what is minimised, with gradient
    nll: Tensor  # [] −Σ log p, without gradient
    correct: Tensor  # [] tokens whose likeliest word is right


def sequence_loss(hidden: Tensor, weight: Tensor, bias: Tensor, targets: Tensor, *, pad: int, smoothing: float) -> Loss:
    """Loss of hidden states `[B, T, R]` against targets `[B, T]`, padding left out, under logits `hidden Wᵀ + b`."""
    real = targets != pad
    parts = (hidden[real], weight, bias)
    if not torch.is_grad_enabled():  # an autograd function itself sees only that weights want gradients, even here
        parts = (parts[0].detach(), weight.detach(), bias.detach())
    return Loss(*_LinearCrossEntropy.apply(*parts, targets[real], smoothing))  # type: ignore[no-untyped-call]


def plain_loss(hidden: Tensor, weight: Tensor, bias: Tensor, targets: Tensor, smoothing: float) -> Tensor:
    """The smoothed sum of `sequence_loss` for real rows `[N, R]`, in one expression: its twin."""
    log_p = (hidden @ weight.T + bias).log_softmax(-1)  # [N, V]
    nll = -log_p.gather(1, targets[:, None]).sum()
    return (1 - smoothing) * nll - smoothing * log_p.mean(-1).sum()


class _LinearCrossEntropy(torch.autograd.Function):
    """Logits, their softmax and their gradient exist for ROWS tokens at a time; the backward only scales."""

    @staticmethod
    def forward(ctx: Any, hidden: Tensor, weight: Tensor, bias: Tensor, targets: Tensor, smoothing: float) -> Any:
        need = any(ctx.needs_input_grad)
        grads = [torch.zeros_like(part) for part in (hidden, weight, bias)] if need else []
        sums = hidden.new_zeros(3)
        for start in range(0, len(hidden), ROWS):
            rows = slice(start, start + ROWS)
            logits = torch.addmm(bias, hidden[rows], weight.T)  # [n, V]
            sums += _add_chunk(logits, targets[rows], smoothing)
            if need:
                d_logits = _softmax_gradient(logits, targets[rows], smoothing)
                torch.mm(d_logits, weight, out=grads[0][rows])
                grads[1].addmm_(d_logits.T, hidden[rows])
                grads[2] += d_logits.sum(0)
        ctx.save_for_backward(*grads)
        smoothed, nll, correct = (part.clone() for part in sums)
        ctx.mark_non_differentiable(nll, correct)
        return smoothed, nll, correct

    @staticmethod
    def backward(ctx: Any, d_smoothed: Tensor, _nll: Tensor, _correct: Tensor) -> Any:
        return (*(part * d_smoothed for part in ctx.saved_tensors), None, None)


def _add_chunk(logits: Tensor, targets: Tensor, smoothing: float) -> Tensor:
    best, likeliest = logits.max(-1)
    log_z = logits.logsumexp(-1)  # [n]
    nll = (log_z - logits.gather(1, targets[:, None])[:, 0]).sum()
    uniform = (log_z - logits.mean(-1)).sum() if smoothing else torch.zeros_like(nll)
    correct = (likeliest == targets).sum().to(best.dtype)
    return torch.stack(((1 - smoothing) * nll + smoothing * uniform, nll, correct))


def _softmax_gradient(logits: Tensor, targets: Tensor, smoothing: float) -> Tensor:
    gradient = logits.softmax(-1).sub_(smoothing / logits.size(-1))
    gradient[torch.arange(len(targets), device=targets.device), targets] -= 1 - smoothing
    return gradient
