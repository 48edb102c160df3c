"""Options of the data: where the pairs are and how they become tokens."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from mirada.config.types import LONGEST, Block, Count, VocabSize

TokenKind = Literal["auto", "bpe", "unigram", "word", "char"]


class DataConfig(Block):
    """Where the pairs are and how they become tokens."""

    src: str | None = Field(None, description="source side of the training pairs, one sentence a line (.gz, .xz too)")
    tgt: str | None = Field(None, description="target side, line by line with --src")
    tsv: str | None = Field(None, description="training pairs as tab-separated columns, instead of --src/--tgt")
    jsonl: str | None = Field(None, description="training pairs as JSON lines, instead of --src/--tgt")
    dev_src: str | None = Field(None, description="source side of the development pairs")
    dev_tgt: str | None = Field(None, description="target side of the development pairs")
    dev_tsv: str | None = Field(None, description="development pairs as tab-separated columns")
    dev_jsonl: str | None = Field(None, description="development pairs as JSON lines")
    dev_size: Count = Field(1000, description="pairs split off by seed when no dev set is given (at most a tenth)")
    source_column: Count = Field(1, description="TSV column of the source, counted from 1")
    target_column: Count = Field(2, description="TSV column of the target, counted from 1")
    source_key: str = Field("source", description="JSON key of the source; a.b is key b in the object under a")
    target_key: str = Field("target", description="JSON key of the target, likewise")
    tokenizer: TokenKind = Field("auto", description="both sides' tokens: auto, bpe, unigram, word, char")
    source_tokenizer: TokenKind | None = Field(None, description="the source's tokens, where they differ")
    target_tokenizer: TokenKind | None = Field(None, description="the target's tokens, where they differ")
    vocab_size: VocabSize | None = Field(
        None, description="most entries of a vocabulary (default: subwords by the number of pairs, up to 8,000)"
    )
    vocab_min_freq: Count = Field(1, description="words and characters seen less often become <unk>")
    share_vocab: bool = Field(False, description="one vocabulary learned on both sides")
    normalize: Literal["nfc", "nfkc", "none"] = Field("nfc", description="Unicode form, in training and in use")
    max_length: int = Field(256, ge=2, le=LONGEST, description="pairs with more tokens on a side are left out, counted")
