"""Forced decoding: the log-probabilities of given outputs, normalised as the search normalises them."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from mirada.data.batches import Encoded, collate
from mirada.models.base import Network
from mirada.search.ensemble import Ensemble
from mirada.search.step import producible


class Forced(NamedTuple):
    """A given output under a model: natural logs, one a token and one for </s>."""

    token_log_probabilities: list[float]
    attention: Tensor | None  # [n, S]
    heads: Tensor | None = None  # [L, heads, n, S]


def force(
    model: Network | Ensemble,
    pairs: Encoded,
    device: torch.device,
    *,
    with_attention: bool = False,
    with_heads: bool = False,
) -> list[Forced]:
    """Score given targets (without </s>) for one batch of sources (with </s>), as the search would score them.

    `with_heads` also gives the Transformer's attention layer by layer and head by head.
    """
    batch = collate(pairs, range(len(pairs.sources)), device)
    with torch.inference_mode():
        attention_too = with_attention or with_heads
        known = (batch.source, batch.lengths, batch.target_in, batch.copies)
        outputs: Any = model.forward(*known, with_attention=attention_too)
        logits = producible(model.logits(outputs.hidden, outputs.copying).flatten(0, 1))  # [B·T, V]
        given = logits.gather(1, batch.target_out.reshape(-1, 1))[:, 0] - logits.logsumexp(-1)
        log_p = given.view_as(batch.target_out)  # [B, T]
    forced = []
    for i, (source, target) in enumerate(zip(pairs.sources, pairs.targets, strict=True)):
        rows, columns = len(target) + 1, len(source)
        attention = None if outputs.attention is None else outputs.attention[i, :rows, :columns].cpu()
        heads = outputs.heads[i, :, :, :rows, :columns].cpu() if with_heads and outputs.heads is not None else None
        forced.append(Forced(log_p[i, :rows].tolist(), attention, heads))
    return forced
