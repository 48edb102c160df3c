"""Before an export is written: does it compute what the model computes?"""

from __future__ import annotations

import itertools
import random

import numpy as np
import torch

from mirada.data.batches import Encoded
from mirada.data.corpus import chosen_files, read_files
from mirada.data.preparing import encode_copying
from mirada.data.vocabulary import EOS
from mirada.errors import ConfigError, MiradaError
from mirada.export.graph import Precision
from mirada.runtime.engine import Engine
from mirada.runtime.scoring import force as runtime_force
from mirada.scoring import force
from mirada.store.checkpoint import Loaded

PAIRS, LONGEST = 20, 60
SMALLEST = -80.0  # ln p; what copies adds probabilities up, and those below are no normal float32 numbers
MOST = {"float32": 1e-3, "int8": 0.5}  # largest difference of a log-probability, and of 8 bits the mean difference


def pairs_of(loaded: Loaded) -> Encoded:
    """Some pairs of the model's own dev set, as ids; where it cannot be read, sequences drawn from the vocabularies."""
    data, copies = loaded.config.data, loaded.config.model.copy_attn
    try:
        files = chosen_files(data, dev=True)
        corpus = read_files(files, data) if files is not None else None
    except MiradaError:
        corpus = None
    if corpus is None or not len(corpus):
        return _drawn(len(loaded.source), len(loaded.target), copies=copies)
    sources, targets = (
        [row[:LONGEST] for row in tokenizer.pieces(texts[:PAIRS])]
        for tokenizer, texts in ((loaded.source, corpus.sources), (loaded.target, corpus.targets))
    )
    if copies:
        return encode_copying(sources, targets, loaded.target)
    own, other = ([[piece.id for piece in row] for row in side] for side in (sources, targets))
    return Encoded([[*ids, EOS] for ids in own], other)


def _drawn(source: int, target: int, *, copies: bool) -> Encoded:
    """Pairs of ids below these; with `copies` each source has words of its own, and each target some of its source."""
    draw = random.Random(1)
    sources = [[draw.randrange(EOS + 1, source) for _ in range(draw.randint(0, 12))] for _ in range(PAIRS)]
    targets = [[draw.randrange(EOS + 1, target) for _ in range(draw.randint(0, 12))] for _ in range(PAIRS)]
    with_end = [[*ids, EOS] for ids in sources]
    if not copies:
        return Encoded(with_end, targets)
    lent = [[draw.choice((target + j, draw.randrange(EOS + 1, target))) for j in range(len(ids))] for ids in sources]
    both = [[draw.choice([word, *own]) for word in ids] for ids, own in zip(targets, lent, strict=True)]
    return Encoded(with_end, both, [[*own, EOS] for own in lent])


def check(loaded: Loaded, engine: Engine, pairs: Encoded, precision: Precision) -> float:
    """How far the log-probabilities of the pairs' targets are from torch's. Raises ConfigError if that is too far."""
    by_torch = [one.token_log_probabilities for one in force(loaded.model, pairs, torch.device("cpu"))]
    sources, targets = ([list(row) for row in side] for side in (pairs.sources, pairs.targets))
    by_graph = [log_p for log_p, _ in runtime_force(engine, sources, targets, pairs.copies or ())]
    expected, found = (np.array(list(itertools.chain.from_iterable(rows))) for rows in (by_torch, by_graph))
    if pairs.copies is not None:
        expected, found = np.maximum(expected, SMALLEST), np.maximum(found, SMALLEST)
    differences = np.abs(found - expected)
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
