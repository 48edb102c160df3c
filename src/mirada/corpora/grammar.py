"""The embedded English–Spanish corpus: sentence pairs with gold word alignments, made by rules, the same for a seed.

A synchronous grammar builds both sides at once from aligned fragments (lexicon.py, morphology.py, phrases.py,
clauses.py, predicates.py, sentences.py, questions.py), so a link is known, not guessed. Whatever the seed, an English
sentence has one Spanish translation: you is tú, and where English shows no gender Spanish is masculine.

What is linked: words that translate each other; a dropped subject and the Spanish verb that carries its person; both
parts of a contraction (al, del) and what they stand for; "to" and the infinitive, unless Spanish has its own word for
it; "likes" and all of "le gusta"; "Ana's" and all three of "el … de Ana"; a mark and its like. What has no link,
because the other language has no word for it: do, does and did; the personal a, and the a before whoever likes
something; ¿.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import NamedTuple

from mirada.corpora import phrases
from mirada.corpora.phrases import Phrase
from mirada.corpora.questions import ask
from mirada.corpora.sentences import TENSES, story
from mirada.errors import DataError
from mirada.files import write_text

BUCKETS = ((2, 5), (6, 10), (11, 20), (21, 30), (31, 50))
_WEIGHTS = (20, 25, 25, 15, 15)
_MARKS = ("", "?", ".", ",")  # what is no word: the silent one, and punctuation
_TOKEN = re.compile(r"[¿¡?!.,]|[^\s¿¡?!.,]+")
_SPACED = re.compile(r"(?<=[¿¡]) | (?=[?!.,])")
BYTES_A_WORD, MARGIN, MEAN_WORDS = 16, 12, 17  # of a pair on disk with its links, a little more than is measured
_PATIENCE = 200  # draws in a row that bring nothing new before generate gives up


class AlignedPair(NamedTuple):
    """A sentence pair and its links (i, j): the source's token i and the target's token j, from 0, sorted."""

    source: str
    target: str
    links: tuple[tuple[int, int], ...]


class Splits(NamedTuple):
    """Three lists that share no source sentence and no target sentence."""

    train: list[AlignedPair]
    dev: list[AlignedPair]
    test: list[AlignedPair]


DEMO = AlignedPair("How are you?", "¿Cómo estás?", ((0, 1), (1, 2), (2, 2), (3, 3)))


def tokens(text: str) -> list[str]:
    """Split at blanks, and punctuation (¿ ? ¡ ! . ,) from words."""
    return _TOKEN.findall(text)


def generate(
    count: int, *, seed: int, max_words: int = 50, progress: Callable[[int], None] = lambda made: None
) -> list[AlignedPair]:
    """Return `count` pairs, no two with the same source or the same target, of 2 to `max_words` English words.

    A word is what stands between blanks. Every bucket of lengths (2–5, 6–10, 11–20, 21–30, 31–50) has its share.
    `progress` is told how many there are, after each. Raises DataError if there are not so many as short as that.
    """
    if count < 0:
        raise DataError(f"the number of pairs must not be negative, got {count}")
    if max_words < 2:
        raise DataError(f'max_words must be at least 2 (the shortest sentence is "Ana sleeps."), got {max_words}')
    pairs: list[AlignedPair] = []
    seen: set[str] = set()
    fruitless = 0
    for pair in _stream(Random(seed), max_words):
        if len(pairs) == count:
            break
        if pair is None or pair.source in seen or pair.target in seen:
            fruitless += 1
            if fruitless == _PATIENCE:
                raise DataError(
                    f"found only {len(pairs)} different pairs of at most {max_words} words, {count} were asked for; "
                    "ask for fewer pairs or allow more words"
                )
            continue
        fruitless = 0
        seen |= {pair.source, pair.target}
        pairs.append(pair)
        progress(len(pairs))
    return pairs


def _stream(rng: Random, max_words: int) -> Iterator[AlignedPair | None]:
    """Draw sentences for ever; None where a draw missed the length that it aimed at."""
    buckets = [(low, min(high, max_words)) for low, high in BUCKETS if low <= max_words]
    weights = _WEIGHTS[: len(buckets)]
    while True:
        low, high = rng.choices(buckets, weights)[0]
        for _ in range(10):
            phrase = _draw(rng, rng.randint(low, high))
            if low <= sum(text not in _MARKS for text in phrase.source) <= high:
                yield realize(phrase)
                break
        else:
            yield None


def _draw(rng: Random, room: int) -> Phrase:
    """Draw one sentence of about `room` words."""
    if rng.random() < (0.5 if room <= 5 else 0.2):
        return phrases.chain(Phrase((), ("¿",), ()), ask(rng, room), phrases.word("?", "?"))
    return phrases.chain(story(rng, room, rng.choice(TENSES)), phrases.word(".", "."))


def realize(phrase: Phrase) -> AlignedPair:
    """Finish the words of a phrase and write them as text, with capitals and without blanks before marks."""
    source, target, links = phrases.finish(phrase)
    return AlignedPair(_text(source), _text(target), links)


def _text(words: tuple[str, ...]) -> str:
    text = _SPACED.sub("", " ".join(words))
    first = 1 if text.startswith("¿") else 0
    return text[:first] + text[first].upper() + text[first + 1 :]


def make_splits(
    pairs: int,
    *,
    seed: int = 1,
    held_out: int | None = None,
    max_words: int = 50,
    progress: Callable[[int], None] = lambda made: None,
) -> Splits:
    """Make `pairs` training pairs, and dev and test of `held_out` pairs each (default: a twentieth, at least 200).

    "How are you?" is in test and nowhere else; questions like it are in training. Raises DataError as `generate` does.
    """
    held = held_out_size(pairs) if held_out is None else held_out
    if pairs < 1 or held < 1:
        raise DataError(f"a split needs at least 1 training pair and 1 held-out pair, got {pairs} and {held}")
    drawn = generate(pairs + 2 * held, seed=seed, max_words=max_words, progress=progress)
    others = [pair for pair in drawn if pair.source != DEMO.source and pair.target != DEMO.target]
    Random(seed).shuffle(others)  # the later a pair was drawn, the likelier it is long
    test, dev = others[: held - 1], others[held - 1 : 2 * held - 1]
    return Splits(others[2 * held - 1 :][:pairs], dev, [DEMO, *test])


def held_out_size(pairs: int) -> int:
    """Pairs of dev and of test each beside so many training pairs: a twentieth, at least 200."""
    return max(200, pairs // 20)


def check_room(pairs: int, folder: Path, *, max_words: int = 50) -> int:
    """Estimate the bytes of all splits on disk; raises DataError if they do not fit where `folder` is or will be."""
    needed = (pairs + 2 * held_out_size(pairs)) * (MARGIN + BYTES_A_WORD * min(max_words, MEAN_WORDS))
    place = next(place for place in (folder.absolute(), *folder.absolute().parents) if place.exists())
    free = shutil.disk_usage(place).free
    if needed > free:
        raise DataError(
            f"{folder}: {pairs:,} pairs need about {needed / 1e9:,.1f} GB and the disk has {free / 1e9:,.1f} GB left; "
            "ask for fewer pairs (--pairs), or choose another folder"
        )
    return needed


def write_splits(splits: Splits, folder: Path, *, force: bool = False) -> list[Path]:
    """Write train, dev and test as NAME.en, NAME.es and NAME.align (links as `i-j`, one sentence a line).

    Raises DataError if one of the nine files exists, unless `force`; MiradaError if the disk refuses.
    """
    contents = {
        folder / f"{name}.{ending}": lines
        for name, pairs in zip(Splits._fields, splits, strict=True)
        for ending, lines in _columns(pairs).items()
    }
    existing = [path for path in contents if path.exists()]
    if existing and not force:
        raise DataError(f"{existing[0]}: exists; choose another folder, or force (--force) to overwrite it")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DataError(f"{folder}: cannot be made a folder ({error.strerror}); choose another one") from None
    for path, lines in contents.items():
        write_text(path, "".join(f"{line}\n" for line in lines))
    return list(contents)


def _columns(pairs: list[AlignedPair]) -> dict[str, list[str]]:
    return {
        "en": [pair.source for pair in pairs],
        "es": [pair.target for pair in pairs],
        "align": [" ".join(f"{i}-{j}" for i, j in pair.links) for pair in pairs],
    }
