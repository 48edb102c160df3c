"""What a tokeniser learns from lines."""

from __future__ import annotations

import pytest

from mirada.data.tokenizer import TokenizerOptions, train_tokenizer
from mirada.data.vocabulary import SPECIAL_TOKENS, UNK
from mirada.errors import DataError

KINDS = ("bpe", "unigram", "word", "char")
LINES = [
    "the cat sat on the mat, near the café .",
    "el niño más pequeño durmió bajo el árbol .",
    "what's that ? a cat, an old cat !",
    "日本語 の 本 は 猫 です .",
] * 4


# Learning


@pytest.mark.parametrize("kind", ["bpe", "word", "char"])
def test_the_same_lines_give_the_same_tokenizer(kind, tmp_path):
    for name in ("a", "b"):
        train_tokenizer(iter(LINES), TokenizerOptions(kind, 90)).save(tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


@pytest.mark.parametrize("kind", KINDS)
def test_a_vocabulary_has_at_most_vocab_size_entries(kind):
    for size in (70, 80):
        own = train_tokenizer(LINES, TokenizerOptions(kind, size))
        assert len(own) <= size
        if kind == "bpe":
            assert len(own) == size


def test_many_characters_do_not_exceed_the_size_of_bpe():
    lines = ["".join(chr(0x4E00 + i) for i in range(300)), "中 国 中国 中国"] * 3
    own = train_tokenizer(lines, TokenizerOptions("bpe", 50))
    assert len(own) == 50
    assert UNK not in own.encode(["中国"])[0]  # the most frequent ones stay


def test_the_most_frequent_words_stay():
    lines = ["a a a b b c"] * 3
    own = train_tokenizer(lines, TokenizerOptions("word", 6))
    assert [own.token(i) for i in range(4, len(own))] == ["a", "b"]


def test_words_in_the_order_of_their_frequency_after_special_names_were_words():
    own = train_tokenizer(["<s> b <unk> b a", "b c c <s>"], TokenizerOptions("word", 100))
    assert [own.token(i) for i in range(len(own))] == [*SPECIAL_TOKENS, "b", "\\<s>", "c", "\\<unk>", "a"]


@pytest.mark.parametrize("kind", ["word", "char"])
def test_rare_entries_become_unknown(kind):
    lines = ["a a b", "a b c"]
    own = train_tokenizer(lines, TokenizerOptions(kind, 100, 2))
    assert [[i == UNK for i in ids if own.token(i) != "▁"] for ids in own.encode(["a b c"])] == [[False, False, True]]


def test_rare_pairs_are_not_merged():
    lines = ["ab ab ab cd cd"]
    twice, thrice = (train_tokenizer(lines, TokenizerOptions("bpe", 100, fewest)) for fewest in (2, 3))
    assert [[piece.text for piece in own.pieces(["ab cd"])[0]] for own in (twice, thrice)] == [
        ["▁ab", "▁cd"],
        ["▁ab", "▁", "c", "d"],
    ]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("lines", [[], [""], ["  ", "\u3000\t"]])
def test_nothing_to_learn_from(kind, lines):
    with pytest.raises(DataError, match=r"^no text to learn a vocabulary from: every line is blank$"):
        train_tokenizer(lines, TokenizerOptions(kind, 100))


def test_unigram_cannot_leave_characters_out():
    message = (
        "vocab_size 8 is too small for the different characters of the text, all of which unigram keeps; "
        "raise vocab_size, or use tokenizer bpe or char"
    )
    with pytest.raises(DataError, match=f"^{message}$"):
        train_tokenizer(["abcdefghij"], TokenizerOptions("unigram", 8))
