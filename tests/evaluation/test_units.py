"""Units of a line and the tokens that stand for them: by hand, and for any text under every kind of tokeniser."""

from __future__ import annotations

import unicodedata
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirada.corpora.grammar import generate, tokens
from mirada.data.tokenizer import Piece, Tokenizer, TokenizerOptions, train_tokenizer
from mirada.data.vocabulary import UNK
from mirada.errors import DataError
from mirada.evaluation.units import count_units, split, token_units, unit_weights

LINES = [
    "the red fox , the cat .",
    "¿ dónde duerme el zorro ?",
    "the red fox, the cat.",
    "a man ( and a cat ) see the house",
]
KINDS = ("bpe", "unigram", "word", "char")


@cache
def tokenizer(kind: str, normalize: str = "nfc") -> Tokenizer:
    return train_tokenizer(LINES * 5, TokenizerOptions(kind, 70, normalize=normalize))


def texts(text: str, units: str) -> list[str]:
    return [text[start:end] for start, end in split(text, units)]


def groups(kind: str, text: str, units: str = "words") -> list[tuple[str, tuple[int, ...]]]:
    """Tokens with what they stand for."""
    (pieces,) = tokenizer(kind).pieces([text])
    return [(piece.text, group) for piece, group in zip(pieces, token_units(pieces, text, units), strict=True)]


@given(st.text())
def test_words_stand_between_blanks(text):
    assert texts(text, "words") == text.split()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("¿Cómo estás?", ["¿", "Cómo", "estás", "?"]),
        ("She's at 3.5 o'clock, (old).", ["She's", "at", "3.5", "o'clock", ",", "(", "old", ")", "."]),
        ("wait... — 5%", ["wait", ".", ".", ".", "—", "5", "%"]),
        ('"¡No!"', ['"', "¡", "No", "!", '"']),
        (" \t ", []),
        ("e\u0301!", ["e\u0301", "!"]),
    ],
)
def test_marks_at_the_ends_of_words_are_units(text, expected):
    assert texts(text, "punctuation") == expected


@given(st.text(alphabet=st.sampled_from("ab1 .,?¿'-\u0301\t%"), max_size=30))
def test_with_punctuation_every_character_but_blanks_is_in_one_unit(text):
    spans = split(text, "punctuation")
    inside = [at for start, end in spans for at in range(start, end)]
    assert inside == [at for at, char in enumerate(text) if not char.isspace()]
    for start, end in spans:
        edges = {unicodedata.category(text[start])[0], unicodedata.category(text[end - 1])[0]}
        assert end - start == 1 or not edges & {"P", "S"}


def test_with_punctuation_ordinary_text_has_the_units_of_the_embedded_gold():
    for pair in generate(300, seed=3):
        assert texts(pair.source, "punctuation") == tokens(pair.source)
        assert texts(pair.target, "punctuation") == tokens(pair.target)


# Tokens of tokenised text: every kind gives the words between blanks


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_subwords_of_tokenised_text_are_joined_into_blank_separated_words(kind):
    for line in ["the red fox , the cat .", "¿ dónde duerme el zorro ?", "  the  cat ,\tfoxes  ( red"]:
        (pieces,) = tokenizer(kind).pieces([line])
        found = token_units(pieces, line, "words")
        assert count_units(found) == len(line.split())
        # The second road: a token begins a word where it carries ▁.
        assert found == [(piece.word,) for piece in pieces]
        words = [
            "".join(p.text for p, g in zip(pieces, found, strict=True) if g == (unit,))
            for unit in range(len(line.split()))
        ]
        assert [word.removeprefix("▁") for word in words] == line.split()


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_unknown_characters_stay_in_their_word(kind):
    text = "the ☃☃ fox☃ ☃, ."
    (pieces,) = tokenizer(kind).pieces([text])
    found = token_units(pieces, text, "words")
    assert found == [(piece.word,) for piece in pieces]
    assert sorted({unit for (unit,) in found}) == [0, 1, 2, 3, 4]
    snowmen = [unit for piece, (unit,) in zip(pieces, found, strict=True) for _ in range(piece.text.count("☃"))]
    assert snowmen == [1, 1, 2, 3]


def test_unknown_words_of_a_word_model_are_units():
    assert groups("word", "the ☃ ☃☃ cat") == [("the", (0,)), ("☃", (1,)), ("☃☃", (2,)), ("cat", (3,))]


def test_characters_are_joined_into_words_and_a_blank_goes_to_the_word_after_it():
    assert groups("char", "el  ☃a .") == [
        ("e", (0,)),
        ("l", (0,)),
        ("▁", (1,)),
        ("☃", (1,)),
        ("a", (1,)),
        ("▁", (2,)),
        (".", (2,)),
    ]


def test_with_tokens_the_units_are_the_tokenisers_own():
    assert [group for _, group in groups("char", "el a", "tokens")] == [(0,), (1,), (2,), (3,)]
    (pieces,) = tokenizer("bpe").pieces(["the redder cat"])
    assert token_units(pieces, "the redder cat", "tokens") == [(piece.word,) for piece in pieces]


# Where tokens and units do not fit into each other


def test_a_word_with_its_mark_as_one_token_stands_for_both():
    assert groups("word", "fox, the", "punctuation") == [("fox,", (0, 1)), ("the", (2,))]
    assert groups("word", "(red).", "punctuation") == [("(red).", (0, 1, 2, 3))]


def test_a_unit_that_normalisation_melted_into_another_shares_its_token():
    text = "the =\u0338"  # one character, ≠, once normalised; with punctuation two units
    assert texts(text, "punctuation") == ["the", "=", "\u0338"]
    (pieces,) = tokenizer("char").pieces([text])
    assert token_units(pieces, text, "punctuation") == [(0,), (0,), (0,), (1,), (1, 2)]


def test_a_subword_with_its_blank_touches_only_its_own_word():
    pieces = [Piece(4, "▁a", 0, (0, 1)), Piece(5, "▁b", 1, (1, 3))]
    assert token_units(pieces, "a b", "words") == [(0,), (1,)]


@pytest.mark.parametrize("normalize", ["nfc", "nfkc", "none"])
@pytest.mark.parametrize("kind", KINDS)
@given(text=st.text(max_size=12), units=st.sampled_from(["words", "punctuation"]))
def test_in_any_text_tokens_and_units_cover_each_other_in_order(kind, normalize, text, units):
    if not text.strip():
        return
    (pieces,) = tokenizer(kind, normalize).pieces([text])
    found = token_units(pieces, text, units)
    assert len(found) == len(pieces)
    assert all(found)
    flat = [unit for group in found for unit in group]
    assert flat == sorted(flat)
    assert set(flat) == set(range(len(split(text, units))))
    assert count_units(found) == len(split(text, units))


def test_no_tokens_no_units():
    assert token_units([], "", "words") == []
    assert count_units([]) == 0


# Weights


def test_weights_of_units_by_hand():
    weights = np.array([[0.2, 0.3, 0.5], [0.1, 0.1, 0.8]])
    # Source tokens 0 and 1 are one word, token 2 is a word with its mark: 0.5 becomes 0.25 and 0.25. Target token 0 is
    # two units, so both get its row; token 1 belongs to the second too, which gets the mean of the two rows.
    merged = unit_weights(weights, [(0,), (0,), (1, 2)], [(0, 1), (1,)])
    assert merged == pytest.approx(np.array([[0.5, 0.25, 0.25], [0.35, 0.325, 0.325]]))


@given(st.integers(1, 5), st.integers(1, 5), st.data())
def test_rows_keep_their_sum(rows, columns, data):
    weights = np.random.default_rng(rows * 9 + columns).dirichlet(np.ones(columns), size=rows)
    sides = []
    for count in (columns, rows):
        steps = data.draw(st.lists(st.integers(0, 2), min_size=count, max_size=count))
        # A token goes on with the unit before it (0) or begins one or two new ones.
        ends = np.cumsum([max(1, steps[0]), *steps[1:]])
        sides.append(
            [
                tuple(range(end - max(step, 1), end))
                for end, step in zip(ends, [max(1, steps[0]), *steps[1:]], strict=True)
            ]
        )
    merged = unit_weights(weights, *sides)
    assert merged.shape == (count_units(sides[1]), count_units(sides[0]))
    assert merged.sum(axis=1) == pytest.approx(np.ones(len(merged)))


def test_groups_that_do_not_fit_the_weights_are_refused():
    with pytest.raises(DataError, match=r"^source groups: expected every word from 0 to 2, got \[0, 2\]$"):
        unit_weights(np.full((1, 2), 0.5), [(0,), (2,)], [(0,)])


def test_unknown_is_what_the_vocabulary_says():
    """The tests above mean unknown characters: these are."""
    (pieces,) = tokenizer("bpe").pieces(["☃"])
    assert UNK in {piece.id for piece in pieces}
