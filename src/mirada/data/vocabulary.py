"""The four tokens every vocabulary begins with."""

from __future__ import annotations

UNK, PAD, BOS, EOS = 0, 1, 2, 3
# No output contains these two, so no probability is given to them: in training, on dev, in scores and in searches.
NEVER_WRITTEN = slice(PAD, BOS + 1)
SPECIAL_TOKENS = ("<unk>", "<pad>", "<s>", "</s>")
