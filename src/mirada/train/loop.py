"""Training, read from top to bottom: prepare, then update, validate, save, until it is time to stop.

A training can be stopped and killed anywhere: the same command goes on where the last save stood, and on the CPU ends
with the same weights, bit for bit, as one that was never stopped.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import NamedTuple

import torch

from mirada.config.options import Config
from mirada.data.batches import collate, pair_lengths
from mirada.data.preparing import Corpora, encode_epoch
from mirada.devices import out_of_memory
from mirada.errors import TrainingError
from mirada.files import expanded, locked, remove_unused
from mirada.store import checkpoint, resume
from mirada.store.progress import judged_by, tells_nothing
from mirada.train.interrupts import InterruptedTrainingError, listening
from mirada.train.kept import keep_best
from mirada.train.log import History
from mirada.train.processes import Processes, joined
from mirada.train.progress import Monitor
from mirada.train.setup import Run, batch_size, batches_of, set_up
from mirada.train.update import ADVICE, Updates
from mirada.train.validation import dev_loss, dev_metrics


class Result(NamedTuple):
    """What a training made."""

    folder: Path
    metrics: dict[str, float]  # of the best validation
    updates: int
    seconds: float


def train(config: Config, *, monitor: Monitor | None = None, corpora: Corpora | None = None) -> Result:
    """Train a model into its folder, or go on with one that was stopped; returns the best validation's metrics.

    `corpora`: training and dev pairs that are in memory already, instead of those in the files that the options name.

    The caller's random state is left as it is. Raises TrainingError, ConfigError or DataError for what cannot be done,
    InterruptedTrainingError after Ctrl-C or SIGTERM.
    """
    devices = range(torch.cuda.device_count())
    with (
        joined() as processes,
        torch.random.fork_rng(devices),
        _own_folder(config, processes) as folder,
        _enough_memory(),
    ):
        run = _set_up(config, folder, monitor or Monitor(), corpora, processes)
        with listening(run.stop, partial(_say_stopping, run.monitor)):
            try:
                _loop(run)
            finally:
                run.monitor.stop()
    best, name = run.progress.best_metrics, run.judge
    if not best:
        raise TrainingError(f"no validation gave a {name} that is a number, so no model was kept. {ADVICE}")
    return Result(folder, best, run.progress.updates, run.progress.seconds)


def _set_up(config: Config, folder: Path, monitor: Monitor, corpora: Corpora | None, processes: Processes) -> Run:
    """Set up, of several processes first the first: the others begin with what it has saved."""
    if not processes.first:
        processes.wait_for_first()
        return set_up(config, folder, Monitor(quiet=True), processes, corpora=corpora)
    run = set_up(config, folder, monitor, processes, corpora=corpora)
    if not run.progress.updates:
        _save(run)
    processes.wait_for_first()
    return run


@contextmanager
def _own_folder(config: Config, processes: Processes) -> Iterator[Path]:
    """The folder to train into, held for this training; one that was made for nothing is taken away again."""
    folder = expanded(config.model_dir)
    if not processes.first:
        yield folder
        return
    made = [part for part in (folder, *folder.parents) if not part.exists()]
    try:
        str(folder).encode()
        folder.mkdir(parents=True, exist_ok=True)
    except UnicodeEncodeError:
        raise TrainingError(f"{folder}: the name is not UTF-8; choose another --model-dir") from None
    except OSError as error:
        raise TrainingError(f"{folder}: cannot be made ({error.strerror}); choose another --model-dir") from None
    with locked(folder):
        try:
            yield folder
        except BaseException:
            if made and not (folder / checkpoint.CONFIG).exists():
                remove_unused(folder, made)
            raise


@contextmanager
def _enough_memory() -> Iterator[None]:
    """Turn an allocator's error into advice."""
    try:
        yield
    except (RuntimeError, MemoryError) as error:
        if not out_of_memory(error):
            raise
        advice = "lower batch_size, max_length or the sizes of the model"
        raise TrainingError(f"the memory does not suffice for this model and batch; {advice}") from None


def _loop(run: Run) -> None:
    options, progress = run.config.training, run.progress
    device = run.model.output.weight.device
    total = None if run.length.seconds else run.length.updates
    run.monitor.start(run.config.model.decoder, total, progress.updates)
    begun, updates = time.monotonic() - progress.seconds, Updates(run)
    while not (reason := _finished(run)):
        pairs = encode_epoch(run.config.data, run.data, seed=options.seed, epoch=progress.epoch)
        lengths = pair_lengths(pairs)
        batches = batches_of(run.config, lengths, progress.epoch)
        while progress.position < len(batches) and not (reason := _finished(run)):
            chosen = batches[progress.position : progress.position + options.accum_count]
            run.model.train()
            tokens = sum(int(lengths[indices, 1].sum()) for indices in chosen)
            updates.make([collate(pairs, indices, device) for indices in run.processes.share(chosen)], tokens)
            progress.position += len(chosen)
            (progress.seconds,) = run.processes.most(time.monotonic() - begun)
            at_end = progress.position == len(batches)
            validated = _validation_due(run, at_end)
            if validated:
                updates.finish()
                _validate(run)
                (progress.validated_at,) = run.processes.most(time.monotonic() - begun)
                progress.validation_seconds = progress.validated_at - progress.seconds
                progress.seconds = progress.validated_at
            (stop,) = run.processes.most(run.stop.number)  # asked once: one that comes later waits for the next update
            save_due = options.save_every is not None and progress.updates % options.save_every == 0
            if validated or save_due or stop:
                updates.finish()
                _save(run)
            if stop:
                raise InterruptedTrainingError(
                    f"stopped after update {progress.updates}, saved in {run.folder}; "
                    "the same command goes on from there",
                    int(stop),
                )
        if not reason:
            progress.epoch, progress.position = progress.epoch + 1, 0
    updates.finish()
    if progress.validated != progress.updates:
        _validate(run)
        _save(run)
    run.monitor.note(f"stopped: {reason}; best {_say(progress.best_metrics)} after update {progress.best_update}")


def _validate(run: Run) -> None:
    """Measure the dev set, keep the model if it is the best so far, and lower the rate on a plateau."""
    options, progress = run.config.training, run.progress
    own = {name: weights.clone() for name, weights in checkpoint.weights_of(run.model).items()} if run.average else {}
    if run.average:
        checkpoint.put_weights(run.model, run.average)
    run.model.eval()
    metrics = dev_loss(run.model, run.data.dev, batch_size(run.config), run.processes)
    metrics |= dev_metrics(run.model, run.sample, run.target, run.config, run.processes)
    improved = progress.record_validation(metrics, options, run.judge)
    history = History(run.folder, tensorboard=options.tensorboard)
    if improved and run.processes.first:
        metadata = {"metrics": metrics, "updates": progress.updates, "best": True}
        checkpoint.write_model(run.folder, run.model, metadata, run.config)
    if options.keep_best and run.processes.first:
        keep_best(run.folder, run.model, run.config, progress.validations, run.judge)
    if run.average:
        checkpoint.put_weights(run.model, own)
    if run.processes.first:
        history.write(progress.validations)
    if tells_nothing(progress.validations, run.judge) and len(progress.validations) == 2:
        run.monitor.note(
            f"{run.judge} has been {metrics[run.judge]:.4g} in both validations, which says nothing: "
            "until it changes, the loss says what is best"
        )
    star = " *" if improved else ""
    bad = f" (skipped: {progress.bad_updates})" if progress.bad_updates else ""
    run.monitor.note(f"epoch {progress.epoch + 1} update {progress.updates}: {_say(metrics)}{star}{bad}")


def _save(run: Run) -> None:
    if not run.processes.first:
        return
    archive = resume.collect(run.progress, run.model, run.optimizer, run.average, run.config)
    checkpoint.write_archive(run.folder / checkpoint.RESUME, archive)


def _finished(run: Run) -> str:
    """Why training ends here, or an empty string."""
    options, progress = run.config.training, run.progress
    if progress.epoch >= run.length.epochs:
        return f"{run.length.epochs} epochs"
    if options.max_updates is not None and progress.updates >= options.max_updates:
        return f"{options.max_updates} updates"
    kept_back = 1.1 * progress.validation_seconds  # for the last validation, with room
    if run.length.seconds is not None and progress.updates and progress.seconds + kept_back >= run.length.seconds:
        return f"{options.max_minutes:g} minutes"
    if progress.without_improvement >= options.patience:
        return f"no better {judged_by(progress.validations, run.judge)} in {options.patience} validations"
    return ""


def _validation_due(run: Run, at_end: bool) -> bool:
    """After so many updates; by the clock each tenth of the time, but at most a fifth of the time; else each epoch."""
    progress, length = run.progress, run.length
    if length.valid_every is not None:
        return progress.updates % length.valid_every == 0
    if length.seconds is not None:
        return progress.seconds - progress.validated_at >= max(length.seconds / 10, 4 * progress.validation_seconds)
    return at_end


def _say(metrics: dict[str, float]) -> str:
    return " ".join(f"{name} {value:.4g}" for name, value in metrics.items())


def _say_stopping(monitor: Monitor) -> None:
    with suppress(RuntimeError):  # Python refuses to write a line in the middle of writing another
        monitor.note("stopping after this update …")
