"""Which ids the words of a source would write: by text, by first position, after cutting, in sources of parts."""

from __future__ import annotations

from typing import Any

import pytest

from mirada.config.data import DataConfig
from mirada.data.batches import Encoded
from mirada.data.copying import copy_ids, own_words, written_ids, written_token
from mirada.data.corpus import Corpus
from mirada.data.preparing import copying_ids, learn_tokenizers
from mirada.data.tokenizer import TokenizerOptions, train_tokenizer

# <unk>, <pad>, <s>, </s>, then the words: V = 6.
TARGET = train_tokenizer(["la casa", "la casa"], TokenizerOptions("word", 6))
SOURCE = train_tokenizer(["the house la"], TokenizerOptions("word", 7))
V = len(TARGET)


def test_entries_of_the_target_and_words_of_the_source_alone() -> None:
    [source] = SOURCE.pieces(["Ann la the Ann </s>"])
    la = TARGET.find("la")
    copies = copy_ids(source, TARGET)
    assert copies == [V, la, V + 2, V, V + 4, 3]  # a text "</s>" is a word, the end is the end
    [output] = TARGET.pieces(["la Ann Bob the </s>"])
    assert written_ids(output, source, copies) == [la, V, 0, V + 2, V + 4]
    own = own_words(source, copies, TARGET)
    assert [written_token(i, own, TARGET) for i in (la, V, V + 2, 0)] == ["la", "Ann", "the", "<unk>"]


@pytest.mark.parametrize(
    ("how", "copies", "target"),
    [("first", [V, V + 1, 3], [V + 1, 0]), ("last", [V, V + 1, 3], [V, V + 1]), ("both", [V, V + 1, 3], [0, V + 1])],
)
def test_a_source_that_is_cut_lends_what_is_left(how: Any, copies: list[int], target: list[int]) -> None:
    corpus = Corpus(["Ann Bob Cid"], ["Bob Cid"], [1], [], "cut")
    found = copying_ids(DataConfig(max_length=2, truncate_source=how), corpus, (SOURCE, TARGET))
    assert found.copies == [copies]
    assert found.targets == [target]


def test_parts_of_a_source_lend_their_tokens() -> None:
    """Letters of the first part; the tags of the second, and what parts them, are the sentence's own."""
    data = DataConfig(tsv="x", source_column="1,2", source_tokenizer="char,features", target_tokenizer="char")
    corpus = Corpus(["ab\tV;PST", "ba\tV;PST"], ["abd", "bad"], [1, 2], [], "parts")
    tokenizers = learn_tokenizers(data, corpus)
    found: Encoded = copying_ids(data, corpus, tokenizers)
    letters, size = {letter: tokenizers[1].find(letter) for letter in "ab"}, len(tokenizers[1])
    assert found.copies is not None
    assert found.copies[0][:2] == [letters["a"], letters["b"]]
    assert [copy >= size for copy in found.copies[0][2:-1]] == [True] * (len(found.copies[0]) - 3)
