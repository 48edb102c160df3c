"""Tokenisers learned by SentencePiece, made of the library's parts: the same pieces for the same text.

A text is normalised by the table that the model brings (nmt_nfkc, nfkc, one with case folding, or none), blanks are
made one and taken off the ends, each becomes `▁`, one stands before the first word; then the likeliest pieces are
chosen. `▁` in a text is a blank, as in SentencePiece, and punctuation is not cut off.
"""

from __future__ import annotations

import base64
import binascii
import json
from typing import Any

import numpy as np

from mirada.data.recipes import SPACE

MOST_BYTES = 1 << 24  # of a table; the largest that SentencePiece brings has a quarter of a million
BLOCK_UNITS = 256  # the children of an entry of the table lie in one such block


def normalizer(charsmap: bytes) -> Any:
    """SentencePiece's normalisation with its table; raises ValueError for what is no table."""
    from tokenizers import Regex, normalizers

    check_charsmap(charsmap)
    blanks = [normalizers.Replace(Regex("^ +| +$"), ""), normalizers.Replace(Regex(" {2,}"), " ")]
    table = [normalizers.Precompiled(charsmap)] if charsmap else []
    return normalizers.Sequence([*table, *blanks])


def pre_tokenizer() -> Any:
    """Blanks as `▁`, one before the first word; pieces may reach over them if the model has such."""
    from tokenizers import pre_tokenizers

    return pre_tokenizers.Metaspace(SPACE, prepend_scheme="always", split=False)


def is_sentencepiece(inner: Any) -> bool:
    """Whether a tokeniser of the library normalises and splits as those that are made here."""
    if inner.pre_tokenizer is None or inner.pre_tokenizer.__getstate__() != pre_tokenizer().__getstate__():
        return False
    try:
        steps = json.loads(inner.normalizer.__getstate__())["normalizers"]
        charsmap = base64.b64decode(steps[0].get("precompiled_charsmap", ""), validate=True)
        return bool(normalizer(charsmap).__getstate__() == inner.normalizer.__getstate__())
    except (ValueError, KeyError, TypeError, AttributeError, IndexError, binascii.Error):
        return False


def check_charsmap(charsmap: bytes) -> None:
    """Raise ValueError unless a table leads nowhere outside itself: the library that reads it would panic.

    Its first four bytes say how long the trie is (a double array of 32-bit units); then come the replacements, each
    ended by a zero.
    """
    if not charsmap:
        return
    size = int.from_bytes(charsmap[:4], "little")
    replacements = charsmap[4 + size :]
    if len(charsmap) > MOST_BYTES or size % (4 * BLOCK_UNITS) or not size or 4 + size > len(charsmap):
        raise ValueError("its table of characters is damaged (sizes)")
    units = np.frombuffer(charsmap, "<u4", size // 4, 4).astype(np.int64)
    offsets = (units >> 10) << ((units & 512) >> 6)
    children = np.arange(len(units)) ^ offsets
    inner = units & (1 << 31) == 0  # the others are leaves
    if int((children[inner] | (BLOCK_UNITS - 1)).max()) >= len(units):
        raise ValueError("its table of characters is damaged (the trie leads outside)")
    leaves = units[children[inner & (units & 256 != 0)]] & ((1 << 31) - 1)
    ends = np.concatenate([[-1], np.flatnonzero(np.frombuffer(replacements, np.uint8) == 0)])
    if not np.isin(leaves, ends[:-1] + 1).all():
        raise ValueError("its table of characters is damaged (replacements)")
    try:
        replacements.decode("utf-8")
    except UnicodeDecodeError:
        raise ValueError("its table of characters is damaged (no text)") from None
