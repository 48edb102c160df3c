"""How good a model is on the dev set: loss, perplexity, accuracy, and the task's metrics on greedy output."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import torch

from mirada.config.options import SearchConfig, TrainingConfig
from mirada.data.batches import BatchSize, Encoded, collate, cut, pair_lengths
from mirada.data.copying import written_token
from mirada.data.corpus import Corpus
from mirada.data.tokenizer import Tokenizer
from mirada.data.vocabulary import EOS, UNK
from mirada.models.base import Model
from mirada.search.scheduler import Request, search_all
from mirada.train.batch_loss import batch_loss


def check_metrics(options: TrainingConfig) -> None:
    """Raise ConfigError for a metric that is unknown, before an epoch is spent and not after."""
    from mirada.evaluation.metrics import resolve, single

    resolve(options.valid_metrics)
    if options.early_stopping_metric != "loss":
        single(options.early_stopping_metric)


def dev_loss(model: Model, dev: Encoded, size: BatchSize, device: torch.device) -> dict[str, float]:
    """Loss a token (natural log, unsmoothed), its exponential, and the share of tokens predicted right, in percent."""
    lengths = pair_lengths(dev)
    order = np.lexsort((lengths[:, 0], lengths[:, 1]))
    sums, tokens = torch.zeros(2, dtype=torch.float64), 0
    with torch.no_grad():
        for indices in cut(lengths[order], order, size):
            batch = collate(dev, indices, device)
            loss = batch_loss(model, batch, smoothing=0.0)
            sums += torch.stack((loss.nll, loss.correct)).double().cpu()
            tokens += batch.tokens
    nll, correct = (float(part) / tokens for part in sums)
    return {"loss": nll, "ppl": math.exp(min(nll, 100.0)), "accuracy": 100 * correct}


def dev_metrics(
    model: Model, dev: Encoded, texts: Corpus, target: Tokenizer, names: Sequence[str], count: int
) -> dict[str, float]:
    """Metrics of greedy output for the first `count` dev sources; the dev set's order is the file's."""
    from mirada.evaluation.metrics import evaluate

    if not names:
        return {}
    device = model.output.weight.device
    copies, own = dev.copies or [[]] * len(dev.sources), dev.own or [{}] * len(dev.sources)
    requests = [Request(source, [], i, tuple(copies[i])) for i, source in enumerate(dev.sources[:count])]
    found = search_all(model, requests, SearchConfig(beam_size=1), batch_size=64, device=device)
    outputs = [
        target.join(written_token(i, own[n], target) for i in hypotheses[0].tokens if i == UNK or i > EOS)
        for n, hypotheses in enumerate(found)
    ]
    measured = evaluate(outputs, texts.all_references()[:count], list(names))
    return {metric.name: metric.value for metric in measured}
