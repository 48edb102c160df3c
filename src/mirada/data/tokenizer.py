"""Text to ids and back: BPE or unigram subwords, words, characters (the Rust library `tokenizers`, one JSON file).

Subwords follow SentencePiece's habit: a piece that begins a word carries `▁`, so text comes back by joining pieces.
Punctuation stands apart. A special token's name in a text is text: it never becomes the special token. How the
kinds are made of the library's parts: recipes.py.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from mirada.data.beginnings import Beginning, Piece, Rest, Spelling, opened
from mirada.data.bpe_dropout import Dropping, cut_text, merges_of
from mirada.data.recipes import (
    BLOCK,
    KINDS,
    RESERVED,
    SPACE,
    SPACED,
    TokenizerOptions,
    normalizer,
    pre_tokenizer,
    recipes,
    trainer,
    untrained,
    without_added,
)
from mirada.data.rows import SURROGATE
from mirada.data.sentencepiece import is_sentencepiece
from mirada.data.vocabulary import EOS, SPECIAL_TOKENS, UNK
from mirada.errors import DataError, ModelFolderError
from mirada.files import open_regular, write_text

__all__ = ["Piece", "Tokenizer", "TokenizerOptions", "train_tokenizer"]

MOST_BYTES = 1 << 28
OTHERS = "not made by mirada for {kind}; its normalisation, splitting or settings are others"
ESCAPED = re.compile(rf"\A\\(?={RESERVED}\Z)")


class Tokenizer:
    """Ids for texts of one side. `kind` is bpe, unigram, word, char or features."""

    def __init__(self, inner: Any, kind: str):
        self._inner, self.kind = inner, kind

    def __len__(self) -> int:
        """Entries of the vocabulary, the four special ones included."""
        return int(self._inner.get_vocab_size())

    def encode(self, texts: Sequence[str], dropping: Dropping | None = None) -> list[list[int]]:
        """Ids of each text, without special tokens; an empty or blank text has none.

        `dropping` leaves out merges of bpe at random (BPE dropout); other kinds know no merges.
        """
        if dropping and self.kind == "bpe":
            merges = merges_of(self._inner)
            return [[_plain(i) for i in cut_text(text, self._inner, merges, dropping)] for text in texts]
        return [[_plain(i) for i in encoding.ids] for encoding in self._encodings(texts)]

    def pieces(self, texts: Sequence[str]) -> list[list[Piece]]:
        """The tokens of each text with their surface: `encode` with everything a reader wants to see."""
        return [self._pieces(text, encoding) for text, encoding in zip(texts, self._encodings(texts), strict=True)]

    def _encodings(self, texts: Sequence[str]) -> list[Any]:
        """What the library makes of texts; raises DataError for what is no text (half a surrogate pair, None)."""
        try:
            if len(texts) == 1:  # several are handed to threads of the library, which must be woken
                return [self._inner.encode(texts[0], add_special_tokens=False)]
            return list(self._inner.encode_batch(list(texts), add_special_tokens=False))
        except TypeError:
            for number, text in enumerate(texts, start=1):
                if not isinstance(text, str) or SURROGATE.search(text):
                    raise DataError(f"text {number} is no text that Unicode can write: {text!r:.60}") from None
            raise

    def _pieces(self, text: str, encoding: Any) -> list[Piece]:
        ids, offsets = [_plain(i) for i in encoding.ids], encoding.offsets  # made anew each time they are asked for
        spans = zip(ids, encoding.tokens, offsets, strict=True)
        shown = [token if i != UNK else self._surface(text[start:end]) or token for i, token, (start, end) in spans]
        parts = zip(ids, shown, self.words(shown), offsets, strict=True)
        return [Piece(i, token if i != UNK else token.strip() or token, word, span) for i, token, word, span in parts]

    def _surface(self, text: str) -> str:
        """A piece of a text as a token that is joined to others: a block in it is no blank."""
        return text.replace(SPACE, BLOCK) if self.kind in SPACED else text

    def words(self, tokens: Sequence[str]) -> list[int]:
        """The unit each token belongs to: subwords are joined into blank-separated words, others stand alone."""
        if self.kind in ("word", "char", "features"):
            return list(range(len(tokens)))
        starts = [i == 0 or token[:1] in (SPACE, " ") for i, token in enumerate(tokens)]
        return [count - 1 for count in itertools.accumulate(starts)]

    def token(self, index: int) -> str:
        """The vocabulary's entry at `index`."""
        return str(self._inner.id_to_token(index))

    def find(self, token: str) -> int | None:
        """The entry of a token's text; None for what is no ordinary entry."""
        index = self._inner.token_to_id(token)
        return index if index is not None and index > EOS else None

    @cached_property
    def spelling(self) -> Spelling:
        """The vocabulary's tokens by what they spell."""
        tokens = [self.token(i) for i in range(len(self))]
        return Spelling(tokens, first=EOS + 1, whole=self.kind not in ("bpe", "unigram"))

    def beginning(self, text: str) -> Beginning:
        """How outputs begin that begin with this text, wherever in a word it ends; raises DataError as `pieces`."""
        [pieces] = self.pieces([text]) if text else [[]]
        if pieces and text[-1].isspace():
            blank = self.kind in SPACED and self.spelling.next(SPACE)
            return Beginning(pieces, Rest(SPACE, self.spelling) if blank else None)
        if not pieces or self.kind == "char":
            return Beginning(pieces)
        words = self._inner.pre_tokenizer.pre_tokenize_str(self._inner.normalizer.normalize_str(text))
        return opened(pieces, words[-1][0], self.spelling, unknown=UNK)

    def decode(self, ids: Iterable[int]) -> str:
        """Text of ids; special tokens other than <unk> are left out."""
        return self.join(self.token(i) for i in ids if i == UNK or i > EOS)

    def join(self, tokens: Iterable[str]) -> str:
        """Text of tokens, some of which may be surface forms put in place of <unk>."""
        if self.kind not in SPACED:
            bare = (ESCAPED.sub("", token) for token in tokens)
            return (" " if self.kind == "word" else "").join(bare).strip()
        return "".join(tokens).replace(SPACE, " ").replace(BLOCK, SPACE).strip()

    def save(self, path: Path) -> None:
        """Write the tokeniser as one JSON file (the format of the library `tokenizers`)."""
        write_text(path, self._inner.to_str(pretty=True))

    def content(self) -> Any:
        """The same as a value of JSON."""
        return json.loads(self._inner.to_str())

    @staticmethod
    def load(path: Path, kind: str) -> Tokenizer:
        """Read a tokeniser; raises ModelFolderError if the file is missing, damaged, or not one that mirada writes."""
        try:
            return Tokenizer(checked_inner(read_content(path), kind), kind)
        except ValueError as error:
            raise ModelFolderError(f"{path}: {error}") from None


def read_content(path: Path) -> Any:
    """The JSON of a tokeniser file; raises ModelFolderError if there is none."""
    if not path.is_file():
        raise ModelFolderError(f"{path}: missing; the folder holds no complete model")
    size = path.stat().st_size
    if size > MOST_BYTES:
        raise ModelFolderError(f"{path}: {size:,} bytes, more than any tokeniser has (at most {MOST_BYTES:,})")
    try:
        with open_regular(path) as stream:
            return json.loads(stream.read().decode("utf-8"))
    except OSError as error:
        raise ModelFolderError(f"{path}: cannot be read ({error.strerror})") from None
    except (ValueError, RecursionError) as error:
        raise ModelFolderError(f"{path}: not a tokeniser file ({_first_line(error)})") from None


def checked_inner(content: Any, kind: str) -> Any:
    """The library's tokeniser of what a file holds; raises ValueError if it is not as `train_tokenizer` makes it.

    A file from elsewhere may hold patterns that take for ever, padding, entries outside the vocabulary or line ends.
    """
    from tokenizers import Tokenizer as Inner

    model = content.get("model") if isinstance(content, dict) else None
    if isinstance(model, dict) and any(model.get(name) for name in ("continuing_subword_prefix", "end_of_word_suffix")):
        raise ValueError(OTHERS.format(kind=kind))  # with such pieces the library panics
    try:
        inner = Inner.from_str(json.dumps(content))
        names = [inner.id_to_token(i) for i in range(len(SPECIAL_TOKENS))]
        problem = _strange(inner, kind)
    except BaseException as error:  # the library raises bare Exception for bad JSON, and panics, which is no Exception
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        raise ValueError(f"not a tokeniser file ({_first_line(error)})") from None
    if names != list(SPECIAL_TOKENS):
        raise ValueError(f"its first four entries are not {' '.join(SPECIAL_TOKENS)}")
    if problem:
        raise ValueError(problem)
    return inner


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]


def _strange(inner: Any, kind: str) -> str:
    """What in a tokeniser is not as `train_tokenizer` makes it, or an empty string."""
    if kind not in KINDS:
        return f"the options call its kind {kind!r}, expected {', '.join(KINDS)}"
    name = type(inner.model).__name__
    if name != KINDS[kind]:
        return f"a tokeniser of the kind {name}, but the options say {kind}"
    entries = inner.get_vocab()  # first, for the library counts up to the largest number when it tells its settings
    if sorted(entries.values()) != list(range(len(entries))) or len(entries) != inner.get_vocab_size():
        return "its entries are not numbered from 0 without a gap"
    if any("\n" in entry for entry in entries):
        return "one of its entries holds a line end"
    normalizers, cuts = recipes(kind)
    own = [_settings(inner.model), inner.post_processor, inner.decoder, inner.padding, inner.truncation]
    ours = (
        inner.normalizer is not None
        and inner.normalizer.__getstate__() in normalizers
        and inner.pre_tokenizer is not None
        and inner.pre_tokenizer.__getstate__() in cuts
    )
    if (
        not (ours or (kind == "unigram" and is_sentencepiece(inner)))
        or own != [_settings(untrained(kind)), None, None, None, None]
        or inner.get_added_tokens_decoder()
    ):
        return OTHERS.format(kind=kind)
    return ""


def _settings(model: Any) -> dict[str, Any]:
    """A model of the library without what it learned; `unk_id`, which only training sets, is that of <unk>."""
    state = json.loads(model.__getstate__())
    return {key: value for key, value in state.items() if key not in ("vocab", "merges")} | {"unk_id": UNK}


def train_tokenizer(lines: Iterable[str], options: TokenizerOptions) -> Tokenizer:
    """Learn a tokeniser from lines. Raises DataError if there is nothing to learn from.

    The same lines give the same bpe, word and char tokeniser; unigram sums in parallel and may differ in a few pieces.
    """
    from tokenizers import Tokenizer as Inner

    inner = Inner(untrained(options.kind))
    inner.normalizer = normalizer(options)
    inner.pre_tokenizer = pre_tokenizer(options.kind, split_digits=options.split_digits)
    try:
        inner.train_from_iterator(lines, trainer(options))
    except Exception as error:  # the library raises bare Exception
        if "not large enough" not in str(error):
            raise
        raise DataError(
            f"vocab_size {options.vocab_size} is too small for the different characters of the text, all of which "
            f"{options.kind} keeps; raise vocab_size, or use tokenizer bpe or char"
        ) from None
    if inner.get_vocab_size() <= len(SPECIAL_TOKENS):
        raise DataError("no text to learn a vocabulary from: every line is blank")
    return Tokenizer(without_added(inner), options.kind)


def _plain(index: int) -> int:
    return index if index > EOS else UNK
