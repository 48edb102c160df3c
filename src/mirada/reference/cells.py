"""The recurrent cells, gate by gate.

LSTM: Hochreiter & Schmidhuber 1997 with the forget gates of Gers et al. 2000, no peepholes, as in Sutskever et al.
2014. GRU: Cho et al. 2014, first version of arXiv 1406.1078: r multiplies U h, and z keeps the old state.
"""

from __future__ import annotations

import numpy as np

from mirada.reference import Array, CellState, Weights, under


def sigmoid(x: Array) -> Array:
    """1 / (1 + e^−x), number by number."""
    return np.asarray(1 / (1 + np.exp(-x)))


def lstm_step(weights: Weights, x: Array, h: Array, c: Array) -> CellState:
    """Make h_t, c_t from x_t, h_{t-1}, c_{t-1}."""
    # The rows of the stored matrices are the gates i, f, o, g, one under the other.
    w_i, w_f, w_o, w_g = np.split(weights["w_x"], 4)
    u_i, u_f, u_o, u_g = np.split(weights["w_h"], 4)
    b_i, b_f, b_o, b_g = np.split(weights["b_x"], 4)
    i = sigmoid(w_i @ x + u_i @ h + b_i)
    f = sigmoid(w_f @ x + u_f @ h + b_f)
    o = sigmoid(w_o @ x + u_o @ h + b_o)
    g = np.tanh(w_g @ x + u_g @ h + b_g)
    c_new = f * c + i * g
    return o * np.tanh(c_new), c_new


def gru_step(weights: Weights, x: Array, h: Array) -> CellState:
    """Make h_t from x_t and h_{t-1}."""
    # The rows of the stored matrices are r, z and the candidate n, one under the other.
    w_r, w_z, w_n = np.split(weights["w_x"], 3)
    u_r, u_z, u_n = np.split(weights["w_h"], 3)
    b_r, b_z, b_n = np.split(weights["b_x"], 3)
    r = sigmoid(w_r @ x + u_r @ h + b_r)
    z = sigmoid(w_z @ x + u_z @ h + b_z)
    n = np.tanh(w_n @ x + b_n + r * (u_n @ h + weights["b_n"]))
    return (z * h + (1 - z) * n,)


def cell_step(cell: str, weights: Weights, x: Array, state: CellState) -> CellState:
    """One step of the cell of this name."""
    return lstm_step(weights, x, *state) if cell == "lstm" else gru_step(weights, x, *state)


def zero_state(cell: str, weights: Weights) -> CellState:
    """The state before the first word."""
    zeros = np.zeros(weights["w_h"].shape[1])
    return (zeros, zeros) if cell == "lstm" else (zeros,)


def stacked(weights: Weights, layers: int, second_input: Array | None = None) -> list[Weights]:
    """List the decoder's cells; `second_input` has the first layer's columns for what is appended to the word."""
    cells = [under(weights, f"stack.cells.{layer}") for layer in range(layers)]
    if second_input is not None:
        cells[0] = {**cells[0], "w_x": np.hstack([cells[0]["w_x"], second_input])}
    return cells


def stack_step(cell: str, cells: list[Weights], x: Array, states: list[CellState]) -> list[CellState]:
    """One step of all layers: each layer reads the new h of the one below."""
    new = []
    for weights, state in zip(cells, states, strict=True):
        new.append(cell_step(cell, weights, x, state))
        x = new[-1][0]
    return new
