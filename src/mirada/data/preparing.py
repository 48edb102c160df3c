"""From pairs of texts to ids: what is chosen from the data, learned from it, and left out. Training and `data check`
both ask here, so that what the check counts is what training does.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import NamedTuple

from mirada.config.configfile import changed
from mirada.config.data import DataConfig
from mirada.data.batches import Encoded
from mirada.data.bpe_dropout import Dropping
from mirada.data.choices import Choice, choose_tokens, choose_vocab_size, count_words
from mirada.data.copying import copy_ids, own_words, written_ids
from mirada.data.corpus import Corpus, select
from mirada.data.fitting import Fitted, fit, truncate
from mirada.data.parts import SourceTokenizer, split_parts, train_source
from mirada.data.tokenizer import Piece, Tokenizer, TokenizerOptions, train_tokenizer
from mirada.data.vocabulary import EOS, UNK
from mirada.errors import DataError

ALL = 1_000_000  # words and characters: all of them, unless vocab_size says otherwise
MANY_LEFT_OUT = 1 / 20
SUBWORDS = ("bpe", "unigram")  # kinds whose vocabulary has a size to be chosen

Corpora = tuple[Corpus, Corpus]
Tokenizers = tuple[SourceTokenizer, Tokenizer]


class Prepared(NamedTuple):
    """Everything that a training reads."""

    train: Encoded
    dev: Encoded
    dev_texts: Corpus
    train_texts: Corpus
    tokenizers: Tokenizers
    notes: list[str]  # what was left out or cut, and what is unknown


class Choices(NamedTuple):
    """The kinds of tokens of each part of the source and of the target, with the reasons where they were chosen."""

    source: tuple[Choice, ...]
    target: Choice
    words: int = 0  # running words of a side that is cut into subwords; 0 where none is
    size: int | None = None  # entries of the vocabularies of subwords, where they were chosen

    def notes(self) -> list[str]:
        """One line for each choice: what it is, why, and the option that says otherwise."""
        several = len(self.source) > 1
        named = [(f"source part {n}" if several else "source", own) for n, own in enumerate(self.source, start=1)]
        named.append(("target", self.target))
        told = [
            f"{name} tokens: {own.kind} ({own.reason}); --{name.split()[0]}-tokenizer says otherwise"
            for name, own in named
            if own.reason
        ]
        about = f"{self.words:,} words a side, some fifty for each"
        return told + ([f"subwords: {self.size:,} entries ({about}); --vocab-size says otherwise"] if self.size else [])


def choose(data: DataConfig, corpora: Corpora) -> Choices:
    """Choose the kinds of tokens that `auto` leaves to the data; those that are given have no reason."""
    train, dev = corpora
    kinds, count = data.source_kinds, data.source_parts
    if data.share_vocab:
        sides = [[*corpus.sources, *corpus.targets] for corpus in corpora]
        both = _choose(data.source_tokenizer or data.tokenizer, sides[0], sides[1])
        return _with_size(data, Choices((both,), both), [train.sources] if both.kind in SUBWORDS else [], train.targets)
    parts = [split_parts(corpus.sources, count) for corpus in corpora]
    given = kinds if len(kinds) == count else kinds * count
    source = tuple(_choose(kind, *columns) for kind, *columns in zip(given, *parts, strict=True))
    target = _choose(data.target_tokenizer or data.tokenizer, train.targets, dev.targets)
    cut = [column for choice, column in zip(source, parts[0], strict=True) if choice.kind in SUBWORDS]
    return _with_size(data, Choices(source, target), cut, train.targets)


def _with_size(data: DataConfig, choices: Choices, sources: Sequence[Sequence[str]], targets: Sequence[str]) -> Choices:
    """Choose the size of vocabularies of subwords by the words of the sides that are cut into them, on average."""
    sides = [sum(map(count_words, sources))] if sources else []
    if choices.target.kind in SUBWORDS:
        sides.append(count_words(targets))
    words = sum(sides) // len(sides) if sides else 0
    return choices._replace(words=words, size=choose_vocab_size(words) if sides and data.vocab_size is None else None)


def _choose(given: str, train: Sequence[str], dev: Sequence[str]) -> Choice:
    return choose_tokens(train, dev) if given == "auto" else Choice(given, "")


def resolve(data: DataConfig, choices: Choices) -> DataConfig:
    """Fill in what `auto` and the defaults leave to the data: kinds of tokens and sizes of vocabularies."""
    source, target = ",".join(choice.kind for choice in choices.source), choices.target.kind
    size = data.vocab_size or choices.size
    return changed(data, {"source_tokenizer": source, "target_tokenizer": target, "vocab_size": size})


def learn_tokenizers(data: DataConfig, corpus: Corpus) -> Tokenizers:
    """Learn both sides' tokenisers from the training pairs, one for both where the vocabulary is shared."""
    size, target_kind = data.vocab_size or ALL, data.target_tokenizer or "bpe"
    options = TokenizerOptions(target_kind, size, data.vocab_min_freq, data.normalize, data.split_digits)
    if data.share_vocab:
        both = train_tokenizer([*corpus.sources, *corpus.targets], options)
        return both, both
    kinds = (data.source_tokenizer or "bpe").split(",")
    return train_source(corpus.sources, kinds, options), train_tokenizer(corpus.targets, options)


def encode(data: DataConfig, corpora: Corpora, tokenizers: Tokenizers, *, copies: bool = False) -> Prepared:
    """Turn pairs into ids; leave out or cut what is too long, in dev too, and say how much was left out or unknown.

    `copies`: with what each source token would write, for a model that copies.

    Raises DataError if no pair is left, or if most of the dev set is unknown to the vocabulary.
    """
    train, dev = corpora
    notes = [f"{train.name}: {len(train)} pairs" + _skipped(train), f"{dev.name}: {len(dev)} dev pairs" + _skipped(dev)]
    fitted = [fit(ids(corpus, tokenizers), data.max_length, data.truncate_source) for corpus in corpora]
    for corpus, found, what in zip(corpora, fitted, ("training", "dev"), strict=True):
        notes += too_long(data, corpus, found, what)
    texts = select(dev, fitted[1].kept), select(train, fitted[0].kept)
    train_ids, dev_ids = fitted[0].pairs, fitted[1].pairs
    if copies:
        dev_ids, train_ids = (copying_ids(data, corpus, tokenizers) for corpus in texts)
    # What a model copies need not be known.
    notes.append("" if copies else _unknown("source", dev_ids.sources, dev.name))
    notes.append(_unknown("target", dev_ids.targets, dev.name))
    return Prepared(train_ids, dev_ids, *texts, tokenizers, [note for note in notes if note])


def copying_ids(data: DataConfig, corpus: Corpus, tokenizers: Tokenizers) -> Encoded:
    """Pairs that fit, with what each source token would write."""
    sources = [truncate(row, data.max_length, data.truncate_source) for row in tokenizers[0].pieces(corpus.sources)]
    return encode_copying(sources, tokenizers[1].pieces(corpus.targets), tokenizers[1])


def encode_copying(
    sources: Sequence[Sequence[Piece]], targets: Sequence[Sequence[Piece]], target: Tokenizer
) -> Encoded:
    """Pairs as ids, with what each source token would write; outputs hold the ids of the sources' own words."""
    copies = [copy_ids(source, target) for source in sources]
    return Encoded(
        [[*(piece.id for piece in source), EOS] for source in sources],
        [written_ids(*pair) for pair in zip(targets, sources, copies, strict=True)],
        copies,
        [own_words(source, own, target) for source, own in zip(sources, copies, strict=True)],
    )


def encode_epoch(data: DataConfig, prepared: Prepared, *, seed: int, epoch: int) -> Encoded:
    """The training pairs of an epoch: with BPE dropout cut anew in every one, the same for a seed and an epoch.

    A pair that is cut into too many tokens stays as it is without dropout.
    """
    if not data.bpe_dropout:
        return prepared.train
    dropping = Dropping(data.bpe_dropout, Random(f"{seed} {epoch}"))
    cut = ids(prepared.train_texts, prepared.tokenizers, dropping)
    sources = [truncate(source[:-1], data.max_length, data.truncate_source) for source in cut.sources]
    fits = [len(s) <= data.max_length and len(t) <= data.max_length for s, t in zip(sources, cut.targets, strict=True)]
    whole = prepared.train
    return Encoded(
        [[*own, EOS] if fit else known for own, known, fit in zip(sources, whole.sources, fits, strict=True)],
        [own if fit else known for own, known, fit in zip(cut.targets, whole.targets, fits, strict=True)],
    )


def ids(corpus: Corpus, tokenizers: Tokenizers, dropping: Dropping | None = None) -> Encoded:
    """All pairs as ids, however long they are."""
    sources, targets = tokenizers[0].encode(corpus.sources, dropping), tokenizers[1].encode(corpus.targets, dropping)
    return Encoded([[*row, EOS] for row in sources], targets)


def too_long(data: DataConfig, corpus: Corpus, fitted: Fitted, what: str) -> list[str]:
    """Say how many pairs of a set are left out or cut; raises DataError if none is left."""
    most, gone = data.max_length, len(corpus) - len(fitted.kept)
    if not fitted.kept:
        raise DataError(f"{corpus.name}: every pair has more than max_length {most} tokens on a side; {remedy(data)}")
    notes = []
    if gone:
        text = f"{gone} {what} pairs have more than max_length {most} tokens and are left out"
        many = gone > MANY_LEFT_OUT * len(corpus)
        notes.append(f"warning: {text}, {gone / len(corpus):.1%} of them all; {remedy(data)}" if many else text)
    if fitted.cut:
        ends = {"first": "first", "last": "last"}.get(data.truncate_source, "first and last")
        notes.append(f"{fitted.cut} {what} sources are cut to their {ends} {most} tokens (truncate_source)")
    return notes


def remedy(data: DataConfig) -> str:
    """What to do about pairs that are too long."""
    return "raise max_length" + (", or cut sources by truncate_source first" if data.truncate_source == "none" else "")


def _skipped(corpus: Corpus) -> str:
    if not corpus.skipped:
        return ""
    lines = ", ".join(map(str, corpus.skipped[:5])) + (", …" if len(corpus.skipped) > 5 else "")
    return f" ({len(corpus.skipped)} left out for a blank side: lines {lines})"


def _unknown(side: str, rows: list[list[int]], name: str) -> str:
    total = sum(len(row) - row.count(EOS) for row in rows)
    unknown = sum(row.count(UNK) for row in rows)
    if unknown > 0.5 * total:
        raise DataError(
            f"{name}: {unknown} of {total} {side} tokens are not in the vocabulary; is it the same language, "
            "script and column as the training data?"
        )
    return f"{name}: {unknown / total:.1%} of {side} tokens are unknown" if unknown > 0.001 * total else ""
