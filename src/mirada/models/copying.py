"""Copying words of the source: the pointer-generator of See, Liu & Manning 2017, section 2.2, for any attention.

    p_gen = σ(w_cᵀ c_t + w_sᵀ s_t + w_xᵀ x_t + b)        P(w) = p_gen P_vocab(w) + (1 − p_gen) Σ_{j: x_j = w} α_tj

A sentence has a vocabulary of its own: the target's `V` words, and behind them id `V` + j for what stands at source
position j, where no entry of the vocabulary holds it (equal words: the first of their positions).
"""

from __future__ import annotations

from typing import NamedTuple, cast

import torch
from torch import Tensor, nn
from torch.nn.functional import pad

from mirada.data.vocabulary import NEVER_WRITTEN
from mirada.models.base import Memory


class Copying(NamedTuple):
    """How steps copy: whether they do, and from where."""

    gate: Tensor  # […] p_gen before the sigmoid
    weights: Tensor  # […, S] α_t
    ids: Tensor  # […, S] what each source position would write


class CopyGate(nn.Module):
    """p_gen = σ(w_cᵀ c_t + w_sᵀ s_t + w_xᵀ x_t + b) (equation 8): whether a step speaks for itself or copies."""

    def __init__(self, context_size: int, state_size: int, embedding_size: int):
        super().__init__()
        self.w = nn.Linear(context_size + state_size + embedding_size, 1)

    def forward(self, context: Tensor, state: Tensor, embedded: Tensor) -> Tensor:
        """Contexts `[…, H]`, states `[…, D]`, what the decoder read `[…, E]` → p_gen before the sigmoid `[…]`."""
        return cast(Tensor, self.w(torch.cat((context, state, embedded), -1)))[..., 0]


def copying(
    gate: CopyGate | None, read: tuple[Tensor, Tensor, Tensor], weights: Tensor, memory: Memory
) -> Copying | None:
    """What rows `[N, …]` or steps `[B, T, …]` copy, the rows of a sentence together; nothing without a gate.

    `read` are the contexts, the states and the embedded words of the steps.
    """
    if gate is None:
        return None
    if memory.copies is None:
        raise ValueError("a model that copies is told what each source position would write: encode(…, copies)")
    batch, width = memory.copies.shape
    every = weights.numel() // max(1, batch * width)
    ids = memory.copies[:, None].expand(batch, every, width).reshape(weights.shape)
    return Copying(gate(*read), weights, ids)


def mixture(logits: Tensor, copied: Copying) -> Tensor:
    """log P (equation 9) over vocabulary and source: `[…, V]` → `[…, V + S]`; −∞ for what no position holds.

    `<pad>` and `<s>`, which no output contains, have no part in P_vocab.
    """
    p_gen, p_copy = (gate.sigmoid()[..., None] for gate in (copied.gate, -copied.gate))  # 1 − p_gen has few digits left
    vocabulary = without_specials(logits).softmax(-1)
    p = pad(p_gen * vocabulary, (0, copied.weights.size(-1)))
    p = p.scatter_add(-1, copied.ids, p_copy * copied.weights)
    impossible = p == 0  # whose logarithm has no gradient
    return p.masked_fill(impossible, 1).log().masked_fill(impossible, -torch.inf)


def without_specials(logits: Tensor) -> Tensor:
    """Logits with −∞ for `<pad>` and `<s>`."""
    tokens = torch.arange(logits.size(-1), device=logits.device)
    return logits.masked_fill((tokens >= NEVER_WRITTEN.start) & (tokens < NEVER_WRITTEN.stop), -torch.inf)
