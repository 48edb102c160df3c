"""Sources of several parts, such as a word and its features, or a question and a story: each has tokens of its own.

In a text the parts are joined by tabs, and the texts of a list within one part by ITEM; in ids both become <sep>, so
that the number of <sep> before a token tells its segment. Parts of one kind share one vocabulary; the ids are those of
the special tokens, then <sep>, then one vocabulary after the other.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from mirada.data.bpe_dropout import Dropping
from mirada.data.rows import ITEM, PART
from mirada.data.tokenizer import Piece, Tokenizer, TokenizerOptions, checked_inner, read_content, train_tokenizer
from mirada.data.vocabulary import EOS, SEP, SEP_TOKEN, UNK
from mirada.errors import ModelFolderError
from mirada.files import write_text

CUT = re.compile(f"[{PART}{ITEM}]")
Cut = tuple[int, int, str]  # number of the part, where it starts, content
Found = TypeVar("Found")


class Parts:
    """Ids for sources of several parts: `Tokenizer` for each, put together. `kind` is such as `char,features`."""

    def __init__(self, kinds: Sequence[str], inner: Mapping[str, Tokenizer]):
        self.kinds, self.kind = tuple(kinds), ",".join(kinds)
        self.inner = {kind: inner[kind] for kind in dict.fromkeys(kinds)}
        sizes = [len(tokenizer) - SEP for tokenizer in self.inner.values()]  # what each adds
        self._offsets = dict(zip(self.inner, itertools.accumulate(sizes, initial=1), strict=False))
        self._length = 1 + SEP + sum(sizes)

    def __len__(self) -> int:
        """Entries of the vocabulary, the special ones and <sep> included."""
        return self._length

    def encode(self, texts: Sequence[str], dropping: Dropping | None = None) -> list[list[int]]:
        """Ids of each text, without special tokens; an empty or blank text has none. `dropping` as in `Tokenizer`."""
        cuts = [_cut(text) if text.strip() else [] for text in texts]
        found = self._each(cuts, lambda tokenizer, parts: tokenizer.encode(parts, dropping))
        rows = []
        for i, row in enumerate(cuts):
            ids: list[int] = []
            for j, (part, _, _) in enumerate(row):
                kind = self._kind(part)
                ids += [SEP] * (j > 0) + [self._id(index, kind) for index in found[i, j]]
            rows.append(ids)
        return rows

    def pieces(self, texts: Sequence[str]) -> list[list[Piece]]:
        """The tokens of each text with their surface, <sep> between parts."""
        cuts = [_cut(text) if text.strip() else [] for text in texts]
        found = self._each(cuts, lambda tokenizer, parts: tokenizer.pieces(parts))
        return [
            self._together([(start, found[i, j], self._kind(part)) for j, (part, start, _) in enumerate(row)])
            for i, row in enumerate(cuts)
        ]

    def _each(
        self, cuts: Sequence[Sequence[Cut]], read: Callable[[Tokenizer, list[str]], list[list[Found]]]
    ) -> dict[tuple[int, int], list[Found]]:
        """What each part's tokeniser reads in each piece of each text, by their numbers."""
        found: dict[tuple[int, int], list[Found]] = {}
        for kind, tokenizer in self.inner.items():
            asked = [(i, j) for i, row in enumerate(cuts) for j, cut in enumerate(row) if self._kind(cut[0]) == kind]
            found |= dict(zip(asked, read(tokenizer, [cuts[i][j][2] for i, j in asked]), strict=True))
        return found

    def _kind(self, part: int) -> str:
        return self.kinds[min(part, len(self.kinds) - 1)]

    def _together(self, parts: Sequence[tuple[int, Sequence[Piece], str]]) -> list[Piece]:
        """One list of pieces out of those of each part, with the place where it starts."""
        row: list[Piece] = []
        for number, (start, pieces, kind) in enumerate(parts):
            word = row[-1].word + 1 if row else 0
            if number:
                row.append(Piece(SEP, SEP_TOKEN, word, (start - 1, start)))
                word += 1
            row += [self._moved(piece, kind, word, start) for piece in pieces]
        return row

    def _moved(self, piece: Piece, kind: str, word: int, start: int) -> Piece:
        span = piece.span[0] + start, piece.span[1] + start
        return Piece(self._id(piece.id, kind), piece.text, piece.word + word, span)

    def _id(self, index: int, kind: str) -> int:
        return index + self._offsets[kind] if index > EOS else index

    def token(self, index: int) -> str:
        """The vocabulary's entry at `index`."""
        if index == SEP:
            return SEP_TOKEN
        kind, inner = self._whose(index)
        return self.inner[kind].token(inner)

    def _whose(self, index: int) -> tuple[str, int]:
        """The kind whose vocabulary holds an id, and the id there; that of special tokens is the first."""
        if index <= EOS:
            return self.kinds[0], index
        kind = max((kind for kind in self.inner if self._offsets[kind] + SEP <= index), key=self._offsets.__getitem__)
        return kind, index - self._offsets[kind]

    def words(self, tokens: Sequence[str]) -> list[int]:
        """The unit each token belongs to: without their parts, each token stands alone."""
        return list(range(len(tokens)))

    def decode(self, ids: Iterable[int]) -> str:
        """Text of ids, parts joined by tabs; special tokens other than <unk> are left out."""
        parts: list[list[int]] = [[]]
        for index in ids:
            if index == SEP:
                parts.append([])
            elif index == UNK or index > EOS:
                parts[-1].append(index)
        found = [(self._kind(number), [self._whose(i)[1] for i in part]) for number, part in enumerate(parts)]
        return PART.join(self.inner[kind].decode(part) for kind, part in found)

    def save(self, path: Path) -> None:
        """Write the tokenisers as one JSON file."""
        write_text(path, json.dumps(self.content(), ensure_ascii=False, indent=1))

    def content(self) -> Any:
        """The same as a value of JSON."""
        return {"parts": list(self.kinds), "tokenizers": {kind: own.content() for kind, own in self.inner.items()}}

    @staticmethod
    def load(path: Path, kind: str) -> Parts:
        """Read them; raises ModelFolderError if the file is missing, damaged, or not one that mirada writes."""
        kinds, content = kind.split(","), read_content(path)
        own = content.get("tokenizers") if isinstance(content, dict) and content.get("parts") == kinds else None
        if not isinstance(own, dict) or set(own) != set(kinds):
            raise ModelFolderError(f"{path}: not the tokenisers of a source with the parts {kind}")
        try:
            inner = {name: Tokenizer(checked_inner(own[name], name), name) for name in kinds}
        except ValueError as error:
            raise ModelFolderError(f"{path}: {error}") from None
        return Parts(kinds, inner)


SourceTokenizer = Tokenizer | Parts


def load_source(path: Path, kind: str) -> SourceTokenizer:
    """Read a source's tokeniser, of one part or of several; raises ModelFolderError."""
    return Parts.load(path, kind) if "," in kind else Tokenizer.load(path, kind)


def split_parts(texts: Sequence[str], count: int) -> list[list[str]]:
    """The texts of each of `count` parts, those of lists one by one; what is beyond the last part belongs to it."""
    return [list(texts_of_parts(texts, [number], count)) for number in range(count)]


def texts_of_parts(texts: Iterable[str], numbers: Collection[int], count: int) -> Iterator[str]:
    """The texts of some of `count` parts, one by one."""
    if count == 1:
        yield from texts
        return
    for text in texts:
        for part, _, content in _cut(text):
            if min(part, count - 1) in numbers:
                yield content


def _cut(text: str) -> list[Cut]:
    """The pieces of a text between tabs and ITEM."""
    found, part, start = [], 0, 0
    for mark in CUT.finditer(text):
        found.append((part, start, text[start : mark.start()]))
        part, start = part + (mark[0] == PART), mark.end()
    return [*found, (part, start, text[start:])]


def train_source(texts: Iterable[str], kinds: Sequence[str], options: TokenizerOptions) -> SourceTokenizer:
    """Learn the tokens of sources of one part or of several; raises DataError if there is nothing to learn from.

    The texts are gone through once for each part.
    """
    if len(kinds) == 1:
        return train_tokenizer(texts, options._replace(kind=kinds[0]))
    inner = {}
    for kind in dict.fromkeys(kinds):
        parts = [number for number, own in enumerate(kinds) if own == kind]
        lines = itertools.chain.from_iterable(texts_of_parts(texts, [number], len(kinds)) for number in parts)
        inner[kind] = train_tokenizer(lines, options._replace(kind=kind))
    return Parts(kinds, inner)
