"""The four tokens every vocabulary begins with."""

from __future__ import annotations

UNK, PAD, BOS, EOS = 0, 1, 2, 3
SPECIAL_TOKENS = ("<unk>", "<pad>", "<s>", "</s>")
