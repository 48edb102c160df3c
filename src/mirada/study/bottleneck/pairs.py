"""The pairs of experiments 1 and 2: training on sources of at most L, testing on both sides of L."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import numpy as np

from mirada.config.configfile import parse
from mirada.data.corpus import Corpus, chosen_files, load_pairs, read_files
from mirada.errors import DataError
from mirada.evaluation import compare as arithmetic
from mirada.study.bottleneck.settings import BottleneckRequest, Settings
from mirada.study.compare import items

DEV = 200


def split_pairs(request: BottleneckRequest) -> tuple[items.Pairs, int]:
    """Training and dev pairs of at most L, test pairs of both sides of it; and L."""
    settings = request.settings
    data = parse({"data": request.data}).data
    if chosen_files(data) is None:
        limit = request.length or settings.length
        return embedded(settings, limit), limit
    train, dev = load_pairs(data, seed=1)
    test = parse({"data": request.test}, where="test pairs").data
    files = chosen_files(test)
    lengths, unit = arithmetic.source_lengths(train.sources)
    limit = request.length or max(2, int(np.quantile(lengths, 0.98)) // 2)
    if files is None:
        train, given = hold_out(train, lengths, limit, settings.tested)
    else:
        given = read_files(files, test)
    kept = [_within(corpus, unit, 0, limit) for corpus in (train, dev)]
    both = [_within(given, unit, 0, limit), _within(given, unit, limit + 1, 2 * limit)]
    for corpus, what in zip((*kept, *both), ("training", "dev", "short test", "long test"), strict=True):
        if not len(corpus):
            raise DataError(
                f"no {what} pairs with the lengths wanted (up to {limit}, and to {2 * limit} {unit}); change --length"
            )
    joined = _join([_first(corpus, settings.tested) for corpus in both])
    notes = (f"trained on {len(kept[0])} of {len(train)} pairs: those whose source has at most {limit} {unit}",)
    return items.Pairs(kept[0], kept[1], joined, notes), limit


def embedded(settings: Settings, limit: int) -> items.Pairs:
    """Pairs of the grammar: short ones for training, dev and half of the test, longer ones for its other half."""
    from mirada.corpora.grammar import AlignedPair, generate

    held = DEV + settings.tested
    short = generate(settings.pairs + held, seed=1, max_words=limit)
    Random(1).shuffle(short)
    long: list[AlignedPair] = []
    for factor in (4, 16):
        drawn = generate(factor * settings.tested, seed=2, max_words=2 * limit)
        long = [pair for pair in drawn if len(pair.source.split()) > limit][: settings.tested]
        if len(long) == settings.tested:
            break
    parts = [short[held:], short[:DEV], [*short[DEV:held], *long]]
    corpora = [_corpus([(pair.source, pair.target) for pair in part], "embedded") for part in parts]
    notes = (f"the embedded corpus: {len(short) - held} training pairs of at most {limit} words",)
    return items.Pairs(corpora[0], corpora[1], corpora[2], notes)


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
