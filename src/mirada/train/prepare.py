"""From files to ids, with all options of a training at hand: reading, choosing and encoding are those of `data/`."""

from __future__ import annotations

import numpy as np

from mirada.config.configfile import changed
from mirada.config.data import DataConfig
from mirada.config.model import MOST_SEGMENTS
from mirada.config.options import Config
from mirada.data import preparing
from mirada.data.corpus import Corpus, load_pairs
from mirada.data.encoded import Encoded, pair_lengths
from mirada.data.preparing import Choices, Corpora, Prepared, Tokenizers, fingerprint
from mirada.data.rows import ITEM, PART
from mirada.errors import ConfigError

__all__ = ["Prepared", "encode", "fingerprint", "learn_tokenizers", "read", "resolve", "with_limits"]

MEASURED = 1_000_000


def read(config: Config) -> Corpora:
    """The training and dev pairs that the options name; without dev files a part is split off by the seed."""
    return load_pairs(config.data, seed=config.training.seed)


def resolve(config: Config, corpora: Corpora, chosen: Choices | None = None) -> Config:
    """Fill in what `auto` and the defaults leave to the data: kinds of tokens, sizes of vocabularies, segments.

    `chosen`: what `preparing.choose` has found already.
    """
    train = corpora[0]
    data = preparing.resolve(config.data, chosen or preparing.choose(config.data, corpora))
    if config.model.segments and data.source_parts == 1:
        raise ConfigError(f"segments {config.model.segments} does nothing with a source of one part")
    values = {"data": data.model_dump()}
    if config.model.segments is None:
        values["model"] = {**config.model.model_dump(), "segments": segments(data, train)}
    return changed(config, values)


def segments(data: DataConfig, corpus: Corpus) -> int:
    """How many segments sources have, those of lists included: none (0) where all are of one part."""
    if data.source_parts == 1:
        return 0
    most = max(source.count(PART) + source.count(ITEM) for source in corpus.sources) + 1
    return min(MOST_SEGMENTS, most)


def learn_tokenizers(config: Config, corpus: Corpus) -> Tokenizers:
    """Learn both sides' tokenisers from the training pairs, one for both where the vocabulary is shared."""
    return preparing.learn_tokenizers(config.data, corpus)


def encode(config: Config, corpora: Corpora, tokenizers: Tokenizers) -> Prepared:
    """Turn pairs into ids; leave out or cut what is too long, and say how much was left out or unknown.

    Raises DataError if no pair is left, or if most of the dev set is unknown to the vocabulary.
    """
    return preparing.encode(config.data, corpora, tokenizers, copies=config.model.copy_attn)


def with_limits(config: Config, train: Encoded) -> Config:
    """The limit of an output's length learned from the training pairs, where the options leave it to the data.

    T target tokens of S source tokens: the straight line a S + b by least squares, b then so large that 999 of 1,000
    pairs lie below, and half as much again, and 10. A default that cuts right outputs off says nothing about it.
    Of more than MEASURED pairs so many are measured, evenly spread.
    """
    search = config.search
    if search.max_length_ratio is not None or search.max_length_offset is not None:
        return config
    lengths = pair_lengths(train)
    lengths = lengths[:: -(-len(lengths) // MEASURED)].astype(float)
    sources, targets = lengths[:, 0] - 1, lengths[:, 1] - 1  # without </s>
    spread = ((sources - sources.mean()) ** 2).sum()
    slope = ((sources - sources.mean()) * targets).sum() / spread if spread else targets.mean() / max(1, sources.mean())
    slope = max(0.0, float(slope))
    rest = max(0.0, float(np.quantile(targets - slope * sources, 0.999)))
    learned = {"max_length_ratio": max(0.01, round(1.5 * slope, 3)), "max_length_offset": int(np.ceil(1.5 * rest)) + 10}
    return changed(config, {"search": {**search.model_dump(), **learned}})
