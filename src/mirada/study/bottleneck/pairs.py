"""The pairs of experiments 1 and 2: training on sources of at most L, testing on both sides of L."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import numpy as np

from mirada.config.configfile import parse
from mirada.data.corpus import Corpus, chosen_files, load_pairs, read_files
from mirada.errors import DataError
from mirada.evaluation import compare as arithmetic
from mirada.study.bottleneck.settings import BottleneckRequest, Bounds, Settings, bounds
from mirada.study.compare import items

DEV = 200
POOL = 15  # pairs drawn for the test, for each that is wanted of a kind


def split_pairs(request: BottleneckRequest) -> tuple[items.Pairs, int]:
    """Training and dev pairs of at most L, test pairs of both sides of it; and L."""
    settings = request.settings
    data = parse({"data": request.data}).data
    if chosen_files(data) is None:
        limit = request.length or settings.length
        return small_world(settings, limit), limit
    train, dev = load_pairs(data, seed=1)
    test = parse({"data": request.test}, where="test pairs").data
    files = chosen_files(test, test=True)
    lengths, unit = arithmetic.source_lengths(train.sources)
    limit = request.length or max(2, int(np.quantile(lengths, 0.98)) // 2)
    if files is None:
        train, given = hold_out(train, lengths, limit, settings.tested)
    else:
        given = read_files(files, test)
    kept = [_within(corpus, unit, 0, limit) for corpus in (train, dev)]
    both = [_within(given, unit, 0, limit), _within(given, unit, limit + 1, 2 * limit)]
    within, beyond = f"{limit} {unit}", f"{2 * limit} {unit}"
    for corpus, what in zip(
        (*kept, *both), ("training pairs", "dev pairs", "short test pairs", "long test pairs"), strict=True
    ):
        if not len(corpus):
            raise DataError(f"no {what} with the lengths wanted (up to {limit}, and to {beyond}); change --length")
    joined = _join(both if files else [_first(corpus, settings.tested) for corpus in both])
    _check_kinds(joined, unit, bounds(limit))
    notes = (f"trained on {len(kept[0])} of {len(train)} pairs: those whose source has at most {within}",)
    return items.Pairs(kept[0], kept[1], joined, notes), limit


def _check_kinds(test: Corpus, unit: str, wanted: Bounds) -> None:
    """Raise DataError where what is to be compared is not there."""
    sizes = [len(source.split()) if unit == "words" else len(source) for source in test.sources]
    kinds = {_kind(size, wanted) for size in sizes}
    for kind, what in (("near", f"up to {wanted.near}"), ("far", f"{wanted.far}–{wanted.limit}")):
        if kind not in kinds:
            size = f"{what} {unit}"
            raise DataError(f"no test pairs whose source has {size}; change --length, or give --test-src, --test-tgt")


def small_world(settings: Settings, limit: int) -> items.Pairs:
    """Pairs of the village: those of at most `limit` words for training and dev; near, far and any for the test."""
    from mirada.corpora.village import village

    own = village(settings.pairs + DEV, seed=1, max_words=limit)
    known = {pair.source for pair in own}
    drawn = village(POOL * settings.tested, seed=2, max_words=2 * limit, even=True)
    pool = [(pair.source, pair.target) for pair in drawn if pair.source not in known]
    kinds: dict[str, list[tuple[str, str]]] = {"near": [], "far": [], "any": []}
    for source, target in pool:
        kinds[_kind(len(source.split()), bounds(limit))].append((source, target))
    test = [pair for found in kinds.values() for pair in found[: settings.tested]]
    parts = [[(pair.source, pair.target) for pair in part] for part in (own[DEV:], own[:DEV])]
    corpora = [_corpus(part, "village") for part in (*parts, test)]
    notes = (f"a small world of sixty words, made by rules: {len(parts[0])} training pairs of at most {limit} words",)
    return items.Pairs(corpora[0], corpora[1], corpora[2], notes)


def _kind(words: int, wanted: Bounds) -> str:
    return "near" if words <= wanted.near else "far" if wanted.far <= words <= wanted.limit else "any"


def hold_out(train: Corpus, lengths: Sequence[int], limit: int, count: int) -> tuple[Corpus, Corpus]:
    """Take `count` short pairs (at most a tenth of them) and `count` long ones out of the training pairs."""
    order = list(range(len(train)))
    Random(1).shuffle(order)
    short = [i for i in order if lengths[i] <= limit]
    long = [i for i in order if limit < lengths[i] <= 2 * limit]
    taken = {*short[: min(count, len(short) // 10)], *long[:count]}
    pairs = list(zip(train.sources, train.targets, strict=True))
    rest = [pairs[i] for i in range(len(pairs)) if i not in taken]
    return _corpus(rest, train.name), _corpus([pairs[i] for i in sorted(taken)], f"{train.name} (test)")


def _within(corpus: Corpus, unit: str, least: int, most: int) -> Corpus:
    sizes = [len(source.split()) if unit == "words" else len(source) for source in corpus.sources]
    pairs = zip(corpus.sources, corpus.targets, sizes, strict=True)
    return _corpus([(source, target) for source, target, size in pairs if least <= size <= most], corpus.name)


def _first(corpus: Corpus, count: int) -> Corpus:
    return _corpus(list(zip(corpus.sources, corpus.targets, strict=True))[:count], corpus.name)


def _join(corpora: Sequence[Corpus]) -> Corpus:
    return _corpus([pair for c in corpora for pair in zip(c.sources, c.targets, strict=True)], corpora[0].name)


def _corpus(pairs: Sequence[tuple[str, str]], name: str) -> Corpus:
    numbers = list(range(1, len(pairs) + 1))
    return Corpus([source for source, _ in pairs], [target for _, target in pairs], numbers, [], name)
