"""What outputs and scores are as text, whatever engine found them: sources cut, tokens joined, words linked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

import numpy as np

from mirada.config.options import DataConfig, SearchConfig
from mirada.data.fitting import Truncation, truncate
from mirada.data.parts import SourceTokenizer
from mirada.data.rows import PART, json_source, parse_object
from mirada.data.tokenizer import Piece, Tokenizer
from mirada.data.vocabulary import SPECIAL_TOKENS, UNK
from mirada.errors import ConfigError, DataError

END = SPECIAL_TOKENS[3]
WIDEST = 64  # characters a token, at most, that are looked at in a source that is too long


@dataclass(frozen=True)
class Translation:
    """One output of one source, with what it was made from. Log-probabilities are natural."""

    text: str
    score: float  # log_probability / ((5 + n) / 6)^α
    log_probability: float
    finished: bool  # False: the limit was reached before </s>
    source_tokens: tuple[str, ...]  # with </s>
    source_words: tuple[int, ...]  # the word that each source token belongs to; none for </s>
    tokens: tuple[str, ...]  # with </s> where it was produced
    token_log_probabilities: tuple[float, ...]  # one a token
    attention: np.ndarray | None = field(default=None, compare=False)  # [tokens, source_tokens]
    unknown_words: int = 0  # words of the source with a token that the vocabulary does not hold


EMPTY = Translation("", 0.0, 0.0, True, (END,), (), (END,), (0.0,))


@dataclass(frozen=True)
class Scored:
    """A given pair under a model."""

    log_probability: float
    source_tokens: tuple[str, ...]
    tokens: tuple[str, ...]
    token_log_probabilities: tuple[float, ...]
    attention: np.ndarray | None = field(default=None, compare=False)  # [tokens, source_tokens]
    heads: np.ndarray | None = field(default=None, compare=False)  # [layers, heads, tokens, source_tokens]


class Found(Protocol):
    """One output as ids: what a search finds."""

    @property
    def tokens(self) -> tuple[int, ...]:
        """Ids, without </s>."""

    @property
    def log_probability(self) -> float:
        """Sum over the tokens, and </s> when finished."""

    @property
    def score(self) -> float:
        """log_probability / ((5 + n) / 6)^α."""

    @property
    def token_log_probabilities(self) -> tuple[float, ...]:
        """One a token, and one for </s> when finished."""

    @property
    def finished(self) -> bool:
        """Whether </s> was produced."""


class Limit(NamedTuple):
    """At most so many tokens of a source, which of them stay, and the option that says so."""

    most: int
    how: Truncation = "first"
    option: str = "max_input_length"


def input_limit(data: DataConfig, max_input_length: int) -> Limit:
    """What sources are cut to: as in training where it cut them, else to max_input_length."""
    if data.truncate_source == "none" or max_input_length < data.max_length:
        return Limit(max_input_length)
    return Limit(data.max_length, data.truncate_source, "max_length")


def source_text(text: str, data: DataConfig, where: str) -> str:
    """A source as the model reads it: of one that was trained on several JSON keys an object may name the parts.

    Raises DataError, naming `where`, for an object that does not hold them.
    """
    record = text.strip()
    if not (data.by_keys and data.source_parts > 1 and record[:1] == "{" and record[-1:] == "}" and PART not in text):
        return text
    return json_source(parse_object(text, where) or {}, data.source_keys, where)


def output_limit(source_tokens: int, options: SearchConfig) -> int:
    """Most tokens of an output, </s> not counted: of this sentence alone, never of the batch it happens to be in."""
    ratio = 2.0 if options.max_length_ratio is None else options.max_length_ratio
    offset = 10 if options.max_length_offset is None else options.max_length_offset
    by_source = int(ratio * source_tokens) + offset
    return max(1, options.max_output_length or by_source, options.min_output_length)


def check_texts(texts: Sequence[str], names: str = "texts", name: str = "text") -> None:
    """Raise DataError for one text, whose letters would be taken for texts, and for what is no text."""
    if isinstance(texts, str):
        raise DataError(f"expected a list of {names}, got one {name}; write [{name}]")
    for number, text in enumerate(texts, start=1):
        if not isinstance(text, str):
            raise DataError(f"{name} {number} is {type(text).__name__}, not a string")


def check_batch(size: int | None) -> None:
    """Raise ConfigError for a batch of nothing."""
    if size is not None and size < 1:
        raise ConfigError(f"batch_size is {size}; it must be at least 1")


def source_pieces(
    tokenizer: SourceTokenizer, texts: Sequence[str], limit: Limit, *, first: int, warn: Callable[[str], None]
) -> list[list[Piece]]:
    """Tokens of each source, cut to the limit; of a text far longer than that the rest is not even read.

    `first` is the number of the first text, for the warnings.
    """
    most, how = limit.most, limit.how
    rows = tokenizer.pieces(["".join(truncate(text, WIDEST * most, how)) for text in texts])
    for number, (text, row) in enumerate(zip(texts, rows, strict=True), start=first + 1):
        if len(text) > WIDEST * most:
            kept = min(most, len(row))
            warn(f"line {number}: {len(text)} characters, cut to {kept} tokens ({limit.option} {most})")
        elif len(row) > most:
            warn(f"line {number}: {len(row)} tokens, cut to {limit.option} {most}")
    return [truncate(row, most, how) for row in rows]


def translation(
    tokenizer: Tokenizer,
    source: list[Piece],
    found: Found,
    attention: np.ndarray | None,
    *,
    replace_unk: bool,
    start: Sequence[Piece] = (),
) -> Translation:
    """An output as text, by the target's tokeniser; `attention` is `[tokens, S]`, padding of the source included.

    `start`: what the output was to begin with, whose unknown words are written as they were given.
    """
    if attention is not None:
        attention = attention[:, : len(source) + 1]
    tokens = [tokenizer.token(i) if i < len(tokenizer) else source[i - len(tokenizer)].text for i in found.tokens]
    if replace_unk and attention is not None:
        tokens = replaced(tokens, found.tokens, source, attention)
    for place, (piece, _) in enumerate(zip(start, found.tokens, strict=False)):
        tokens[place] = piece.text if piece.id == UNK else tokens[place]
    return Translation(
        tokenizer.join(tokens),
        found.score,
        found.log_probability,
        found.finished,
        (*(piece.text for piece in source), END),
        tuple(piece.word for piece in source),
        (*tokens, END) if found.finished else tuple(tokens),
        found.token_log_probabilities,
        attention,
        len({piece.word for piece in source if piece.id == UNK}),
    )


def scored(
    source: list[Piece],
    target: list[Piece],
    log_p: tuple[float, ...],
    *,
    attention: np.ndarray | None = None,
    heads: np.ndarray | None = None,
) -> Scored:
    """A given pair with the log-probabilities of its target's tokens and </s>."""
    names = [(*(piece.text for piece in side), END) for side in (source, target)]
    return Scored(sum(log_p), names[0], names[1], log_p, attention, heads)


def replaced(tokens: list[str], ids: tuple[int, ...], source: list[Piece], attention: np.ndarray) -> list[str]:
    """Each <unk> becomes the surface of the most attended real source token; never </s>, never padding."""
    best = attention[:, : len(source)].argmax(1)  # [n]
    return [source[best[t]].text if i == UNK else token for t, (i, token) in enumerate(zip(ids, tokens, strict=True))]


def word_links(found: Translation, tokenizer: Tokenizer) -> str:
    """Pharaoh links i-j (source-output, from 0) of an output with attention: each word's most attended word.

    Subword pieces are joined into words; words and characters stand for themselves. </s> takes no part.
    """
    from mirada.evaluation.alignment import attention_links, format_links, word_weights

    source, target = found.source_tokens[:-1], found.tokens[: len(found.tokens) - found.finished]
    if found.attention is None or not source or not target:
        return ""
    weights = found.attention[: len(target), : len(source)]
    words = word_weights(weights, found.source_words, tokenizer.words(target))
    return format_links(attention_links(words))
