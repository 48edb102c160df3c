"""A training under way, and how it is set up: data, tokenisers, model, optimiser, and where it stood."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import torch

from mirada.config.options import Config
from mirada.data.batches import BatchSize, pair_lengths, plan
from mirada.data.tokenizer import Tokenizer
from mirada.devices import choose_device
from mirada.errors import TrainingError
from mirada.models import AnyModel, build_model
from mirada.store import checkpoint, resume
from mirada.store.progress import Progress
from mirada.train import prepare
from mirada.train.interrupts import StopRequest
from mirada.train.progress import Monitor
from mirada.train.schedule import Schedule
from mirada.train.validation import check_metrics


@dataclass
class Run:
    """A training under way: everything that changes, and what it works with."""

    config: Config
    folder: Path
    model: AnyModel
    optimizer: torch.optim.Optimizer
    average: dict[str, torch.Tensor]  # the moving average of the weights; empty when off
    progress: Progress
    data: prepare.Prepared
    target: Tokenizer
    schedule: Schedule
    monitor: Monitor
    judge: str  # what says which model is the best: loss, or a metric that can measure this text
    stop: StopRequest = field(default_factory=StopRequest)


def set_up(config: Config, folder: Path, monitor: Monitor) -> Run:
    """Read the data, make (or take up again) tokenisers, model and optimiser."""
    check_metrics(config.training)
    corpora = prepare.read(config)
    choices = prepare.choices(config, corpora)
    config = prepare.resolve(config, corpora)
    data_hash = prepare.fingerprint(corpora)
    saved = resume.read(folder, config, data_hash)
    if saved is None:
        _refuse_finished(folder)
        source, target = prepare.learn_tokenizers(config, corpora[0])
    else:
        source, target = checkpoint.read_tokenizers(folder, config)
    data = prepare.encode(config, corpora, (source, target))
    torch.manual_seed(config.training.seed)
    device = choose_device(config.training.device)
    model = build_model(config.model, source_vocab=len(source), target_vocab=len(target)).to(device)
    run = Run(
        config,
        folder,
        model,
        _optimizer(config, model),
        {},
        Progress(data_hash),
        data,
        target,
        _schedule(config, data),
        monitor,
        config.training.early_stopping_metric,
    )
    if config.training.ema_decay:
        run.average = {name: weights.clone() for name, weights in checkpoint.weights_of(model).items()}
    if saved is None:
        checkpoint.write_start(folder, config, source, target)
    else:
        run.progress = resume.restore(saved, model, run.optimizer, run.average)
        checkpoint.write_options(folder, config)
    for note in [*choices, *data.notes, describe(run, len(source))]:
        monitor.note(note)
    return run


def _refuse_finished(folder: Path) -> None:
    """Raise TrainingError if starting anew would overwrite a model, whose resumable state is not there (any more)."""
    if (folder / checkpoint.WEIGHTS).exists():
        raise TrainingError(
            f"{folder} holds a model, but not the {checkpoint.RESUME} to go on with; choose another model_dir"
        )


def describe(run: Run, source_vocab: int) -> str:
    """One line about the model and where training stands."""
    weights = sum(weights.numel() for weights in checkpoint.weights_of(run.model).values())
    options = run.config.model
    name = options.decoder if options.score_name is None else f"{options.decoder} ({options.score_name})"
    kind = "" if options.decoder == "transformer" else f" {options.rnn_type}"
    at = f", going on after update {run.progress.updates}" if run.progress.updates else ""
    return f"{name}{kind}: {weights:,} weights, vocabularies {source_vocab} and {len(run.target)}{at}"


def _optimizer(config: Config, model: AnyModel) -> torch.optim.Optimizer:
    options = config.training
    kind = torch.optim.Adam if options.optimizer == "adam" else torch.optim.AdamW
    return kind(
        model.parameters(),
        lr=options.learning_rate,
        betas=options.adam_betas,
        eps=1e-9,
        weight_decay=options.weight_decay,
        fused=True,
    )


def _schedule(config: Config, data: prepare.Prepared) -> Schedule:
    options = config.training
    an_epoch = len(plan(pair_lengths(data.train), batch_size(config), seed=options.seed, epoch=0))
    last = min(options.epochs * an_epoch, options.max_updates or options.epochs * an_epoch)
    return Schedule(options.learning_rate, options.warmup_steps, options.scheduling, last)


def batch_size(config: Config) -> BatchSize:
    """How large a batch is."""
    return BatchSize(config.training.batch_size, config.training.batch_type == "token")
