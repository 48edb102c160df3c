"""Label-smoothed cross entropy from the hidden states, without ever holding all logits.

For each real target token: (1 − ε)·(−log p(y)) + ε·mean over the vocabulary of −log p (the convention of PyTorch and
fairseq). The negative log-likelihood is returned beside it, unsmoothed: perplexities are made from that.

The vocabulary is what can be written: `<pad>` and `<s>` never are, and have no probability here, as in every search.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from mirada.data.vocabulary import NEVER_WRITTEN, PAD

ROWS = 512  # tokens whose logits exist at the same time: few enough to stay in the cache between two passes


class Loss(NamedTuple):
    """Sums over the real tokens of a batch."""

    smoothed: Tensor  # [] what is minimised, over the divisor, with gradient
    nll: Tensor  # [] −Σ log p, without gradient
    correct: Tensor  # [] tokens whose likeliest word is right


def sequence_loss(
    hidden: Tensor, weight: Tensor, bias: Tensor, targets: Tensor, *, smoothing: float, divisor: float = 1.0
) -> Loss:
    """Loss of hidden states `[B, T, R]` against targets `[B, T]`, padding left out, under logits `hidden Wᵀ + b`.

    Training divides by the batch's tokens: told beforehand, that costs nothing.
    """
    real = targets != PAD
    parts = (hidden[real], weight, bias)
    if not torch.is_grad_enabled():  # an autograd function itself sees only that weights want gradients, even here
        parts = (parts[0].detach(), weight.detach(), bias.detach())
    return Loss(*_LinearCrossEntropy.apply(*parts, targets[real], smoothing, divisor))  # type: ignore[no-untyped-call]


def plain_loss(hidden: Tensor, weight: Tensor, bias: Tensor, targets: Tensor, smoothing: float) -> Tensor:
    """The smoothed sum of `sequence_loss` for real rows `[N, R]`, in one expression: its reference."""
    can = torch.ones(len(weight), dtype=torch.bool, device=weight.device)
    can[NEVER_WRITTEN] = False
    log_p = (hidden @ weight.T + bias).masked_fill(~can, -torch.inf).log_softmax(-1)  # [N, V]
    nll = -log_p.gather(1, targets[:, None]).sum()
    return (1 - smoothing) * nll - smoothing * log_p[:, can].mean(-1).sum()


class _LinearCrossEntropy(torch.autograd.Function):
    """Logits, their softmax and their gradient exist for ROWS tokens at a time; the backward at most scales.

    The gradient of the logits is p − (1 − ε)·[y] − ε/V', where V' tokens can be written (and 0 for the others). The
    last is one number everywhere: what it adds to each product is known from sums alone, so it is never subtracted from
    the `N·V` others.
    """

    @staticmethod
    def forward(
        ctx: Any, hidden: Tensor, weight: Tensor, bias: Tensor, targets: Tensor, smoothing: float, divisor: float
    ) -> Any:
        need = any(ctx.needs_input_grad)
        grads = [torch.empty_like(hidden), torch.zeros_like(weight), torch.zeros_like(bias)] if need else []
        sums = hidden.new_zeros(3)
        rows = -(-len(hidden) // max(1, -(-len(hidden) // ROWS)))  # chunks of one size: a rest of few rows is expensive
        space = hidden.new_empty(rows, len(weight))
        for start in range(0, len(hidden), max(1, rows)):
            read, wanted = hidden[start : start + rows], targets[start : start + rows]
            log_p = _log_probabilities(read, weight, bias, wanted, sums, smoothing, space[: len(read)])
            if need:
                d_logits = _peaked_gradient(log_p, wanted, smoothing)
                torch.mm(d_logits, weight, out=grads[0][start : start + rows]).div_(divisor)
                grads[1].addmm_(d_logits.T, read / divisor)
                grads[2] += d_logits.sum(0) / divisor
        if need and smoothing:
            even = smoothing / _choices(weight) / divisor
            grads[0].sub_(even * (weight.sum(0) - weight[NEVER_WRITTEN].sum(0)))
            for part, sums_of_rows in ((grads[1], hidden.sum(0)), (grads[2], len(hidden))):
                part[: NEVER_WRITTEN.start] -= even * sums_of_rows
                part[NEVER_WRITTEN.stop :] -= even * sums_of_rows
        ctx.save_for_backward(*grads)
        smoothed, nll, correct = sums[0] / divisor, sums[1].clone(), sums[2].clone()
        ctx.mark_non_differentiable(nll, correct)
        return smoothed, nll, correct

    @staticmethod
    def backward(ctx: Any, d_smoothed: Tensor, _nll: Tensor, _correct: Tensor) -> Any:
        grads = ctx.saved_tensors
        if d_smoothed.device.type != "cpu" or d_smoothed.item() != 1:  # to ask a GPU would be to wait for it
            grads = tuple(part * d_smoothed for part in grads)
        return (*grads, None, None, None)


def _log_probabilities(
    hidden: Tensor, weight: Tensor, bias: Tensor, targets: Tensor, sums: Tensor, smoothing: float, space: Tensor
) -> Tensor:
    """log p in `space` `[n, V]` of a chunk, whose smoothed loss, −log p(y) and right guesses are added to `sums`."""
    logits = torch.mm(hidden, weight.T, out=space).add_(bias)
    logits[:, NEVER_WRITTEN] = -torch.inf
    best = logits.amax(-1)  # faster than argmax; a tie with the best counts as right
    spoken = logits.gather(1, targets[:, None])[:, 0]
    log_p = torch.log_softmax(logits, -1, out=logits)
    nll = -log_p.gather(1, targets[:, None]).sum()
    uniform = -_sum_of_choices(log_p) / _choices(weight) if smoothing else torch.zeros_like(nll)
    correct = (spoken == best).sum().to(nll.dtype)
    sums += torch.stack(((1 - smoothing) * nll + smoothing * uniform, nll, correct))
    return log_p


def _choices(weight: Tensor) -> int:
    """How many tokens can be written."""
    return len(weight) - (NEVER_WRITTEN.stop - NEVER_WRITTEN.start)


def _sum_of_choices(log_p: Tensor) -> Tensor:
    return log_p[:, : NEVER_WRITTEN.start].sum() + log_p[:, NEVER_WRITTEN.stop :].sum()


def _peaked_gradient(log_p: Tensor, targets: Tensor, smoothing: float) -> Tensor:
    """p − (1 − ε)·[y] in the place of log p."""
    return log_p.exp_().scatter_add_(1, targets[:, None], log_p.new_full((len(targets), 1), smoothing - 1))
