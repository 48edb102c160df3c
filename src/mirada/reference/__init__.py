"""The papers' equations in plain NumPy float64: one sentence at a time, no padding, no batch, nothing cached.

Slow on purpose. Each file follows one paper's notation and names its equations; a matrix times a vector is the largest
step anywhere. Weights are the arrays of a model's `state_dict()` under their names; nothing else of the models is known
here: `mirada explain` and the tests hold the models against it. What is computed has names, in the order of the flow.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

Array = np.ndarray
Weights = dict[str, Array]
CellState = tuple[Array, ...]  # (h,) or (h, c)
Named = dict[str, Array]
SEP = 4  # the id of <sep>, which parts sources that have several parts
Replaced = Sequence[Array | None]  # for each step weights over the source that replace the softmax; () for none


class Design(NamedTuple):
    """What a recurrent system is made of, apart from its weights."""

    cell: str  # "lstm" or "gru"
    bidirectional: bool
    reverse: bool
    encoder_layers: int
    decoder_layers: int
    score: str = ""
    window: str = "global"  # or "local-m" or "local-p"
    reach: int = 10  # words on each side of a window's middle
    bridge: str = ""  # copy, linear, tanh or relu, where the start is not the paper's
    from_top: bool = False  # whether all of it starts from the top layer's h
    source_end: bool = True  # whether the </s> of a source is read
    squashed: bool = True  # whether s̃ has its tanh


def count_read(tokens: int, *, end: bool) -> int:
    """How many of a source's tokens (with </s>) are read: without `end` all but </s>, which else is read alone only."""
    return tokens if end or tokens == 1 else tokens - 1


class Run(NamedTuple):
    """A whole sentence pair, by name in the order of computation: the encoder, the decoder's start, and each step."""

    encoder: Named
    start: Named
    steps: list[Named]  # the last name of each is logits


def under(weights: Weights, prefix: str) -> Weights:
    """Take the weights whose names start with `prefix.`, under the rest of their names."""
    return {name.removeprefix(prefix + "."): value for name, value in weights.items() if name.startswith(prefix + ".")}


def numbered(named: Named, layer: int) -> Named:
    """Add a layer's number, from 1, to every name."""
    return {f"{name}.{layer + 1}": value for name, value in named.items()}


def embedded(weights: Weights, source: list[int]) -> list[Array]:
    """E[x_j], and where sources have parts, E[x_j] + S[number of <sep> up to j] (the last part's from there on)."""
    words = [weights["weight"][word] for word in source]
    if "segments" in weights:
        parts = weights["segments"]
        numbers = [min(source[: j + 1].count(SEP), len(parts) - 1) for j in range(len(source))]
        words = [word + parts[number] for word, number in zip(words, numbers, strict=True)]
    return words


def layer_states(states: list[CellState], *, start: bool = False) -> Named:
    """Name every layer's s_t (s_0 at the start), and its memory cell where it has one."""
    names = ("s_0", "cell_0") if start else ("s", "cell")
    named: Named = {}
    for layer, state in enumerate(states):
        named |= numbered(dict(zip(names, state, strict=False)), layer)
    return named


def predict(weights: Weights, hidden: Array) -> Array:
    """W_y s + b_y: the numbers of which the softmax gives p(y_t)."""
    return np.asarray(weights["output.weight"] @ hidden + weights["output.bias"])


def maxout(weights: Weights, state: Array, word: Array, context: Array) -> Array:
    """Return t, of which t̃ = U_o s_t + V_o E y_{t-1} + C_o c_t and t_k = max(t̃_{2k-1}, t̃_{2k}).

    Bahdanau et al. 2015, appendix A.2.2 (with the s_t of their equation 4); Cho et al. 2014, appendix A.
    """
    u_o, v_o, c_o = (weights[f"readout.{name}.weight"] for name in ("u_o", "v_o", "c_o"))
    t_tilde = u_o @ state + v_o @ word + c_o @ context + weights["readout.u_o.bias"]
    return np.array([max(t_tilde[2 * k], t_tilde[2 * k + 1]) for k in range(len(t_tilde) // 2)])
