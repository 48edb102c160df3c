"""The five score functions, the softmax, and the context.

additive: Bahdanau et al. 2015, appendix A.1.2. dot, general, concat: Luong et al. 2015, equation 8.
scaled_dot: Vaswani et al. 2017, equation 1, with one query.
"""

from __future__ import annotations

from math import sqrt
from typing import NamedTuple

import numpy as np

from mirada.reference import Array, Design, Named, Replaced, Weights, count_read, under


def additive(weights: Weights, s: Array, h: Array, covered: float = 0.0) -> float:
    """v_aᵀ tanh(W_a s + U_a h + b + w_c c): the last of a score with coverage (See et al. 2017, equation 11)."""
    more = weights.get("w_c", np.zeros(1)) * covered + weights.get("u_a.bias", 0)
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
    """v_aᵀ tanh(W_a [s; h] + b + w_c c)."""
    more = weights.get("w_c", np.zeros(1)) * covered + weights.get("w_a.bias", 0)
    return float(weights["v_a"] @ np.tanh(weights["w_a.weight"] @ np.concatenate([s, h]) + more))


SCORES = {"additive": additive, "dot": dot, "scaled_dot": scaled_dot, "general": general, "concat": concat}


def key(name: str, weights: Weights, h: Array) -> Array:
    """What of a score depends on h alone: U_a h (+ b), W_a h, W_a's columns for h (+ b), or h itself."""
    if name == "additive":
        return np.asarray(weights["u_a.weight"] @ h + weights.get("u_a.bias", 0))
    if name == "general":
        return np.asarray(weights["w_a.weight"] @ h)
    if name == "concat":
        return np.asarray(weights["w_a.weight"][:, -len(h) :] @ h + weights.get("w_a.bias", 0))
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

    alpha: Array
    c: Array
    named: Named  # both, and all that they are made of, in the order of the flow


def middle(design: Design, weights: Weights, s: Array, t: int, size: int) -> float:
    """p_t of local-m or local-p (Luong et al. 2015, section 3.2) at step t, counted from 0 as positions are."""
    if design.window == "local-m":
        return float(min(t, size - 1))
    return float(size / (1 + np.exp(-(weights["v_p.weight"][0] @ np.tanh(weights["w_p.weight"] @ s)))))


def local(design: Design, weights: Weights, s: Array, t: int, scores: Array, size: int) -> Named:
    """α over the window, with its middle (told as tokens are, from 1) and local-p's Gaussian, 0 beyond the window.

    `size` is how many words there are to attend to.
    """
    p_t = middle(design, weights, s, t, size)
    near = [j for j in range(size) if abs(j - p_t) <= design.reach]
    alpha, gaussian = np.zeros(len(scores)), np.zeros(len(scores))
    alpha[near] = softmax(scores[near], len(near))
    found: Named = {"middle": np.array(p_t + 1)}
    if design.window == "local-p":
        for j in near:
            gaussian[j] = np.exp(-((j - p_t) ** 2) / (2 * (design.reach / 2) ** 2))
            alpha[j] *= gaussian[j]
        found["gaussian"] = gaussian
    return {**found, "alpha": alpha}


def attend(
    design: Design, weights: Weights, s: Array, memory: list[Array], replaced: Array | None, before: list[Array]
) -> Attended:
    """Return e_j = score(s, h_j), α = softmax(e), and c = Σ_j α_j h_j (Bahdanau et al. 2015, equations 5 and 6).

    `before` are the weights of all earlier steps: their sum is the coverage, their number the step.
    """
    covered = sum(before, np.zeros(len(memory)))
    score = under(weights, "score")
    scores = np.array([SCORES[design.score](score, s, h, covered[j]) for j, h in enumerate(memory)])
    size = count_read(len(memory), end=design.source_end)
    named: Named = {"coverage": covered, "e": scores} if "w_c" in score else {"e": scores}
    if replaced is not None:
        named["alpha"] = replaced
    elif design.window == "global":
        named["alpha"] = softmax(scores, size)
    else:
        named |= local(design, under(weights, "window"), s, len(before), scores, size)
    alpha = named["alpha"]
    context = np.zeros(len(memory[0]))
    for weight, h in zip(alpha, memory, strict=True):
        context = context + weight * h
    named["c"] = context
    if "w_c" in score:  # equation 12 of See et al. 2017
        named["coverage_loss"] = np.array(sum(min(pair) for pair in zip(alpha, covered, strict=True)))
    return Attended(alpha, context, named)


def replaced_at(replaced: Replaced, step: int) -> Array | None:
    """The weights given for a step (from 0), if there are any."""
    return replaced[step] if step < len(replaced) else None
