"""Label-smoothed cross entropy from the hidden states, without ever holding all logits.

For each real target token: (1 − ε)·(−log p(y)) + ε·mean over the vocabulary of −log p (the convention of PyTorch and
fairseq). The negative log-likelihood is returned beside it, unsmoothed: perplexities are made from that.

The vocabulary is what can be written: `<pad>` and `<s>` never are, and have no probability here, as in every search.
"""

from __future__ import annotations

from typing import Any, NamedTuple, cast

import torch
from torch import Tensor

from mirada.data.vocabulary import EOS, NEVER_WRITTEN, PAD
from mirada.devices import synchronous

Divisor = float | Tensor  # a number [], where it is another each time that a graph of kernels is run
ROWS = 512  # tokens whose logits exist at the same time: few enough to stay in the cache between two passes
SPACE = 1 << 26  # … and on a GPU, for which many at once are faster, logits: 256 MB


class Loss(NamedTuple):
    """Sums over the real tokens of a batch."""

    smoothed: Tensor  # [] what is minimised, over the divisor, with gradient
    nll: Tensor  # [] −Σ log p, without gradient
    correct: Tensor  # [] tokens whose likeliest word is right


class LossRows(NamedTuple):
    """Steps whose loss is wanted. On a CPU the real ones alone; a GPU takes all, and is not asked how many are real.

    What stands on padding is of no matter: its state is 0, and it is not counted.
    """

    hidden: Tensor  # [N, R]
    targets: Tensor  # [N]
    kept: Tensor | None  # [N] 1, and 0 on padding; None where all are real


def rows_of(hidden: Tensor, targets: Tensor) -> LossRows:
    """The steps of hidden states `[B, T, R]` with targets `[B, T]`."""
    real = targets != PAD
    if synchronous(hidden.device):
        return LossRows(hidden[real], targets[real], None)
    hidden, targets = hidden.masked_fill(~real[..., None], 0), targets.masked_fill(~real, EOS)
    return LossRows(hidden.flatten(0, 1), targets.flatten(), real.flatten().to(hidden.dtype))


def sequence_loss(
    hidden: Tensor, weight: Tensor, bias: Tensor, targets: Tensor, *, smoothing: float, divisor: Divisor = 1.0
) -> Loss:
    """Loss of hidden states `[B, T, R]` against targets `[B, T]`, padding left out, under logits `hidden Wᵀ + b`.

    Training divides by the batch's tokens: told beforehand, that costs nothing.
    """
    rows = rows_of(hidden, targets)
    parts = (rows.hidden, weight, bias)
    if not torch.is_grad_enabled():  # an autograd function itself sees only that weights want gradients, even here
        parts = (rows.hidden.detach(), weight.detach(), bias.detach())
    return Loss(*_LinearCrossEntropy.apply(*parts, rows, smoothing, divisor))  # type: ignore[no-untyped-call]


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
        ctx: Any, hidden: Tensor, weight: Tensor, bias: Tensor, rows: LossRows, smoothing: float, divisor: Divisor
    ) -> Any:
        need = any(ctx.needs_input_grad)
        grads = [torch.empty_like(hidden), torch.zeros_like(weight), torch.zeros_like(bias)] if need else []
        sums = hidden.new_zeros(3)
        size = _chunk(len(hidden), weight)
        space = hidden.new_empty(size, len(weight))
        for start in range(0, len(hidden), max(1, size)):
            own = LossRows(*(cast(Tensor, None if part is None else part[start : start + size]) for part in rows))
            log_p = _log_probabilities(own, weight, bias, sums, smoothing, space[: len(own.hidden)])
            if need:
                d_logits = _peaked_gradient(log_p, own.targets, smoothing)
                torch.mm(d_logits, weight, out=grads[0][start : start + size]).div_(divisor)
                grads[1].addmm_(d_logits.T, own.hidden / divisor)
                grads[2] += over_rows(d_logits, own.kept) / divisor
        if need and smoothing:
            even = smoothing / _choices(weight) / divisor
            grads[0].sub_(even * (weight.sum(0) - weight[NEVER_WRITTEN].sum(0)))
            count = len(hidden) if rows.kept is None else rows.kept.sum()
            for part, sums_of_rows in ((grads[1], hidden.sum(0)), (grads[2], count)):
                part[: NEVER_WRITTEN.start] -= even * sums_of_rows
                part[NEVER_WRITTEN.stop :] -= even * sums_of_rows
        ctx.save_for_backward(*grads)
        smoothed, nll, correct = sums[0] / divisor, sums[1].clone(), sums[2].clone()
        ctx.mark_non_differentiable(nll, correct)
        return smoothed, nll, correct

    @staticmethod
    def backward(ctx: Any, d_smoothed: Tensor, _nll: Tensor, _correct: Tensor) -> Any:
        grads = ctx.saved_tensors
        if not synchronous(d_smoothed.device) or d_smoothed.item() != 1:
            grads = tuple(part * d_smoothed for part in grads)
        return (*grads, None, None, None)


def _chunk(count: int, weight: Tensor) -> int:
    """How many rows go at once: chunks of one size, for a rest of few rows is expensive."""
    most = ROWS if weight.device.type == "cpu" else max(ROWS, SPACE // len(weight))
    return -(-count // max(1, -(-count // most)))


def _log_probabilities(
    rows: LossRows, weight: Tensor, bias: Tensor, sums: Tensor, smoothing: float, space: Tensor
) -> Tensor:
    """log p in `space` `[n, V]` of a chunk, whose smoothed loss, −log p(y) and right guesses are added to `sums`."""
    logits = torch.mm(rows.hidden, weight.T, out=space).add_(bias)
    logits[:, NEVER_WRITTEN].fill_(-torch.inf)
    best = logits.amax(-1)  # faster than argmax; a tie with the best counts as right
    spoken = logits.gather(1, rows.targets[:, None])[:, 0]
    # A GPU may read a row again after it has begun to write it.
    log_p = torch.log_softmax(logits, -1, out=logits) if logits.device.type == "cpu" else logits.log_softmax(-1)
    nll = -over_rows(log_p.gather(1, rows.targets[:, None])[:, 0], rows.kept)
    uniform = -_sum_of_choices(log_p, rows.kept) / _choices(weight) if smoothing else torch.zeros_like(nll)
    correct = over_rows((spoken == best).to(nll.dtype), rows.kept)
    sums += torch.stack(((1 - smoothing) * nll + smoothing * uniform, nll, correct))
    return log_p


def over_rows(x: Tensor, kept: Tensor | None) -> Tensor:
    """The sum of rows `[n, …]`, of those that are kept."""
    return x.sum(0) if kept is None else kept @ x


def _choices(weight: Tensor) -> int:
    """How many tokens can be written."""
    return len(weight) - (NEVER_WRITTEN.stop - NEVER_WRITTEN.start)


def _sum_of_choices(log_p: Tensor, kept: Tensor | None) -> Tensor:
    first, last = log_p[:, : NEVER_WRITTEN.start], log_p[:, NEVER_WRITTEN.stop :]
    if kept is None:
        return first.sum() + last.sum()
    return kept @ (first.sum(1) + last.sum(1))


def _peaked_gradient(log_p: Tensor, targets: Tensor, smoothing: float) -> Tensor:
    """p − (1 − ε)·[y] in the place of log p."""
    return log_p.exp_().scatter_add_(1, targets[:, None], log_p.new_full((len(targets), 1), smoothing - 1))
