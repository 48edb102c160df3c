"""From files to ids: the pairs of a training, its tokenisers, and the options that were left to the data."""

from __future__ import annotations

import hashlib
from typing import NamedTuple

from mirada.config.configfile import changed
from mirada.config.options import Config
from mirada.data.batches import Encoded
from mirada.data.choices import choose_tokens, choose_vocab_size
from mirada.data.corpus import Corpus, load_pairs
from mirada.data.tokenizer import Tokenizer, TokenizerOptions, train_tokenizer
from mirada.data.vocabulary import EOS, UNK
from mirada.errors import DataError

ALL = 1_000_000  # words and characters: all of them, unless vocab_size says otherwise


class Prepared(NamedTuple):
    """Everything that a training reads."""

    train: Encoded
    dev: Encoded
    dev_texts: Corpus
    notes: list[str]  # what was left out, and what is unknown


def read(config: Config) -> tuple[Corpus, Corpus]:
    """The training and dev pairs that the options name; without dev files a part is split off by the seed."""
    return load_pairs(config.data, seed=config.training.seed)


def resolve(config: Config, corpus: Corpus) -> Config:
    """Fill in what `auto` and the defaults leave to the data: kinds of tokens and sizes of vocabularies."""
    data = config.data
    given = (data.source_tokenizer or data.tokenizer, data.target_tokenizer or data.tokenizer)
    sides = [corpus.sources, corpus.targets]
    if data.share_vocab:
        sides = [corpus.sources + corpus.targets] * 2
    kinds = [choose_tokens(side).kind if kind == "auto" else kind for kind, side in zip(given, sides, strict=True)]
    subwords = {"bpe", "unigram"} & set(kinds)
    size = data.vocab_size or (choose_vocab_size(len(corpus)) if subwords else None)
    values = {"source_tokenizer": kinds[0], "target_tokenizer": kinds[1], "vocab_size": size}
    return changed(config, {"data": changed(data, values).model_dump()})


def learn_tokenizers(config: Config, corpus: Corpus) -> tuple[Tokenizer, Tokenizer]:
    """Learn both sides' tokenisers from the training pairs, one for both where the vocabulary is shared."""
    data = config.data
    options = [
        TokenizerOptions(kind or "bpe", data.vocab_size or ALL, data.vocab_min_freq, data.normalize)
        for kind in (data.source_tokenizer, data.target_tokenizer)
    ]
    if data.share_vocab:
        both = train_tokenizer([*corpus.sources, *corpus.targets], options[0])
        return both, both
    return train_tokenizer(corpus.sources, options[0]), train_tokenizer(corpus.targets, options[1])


def encode(config: Config, corpora: tuple[Corpus, Corpus], tokenizers: tuple[Tokenizer, Tokenizer]) -> Prepared:
    """Turn pairs into ids; leave out training pairs that are too long, and say how much was left out or unknown.

    Raises DataError if no training pair is left, or if most of the dev set is unknown to the vocabulary.
    """
    train, dev = corpora
    notes = [f"{train.name}: {len(train)} pairs" + _skipped(train), f"{dev.name}: {len(dev)} dev pairs" + _skipped(dev)]
    pairs = _ids(train, tokenizers)
    most = config.data.max_length
    kept = [i for i, (s, t) in enumerate(zip(*pairs, strict=True)) if len(s) <= most + 1 and len(t) <= most]
    if not kept:
        raise DataError(f"{train.name}: every pair has more than max_length {most} tokens on a side; raise max_length")
    if len(kept) < len(train):
        notes.append(
            f"{len(train) - len(kept)} training pairs have more than max_length {most} tokens and are left out"
        )
    train_ids = Encoded([pairs.sources[i] for i in kept], [pairs.targets[i] for i in kept])
    dev_ids = _ids(dev, tokenizers)
    notes += [_unknown("source", dev_ids.sources, dev.name), _unknown("target", dev_ids.targets, dev.name)]
    return Prepared(train_ids, dev_ids, dev, [note for note in notes if note])


def fingerprint(corpora: tuple[Corpus, Corpus]) -> str:
    """A hash of all pairs, so that a resumed training notices changed data."""
    digest = hashlib.sha256()
    for corpus in corpora:
        for side in (corpus.sources, corpus.targets):
            digest.update("\n".join(side).encode("utf-8", "surrogatepass") + b"\0")
    return digest.hexdigest()[:16]


def _ids(corpus: Corpus, tokenizers: tuple[Tokenizer, Tokenizer]) -> Encoded:
    sources, targets = tokenizers[0].encode(corpus.sources), tokenizers[1].encode(corpus.targets)
    return Encoded([[*ids, EOS] for ids in sources], targets)


def _skipped(corpus: Corpus) -> str:
    if not corpus.skipped:
        return ""
    lines = ", ".join(map(str, corpus.skipped[:5])) + (", …" if len(corpus.skipped) > 5 else "")
    return f" ({len(corpus.skipped)} left out for a blank side: lines {lines})"


def _unknown(side: str, ids: list[list[int]], name: str) -> str:
    total = sum(len(row) - row.count(EOS) for row in ids)
    unknown = sum(row.count(UNK) for row in ids)
    if unknown > 0.5 * total:
        raise DataError(
            f"{name}: {unknown} of {total} {side} tokens are not in the vocabulary; is it the same language, "
            "script and column as the training data?"
        )
    return f"{name}: {unknown / total:.1%} of {side} tokens are unknown" if unknown > 0.001 * total else ""
