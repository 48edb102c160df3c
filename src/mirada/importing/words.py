"""Word lists of other toolkits as mirada's vocabularies: the four special entries first, then the list in its order.

Texts are cut at blanks and nothing else. A list of pieces of words (SentencePiece, BPE) is a list of words here: texts
are to be cut before, as they were for the toolkit, and outputs to be joined.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from mirada.data.recipes import RESERVED, TokenizerOptions, normalizer, pre_tokenizer, untrained
from mirada.data.tokenizer import Tokenizer, checked_inner
from mirada.data.vocabulary import SPECIAL_TOKENS
from mirada.errors import ModelFolderError

MARKS = {"▁": "SentencePiece", "@@": "BPE", "￭": "OpenNMT's tokeniser"}  # at either end of a piece
MANY = 0.02  # of the entries with such a mark


class WordList(NamedTuple):
    """A side's vocabulary."""

    path: Path
    listed: tuple[str, ...]  # as the toolkit has it
    entries: tuple[str, ...]  # as mirada has it
    rows: Tensor  # [V] where each entry stands in the list


Sides = tuple[WordList, WordList]  # the source's and the target's


def read_words(path: Path, listed: Sequence[object], special: Mapping[str, object]) -> WordList:
    """Put a list in mirada's order; `special` gives the rows of <unk>, <pad>, <s> and </s>, and of what is left out.

    Raises ModelFolderError for what is no word, is there twice, or has no row.
    """
    texts = [entry for entry in listed if isinstance(entry, str)]
    if len(texts) < len(listed) or len(set(texts)) < len(texts):
        raise ModelFolderError(f"{path}: its vocabulary holds a word twice, or what is no word")
    rows = dict[str, int]()
    for name in SPECIAL_TOKENS:
        row = special.get(name)
        if not isinstance(row, int) or isinstance(row, bool) or not 0 <= row < len(texts):
            raise ModelFolderError(f"{path}: the entry for {name} is {row!r:.60}, but there are {len(texts)} entries")
        rows[name] = row
    taken = set(special.values())
    for row, entry in enumerate(texts):
        if row not in taken:  # as text is read: a word spelled like a special token has a backslash before it
            rows["\\" + entry if re.fullmatch(RESERVED, entry) else entry] = row
    return WordList(path, tuple(texts), tuple(rows), torch.tensor(list(rows.values())))


def word_tokenizer(words: WordList) -> Tokenizer:
    """Cut texts at blanks, and look the words up; raises ModelFolderError if mirada has no such vocabulary."""
    from tokenizers import Tokenizer as Inner

    inner = Inner(untrained("word"))
    inner.normalizer = normalizer(TokenizerOptions("word", 0, normalize="none"))
    inner.pre_tokenizer = pre_tokenizer("word")
    content = json.loads(inner.to_str())
    content["model"]["vocab"] = {entry: number for number, entry in enumerate(words.entries)}
    try:
        return Tokenizer(checked_inner(content, "word"), "word")
    except ValueError as error:
        raise ModelFolderError(f"{words.path}: {error}") from None


def how_texts_are_cut(sides: Sequence[WordList]) -> str:
    """A line about what texts must be like."""
    entries = sides[0].entries
    for mark, name in MARKS.items():
        if sum(entry.startswith(mark) or entry.endswith(mark) for entry in entries) > MANY * len(entries):
            return (
                f"its vocabulary holds pieces with {mark}, as of {name}: cut sources into them, with blanks between, "
                "and join outputs yourself; here texts are cut at blanks only"
            )
    return "texts are cut at blanks only: give sources as the toolkit had them, tokenised and in its case"
