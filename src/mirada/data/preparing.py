"""From pairs of texts to ids: what is chosen from the data, learned from it, and left out. Training and `data check`
both ask here, so that what the check counts is what training does.
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Iterator, Sequence
from random import Random
from typing import NamedTuple

from mirada.config.configfile import changed
from mirada.config.data import DataConfig
from mirada.data.bpe_dropout import Dropping
from mirada.data.choices import ONE_LANGUAGE, Choice, choose_tokens, choose_vocab_size, count_words, known_share, some
from mirada.data.copying import copy_ids, own_words, written_ids
from mirada.data.encoded import Encoded
from mirada.data.fitting import fit, truncate
from mirada.data.pairs import Corpus, select
from mirada.data.parts import SourceTokenizer, split_parts, texts_of_parts, train_source
from mirada.data.swapped import SWAPPED, sides_swapped
from mirada.data.tokenizer import Piece, Tokenizer, TokenizerOptions, train_tokenizer
from mirada.data.vocabulary import EOS, UNK
from mirada.errors import DataError

ALL = 1_000_000  # words and characters: all of them, unless vocab_size says otherwise
LEARNED_FROM = 5_000_000  # pairs
HASHED_TOGETHER = 1 << 13
TOGETHER = 2048  # pairs cut into tokens at once where there are too many to be held
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
    known: float | None = None  # of the target's words are the source's too, where that chose one vocabulary for both

    def notes(self) -> list[str]:
        """One line for each choice: what it is, why, and the option that says otherwise."""
        several = len(self.source) > 1
        named = [(f"source part {n}" if several else "source", own) for n, own in enumerate(self.source, start=1)]
        named.append(("target", self.target))
        told = [
            f"{f'{name} tokens'}: {own.kind} ({own.reason}); --{name.split()[0]}-tokenizer says otherwise"
            for name, own in named
            if own.reason
        ]
        if self.size:
            about = f"{self.words:,} words a side, some fifty for each"
            told.append(f"subwords: {self.size:,} entries ({about}); --vocab-size says otherwise")
        if self.known is not None:
            about = f"{self.known:.0%} of the target's words are the source's too"
            told.append(f"subwords: one vocabulary for both sides ({about}); --share-vocab says otherwise")
        return told


def choose(data: DataConfig, corpora: Corpora) -> Choices:
    """Choose the kinds of tokens that `auto` leaves to the data; those that are given have no reason."""
    train, dev = corpora
    kinds, count = data.source_kinds, data.source_parts
    if data.share_vocab:
        given = data.source_tokenizer or data.tokenizer
        both = _choose(given, *([*some(c.sources), *some(c.targets)] if given == "auto" else [] for c in corpora))
        source: tuple[Choice, ...] = (both,)
        target = both
    else:
        none: list[list[str]] = [[]] * count
        parts = [split_parts(some(corpus.sources), count) if "auto" in kinds else none for corpus in corpora]
        given_kinds = kinds if len(kinds) == count else kinds * count
        source = tuple(_choose(kind, *columns) for kind, *columns in zip(given_kinds, *parts, strict=True))
        target = _choose(data.target_tokenizer or data.tokenizer, train.targets, dev.targets)
    choices = Choices(source, target)
    if data.share_vocab is None and len(source) == 1 and source[0].kind == target.kind in SUBWORDS:
        known = known_share(train.sources, train.targets)
        choices = choices._replace(known=known if known >= ONE_LANGUAGE else None)
    return choices if data.vocab_size else _with_size(choices, train)


def _with_size(choices: Choices, train: Corpus) -> Choices:
    """Choose the size of vocabularies of subwords by the words of the sides that are cut into them, on average."""
    cut = [number for number, choice in enumerate(choices.source) if choice.kind in SUBWORDS]
    sides = [count_words(texts_of_parts(train.sources, cut, len(choices.source)))] if cut else []
    if choices.target.kind in SUBWORDS:
        sides.append(count_words(train.targets))
    words = sum(sides) // len(sides) if sides else 0
    return choices._replace(words=words, size=choose_vocab_size(words) if sides else None)


def _choose(given: str, train: Sequence[str], dev: Sequence[str]) -> Choice:
    return choose_tokens(train, dev) if given == "auto" else Choice(given, "")


def resolve(data: DataConfig, choices: Choices) -> DataConfig:
    """Fill in what `auto` and the defaults leave to the data: kinds of tokens and sizes of vocabularies."""
    source, target = ",".join(choice.kind for choice in choices.source), choices.target.kind
    shared = bool(data.share_vocab) or choices.known is not None
    values = {"source_tokenizer": source, "target_tokenizer": target, "share_vocab": shared}
    return changed(data, {**values, "vocab_size": data.vocab_size or choices.size})


def learn_tokenizers(data: DataConfig, corpus: Corpus) -> Tokenizers:
    """Learn both sides' tokenisers from the training pairs, one for both where the vocabulary is shared.

    Of more than LEARNED_FROM pairs from so many of them, evenly spread.
    """
    size, target_kind = data.vocab_size or ALL, data.target_tokenizer or "bpe"
    options = TokenizerOptions(target_kind, size, data.vocab_min_freq, data.normalize, data.split_digits)
    step = -(-len(corpus) // LEARNED_FROM)
    sides = [Spread(side, step) for side in (corpus.sources, corpus.targets)]
    if data.share_vocab:
        both = train_tokenizer(itertools.chain(*sides), options)
        return both, both
    kinds = (data.source_tokenizer or "bpe").split(",")
    return train_source(sides[0], kinds, options), train_tokenizer(sides[1], options)


class Spread:
    """Every `step`-th of some texts, again and again."""

    def __init__(self, texts: Sequence[str], step: int):
        self._texts, self._step = texts, step

    def __iter__(self) -> Iterator[str]:
        return itertools.islice(self._texts, 0, None, self._step)


def encode(data: DataConfig, corpora: Corpora, tokenizers: Tokenizers, *, copies: bool = False) -> Prepared:
    """Turn pairs into ids; leave out or cut what is too long, in dev too, and say how much was left out or unknown.

    `copies`: with what each source token would write, for a model that copies.

    Raises DataError if no pair is left, or if most of the dev set is unknown to the vocabulary.
    """
    train = encode_set(data, corpora[0], tokenizers, "training", copies=copies)
    dev = encode_dev(data, corpora[1], tokenizers, copies=copies)
    return Prepared(train.pairs, dev.pairs, dev.texts, train.texts, tokenizers, [*train.notes, *dev.notes])


class EncodedSet(NamedTuple):
    """The pairs of one set that fit, as ids and as texts, and what there is to say of them."""

    pairs: Encoded
    texts: Corpus
    notes: list[str]


def encode_set(
    data: DataConfig, corpus: Corpus, tokenizers: Tokenizers, what: str, *, copies: bool = False
) -> EncodedSet:
    """Turn the pairs of a set into ids, and leave out or cut what is too long; raises DataError if none is left."""
    fitted = fit(ids(corpus, tokenizers), data.max_length, data.truncate_source)
    notes = [count_note(corpus, what), *too_long(data, corpus, (len(fitted.kept), fitted.cut), what)]
    texts = select(corpus, fitted.kept)
    return EncodedSet(copying_ids(data, texts, tokenizers) if copies else fitted.pairs, texts, notes)


def encode_dev(data: DataConfig, corpus: Corpus, tokenizers: Tokenizers, *, copies: bool = False) -> EncodedSet:
    """The same for dev, with what is unknown or doubtful in it; raises DataError if most is unknown."""
    dev = encode_set(data, corpus, tokenizers, "dev", copies=copies)
    # What a model copies need not be known.
    doubts = ["" if copies else _unknown("source", dev.pairs.sources, corpus.name)]
    doubts.append(_unknown("target", dev.pairs.targets, corpus.name))
    doubts += [f"warning: {corpus.name}: {SWAPPED}"] * sides_swapped(corpus.sources, corpus.targets, tokenizers)
    return dev._replace(notes=[note for note in (*dev.notes, *doubts) if note])


def parts(corpus: Corpus) -> Iterator[Corpus]:
    """The same pairs, some at a time, for what takes much memory of each."""
    sides = iter(corpus.sources), iter(corpus.targets)
    while sources := list(itertools.islice(sides[0], TOGETHER)):
        targets = list(itertools.islice(sides[1], TOGETHER))
        yield Corpus(sources, targets, range(len(sources)), [], corpus.name)


def copying_ids(data: DataConfig, corpus: Corpus, tokenizers: Tokenizers) -> Encoded:
    """Pairs that fit, with what each source token would write; pieces with their texts are kept of few at a time."""
    some = []
    for part in parts(corpus):
        sources = [truncate(row, data.max_length, data.truncate_source) for row in tokenizers[0].pieces(part.sources)]
        some.append(encode_copying(sources, tokenizers[1].pieces(part.targets), tokenizers[1])[:4])
    return Encoded(*(list(itertools.chain.from_iterable(rows)) for rows in zip(*some, strict=True)))


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


def count_note(corpus: Corpus, what: str) -> str:
    """Say how many pairs a set has, and which have a blank side."""
    kind = "" if what == "training" else f"{what} "
    return f"{corpus.name}: {len(corpus)} {kind}pairs" + _skipped(corpus)


def too_long(data: DataConfig, corpus: Corpus, kept_and_cut: tuple[int, int], what: str) -> list[str]:
    """Say how many pairs of a set are left out or cut; raises DataError if none is left."""
    (kept, cut), most = kept_and_cut, data.max_length
    gone = len(corpus) - kept
    if not kept:
        raise DataError(f"{corpus.name}: every pair has more than max_length {most} tokens on a side; {remedy(data)}")
    notes = []
    if gone:
        text = f"{gone} {f'{what} pairs'} have more than max_length {most} tokens and are left out"
        many = gone > MANY_LEFT_OUT * len(corpus)
        notes.append(f"warning: {text}, {gone / len(corpus):.1%} of them all; {remedy(data)}" if many else text)
    if cut:
        ends = {"first": f"their first {most} tokens", "last": f"their last {most} tokens"}
        kept_part = ends.get(data.truncate_source, f"their first and last {most} tokens")
        notes.append(f"{cut} {f'{what} sources'} are cut to {kept_part} (truncate_source)")
    return notes


def remedy(data: DataConfig) -> str:
    """What to do about pairs that are too long."""
    return "raise max_length" + (", or cut sources by truncate_source first" if data.truncate_source == "none" else "")


def _skipped(corpus: Corpus) -> str:
    if not corpus.skipped:
        return ""
    lines = ", ".join(map(str, corpus.skipped[:5])) + (", …" if len(corpus.skipped) > 5 else "")
    return f" ({len(corpus.skipped)} left out for a blank side: lines {lines})"


def _unknown(side: str, rows: Sequence[Sequence[int]], name: str) -> str:
    tokens = f"{side} tokens"
    total = sum(len(row) - row.count(EOS) for row in rows)
    unknown = sum(row.count(UNK) for row in rows)
    if unknown > 0.5 * total:
        raise DataError(
            f"{name}: {unknown} of {total} {tokens} are not in the vocabulary; is it the same language, "
            "script and column as the training data?"
        )
    return f"{name}: {unknown / total:.1%} of {tokens} are unknown" if unknown > 0.001 * total else ""


def fingerprint(corpora: Corpora) -> str:
    """A hash of all pairs, so that a resumed training notices changed data."""
    digest = hashlib.sha256()
    for corpus in corpora:
        for side in (corpus.sources, corpus.targets):
            between = ""
            texts = iter(side)
            while together := list(itertools.islice(texts, HASHED_TOGETHER)):
                digest.update((between + "\n".join(together)).encode("utf-8", "surrogatepass"))
                between = "\n"
            digest.update(b"\0")
    return digest.hexdigest()[:16]
