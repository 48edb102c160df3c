"""The five score functions, the softmax, and the context.

additive: Bahdanau et al. 2015, appendix A.1.2. dot, general, concat: Luong et al. 2015, equation 8.
scaled_dot: Vaswani et al. 2017, equation 1, with one query.
"""

from __future__ import annotations

from math import sqrt
from typing import NamedTuple

import numpy as np

from mirada.reference import Array, Design, Named, Replaced, Weights, under


def additive(weights: Weights, s: Array, h: Array, covered: float = 0.0) -> float:
    """v_aᵀ tanh(W_a s + U_a h + w_c c): the last of a score with coverage (See et al. 2017, equation 11)."""
    more = weights.get("w_c", np.zeros(1)) * covered
    return float(weights["v_a"] @ np.tanh(weights["w_a.weight"] @ s + weights["u_a.weight"] @ h + more))


def dot(weights: Weights, s: Array, h: Array, covered: float = 0.0) -> float:
    """sᵀ h."""
    return float(s @ h)


def scaled_dot(weights: Weights, s: Array, h: Array, covered: float = 0.0) -> float:
    """sᵀ h / √d."""
    return float(s @ h / sqrt(len(s)))


def general(weights: Weights, s: Array, h: Array, covered: float = 0.0) -> float:
    """sᵀ W_a h."""
    return float(s @ weights["w_a.weight"] @ h)


def concat(weights: Weights, s: Array, h: Array, covered: float = 0.0) -> float:
    """v_aᵀ tanh(W_a [s; h] + w_c c)."""
    more = weights.get("w_c", np.zeros(1)) * covered
    return float(weights["v_a"] @ np.tanh(weights["w_a.weight"] @ np.concatenate([s, h]) + more))


SCORES = {"additive": additive, "dot": dot, "scaled_dot": scaled_dot, "general": general, "concat": concat}


def key(name: str, weights: Weights, h: Array) -> Array:
    """What of a score depends on h alone: U_a h, W_a h, W_a's columns for h, or h itself."""
    if name == "additive":
        return np.asarray(weights["u_a.weight"] @ h)
    if name == "general":
        return np.asarray(weights["w_a.weight"] @ h)
    if name == "concat":
        return np.asarray(weights["w_a.weight"][:, -len(h) :] @ h)
    return h


def softmax(scores: Array, length: int) -> Array:
    """α_j = exp(e_j) / Σ_k exp(e_k) over the first `length` positions; 0 at the others."""
    weights = np.zeros(len(scores))
    largest = max(scores[:length])  # subtracted from every score: the quotient stays, overflow goes
    total = sum(np.exp(scores[k] - largest) for k in range(length))
    for j in range(length):
        weights[j] = np.exp(scores[j] - largest) / total
    return weights


class Attended(NamedTuple):
    """What one query read of the source."""

    e: Array
    alpha: Array
    c: Array

    def named(self) -> Named:
        """The three under their names."""
        return self._asdict()


def local(design: Design, weights: Weights, s: Array, t: int, scores: Array) -> Array:
    """α of local-m or local-p (Luong et al. 2015, section 3.2) at step t, counted from 0 as positions are."""
    size = len(scores)
    middle = float(min(t, size - 1))
    if design.window == "local-p":
        middle = size / (1 + np.exp(-(weights["v_p.weight"][0] @ np.tanh(weights["w_p.weight"] @ s))))
    near = [j for j in range(size) if abs(j - middle) <= design.reach]
    alpha = np.zeros(size)
    alpha[near] = softmax(scores[near], len(near))
    if design.window == "local-p":
        for j in near:
            alpha[j] *= np.exp(-((j - middle) ** 2) / (2 * (design.reach / 2) ** 2))
    return alpha


def attend(
    design: Design, weights: Weights, s: Array, memory: list[Array], replaced: Array | None, before: list[Array]
) -> Attended:
    """Return e_j = score(s, h_j), α = softmax(e), and c = Σ_j α_j h_j (Bahdanau et al. 2015, equations 5 and 6).

    `before` are the weights of all earlier steps: their sum is the coverage, their number the step.
    """
    covered = sum(before, np.zeros(len(memory)))
    score = under(weights, "score")
    scores = np.array([SCORES[design.score](score, s, h, covered[j]) for j, h in enumerate(memory)])
    if replaced is not None:
        alpha = replaced
    elif design.window == "global":
        alpha = softmax(scores, len(memory))
    else:
        alpha = local(design, under(weights, "window"), s, len(before), scores)
    context = np.zeros(len(memory[0]))
    for weight, h in zip(alpha, memory, strict=True):
        context = context + weight * h
    return Attended(scores, alpha, context)


def replaced_at(replaced: Replaced, step: int) -> Array | None:
    """The weights given for a step (from 0), if there are any."""
    return replaced[step] if step < len(replaced) else None
