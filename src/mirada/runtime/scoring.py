"""Forced decoding: the log-probabilities of given outputs, step by step."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mirada.data.vocabulary import BOS, EOS
from mirada.runtime.engine import Engine, Wanted

Forced = tuple[tuple[float, ...], np.ndarray | None]  # one a token and one for </s>; the attention [n, S]


def force(
    engine: Engine,
    sources: Sequence[list[int]],
    targets: Sequence[list[int]],
    copies: Sequence[list[int]] = (),
    *,
    with_attention: bool = False,
) -> list[Forced]:
    """Score given targets (without </s>) for one batch of sources (with </s>), as a search would score them."""
    batch, given = engine.read(sources, copies), [[*target, EOS] for target in targets]
    tokens, rows = np.full(len(given), BOS), np.arange(len(given))
    log_p: list[np.ndarray] = []
    attentions: list[np.ndarray] = []
    for t in range(max(map(len, given))):
        step = batch.step(tokens, rows, Wanted(0, with_attention))
        tokens = np.array([ids[t] if t < len(ids) else EOS for ids in given])
        log_p.append(np.take_along_axis(np.asarray(step.log_probabilities), tokens[:, None], 1)[:, 0])
        attentions += [] if step.attention is None else [step.attention]
    own, seen = np.stack(log_p, 1), np.stack(attentions, 1) if attentions else None  # [B, T], [B, T, S]
    return [
        (
            tuple(map(float, own[i, : len(ids)])),
            None if seen is None else seen[i, : len(ids), : len(sources[i])],
        )
        for i, ids in enumerate(given)
    ]
