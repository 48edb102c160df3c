"""How good a model is on the dev set: loss, perplexity, accuracy, and the task's metrics on what it writes."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import torch

from mirada.config.options import Config, TrainingConfig
from mirada.data.batches import BatchSize, Encoded, collate, cut, pair_lengths
from mirada.data.copying import written_token
from mirada.data.corpus import Corpus
from mirada.data.tokenizer import Tokenizer
from mirada.data.vocabulary import EOS, UNK
from mirada.models.base import Network
from mirada.search.scheduler import Request, search_all
from mirada.train.batch_loss import batch_loss
from mirada.train.processes import ALONE, Processes


def check_metrics(options: TrainingConfig) -> None:
    """Raise ConfigError for a metric that is unknown, before an epoch is spent and not after."""
    from mirada.evaluation.metrics import resolve, single

    resolve(options.valid_metrics)
    if options.early_stopping_metric != "loss":
        single(options.early_stopping_metric)


def dev_loss(model: Network, dev: Encoded, size: BatchSize, processes: Processes = ALONE) -> dict[str, float]:
    """Loss a token (natural log, unsmoothed), its exponential, and the share of tokens predicted right, in percent."""
    lengths, device = pair_lengths(dev), model.output.weight.device
    order = np.lexsort((lengths[:, 0], lengths[:, 1]))
    found = [model.output.weight.new_zeros(2)]  # of each batch; read when all have been asked for
    tokens = 0
    with torch.no_grad():
        for indices in processes.share(cut(lengths[order], order, size)):
            batch = collate(dev, indices, device)
            loss = batch_loss(model, batch, smoothing=0.0)
            found.append(torch.stack((loss.nll, loss.correct)))
            tokens += batch.tokens
    sums = sum(part.double() for part in torch.stack(found).cpu())
    *parts, all_tokens = map(float, processes.sum(torch.cat((sums, sums.new_tensor([tokens])))))
    nll, correct = (part / all_tokens for part in parts)
    return {"loss": nll, "ppl": math.exp(min(nll, 100.0)), "accuracy": 100 * correct}


class Sample(NamedTuple):
    """Dev sources that are translated for the metrics, each once, with all targets that the dev set has for it."""

    sources: list[list[int]]
    references: list[list[str]]
    copies: list[list[int]]  # as in Encoded, where the model copies
    own: list[dict[int, str]]


def draw_sample(dev: Encoded, texts: Corpus, *, count: int, seed: int) -> Sample:
    """At most `count` different sources, drawn by the seed, in the file's order.

    Many dev files are sorted: their beginning is no sample of them.
    """
    places: dict[str, list[int]] = {}
    for place, source in enumerate(texts.sources):
        places.setdefault(source, []).append(place)
    groups = list(places.values())
    drawn = np.sort(np.random.default_rng(seed).permutation(len(groups))[:count])
    chosen = [groups[i] for i in drawn]
    known = texts.all_references()
    references = [[reference for place in group for reference in known[place]] for group in chosen]
    firsts = [group[0] for group in chosen]
    copies = [dev.copies[place] if dev.copies else [] for place in firsts]
    own = [dev.own[place] if dev.own else {} for place in firsts]
    return Sample([list(dev.sources[place]) for place in firsts], references, copies, own)


def dev_metrics(
    model: Network, sample: Sample, target: Tokenizer, config: Config, processes: Processes = ALONE
) -> dict[str, float]:
    """Metrics of what the model writes for the sample, searched as the options say: as it will be used."""
    from mirada.evaluation.metrics import evaluate

    names = list(config.training.valid_metrics)
    if not names:
        return {}
    device = model.output.weight.device
    requests = [Request(source, [], i, tuple(sample.copies[i])) for i, source in enumerate(sample.sources)]
    own = processes.share(requests)
    found = search_all(model, own, config.search, batch_size=64, device=device)
    best = processes.gather([hypotheses[0].tokens for hypotheses in found], len(requests))
    outputs = [
        target.join(written_token(i, sample.own[n], target) for i in tokens if i == UNK or i > EOS)
        for n, tokens in enumerate(best)
    ]
    return {metric.name: metric.value for metric in evaluate(outputs, sample.references, names)}
