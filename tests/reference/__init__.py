"""The papers' equations in plain NumPy float64: one sentence at a time, no padding, no batch, nothing cached.

Slow on purpose. Each file follows one paper's notation and names its equations; a matrix times a vector is the largest
step anywhere. Weights are the arrays of a model's `state_dict()` under their names; nothing else of the package is
known here.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

Array = np.ndarray
Weights = dict[str, Array]
CellState = tuple[Array, ...]  # (h,) or (h, c)


class Design(NamedTuple):
    """What a recurrent system is made of, apart from its weights."""

    cell: str  # "lstm" or "gru"
    bidirectional: bool
    reverse: bool
    encoder_layers: int
    decoder_layers: int
    score: str = ""


class Moment(NamedTuple):
    """Everything that one decoder step computes."""

    scores: Array | None  # e_t1 … e_tS
    weights: Array | None  # α_t1 … α_tS
    context: Array | None  # c_t
    states: list[CellState]  # s_t, layer by layer
    hidden: Array  # what the output layer reads
    logits: Array
    heads: Array | None = None  # the Transformer's weights over the source, [layer, head, S]


class Run(NamedTuple):
    """A whole sentence pair: what the encoder gives, the decoder's first state, and each step."""

    memory: list[Array]  # h_1 … h_S
    first: list[CellState]  # s_0, layer by layer
    moments: list[Moment]


def under(weights: Weights, prefix: str) -> Weights:
    """Take the weights whose names start with `prefix.`, under the rest of their names."""
    return {name.removeprefix(prefix + "."): value for name, value in weights.items() if name.startswith(prefix + ".")}


def predict(weights: Weights, hidden: Array) -> Array:
    """W_y s + b_y: the numbers of which the softmax gives p(y_t)."""
    return weights["output.weight"] @ hidden + weights["output.bias"]


def maxout(weights: Weights, state: Array, word: Array, context: Array) -> Array:
    """Return t, of which t̃ = U_o s_t + V_o E y_{t-1} + C_o c_t and t_k = max(t̃_{2k-1}, t̃_{2k}).

    Bahdanau et al. 2015, appendix A.2.2 (with the s_t of their equation 4); Cho et al. 2014, appendix A.
    """
    u_o, v_o, c_o = (weights[f"readout.{name}.weight"] for name in ("u_o", "v_o", "c_o"))
    t_tilde = u_o @ state + v_o @ word + c_o @ context + weights["readout.u_o.bias"]
    return np.array([max(t_tilde[2 * k], t_tilde[2 * k + 1]) for k in range(len(t_tilde) // 2)])
