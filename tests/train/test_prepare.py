"""From pairs to ids: what is chosen from the data, what is left out, and what is said about it."""

from __future__ import annotations

import re
from typing import Any

import pytest

import tiny
from mirada.config.configfile import parse
from mirada.config.options import Config, SearchConfig
from mirada.data.batches import Encoded
from mirada.data.corpus import Corpus
from mirada.data.vocabulary import EOS, UNK
from mirada.errors import ConfigError, DataError
from mirada.texts import output_limit
from mirada.train.prepare import encode, fingerprint, learn_tokenizers, resolve, with_limits

WORDS = ["abandon", "zebra", "cat"] * 20
PHONEMES = ["AH0 B AE1", "Z IY1 AH0", "K AE1 B"] * 20


def corpus(sources: list[str], targets: list[str], *, skipped: list[int] | None = None, name: str = "pairs") -> Corpus:
    return Corpus(sources, targets, list(range(1, len(sources) + 1)), skipped or [], name)


def options(**data: Any) -> Config:
    return parse({"data": data})


def resolved(config: Config, pairs: Corpus) -> Config:
    return resolve(config, (pairs, pairs))


# Choices left to the data


@pytest.mark.parametrize(
    ("sources", "targets", "expected"),
    [
        (WORDS, PHONEMES, ("char", "word", None)),  # how a word is spelled and said: no size, all of them
        (tiny.SOURCES, tiny.TARGETS, ("bpe", "bpe", 500)),
        (WORDS, tiny.TARGETS * 10, ("char", "bpe", 500)),
        (tiny.SOURCES * 1000, tiny.TARGETS * 1000, ("bpe", "bpe", 922)),  # 41,500 running words a side / 45
    ],
)
def test_kinds_and_sizes_follow_the_data(sources, targets, expected):
    data = resolved(options(), corpus(sources, targets)).data
    assert (data.source_tokenizer, data.target_tokenizer, data.vocab_size) == expected


def test_what_is_given_is_kept():
    given = options(tokenizer="unigram", target_tokenizer="char", vocab_size=77, src="a", tgt="b")
    config = resolved(given, corpus(WORDS, PHONEMES))
    assert config.data == given.data.model_copy(update={"source_tokenizer": "unigram", "share_vocab": False})
    assert (config.training, config.search) == (given.training, given.search)
    assert config.model == given.model.model_copy(update={"segments": 0})
    assert resolved(config, corpus(WORDS, PHONEMES)) == config


def test_words_have_no_size_unless_it_is_given():
    assert resolved(options(tokenizer="word"), corpus(tiny.SOURCES, tiny.TARGETS)).data.vocab_size is None
    assert resolved(options(tokenizer="word", vocab_size=9), corpus(tiny.SOURCES, tiny.TARGETS)).data.vocab_size == 9


def test_a_shared_vocabulary_has_one_kind_for_both_sides():
    apart = resolved(options(), corpus(WORDS, tiny.TARGETS * 10)).data
    shared = resolved(options(share_vocab=True), corpus(WORDS, tiny.TARGETS * 10)).data
    assert (apart.source_tokenizer, apart.target_tokenizer) == ("char", "bpe")
    assert (shared.source_tokenizer, shared.target_tokenizer) == ("bpe", "bpe")


def test_one_vocabulary_of_two_kinds_is_refused():
    message = "share_vocab true needs source_tokenizer and target_tokenizer to be the same (got word and char)"
    with pytest.raises(ConfigError, match=re.escape(message)):
        options(share_vocab=True, source_tokenizer="word", target_tokenizer="char")


# Tokenisers


def test_two_vocabularies_know_their_own_side():
    config = options(source_tokenizer="word", target_tokenizer="char")
    source, target = learn_tokenizers(config, tiny.CORPUS)
    assert (source.kind, target.kind) == ("word", "char")
    assert UNK not in source.encode(["the cat"])[0]
    assert source.encode(["gato"]) == [[UNK]]
    assert UNK not in target.encode(["árbol"])[0]
    assert target.encode(["w"]) == [[UNK]]


def test_a_shared_vocabulary_knows_both_sides():
    config = options(source_tokenizer="word", target_tokenizer="word", share_vocab=True)
    source, target = learn_tokenizers(config, tiny.CORPUS)
    assert source is target
    assert UNK not in source.encode(["the gato"])[0]


def test_size_frequency_and_form_reach_the_tokenizers():
    lines = corpus(["a a a b b c d e f"] * 2, ["x x \ufb01"] * 2)  # a ligature that NFKC writes as two letters
    words = {"source_tokenizer": "word", "target_tokenizer": "word"}

    def known(**data: Any) -> list[set[str]]:
        pair = learn_tokenizers(options(**words, **data), lines)
        return [{own.token(i) for i in range(4, len(own))} for own in pair]

    assert known() == [set("abcdef"), {"x", "\ufb01"}]
    assert known(vocab_min_freq=3) == [set("ab"), {"x"}]
    assert known(vocab_size=8)[0] == set("abcd")
    assert known(normalize="nfkc")[1] == {"x", "fi"}


# Ids and notes


def encoded(train: Corpus, dev: Corpus, **data: Any) -> Any:
    config = options(source_tokenizer="word", target_tokenizer="word", **data)
    return encode(config, (train, dev), learn_tokenizers(config, train))


PAIRS = corpus(["a b", "a b c", "a b c d", "b", "a"], ["x", "x y z", "y", "x y z x", "z"], name="train.tsv")
DEV = corpus(["a b c d"], ["x y z x"], name="dev.tsv")
DEV_SHORT = corpus(["a b"], ["x y"], name="dev.tsv")


def test_sources_end_and_targets_are_bare():
    prepared = encoded(PAIRS, DEV)
    assert [len(ids) for ids in prepared.train.sources] == [3, 4, 5, 2, 2]
    assert all(ids[-1] == EOS and EOS not in ids[:-1] for ids in prepared.train.sources)
    assert [len(ids) for ids in prepared.train.targets] == [1, 3, 1, 4, 1]
    assert not any(EOS in ids for ids in prepared.train.targets)
    assert prepared.notes == ["train.tsv: 5 pairs", "dev.tsv: 1 dev pairs"]
    assert prepared.dev_texts == DEV


def test_pairs_that_are_too_long_are_left_out_of_training_and_counted():
    prepared = encoded(PAIRS, DEV_SHORT, max_length=3)
    assert [len(ids) for ids in prepared.train.sources] == [3, 4, 2]  # the third and fourth have four words on a side
    assert [len(ids) for ids in prepared.train.targets] == [1, 3, 1]
    assert prepared.notes[1] == (
        "warning: 2 training pairs have more than max_length 3 tokens and are left out, 40.0% of them all; raise "
        "max_length, or cut sources by truncate_source first"
    )
    few = encoded(corpus(["a b"] * 39 + ["a b c d"], ["x y z"] * 40), DEV_SHORT, max_length=3)
    assert few.notes[1:-1] == ["1 training pairs have more than max_length 3 tokens and are left out"]


def test_dev_pairs_that_are_too_long_are_left_out_before_training_starts():
    dev = corpus(["a b c d", "a b", "b"], ["x", "y", "z x y z"], name="dev.tsv")
    prepared = encoded(PAIRS, dev, max_length=3)
    assert (len(prepared.dev.sources), prepared.dev_texts.targets, prepared.dev_texts.lines) == (1, ["y"], [2])
    assert any(note.startswith("warning: 2 dev pairs have more than max_length 3 tokens") for note in prepared.notes)
    with pytest.raises(DataError, match=r"^dev\.tsv: every pair has more than max_length 3 tokens on a side; raise"):
        encoded(PAIRS, DEV, max_length=3)


@pytest.mark.parametrize(("how", "words"), [("first", "a b c"), ("last", "b c d"), ("both", "a b d"), ("none", None)])
def test_long_sources_are_cut_instead_where_they_may_be(how, words):
    pairs = corpus(["a b c d", "a b", "c d", "d a"], ["x y", "x", "x", "x y x y"])
    config = options(source_tokenizer="word", target_tokenizer="word", max_length=3, truncate_source=how)
    tokenizers = learn_tokenizers(config, pairs)
    prepared = encode(config, (pairs, DEV_SHORT), tokenizers)
    outputs = [tokenizers[0].decode(ids) for ids in prepared.train.sources]
    assert outputs == [*([words] if words else []), "a b", "c d"]  # the last has too long a target: never cut
    assert all(ids[-1] == EOS for ids in prepared.train.sources)
    ends = {"first": "first", "last": "last", "both": "first and last"}.get(how)
    said = f"1 training sources are cut to their {ends} 3 tokens (truncate_source)"
    assert (said in prepared.notes) == bool(words)


def test_every_pair_too_long():
    long = corpus(["a b c"], ["x y z"], name="train.tsv")
    message = (
        "train.tsv: every pair has more than max_length 2 tokens on a side; raise max_length, or cut sources by "
        "truncate_source first"
    )
    with pytest.raises(DataError, match=f"^{re.escape(message)}$"):
        encoded(long, DEV, max_length=2)


@pytest.mark.parametrize(
    ("skipped", "text"),
    [
        ([], ""),
        ([3, 9], " (2 left out for a blank side: lines 3, 9)"),
        ([1, 2, 3, 4, 5, 6], " (6 left out for a blank side: lines 1, 2, 3, 4, 5, …)"),
    ],
)
def test_blank_sides_are_told(skipped, text):
    prepared = encoded(corpus(["a"], ["x"], skipped=skipped, name="t"), corpus(["a"], ["x"], skipped=skipped, name="d"))
    assert prepared.notes == [f"t: 1 pairs{text}", f"d: 1 dev pairs{text}"]


def test_a_dev_set_in_another_language_is_refused():
    message = (
        "dev.tsv: 3 of 5 target tokens are not in the vocabulary; is it the same language, script and column as the "
        "training data?"
    )
    with pytest.raises(DataError, match=f"^{re.escape(message)}$"):
        encoded(PAIRS, corpus(["a b", "c"], ["x μ", "μ μ y"], name="dev.tsv"))
    with pytest.raises(DataError, match=r"^dev\.tsv: 2 of 3 source tokens"):
        encoded(PAIRS, corpus(["a", "μ μ"], ["x", "y"], name="dev.tsv"))


def test_some_unknown_tokens_are_told():
    prepared = encoded(PAIRS, corpus(["a μ"], ["x y x y x y x μ"], name="dev.tsv"))
    assert prepared.notes[2:] == [
        "dev.tsv: 50.0% of source tokens are unknown",
        "dev.tsv: 12.5% of target tokens are unknown",
    ]
    few = encoded(PAIRS, corpus(["a " * 999 + "μ"], ["x"], name="dev.tsv"), max_length=2000)
    assert few.notes[2:] == []  # one in a thousand is not worth a word


# The fingerprint


def test_a_fingerprint_follows_every_text_and_nothing_else():
    base = (PAIRS, DEV)
    renamed = (corpus(PAIRS.sources, PAIRS.targets, skipped=[7], name="elsewhere"), DEV)
    assert re.fullmatch("[0-9a-f]{16}", fingerprint(base))
    assert fingerprint(renamed) == fingerprint(base)
    changes = [
        (corpus([*PAIRS.sources[:-1], "b"], PAIRS.targets), DEV),
        (corpus(PAIRS.sources, [*PAIRS.targets[:-1], "x"]), DEV),
        (PAIRS, corpus(["a b c"], ["x y z x"])),
        (PAIRS, corpus(["a b c d"], ["x y z"])),
        (DEV, PAIRS),
        (corpus(PAIRS.targets, PAIRS.sources), DEV),
        (corpus(PAIRS.sources[::-1], PAIRS.targets[::-1]), DEV),
        (corpus(PAIRS.sources[:-1], PAIRS.targets[:-1]), DEV),
        (PAIRS, corpus(["a b c dx"], [" y z x"])),  # the same characters, parted elsewhere
    ]
    assert len({fingerprint(pairs) for pairs in [base, *changes]}) == len(changes) + 1


# The limit of an output's length


def pairs_of(lengths: list[tuple[int, int]]) -> Encoded:
    return Encoded([[9] * source + [EOS] for source, _ in lengths], [[9] * target for _, target in lengths])


def test_the_limit_is_a_line_above_the_training_pairs_and_half_as_much_again():
    line = pairs_of([(n, 6 * n + 4) for n in range(1, 10)])
    found = with_limits(Config(), line).search
    assert (found.max_length_ratio, found.max_length_offset) == (9.0, 6 + 10)
    assert all(output_limit(n, found) > 6 * n + 4 for n in range(1, 20))
    one_length = pairs_of([(4, 8), (4, 8)])
    found = with_limits(Config(), one_length).search
    assert (found.max_length_ratio, found.max_length_offset) == (3.0, 10)
    falling = pairs_of([(n, 12 - n) for n in range(1, 10)])
    found = with_limits(Config(), falling).search
    assert found.max_length_ratio == 0.01
    assert output_limit(1, found) >= 11


def test_a_limit_that_is_given_stays():
    given = Config(search=SearchConfig(max_length_ratio=1.5))
    assert with_limits(given, pairs_of([(1, 50)])) == given
