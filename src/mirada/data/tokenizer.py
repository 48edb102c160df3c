"""Text to ids and back: BPE or unigram subwords, words, characters (the Rust library `tokenizers`, one JSON file).

Subwords follow SentencePiece's habit: a piece that begins a word carries `▁`, so text comes back by joining pieces.
Punctuation stands apart. A special token's name in a text is text: it never becomes the special token.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from mirada.data.rows import SURROGATE
from mirada.data.vocabulary import EOS, SPECIAL_TOKENS, UNK
from mirada.errors import DataError, ModelFolderError
from mirada.files import write_text

SPACE = "▁"
SYMBOL_TYPES = 200  # at most so many distinct blank-separated symbols, each seen often: phonemes, tags, digits
OFTEN = 20
MODELS = {"bpe": "BPE", "unigram": "Unigram", "word": "WordLevel", "char": "WordLevel"}  # the library's names
FORMS = ("nfc", "nfkc", "none")
MOST_BYTES = 1 << 28


class Piece(NamedTuple):
    """One token of a text."""

    id: int
    text: str  # as the vocabulary has it; for <unk> the surface form
    word: int  # index of the unit that links and maps join it into: a word for subwords, else the token itself
    span: tuple[int, int]  # where it stands in the text, [start, end) in characters, a blank that it carries included


class TokenizerOptions(NamedTuple):
    """How a tokeniser is learned: kind, most entries, fewest occurrences, Unicode form."""

    kind: str
    vocab_size: int
    min_freq: int = 1
    normalize: str = "nfc"


class Tokenizer:
    """Ids for texts of one side. `kind` is bpe, unigram, word or char."""

    def __init__(self, inner: Any, kind: str):
        self._inner, self.kind = inner, kind

    def __len__(self) -> int:
        """Entries of the vocabulary, the four special ones included."""
        return int(self._inner.get_vocab_size())

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """Ids of each text, without special tokens; an empty or blank text has none."""
        return [[_plain(i) for i in encoding.ids] for encoding in self._encodings(texts)]

    def pieces(self, texts: Sequence[str]) -> list[list[Piece]]:
        """The tokens of each text with their surface: `encode` with everything a reader wants to see."""
        return [self._pieces(text, encoding) for text, encoding in zip(texts, self._encodings(texts), strict=True)]

    def _encodings(self, texts: Sequence[str]) -> list[Any]:
        """What the library makes of texts; raises DataError for what is no text (half a surrogate pair, None)."""
        try:
            return list(self._inner.encode_batch(list(texts), add_special_tokens=False))
        except TypeError:
            for number, text in enumerate(texts, start=1):
                if not isinstance(text, str) or SURROGATE.search(text):
                    raise DataError(f"text {number} is no text that Unicode can write: {text!r:.60}") from None
            raise

    def _pieces(self, text: str, encoding: Any) -> list[Piece]:
        ids = [_plain(i) for i in encoding.ids]
        spans = zip(ids, encoding.tokens, encoding.offsets, strict=True)
        shown = [token if i != UNK else text[start:end] or token for i, token, (start, end) in spans]
        parts = zip(ids, shown, self.words(shown), encoding.offsets, strict=True)
        return [Piece(i, token if i != UNK else token.strip() or token, word, span) for i, token, word, span in parts]

    def words(self, tokens: Sequence[str]) -> list[int]:
        """The unit each token belongs to: subwords are joined into blank-separated words, others stand alone."""
        if self.kind in ("word", "char"):
            return list(range(len(tokens)))
        starts = [i == 0 or token[:1] in (SPACE, " ") for i, token in enumerate(tokens)]
        return [count - 1 for count in itertools.accumulate(starts)]

    def token(self, index: int) -> str:
        """The vocabulary's entry at `index`."""
        return str(self._inner.id_to_token(index))

    def decode(self, ids: Iterable[int]) -> str:
        """Text of ids; special tokens other than <unk> are left out."""
        return self.join(self.token(i) for i in ids if i == UNK or i > EOS)

    def join(self, tokens: Iterable[str]) -> str:
        """Text of tokens, some of which may be surface forms put in place of <unk>."""
        if self.kind == "word":
            return " ".join(tokens)
        return "".join(tokens).replace(SPACE, " ").strip()

    def save(self, path: Path) -> None:
        """Write the tokeniser as one JSON file (the format of the library `tokenizers`)."""
        write_text(path, self._inner.to_str(pretty=True))

    @staticmethod
    def load(path: Path, kind: str) -> Tokenizer:
        """Read a tokeniser; raises ModelFolderError if the file is missing, damaged, or not one that mirada writes."""
        from tokenizers import Tokenizer as Inner

        if not path.is_file():
            raise ModelFolderError(f"{path}: missing; the folder holds no complete model")
        try:
            inner = Inner.from_str(_text(path))
        except ModelFolderError:
            raise
        except OSError as error:
            raise ModelFolderError(f"{path}: cannot be read ({error.strerror})") from None
        except Exception as error:  # the library raises bare Exception for bad JSON
            reason = (str(error).splitlines() or [type(error).__name__])[0]
            raise ModelFolderError(f"{path}: not a tokeniser file ({reason})") from None
        if [inner.id_to_token(i) for i in range(4)] != list(SPECIAL_TOKENS):
            raise ModelFolderError(f"{path}: its first four entries are not {' '.join(SPECIAL_TOKENS)}")
        if problem := _strange(inner, kind):
            raise ModelFolderError(f"{path}: {problem}")
        return Tokenizer(inner, kind)


def _text(path: Path) -> str:
    size = path.stat().st_size
    if size > MOST_BYTES:
        raise ModelFolderError(f"{path}: {size:,} bytes, more than any tokeniser has (at most {MOST_BYTES:,})")
    return path.read_text(encoding="utf-8")


def _strange(inner: Any, kind: str) -> str:
    """What in a tokeniser is not as `train_tokenizer` makes it, or an empty string.

    A file from elsewhere may hold patterns that take for ever, padding, entries outside the vocabulary or line ends.
    """
    if kind not in MODELS:
        return f"the options call its kind {kind!r}, expected {', '.join(MODELS)}"
    name = type(inner.model).__name__
    if name != MODELS[kind]:
        return f"a tokeniser of the kind {name}, but the options say {kind}"
    entries = inner.get_vocab()  # first, for the library counts up to the largest number when it tells its settings
    if sorted(entries.values()) != list(range(len(entries))) or len(entries) != inner.get_vocab_size():
        return "its entries are not numbered from 0 without a gap"
    if any("\n" in entry for entry in entries):
        return "one of its entries holds a line end"
    known = {bytes(_normalizer(TokenizerOptions(kind, 0, normalize=form)).__getstate__()) for form in FORMS}
    own = [_settings(inner.model), inner.post_processor, inner.decoder, inner.padding, inner.truncation]
    if (
        inner.normalizer is None
        or inner.normalizer.__getstate__() not in known
        or inner.pre_tokenizer is None
        or inner.pre_tokenizer.__getstate__() != _pre_tokenizer(kind).__getstate__()
        or own != [_settings(_untrained(kind)), None, None, None, None]
        or inner.get_added_tokens_decoder()
    ):
        return f"not made by mirada for {kind}; its normalisation, splitting or settings are others"
    return ""


def _settings(model: Any) -> dict[str, Any]:
    """A model of the library without what it learned; `unk_id`, which only training sets, is that of <unk>."""
    import json

    state = json.loads(model.__getstate__())
    return {key: value for key, value in state.items() if key not in ("vocab", "merges")} | {"unk_id": UNK}


def choose_kind(lines: Sequence[str]) -> str:
    """The kind that suits a side: characters for single words, words for a small set of symbols, else BPE."""
    counts = Counter(itertools.chain.from_iterable(line.split() for line in lines))
    total = sum(counts.values())
    if total <= 1.5 * len(lines):
        return "char"
    if len(counts) <= SYMBOL_TYPES and total >= OFTEN * len(counts) and max(map(len, counts)) <= 5:
        return "word"
    return "bpe"


def choose_vocab_size(lines: int) -> int:
    """Entries for subwords where none are asked for: fewer for little data (Ding et al. 2019), 8,000 at most."""
    return max(500, min(8000, lines // 4))


def train_tokenizer(lines: Iterable[str], options: TokenizerOptions) -> Tokenizer:
    """Learn a tokeniser from lines. Raises DataError if there is nothing to learn from.

    The same lines give the same bpe, word and char tokeniser; unigram sums in parallel and may differ in a few pieces.
    """
    from tokenizers import Tokenizer as Inner

    inner = Inner(_untrained(options.kind))
    inner.normalizer = _normalizer(options)
    inner.pre_tokenizer = _pre_tokenizer(options.kind)
    try:
        inner.train_from_iterator(lines, _trainer(options))
    except Exception as error:  # the library raises bare Exception
        if "not large enough" not in str(error):
            raise
        raise DataError(
            f"vocab_size {options.vocab_size} is too small for the different characters of the text, all of which "
            f"{options.kind} keeps; raise vocab_size, or use tokenizer bpe or char"
        ) from None
    if inner.get_vocab_size() <= len(SPECIAL_TOKENS):
        raise DataError("no text to learn a vocabulary from: every line is blank")
    return Tokenizer(_without_added(inner), options.kind)


def _untrained(kind: str) -> Any:
    from tokenizers import models

    unk = SPECIAL_TOKENS[UNK]
    if kind == "unigram":
        return models.Unigram()
    return models.BPE(unk_token=unk) if kind == "bpe" else models.WordLevel(unk_token=unk)


def _normalizer(options: TokenizerOptions) -> Any:
    from tokenizers import Regex, normalizers

    steps: list[Any] = [normalizers.Strip(), normalizers.Replace(Regex(r"\s+"), " ")]
    if options.normalize != "none":
        steps.insert(0, normalizers.NFC() if options.normalize == "nfc" else normalizers.NFKC())
    if options.kind == "char":
        steps.append(normalizers.Replace(" ", SPACE))
    return normalizers.Sequence(steps)


def _pre_tokenizer(kind: str) -> Any:
    from tokenizers import Regex, pre_tokenizers

    if kind == "word":
        return pre_tokenizers.WhitespaceSplit()
    if kind == "char":
        return pre_tokenizers.Split(Regex(r"[\s\S]"), "isolated")
    marks = pre_tokenizers.Split(Regex(rf"{SPACE}?(?!{SPACE})[\p{{P}}\p{{S}}]"), "isolated")  # with the ▁ before them
    return pre_tokenizers.Sequence([pre_tokenizers.Metaspace(SPACE, prepend_scheme="always"), marks])


def _trainer(options: TokenizerOptions) -> Any:
    from tokenizers import trainers

    special = list(SPECIAL_TOKENS)
    size, fewest = options.vocab_size, options.min_freq
    if options.kind == "bpe":
        return trainers.BpeTrainer(
            vocab_size=size, min_frequency=max(2, fewest), special_tokens=special, show_progress=False
        )
    if options.kind == "unigram":
        return trainers.UnigramTrainer(
            vocab_size=size, special_tokens=special, unk_token=special[UNK], show_progress=False
        )
    return trainers.WordLevelTrainer(vocab_size=size, min_frequency=fewest, special_tokens=special, show_progress=False)


def _without_added(inner: Any) -> Any:
    """Keep the special entries in the vocabulary, but let no text be read as one of them."""
    import json

    from tokenizers import Tokenizer as Inner

    content = json.loads(inner.to_str())
    content["added_tokens"] = []
    if content["model"]["type"] == "WordLevel":
        # Where a special token's name stood in the text as a word, the trainer gave it a second id and lost the first.
        known = content["model"]["vocab"]
        words = [word for word in sorted(known, key=known.get) if word not in SPECIAL_TOKENS]
        content["model"]["vocab"] = {word: i for i, word in enumerate([*SPECIAL_TOKENS, *words])}
    return Inner.from_str(json.dumps(content))


def _plain(index: int) -> int:
    return index if index > EOS else UNK
