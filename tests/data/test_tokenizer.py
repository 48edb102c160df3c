"""Text to ids and back, whatever stands in the text."""

from __future__ import annotations

import json
import re
import unicodedata
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirada.data.tokenizer import Tokenizer, TokenizerOptions, train_tokenizer
from mirada.data.vocabulary import BOS, EOS, PAD, SPECIAL_TOKENS, UNK
from mirada.errors import ModelFolderError

KINDS = ("bpe", "unigram", "word", "char")
FIXTURES = Path(__file__).parent / "old_tokenizers"
# The names of the special tokens stand in the text as words, as they do in some corpora.
LINES = [
    "the cat sat on the mat, near the café .",
    "el niño más pequeño durmió bajo el árbol .",
    "what's that ? a cat, an old cat !",
    "x <unk> y <s> z </s> <pad> the end",
    "日本語 の 本 は 猫 です .",
] * 4
WORDS = sorted({word for line in LINES for word in line.split()} - set(SPECIAL_TOKENS))
BLANKS = [" ", "\t", "\u00a0", "\u3000", "\u2009", "\r", "\x85", "\u2028", "  "]


@cache
def tokenizer(kind: str, normalize: str = "nfc") -> Tokenizer:
    return train_tokenizer(LINES, TokenizerOptions(kind, 120, 1, normalize))


def texts(kind: str) -> st.SearchStrategy[str]:
    """Texts whose characters (or words) are all in the vocabulary, with any blanks."""
    blanks = st.lists(st.sampled_from(BLANKS), min_size=1, max_size=3).map("".join)
    letters = sorted({char for word in WORDS for char in word})
    word = st.sampled_from(WORDS) if kind == "word" else st.text(st.sampled_from(letters), min_size=1, max_size=8)
    pairs = st.lists(st.tuples(blanks, word), max_size=8).map(lambda parts: "".join(a + b for a, b in parts))
    return st.tuples(pairs, blanks).map("".join)


# There and back


@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data())
def test_known_text_comes_back_with_single_blanks(kind, data):
    text = data.draw(texts(kind))
    (ids,) = tokenizer(kind).encode([text])
    assert UNK not in ids
    assert tokenizer(kind).decode(ids) == unicodedata.normalize("NFC", " ".join(text.split()))


@pytest.mark.parametrize("kind", KINDS)
@given(lines=st.lists(st.text(st.one_of(st.sampled_from("the <s>/ñ猫"), st.characters(codec="utf-8"))), max_size=4))
def test_any_text_gives_ordinary_ids_and_pieces_that_agree(kind, lines):
    encoded, pieces = tokenizer(kind).encode(lines), tokenizer(kind).pieces(lines)
    assert [[piece.id for piece in row] for row in pieces] == encoded
    for row in pieces:
        assert all(piece.id == UNK or EOS < piece.id < len(tokenizer(kind)) for piece in row)
        assert all(piece.text for piece in row)
        assert [piece.word for piece in row] == sorted(piece.word for piece in row)
        assert {piece.word for piece in row} == set(range(len({piece.word for piece in row})))


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_gives_nothing(kind):
    assert tokenizer(kind).encode(["", "  \t\u3000"]) == [[], []]
    assert tokenizer(kind).pieces(["", " "]) == [[], []]
    assert tokenizer(kind).encode([]) == []
    assert tokenizer(kind).decode([]) == ""


@pytest.mark.parametrize("kind", KINDS)
def test_special_tokens_but_unk_are_not_text(kind):
    (ids,) = tokenizer(kind).encode(["the cat"])
    assert tokenizer(kind).decode([BOS, *ids, EOS, PAD]) == "the cat"
    assert "<unk>" in tokenizer(kind).decode([*ids, UNK])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", SPECIAL_TOKENS)
def test_the_name_of_a_special_token_is_text(kind, name):
    for text in (name, f"the {name} cat", f"{name}{name}", f"the{name}"):
        (pieces,) = tokenizer(kind).pieces([text])
        assert all(piece.id == UNK or piece.id > EOS for piece in pieces)
        assert tokenizer(kind).join(piece.text for piece in pieces) == text


@pytest.mark.parametrize("kind", KINDS)
def test_ids_are_the_places_in_the_vocabulary(kind):
    own = tokenizer(kind)
    names = [own.token(i) for i in range(len(own))]
    assert names[:4] == list(SPECIAL_TOKENS)
    assert len(set(names)) == len(names)
    assert "None" not in names
    (pieces,) = own.pieces(["the cat"])
    assert [own.token(piece.id) for piece in pieces] == [piece.text for piece in pieces]


# Unicode


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("normalize", ["nfc", "nfkc", "none"])
def test_composed_and_decomposed_letters(kind, normalize):
    composed, apart = (unicodedata.normalize(form, "el niño más pequeño") for form in ("NFC", "NFD"))
    left, right = tokenizer(kind, normalize).encode([composed, apart])
    assert UNK not in left
    assert (left == right) == (normalize != "none")


@pytest.mark.parametrize("normalize", ["nfc", "nfkc"])
def test_text_learned_decomposed_is_known_composed(normalize):
    apart = [unicodedata.normalize("NFD", line) for line in LINES]
    learned = train_tokenizer(apart, TokenizerOptions("char", 120, 1, normalize))
    assert learned.encode(["niño"]) == tokenizer("char", normalize).encode(["niño"])


def test_compatibility_forms():
    wide = "ｃａｔ"  # fullwidth letters
    assert tokenizer("word", "nfkc").encode([wide]) == tokenizer("word").encode(["cat"])
    assert tokenizer("word", "nfc").encode([wide]) == [[UNK]]


# Unknown


@pytest.mark.parametrize("kind", KINDS)
def test_an_unknown_character_keeps_its_surface(kind):
    (pieces,) = tokenizer(kind).pieces(["the \u00a0Ω cat"])
    assert [piece.text for piece in pieces if piece.id == UNK] == ["Ω"]
    assert tokenizer(kind).decode([piece.id for piece in pieces]) == "the <unk> cat"


def test_an_unknown_word_keeps_its_surface():
    (pieces,) = tokenizer("word").pieces(["the  ΩΩ, cat"])
    assert [(piece.id == UNK, piece.text, piece.word) for piece in pieces] == [
        (False, "the", 0),
        (True, "ΩΩ,", 1),
        (False, "cat", 2),
    ]


def test_surface_forms_can_be_joined_in_place_of_unk():
    assert tokenizer("word").join(["the", "Ω", "cat"]) == "the Ω cat"
    assert tokenizer("bpe").join(["▁the", "▁", "Ω", "▁cat"]) == "the Ω cat"
    assert tokenizer("char").join(["a", "▁", "Ω"]) == "a Ω"


# What would be lost


@pytest.mark.parametrize("kind", KINDS)
def test_a_block_in_a_text_is_no_blank(kind):
    lines = ["a ▁ b", "▁▁ a▁b ▁", "a b"] * 5
    own = train_tokenizer(lines, TokenizerOptions(kind, 60))
    assert [own.decode(ids) for ids in own.encode(lines)] == lines
    bare = train_tokenizer(["a b c"], TokenizerOptions(kind, 60))  # unknown there: its surface comes back all the same
    if kind != "word":
        assert bare.join(piece.text for piece in bare.pieces(["a▁b"])[0]) == "a▁b"


@pytest.mark.parametrize("name", SPECIAL_TOKENS)
def test_a_reserved_name_is_learned_as_a_word_and_comes_back(name):
    lines = [f"a {name} b \\{name}", f"{name} {name}", f"x{name} \\\\{name}", "\\"]
    own = train_tokenizer(lines, TokenizerOptions("word", 100))
    encoded = own.encode(lines)
    assert not any(i <= EOS for ids in encoded for i in ids)
    assert [own.decode(ids) for ids in encoded] == lines
    assert len(set(encoded[2])) == 2


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_digits_one_by_one(kind):
    lines = ["in 1984 and 1948, x1a"] * 20
    own, joined = (train_tokenizer(lines, TokenizerOptions(kind, 60, split_digits=split)) for split in (True, False))
    pieces = [piece.text.removeprefix("▁") for piece in own.pieces(["1984"])[0]]
    assert [piece for piece in pieces if piece] == list("1984")
    assert all(sum(char.isdigit() for char in own.token(i)) < 2 for i in range(len(own)))
    assert any(sum(char.isdigit() for char in joined.token(i)) > 1 for i in range(len(joined)))
    assert own.decode(own.encode(lines)[0]) == lines[0]


def test_features_are_names_with_the_mark_before_them():
    lines = ["V;IND;PRS;NOM(1,SG)", "V.PTCP;PST", "N; ACC ;PL", "V;</s>;<s>"]
    own = train_tokenizer(lines, TokenizerOptions("features", 100))
    assert [piece.text for piece in own.pieces(lines[:1])[0]] == ["V", ";IND", ";PRS", ";NOM", "(1", ",SG", ")"]
    assert [own.decode(ids) for ids in own.encode(lines)] == lines


@pytest.mark.parametrize("kind", KINDS)
def test_a_tokenizer_of_an_older_version_still_does_what_it_did(kind):
    """Made by mirada before ▁ and reserved names came back: it loads, and gives the ids that it gave then."""
    own = Tokenizer.load(FIXTURES / f"{kind}.json", kind)
    known = json.loads((FIXTURES / "ids.json").read_text(encoding="utf-8"))
    assert own.encode(known["texts"]) == known[kind]
    if kind != "word":
        assert own.decode(own.encode(["the ▁ cat"])[0]).split() == ["the", "cat"]


# Words


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_subwords_are_grouped_into_words(kind):
    (pieces,) = tokenizer(kind).pieces(["the árbol, ΩΩ mat"])
    groups: dict[int, str] = {}
    for piece in pieces:
        groups[piece.word] = groups.get(piece.word, "") + piece.text
    assert groups == {0: "▁the", 1: "▁árbol,", 2: "▁ΩΩ", 3: "▁mat"}


def test_words_of_tokens():
    tokens = ["▁a", "b", "▁", "c", ",", "▁d"]
    assert tokenizer("bpe").words(tokens) == [0, 0, 1, 1, 1, 2]
    assert tokenizer("bpe").words(["a", "b", "▁c"]) == [0, 0, 1]  # a beginning without a blank is a word too
    assert tokenizer("bpe").words([]) == []
    for kind in ("word", "char"):
        assert tokenizer(kind).words(tokens) == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_punctuation_stands_apart(kind):
    own = train_tokenizer(["cat, cat, dog. cat, dog."] * 20, TokenizerOptions(kind, 60))
    assert all(not (set(own.token(i)) & set(",.") and len(own.token(i)) > 1) for i in range(4, len(own)))
    (pieces,) = own.pieces(["cat,dog."])
    assert [piece.text for piece in pieces if set(piece.text) & set(",.")] == [",", "."]


# Files


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_gives_the_same_tokenizer(kind, tmp_path):
    own = tokenizer(kind)
    own.save(tmp_path / "a.json")
    loaded = Tokenizer.load(tmp_path / "a.json", kind)
    lines = [*LINES, "<s> Ω unseen, ñ", ""]
    assert loaded.pieces(lines) == own.pieces(lines)
    assert len(loaded) == len(own)


def refuses(message: str) -> pytest.RaisesExc[ModelFolderError]:
    return pytest.raises(ModelFolderError, match=f"^{re.escape(message)}")


def test_a_missing_file(tmp_path):
    path = tmp_path / "source.json"
    with refuses(f"{path}: missing; the folder holds no complete model"):
        Tokenizer.load(path, "bpe")


@pytest.mark.parametrize("content", [b"", b"{}", b'{"model": 3', b"\xff\xfe", b"[]"])
def test_a_damaged_file(tmp_path, content):
    path = tmp_path / "source.json"
    path.write_bytes(content)
    with refuses(f"{path}: not a tokeniser file ("):
        Tokenizer.load(path, "bpe")


def test_a_tokenizer_of_another_program(tmp_path: Path):
    path = tmp_path / "source.json"
    tokenizer("word").save(path)
    content = json.loads(path.read_text(encoding="utf-8"))
    vocabulary = content["model"]["vocab"]
    vocabulary["[PAD]"] = vocabulary.pop("<pad>")
    path.write_text(json.dumps(content), encoding="utf-8")
    with refuses(f"{path}: its first four entries are not <unk> <pad> <s> </s>"):
        Tokenizer.load(path, "word")
