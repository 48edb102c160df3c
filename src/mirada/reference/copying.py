"""Copying from the source: See, Liu & Manning 2017, section 2.2.

p_gen = σ(w_cᵀ c_t + w_sᵀ s_t + w_xᵀ x_t + b)    P(w) = p_gen P_vocab(w) + (1 − p_gen) Σ_{j: x_j = w} α_tj
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mirada.reference import Array, Named, Weights

UNK, PAD, BOS = 0, 1, 2  # <unk>, <pad> and <s> in every vocabulary
# For each source position the id that it would write, from V on one of the sentence's own; () for none.
Copies = Sequence[int]


def read_word(weights: Weights, word: int) -> Array:
    """E[word]; a copied word that no entry holds is read as <unk>."""
    table = weights["embedding.weight"]
    return np.asarray(table[word if word < len(table) else UNK])


def copied(weights: Weights, read: tuple[Array, Array, Array], alpha: Array, logits: Array, copies: Copies) -> Named:
    """Equations 8 and 9 from what a step read (c_t, s_t, x_t), its weights and its logits.

    `copy` is the probability of copying what stands at each source position, `p` has V + S numbers.
    """
    if not copies:
        return {}
    score = weights["copy_gate.w.weight"][0] @ np.concatenate(read) + weights["copy_gate.w.bias"][0]
    p_gen = 1 / (1 + np.exp(-score))
    words = [w for w in range(len(logits)) if w not in (PAD, BOS)]  # no output contains these two
    largest = max(logits[w] for w in words)
    total = sum(np.exp(logits[w] - largest) for w in words)
    p = np.zeros(len(logits) + len(copies))
    for w in words:
        p[w] = p_gen * np.exp(logits[w] - largest) / total
    for j, w in enumerate(copies):
        p[w] += (1 - p_gen) * alpha[j]
    copy = [sum(alpha[k] for k, other in enumerate(copies) if other == w) for w in copies]
    return {"p_gen": np.array(p_gen), "copy": np.array(copy), "p": p}
