"""The encoder-decoder without attention.

Sutskever et al. 2014, section 2: the decoder starts from the encoder's last state and sees the source no more.
Cho et al. 2014, appendix A: c = tanh(V h_T), h'_0 = tanh(V' c), and c enters every step and the readout.
"""

from __future__ import annotations

import numpy as np

from mirada.reference import Array, CellState, Design, Run, Weights, layer_states, maxout, predict
from mirada.reference.cells import stack_step, stacked
from mirada.reference.encoder import encode, first_states


def run(design: Design, weights: Weights, source: list[int], target: list[int]) -> Run:
    """s_0 = c, s_t = RNN(y_{t-1}, s_{t-1}), p(y_t) = softmax(W_y s_t + b_y).

    Other toolkits' input feeding: the RNN reads [y_{t-1}; s_{t-1}], at first [y_0; 0].
    """
    _, finals, encoder = encode(design, weights, source)
    first = first_states(design, weights, finals)
    feed = weights.get("feed_gates.weight")
    cells = stacked(weights, design.decoder_layers, feed)
    states, fed, steps = first, 0 * first[-1][0], []
    for word in target:
        y, s_prev = weights["embedding.weight"][word], states[-1][0]
        states = stack_step(design.cell, cells, y if feed is None else np.concatenate([y, fed]), states)
        fed = s = states[-1][0]
        steps.append({"y": y, "s_prev": s_prev, **layer_states(states), "logits": predict(weights, s)})
    return Run(encoder, layer_states(first, start=True), steps)


def run_cho(design: Design, weights: Weights, source: list[int], target: list[int]) -> Run:
    """h'_t = RNN(h'_{t-1}, [y_{t-1}; c]), p(y_t) from the maxout of h'_t, y_{t-1} and c."""
    _, finals, encoder = encode(design, weights, source)
    c = np.tanh(weights["summary.weight"] @ finals[-1][0] + weights["summary.bias"])
    first = [cho_start(design, weights, layer, c) for layer in range(design.decoder_layers)]
    cells = stacked(weights, design.decoder_layers, weights["context_gates.weight"])
    states, steps = first, []
    for word in target:
        y, s_prev = weights["embedding.weight"][word], states[-1][0]
        states = stack_step(design.cell, cells, np.concatenate([y, c]), states)
        t = maxout(weights, states[-1][0], y, c)
        seen = {"y": y, "s_prev": s_prev, **layer_states(states), "maxout": t}
        steps.append({**seen, "logits": predict(weights, t)})
    return Run(encoder, {"c": c, **layer_states(first, start=True)}, steps)


def cho_start(design: Design, weights: Weights, layer: int, c: Array) -> CellState:
    """h'_0 = tanh(V' c); an LSTM's memory starts empty."""
    h = np.tanh(weights[f"starts.{layer}.weight"] @ c + weights[f"starts.{layer}.bias"])
    return (h, np.zeros(len(h))) if design.cell == "lstm" else (h,)
