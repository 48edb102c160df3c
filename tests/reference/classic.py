"""The encoder-decoder without attention.

Sutskever et al. 2014, section 2: the decoder starts from the encoder's last state and sees the source no more.
Cho et al. 2014, appendix A: c = tanh(V h_T), h'_0 = tanh(V' c), and c enters every step and the readout.
"""

from __future__ import annotations

import numpy as np

from reference import Array, CellState, Design, Moment, Run, Weights, maxout, predict
from reference.cells import stack_step, stacked
from reference.encoder import bridged, copied, encode


def run(design: Design, weights: Weights, source: list[int], target: list[int]) -> Run:
    """s_0 = c, s_t = RNN(y_{t-1}, s_{t-1}), p(y_t) = softmax(W_y s_t + b_y)."""
    memory, finals = encode(design, weights, source)
    decoder_width = weights["stack.cells.0.w_h"].shape[1]
    same = not design.bidirectional and len(finals[0][0]) == decoder_width
    first = copied(design, finals) if same else bridged(design, weights, finals, only_backward=False)
    cells = stacked(weights, design.decoder_layers)
    states, moments = first, []
    for word in target:
        y = weights["embedding.weight"][word]
        states = stack_step(design.cell, cells, y, states)
        s = states[-1][0]
        moments.append(Moment(None, None, None, states, s, predict(weights, s)))
    return Run(memory, first, moments)


def run_cho(design: Design, weights: Weights, source: list[int], target: list[int]) -> Run:
    """h'_t = RNN(h'_{t-1}, [y_{t-1}; c]), p(y_t) from the maxout of h'_t, y_{t-1} and c."""
    memory, finals = encode(design, weights, source)
    c = np.tanh(weights["summary.weight"] @ finals[-1][0] + weights["summary.bias"])
    first = [cho_start(design, weights, layer, c) for layer in range(design.decoder_layers)]
    cells = stacked(weights, design.decoder_layers, weights["context_gates.weight"])
    states, moments = first, []
    for word in target:
        y = weights["embedding.weight"][word]
        states = stack_step(design.cell, cells, np.concatenate([y, c]), states)
        t = maxout(weights, states[-1][0], y, c)
        moments.append(Moment(None, None, c, states, t, predict(weights, t)))
    return Run(memory, first, moments)


def cho_start(design: Design, weights: Weights, layer: int, c: Array) -> CellState:
    """h'_0 = tanh(V' c); an LSTM's memory starts empty."""
    h = np.tanh(weights[f"starts.{layer}.weight"] @ c + weights[f"starts.{layer}.bias"])
    return (h, np.zeros(len(h))) if design.cell == "lstm" else (h,)
