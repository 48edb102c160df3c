"""Before an export is written: does it compute what the model computes?"""

from __future__ import annotations

import random

import numpy as np
import torch

from mirada.data.batches import Encoded, collate
from mirada.data.corpus import chosen_files, read_files
from mirada.data.vocabulary import EOS
from mirada.errors import ConfigError, MiradaError
from mirada.export.graph import Precision
from mirada.runtime.engine import Engine
from mirada.runtime.scoring import force
from mirada.search.step import producible
from mirada.store.checkpoint import Loaded

PAIRS, LONGEST = 20, 60
MOST = {"float32": 1e-3, "int8": 0.5}  # largest difference of a log-probability, and of 8 bits the mean difference


def pairs_of(loaded: Loaded) -> Encoded:
    """Some pairs of the model's own dev set, as ids; where it cannot be read, sequences drawn from the vocabularies."""
    data = loaded.config.data
    try:
        files = chosen_files(data, dev=True)
        corpus = read_files(files, data) if files is not None else None
    except MiradaError:
        corpus = None
    if corpus is None or not len(corpus):
        return _drawn(len(loaded.source), len(loaded.target))
    sides = (loaded.source.encode(corpus.sources[:PAIRS]), loaded.target.encode(corpus.targets[:PAIRS]))
    return Encoded([[*ids[:LONGEST], EOS] for ids in sides[0]], [ids[:LONGEST] for ids in sides[1]])


def _drawn(source: int, target: int) -> Encoded:
    draw = random.Random(1)
    sources = [[draw.randrange(EOS + 1, source) for _ in range(draw.randint(0, 12))] for _ in range(PAIRS)]
    targets = [[draw.randrange(EOS + 1, target) for _ in range(draw.randint(0, 12))] for _ in range(PAIRS)]
    return Encoded([[*ids, EOS] for ids in sources], targets)


def check(loaded: Loaded, engine: Engine, pairs: Encoded, precision: Precision) -> float:
    """How far the log-probabilities of the pairs' targets are from torch's. Raises ConfigError if that is too far."""
    expected = _by_torch(loaded, pairs)
    found = [np.array(log_p) for log_p, _ in force(engine, pairs.sources, pairs.targets)]
    differences = np.abs(np.concatenate(found) - np.concatenate(expected))
    if not np.isfinite(differences).all():
        raise ConfigError("the exported model gives values that are no numbers where torch's are; not written")
    difference = float(differences.max() if precision == "float32" else differences.mean())
    if difference > MOST[precision]:
        advice = "export it in float32" if precision == "int8" else "please report this"
        raise ConfigError(
            f"the exported model differs from torch's by {difference:.2g} in log-probability "
            f"(expected at most {MOST[precision]}); not written; {advice}"
        )
    return difference


def _by_torch(loaded: Loaded, pairs: Encoded) -> list[np.ndarray]:
    batch = collate(pairs, range(len(pairs.sources)), torch.device("cpu"))
    with torch.inference_mode():
        outputs = loaded.model.forward(batch.source, batch.lengths, batch.target_in)
        log_p = producible(loaded.model.logits(outputs.hidden.flatten(0, 1))).log_softmax(1)
        given = log_p.gather(1, batch.target_out.reshape(-1, 1)).view_as(batch.target_out)  # [B, T]
    return [given[i, : len(target) + 1].numpy() for i, target in enumerate(pairs.targets)]
