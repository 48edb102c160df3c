"""Steps of gradient descent, and what came of them.

Nothing here waits for a GPU: where a gradient is no number it is the optimiser, there, that leaves all as it was, and
what came of a step is read when the next one has been asked for. A CPU has done a step when the call is over.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import isfinite
from typing import Any, NamedTuple, cast

import torch
from torch import Tensor

from mirada.data.batches import Batch
from mirada.errors import TrainingError
from mirada.store import checkpoint
from mirada.train.batch_loss import gradients
from mirada.train.graphs import Graphs, Recorder
from mirada.train.precision import products
from mirada.train.schedule import learning_rate, paced
from mirada.train.setup import Run

ADVICE = "In another model_dir, lower learning_rate or clip_grad_norm, or raise warmup_steps"
BAD_UPDATES = 20  # updates in a row whose gradient is no number, before training gives up
LAG = 1  # updates that a GPU has been asked for beyond the one whose outcome is read


class Ended(NamedTuple):
    """What came of an update."""

    update: int
    tokens: int  # real target tokens
    numbers: Tensor  # [2] −log p a token and the gradient's norm, on the CPU or on their way there
    arrived: Any  # an event of CUDA; None where they are there


class Updates:
    """Makes the updates of a training, and sees what came of each, in their order."""

    def __init__(self, run: Run):
        self.run, self.device, self.waiting = run, run.model.output.weight.device, list[Ended]()
        work: Callable[[Batch, Any], Tensor] = partial(gradients, run.model, run.config)
        self.lag, self.gradients = 0, work
        if by_graphs(self.device):
            learning = [part for part in run.model.parameters() if part.requires_grad]
            self.lag, self.gradients = LAG, Graphs(work, learning, run.monitor.note, Recorder())

    def make(self, batches: Sequence[Batch], tokens: int) -> None:
        """One step on the mean loss of so many real target tokens: of these batches, and of other processes'."""
        run, options = self.run, self.run.config.training
        run.progress.updates += 1
        _set_rate(run)
        run.optimizer.zero_grad(set_to_none=not self.lag)  # graphs have places of their own for gradients
        if not run.processes.first:  # the first's randomness is saved and goes on; the others' begins anew each update
            torch.manual_seed(hash((options.seed, run.processes.rank, run.progress.updates)))
        with products(options.precision, self.device):
            parts = [self.gradients(batch, tokens) for batch in batches]
        nll = torch.stack(parts).sum() if parts else run.model.output.bias.new_zeros(())
        nll = run.processes.add_gradients(run.model.parameters(), nll.detach())
        norm = torch.nn.utils.clip_grad_norm_(run.model.parameters(), options.clip_grad_norm)
        _step(run, nll.isfinite() & norm.isfinite())
        self.waiting.append(_sent(run.progress.updates, tokens, torch.stack((nll / tokens, norm))))
        self._read(self.lag)

    def finish(self) -> None:
        """Wait for all updates: from here on progress tells of every one."""
        self._read(0)

    def _read(self, most: int) -> None:
        while len(self.waiting) > most:
            update, tokens, numbers, arrived = self.waiting.pop(0)
            if arrived is not None:
                arrived.synchronize()
            loss, norm = numbers.tolist()
            if isfinite(loss) and isfinite(norm):
                self.run.progress.bad_in_a_row = 0
                self.run.monitor.update(update, tokens, loss)
            else:
                _count_skipped(self.run, update)


def by_graphs(device: torch.device) -> bool:
    """Whether a device is asked for an update's kernels all at once (graphs.py)."""
    return device.type == "cuda"


def _set_rate(run: Run) -> None:
    progress, seconds = run.progress, run.length.seconds
    schedule = paced(run.schedule, progress.updates, progress.seconds / seconds if seconds else 0)
    rate = learning_rate(progress.updates, schedule) * progress.rate_factor
    for group in run.optimizer.param_groups:
        group["lr"] = rate


def _step(run: Run, good: Tensor) -> None:
    """Let the optimiser make its step, and the average follow; where it is not `good` [], all stays as it was."""
    cast(Any, run.optimizer).found_inf = (~good).float()  # as torch.amp.GradScaler tells an optimiser that is fused
    run.optimizer.step()
    if run.average:
        updates = run.progress.updates
        decay = min(run.config.training.ema_decay, (1 + updates) / (10 + updates))
        for name, weights in checkpoint.weights_of(run.model).items():
            run.average[name].lerp_(weights, (1 - decay) * good.to(weights.dtype))


def _sent(update: int, tokens: int, numbers: Tensor) -> Ended:
    """Let an update's numbers set out for the CPU."""
    if numbers.device.type != "cuda":
        return Ended(update, tokens, numbers.cpu(), None)
    here = numbers.to("cpu", non_blocking=True)
    arrived = torch.cuda.Event()
    arrived.record()
    return Ended(update, tokens, here, arrived)


def _count_skipped(run: Run, update: int) -> None:
    """An update was left out, whose loss or gradient is no number; give up after many in a row."""
    progress = run.progress
    progress.bad_updates += 1
    progress.bad_in_a_row += 1
    run.monitor.note(f"update {update}: loss or gradient is not finite; skipped ({progress.bad_updates} so far)")
    if progress.bad_in_a_row >= BAD_UPDATES:
        kept = f"the last good model in {run.folder} is kept" if progress.best_metrics else "no model was kept yet"
        raise TrainingError(
            f"{BAD_UPDATES} updates in a row had a loss or gradient that is not finite; {kept}. {ADVICE}"
        )
