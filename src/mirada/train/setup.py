"""A training under way, and how it is set up: data, tokenisers, model, optimiser, and where it stood."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch

from mirada.config.options import Config
from mirada.data import preparing
from mirada.data.batches import BatchSize, plan
from mirada.data.encoded import pair_lengths
from mirada.data.preparing import Corpora, Tokenizers
from mirada.data.tokenizer import Tokenizer
from mirada.devices import choose_device
from mirada.errors import TrainingError
from mirada.models import AnyModel, build_model
from mirada.store import checkpoint, resume
from mirada.store.progress import Progress
from mirada.train import prepare
from mirada.train.beginning import adopt, begin, first_tokenizers, freeze, origin
from mirada.train.choices import (
    TOKENS,
    Length,
    choose,
    choose_copying,
    choose_judge,
    choose_metrics,
    choose_ties,
    for_processes,
    plan_length,
)
from mirada.train.choices import describe as say_length
from mirada.train.fitting import fitted, kept
from mirada.train.interrupts import StopRequest
from mirada.train.large import Large, check_large, encoded, find_prepared
from mirada.train.precision import settled
from mirada.train.processes import ALONE, Processes
from mirada.train.progress import Monitor
from mirada.train.schedule import Schedule
from mirada.train.validation import Sample, check_metrics, draw_sample


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
    length: Length
    monitor: Monitor
    sample: Sample  # of dev, for the metrics
    judge: str  # what says which model is the best: loss, or a metric that can measure this text
    stop: StopRequest = field(default_factory=StopRequest)
    processes: Processes = ALONE


def set_up(
    config: Config,
    folder: Path,
    monitor: Monitor,
    processes: Processes = ALONE,
    *,
    corpora: Corpora | None = None,
) -> Run:
    """Read the data (or take what is in memory), make (or take up again) tokenisers, model and optimiser.

    Of several processes the others take up what the first has saved.
    """
    check_metrics(config.training)
    begun = time.monotonic()
    large = None if corpora else find_prepared(config, folder, monitor)
    corpora, config = (large.corpus.corpora, large.config) if large else (corpora or prepare.read(config), config)
    config, notes = _in_force(config, folder, corpora, processes.size, large)
    data_hash = large.corpus.manifest.fingerprint if large else prepare.fingerprint(corpora)
    saved = resume.read(folder, config, data_hash)
    if saved is None:
        _refuse_finished(folder)
    tokenizers = _tokenizers(config, folder, corpora, large, fresh=saved is None)
    data = encoded(config, large.corpus) if large else prepare.encode(config, corpora, tokenizers)
    options = config.training
    config = prepare.with_limits(config, data.train)
    model, begun_with = _model(config, tokenizers, fresh=saved is None)
    config, size = fitted(config, model, data.train)
    sample = draw_sample(data.dev, data.dev_texts, count=options.valid_sentences, seed=options.seed)
    judge, doubt = choose_judge(options.early_stopping_metric, sample.references)
    length, how_long = _length(config, data, begun)
    schedule = Schedule(options.learning_rate, length.warmup, options.scheduling, length.updates)
    optimizer, progress = _optimizer(config, model), Progress(data_hash)
    run = Run(
        config, folder, model, optimizer, {}, progress, data, tokenizers[1], schedule, length, monitor, sample, judge
    )
    run.processes = processes
    _begin(run, saved, tokenizers)
    described = describe(run, len(tokenizers[0]))
    notes = [*(large.notes if large else ()), *data.notes, described, *begun_with, *notes, *size, *doubt, how_long]
    for note in notes:
        monitor.note(note)
    return run


def _tokenizers(config: Config, folder: Path, corpora: Corpora, large: Large | None, *, fresh: bool) -> Tokenizers:
    """Those of a training that goes on, of the model to begin with, of a prepared corpus, or new ones."""
    if not fresh:
        tokenizers = checkpoint.read_tokenizers(folder, config)
    elif large and not (config.training.init_from and config.training.init_vocab == "keep"):
        tokenizers = large.corpus.tokenizers
    else:
        tokenizers = first_tokenizers(config, corpora[0])
    if large:
        check_large(config, large.corpus, tokenizers)
    return tokenizers


def _begin(run: Run, saved: resume.Saved | None, tokenizers: Tokenizers) -> None:
    """Write down what a training starts from, or take up again what was saved of it."""
    if run.config.training.ema_decay:
        run.average = {name: weights.clone() for name, weights in checkpoint.weights_of(run.model).items()}
    if saved is None:
        checkpoint.write_start(run.folder, run.config, *tokenizers)
    else:
        run.progress = resume.restore(saved, run.model, run.optimizer, run.average)
        if run.processes.first:
            checkpoint.write_options(run.folder, run.config)


def _length(config: Config, data: prepare.Prepared, begun: float) -> tuple[Length, str]:
    """How long the training is to be, and that in words; it began at `begun`."""
    options = config.training
    batches = len(batches_of(config, pair_lengths(data.train), 0))
    updates = -(-batches // options.accum_count)  # of an epoch
    length = plan_length(options, updates, time.monotonic() - begun)
    return length, say_length(options, length, updates)


def _in_force(
    config: Config, folder: Path, corpora: Corpora, processes: int, large: Large | None
) -> tuple[Config, list[str]]:
    """The options with what was left to the data, or to the model to begin with; and what was chosen, in words."""
    if config.training.init_from:
        going_on = (folder / checkpoint.CONFIG).exists()
        config = adopt(config, folder if going_on else origin(config.training.init_from))
    given = config.training.model_fields_set | config.model.model_fields_set
    config, precision = settled(kept(config, folder), folder)
    config, sizes = choose(for_processes(config, processes), len(corpora[0]))
    tokens = preparing.choose(config.data, corpora)
    notes = [*tokens.notes(), *sizes, *precision]
    asked = large.corpus.manifest.given if large else config.data
    config = prepare.resolve(config, corpora, tokens)
    if config.data.share_vocab and asked.share_vocab is None:
        config, ties = choose_ties(config, given)
        notes += ties
    if large is None and "copy_attn" not in given:  # prepared pairs do not tell what a source token would write
        config, copying = choose_copying(config, corpora[0])
        notes += copying
    return config if "valid_metrics" in given else choose_metrics(config, corpora[0].targets, given), notes


def _model(config: Config, tokenizers: Tokenizers, *, fresh: bool) -> tuple[AnyModel, list[str]]:
    """The model on its device, a fresh one with what the options let it begin with; and that in words."""
    torch.manual_seed(config.training.seed)
    device = choose_device(config.training.device)
    source, target = map(len, tokenizers)
    model = build_model(config.model, source_vocab=source, target_vocab=target).to(device)
    notes = begin(config, model, tokenizers) if fresh else []
    freeze(model, config.training.freeze)
    return model, notes


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


def batches_of(config: Config, lengths: np.ndarray, epoch: int) -> list[np.ndarray]:
    """The batches of an epoch whose pairs have these lengths, as indices; those of one update stand together."""
    options = config.training
    return plan(lengths, batch_size(config), seed=options.seed, epoch=epoch, together=options.accum_count)


def batch_size(config: Config) -> BatchSize:
    """How large a batch is; where nobody has said (yet), as large as one of tokens is otherwise."""
    return BatchSize(config.training.batch_size or TOKENS, config.training.batch_type == "token")
