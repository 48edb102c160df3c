"""Which tokens suit a side: small sides of every kind, a grammar of commands, and samples of real sets."""

from __future__ import annotations

import gzip
import itertools
import lzma
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from mirada.config.data import DataConfig
from mirada.corpora.grammar import make_splits
from mirada.data.choices import choose_tokens, choose_vocab_size, measure
from mirada.data.corpus import Corpus
from mirada.data.preparing import choose, resolve

DATA = Path("/work/shared/data")
LETTERS = "abcdefghijklmnop"


def kind(lines: Sequence[str], dev: Sequence[str] | None = None) -> str:
    return choose_tokens(lines, dev).kind


def words(count: int) -> list[str]:
    """Different words of five letters."""
    return ["".join(word) for word in itertools.islice(itertools.permutations(LETTERS, 5), 0, 200 * count, 200)]


def commands() -> Iterator[tuple[str, str]]:
    """A part of SCAN's grammar (Lake & Baroni 2018): every command of one verb or two, with its actions."""
    verbs = {"walk": "I_WALK", "look": "I_LOOK", "run": "I_RUN", "jump": "I_JUMP"}
    turns = {"": "", " left": "I_TURN_LEFT ", " right": "I_TURN_RIGHT "}
    times = {"": 1, " twice": 2, " thrice": 3}
    single = [
        (f"{verb}{turn}{time}", " ".join([turns[turn] + verbs[verb]] * times[time]))
        for verb, turn, time in itertools.product(verbs, turns, times)
    ]
    yield from single
    for (first, one), (second, two) in itertools.product(single, single):
        yield f"{first} and {second}", f"{one} {two}"
        yield f"{first} after {second}", f"{two} {one}"


# Small sides


def test_single_words_are_spelled_and_a_few_answers_are_not():
    assert kind(["abandon", "zebra", "ice cream", "don't"]) == "char"
    assert kind(words(300) * 20) == "char"  # lemmas in all their forms
    assert kind(["kitchen", "garden", "office", "yes", "no"] * 60) == "word"
    assert kind(["kitchen", "garden", "office", "yes", "no"] * 60, ["kitchen", "attic"]) == "char"  # more may come


def test_symbols_are_words_however_long_they_are():
    source, target = zip(*commands(), strict=True)
    assert {kind(source), kind(target), kind(target, target[:50])} == {"word"}
    assert kind(["HH AH0 L OW1", "W ER1 L D"] * 20) == "word"
    assert kind(["HH AH L OW", "W ER L D"] * 20, ["Q Q Q Q"]) == "word"  # nearly all of one or two letters
    assert kind(["h a b l a r V.PTCP;PST", "c o m e r V;IND;PRS;3;SG"] * 20) == "word"


def test_features_have_tokens_of_their_own():
    assert kind(["V;IND;PRS;3;SG", "V.PTCP;PST", "N;NOM(1,SG)", "V"]) == "features"
    assert kind(["a; b", "c; d"]) == "char"
    assert kind(["one thing ; another"] * 3) == "bpe"


def test_sentences_are_subwords():
    pairs = make_splits(400, held_out=40).train
    assert {kind([pair.source for pair in pairs]), kind([pair.target for pair in pairs])} == {"bpe"}
    assert kind([" ".join(words(9)[i : i + 4]) + "." for i in range(5)] * 50) == "bpe"  # a closed set, but a text
    assert kind([" ".join(words(2400)[i : i + 4]) for i in range(0, 2400, 4)] * 10) == "bpe"  # too many symbols


def test_the_reason_tells_what_was_seen():
    choice = choose_tokens(["a b", "c b", "a a"] * 10, ["a x"])
    assert choice.reason.endswith("3 different words, each seen 20.0 times, 50.0% of dev words known")
    seen = measure(["a b", "a c"])
    assert (seen.lines, seen.total, seen.types, seen.unseen) == (2, 4, 3, 0.5)


def test_fewer_subwords_for_less_data():
    words = (0, 22_500, 22_545, 225_000, 360_000, 10**7)
    assert [choose_vocab_size(count) for count in words] == [500, 500, 501, 5000, 8000, 8000]


def test_the_size_is_that_of_the_text_and_not_of_the_lines():
    """The same words in a hundredth of the lines make the same vocabulary; sides that are spelled have no part."""
    words = [f"{a}{b}{c}." for a in LETTERS for b in LETTERS for c in LETTERS] * 11  # 45,056
    short = [" ".join(words[i : i + 4]) for i in range(0, len(words), 4)]
    long = [" ".join(short[i : i + 100]) for i in range(0, len(short), 100)]
    for lines in (short, long):
        corpus = Corpus(lines, lines, list(range(1, len(lines) + 1)), [], "text")
        chosen = choose(DataConfig(), (corpus, corpus))
        assert (chosen.words, chosen.size) == (45_056, 1001)
        assert "subwords: 1,001 entries (45,056 words a side, some fifty for each); --vocab-size" in chosen.notes()[-2]
        assert resolve(DataConfig(), chosen).vocab_size == 1001
        given = DataConfig(vocab_size=77)
        assert resolve(given, choose(given, (corpus, corpus))).vocab_size == 77
        half = Corpus(lines, ["yes"] * len(lines), corpus.lines, [], "answers")
        assert choose(DataConfig(target_tokenizer="word"), (half, half)).size == 1001
        assert choose(DataConfig(tokenizer="word"), (half, half)).size is None
        shared = choose(DataConfig(share_vocab=True), (half, half))
        assert shared.size == choose_vocab_size((45_056 + len(lines)) // 2)


@pytest.mark.parametrize(
    ("name", "places", "size"),
    [
        ("scitldr_a/train.tsv.gz", (2, 3), 3939),  # 1,992 abstracts of 160 words: 500 by the lines
        ("debian_synopsis/train.tsv.xz", (2, 3), 8000),
        ("multi30k/train.{}.gz", ("en", "de"), 7415),  # 7,250 by the lines
    ],
)
def test_sizes_of_real_sets(name, places, size):
    if not (DATA / name.format(places[0])).exists():
        pytest.skip(f"{DATA / name} is not there")
    sides = [column(name.format(place), place if isinstance(place, int) else None, most=None) for place in places]
    corpus = Corpus(*sides, list(range(1, len(sides[0]) + 1)), [], name)
    assert choose(DataConfig(tokenizer="bpe"), (corpus, corpus)).size == size


# Real sets


def column(name: str, place: int | None, most: int | None = 20_000) -> list[str]:
    """A column of a file of the real sets, or whole lines; its first lines."""
    path = DATA / name
    opened = {".gz": gzip.open, ".xz": lzma.open}.get(path.suffix, open)
    with opened(path, "rt", encoding="utf-8") as stream:
        lines = [line.rstrip("\n") for line in itertools.islice(stream, most)]
    return lines if place is None else [line.split("\t")[place] for line in lines]


SETS = [
    ("babi_qa_1k/{train,dev}.tsv.gz", ("bpe", 1), ("bpe", 2), ("word", 3)),
    ("sgd_dialogue/{train,dev}.tsv.xz", ("bpe", 4), ("bpe", 5), ("bpe", 6)),
    ("debian_synopsis/{train.tsv.xz,dev.tsv.gz}", ("bpe", 2), ("bpe", 3)),
    ("scitldr_a/{train,dev}.tsv.gz", ("bpe", 2), ("bpe", 3)),
    *[
        (f"sigmorphon2023_inflection/{code}.{{train.tsv.gz,dev.tsv}}", ("char", 0), ("features", 1), ("char", 2))
        for code in ("spa", "deu", "eng", "fra", "rus", "tur")
    ],
    *[
        (f"sigmorphon2022_inflection/{code}.{{train_{size}.tsv.gz,dev.tsv}}", ("char", 0), ("char", 1), ("features", 2))
        for code in ("pol", "tur", "ara", "kor")
        for size in ("small", "large")
    ],
    *[
        (f"wikidata_transliteration/en_{name}.{{train,dev}}.tsv.gz", ("char", 0), ("word", 1))
        for name in ("arabic", "hebrew", "katakana")
    ],
    ("cmudict_g2p/{train,dev}.tsv.gz", ("char", 0), ("word", 1)),
    *[(f"tatoeba_en_es/{{train.{code}.gz,dev.{code}}}", ("bpe", None)) for code in ("en", "es")],
    *[(f"multi30k/{{train,val}}.{code}.gz", ("bpe", None)) for code in ("en", "de", "fr", "cs")],
    *[(f"debian_en_{code}/{{train.{code}.gz,dev.{code}}}", ("bpe", None)) for code in ("es", "fr")],
]


@pytest.mark.slow
@pytest.mark.parametrize("case", SETS, ids=lambda case: case[0])
def test_real_sets(case):
    pattern, *columns = case
    before, names, after = re.fullmatch(r"(.*)\{(.*)\}(.*)", pattern).groups()
    train, dev = (f"{before}{name}{after}" for name in names.split(","))
    if not (DATA / train).exists():
        pytest.skip(f"{DATA / train} is not there")
    for expected, place in columns:
        lines, held_out = column(train, place), column(dev, place)
        assert kind(lines, held_out) == expected
        if place != 0:  # lemmas come back in dev where it is split off
            assert kind(lines) == expected


SPOKEN = ["the red boat sails to the old town", "a bird sings in the garden of the king", "we see the moon"]
OTHER = ["el barco rojo va al pueblo viejo", "un pájaro canta en el jardín del rey", "vemos la luna"]


@pytest.mark.parametrize(
    ("targets", "given", "shared"),
    [
        (SPOKEN[::-1], {}, True),
        (OTHER, {}, False),
        (SPOKEN, {"share_vocab": False}, False),
        (OTHER, {"share_vocab": True}, True),
    ],
)
def test_sides_of_one_language_have_one_vocabulary(targets, given, shared):
    """Eight in eight words of the same sentences are the other side's, none of a translation's."""
    corpus = Corpus(SPOKEN * 40, targets * 40, list(range(120)), [], "text")
    data = DataConfig(tokenizer="bpe", **given)
    chosen = choose(data, (corpus, corpus))
    assert resolve(data, chosen).share_vocab == shared
    line = "subwords: one vocabulary for both sides (100% of the target's words are the source's too); --share-vocab"
    assert (f"{line} says otherwise" in chosen.notes()) == (shared and not given)
