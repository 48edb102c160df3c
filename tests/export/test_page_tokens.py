"""The page's reader of tokenizer.json gives Python's tokens: 10,000 lines, of a corpus and of what no corpus has."""

from __future__ import annotations

import random
import unicodedata
from itertools import product
from pathlib import Path

import pytest

from mirada.corpora.grammar import make_splits
from mirada.data.copying import copy_ids
from mirada.data.fitting import Truncation, truncate
from mirada.data.parts import SourceTokenizer, train_source
from mirada.data.tokenizer import Tokenizer, TokenizerOptions, train_tokenizer
from mirada.data.vocabulary import SPECIAL_TOKENS
from mirada.importing import spm
from web_tools import modules, needs_node, node

pytestmark = needs_node
SENTENCEPIECE = Path(__file__).parents[1] / "importing" / "marian" / "source.spm"
PIECES = """
import {copyIds, tokenizer, truncate} from "./tokens.js";
const read = given.tokenizers.map(({content, kind}) => tokenizer(content, kind));
const row = ({id, text, word}) => [id, text, word];
const found = read.map((one, i) => given.lines[i].map(line => one.pieces(line).map(row)));
"""
SHOWN = "console.log(JSON.stringify(found));"
SCRIPT = (
    PIECES
    + """
const joined = read.map((one, i) => one.join ? found[i].map(row => one.join(row.map(([, text]) => text))) : null);
const copies = given.lines[0].map(line => copyIds(read[0].pieces(line), read[0]));
const cuts = given.cuts.map(([most, how]) => truncate([1, 2, 3, 4, 5], most, how));
console.log(JSON.stringify({found, joined, copies, cuts}));
"""
)
ODD = [
    *("", " ", "\t", "a", " a  b ", "\u00a0a\u3000b\u2028c\x85d\ufeffe", "<unk> a </s>", "\\<s> \\\\<pad> <s>x x<s>"),
    *("▁", "a▁b ▁ c", "\ufdd0", "e\u0301te\u0301 \u1e9b\u0323", "ﬁ ① Ⅸ ㎏ ½", "¿¡a!?…", "12,345.67 €"),
    *("日本語 の 文", "👩‍👩‍👧 🇪🇸 é"),
    *("constructor __proto__ toString", "'s don't -- a-b", "V;IND;NOM(1,SG)", ";;a;(b)[c] {d}", "\x1e", "\x1ea\x1e b"),
    *("a\tb", "\ta", "a\tb\tc\x1ed", "ŀ½ǆ", "\u1680a\u180eb\u200bc\u2060", "x" * 300),
    *("\u0345\u0301a\u0327\u0301"),
]  # fmt: skip
LETTERS = "aábcdeéñü¿?.,;:()'\"-–0123456789 \u00a0 ▁<>/\\sunkpad日本ßŒ€½ﬁ\u0301\u0327️👩‍🇪"
HOW: tuple[Truncation, ...] = ("first", "last", "both")
KINDS = [
    *(TokenizerOptions(kind, 200, normalize=form, split_digits=digits) for kind, form, digits in (
        ("bpe", "nfc", False), ("bpe", "nfkc", True), ("unigram", "nfc", False), ("unigram", "none", True),
        ("word", "nfc", False), ("word", "nfkc", False), ("char", "nfc", False), ("char", "none", False),
        ("features", "nfc", False),
    )),
]  # fmt: skip


@pytest.fixture(scope="module")
def corpus() -> list[str]:
    return [text for pair in make_splits(4500, seed=1).train for text in (pair.source, pair.target)]


@pytest.fixture(scope="module")
def lines(corpus: list[str]) -> list[str]:
    draw = random.Random(3)
    made = ["".join(draw.choices(LETTERS, k=draw.randint(1, 30))) for _ in range(10_000 - len(corpus) - len(ODD))]
    return [*corpus, *made, *ODD]


@pytest.fixture(scope="module")
def tokenizers(corpus: list[str]) -> list[SourceTokenizer]:
    texts = [*corpus[:600], "straße, Œuvre ▁ ñandú ½ ①", "V;IND;NOM(1,SG)", "12 345"] * 2
    parts = [f"{text}\t{text[::-1]}" for text in texts[:200]]
    two = train_source(parts, ("char", "features"), TokenizerOptions("char", 200))
    alike = train_source(parts, ("bpe", "bpe"), TokenizerOptions("bpe", 200))
    return [*(train_tokenizer(texts, options) for options in KINDS), two, alike]


@pytest.fixture(scope="module")
def sentencepiece() -> list[Tokenizer]:
    """A model of SentencePiece's with its table of characters (nmt_nfkc), and the same without one."""
    pieces = spm.read_pieces(SENTENCEPIECE)
    entries = [*SPECIAL_TOKENS, *(piece for piece in pieces.scores if piece not in SPECIAL_TOKENS), "日", ">>spa<<"]
    return [spm.tokenizer(model, entries) for model in (pieces, pieces._replace(charsmap=b""))]


def test_the_same_tokens_of_sentencepiece(sentencepiece: list[Tokenizer], lines: list[str], tmp_path: Path) -> None:
    """All lines with the table, and without it those that are odd."""
    blanks = ["a\n b \n c", " \r\n a\r\n", ">>spa<< a", "x>>spa<<"]
    shares = [[*lines, *blanks], [*lines[-500:], *blanks]]
    contents = [{"content": one.content(), "kind": one.kind} for one in sentencepiece]
    found = node(modules(tmp_path), PIECES + SHOWN, {"tokenizers": contents, "lines": shares})
    for i, (read, share) in enumerate(zip(sentencepiece, shares, strict=True)):
        for line, row, given in zip(share, found[i], read.pieces(share), strict=True):
            same = [(piece.id, piece.word) for piece in given]
            assert [(number, word) for number, _, word in row] == same, (i, line)
            assert all(piece.text == one[1] for one, piece in zip(row, given, strict=True) if piece.id), (i, line)


def test_the_same_tokens(tokenizers: list[SourceTokenizer], lines: list[str], tmp_path: Path) -> None:
    """Every line is read by one tokeniser, and all that are odd by all."""
    count, cuts = len(tokenizers), list(product((1, 2, 4, 9), HOW))
    shares = [[*lines[i::count], *ODD] for i in range(count)]
    contents = [{"content": one.content(), "kind": one.kind} for one in tokenizers]
    found = node(modules(tmp_path), SCRIPT, {"tokenizers": contents, "lines": shares, "cuts": cuts})
    for i, (tokenizer, share) in enumerate(zip(tokenizers, shares, strict=True)):
        for line, row, given in zip(share, found["found"][i], tokenizer.pieces(share), strict=True):
            assert [one[0] for one in row] == [piece.id for piece in given], (i, line)
            assert [one[2] for one in row] == [piece.word for piece in given], (i, line)
            if plain(line):
                assert [one[1] for one in row] == [piece.text for piece in given], (i, line)
        if isinstance(tokenizer, Tokenizer):
            assert found["joined"][i] == [tokenizer.join(text for _, text, _ in row) for row in found["found"][i]]
    assert found["cuts"] == [truncate([1, 2, 3, 4, 5], most, how) for most, how in cuts]
    first = tokenizers[0]
    assert isinstance(first, Tokenizer)
    for line, row, ids in zip(shares[0], first.pieces(shares[0]), found["copies"], strict=True):
        assert not plain(line) or ids == copy_ids(row, first), line


def plain(line: str) -> bool:
    """Whether a text is the one that is read: elsewhere Python shows unknown words as they were typed."""
    return unicodedata.is_normalized("NFKC", line) and not set(line) & set("▁\ufdd0")
