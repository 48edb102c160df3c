"""The four tokens every vocabulary begins with, and the one that parts a source."""

from __future__ import annotations

UNK, PAD, BOS, EOS = 0, 1, 2, 3
# No output contains these two, so no probability is given to them: in training, on dev, in scores and in searches.
NEVER_WRITTEN = slice(PAD, BOS + 1)
SPECIAL_TOKENS = ("<unk>", "<pad>", "<s>", "</s>")
SEP, SEP_TOKEN = 4, "<sep>"  # between the parts of a source that has several; elsewhere 4 is an ordinary entry
