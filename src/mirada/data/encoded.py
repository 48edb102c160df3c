"""Pairs as ids, in memory or in Arrow files, and how long they are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from mirada.data.shards import MappedIds


class Encoded(NamedTuple):
    """Pairs as ids: sources end with </s>, targets are bare."""

    sources: Sequence[Sequence[int]]
    targets: Sequence[Sequence[int]]
    copies: list[list[int]] | None = None  # what each source token would write (copying.py), for models that copy
    own: list[dict[int, str]] | None = None  # the texts of the ids that only their source has
    others: Sequence[Sequence[Sequence[int]]] = ()  # each source as the further models of an ensemble read it


def pair_lengths(pairs: Encoded) -> np.ndarray:
    """Lengths `[N, 2]` of sources and of targets with </s>, in 8 bytes a pair."""
    lengths = np.empty((len(pairs.sources), 2), dtype=np.int32)
    for side, rows in enumerate((pairs.sources, pairs.targets)):
        lengths[:, side] = rows.lengths() if isinstance(rows, MappedIds) else np.fromiter(map(len, rows), np.int32)
    lengths[:, 1] += 1
    return lengths
