"""Attention before the update: Bahdanau, Cho & Bengio 2015, section 3 and appendix A.

e_tj = score(s_{t-1}, h_j)    α_t = softmax(e_t)    c_t = Σ_j α_tj h_j    s_t = f(s_{t-1}, y_{t-1}, c_t)
"""

from __future__ import annotations

import numpy as np

from reference import Design, Moment, Run, Weights, maxout, predict, under
from reference.attention import look
from reference.cells import stack_step, stacked
from reference.encoder import bridged, encode


def run(design: Design, weights: Weights, source: list[int], target: list[int], *, deep: bool) -> Run:
    """s_0 = tanh(W_s ←h_1); then attend, update, predict for each word. `deep` is the maxout readout."""
    memory, finals = encode(design, weights, source)
    first = bridged(design, weights, finals, only_backward=design.bidirectional)
    cells = stacked(weights, design.decoder_layers, weights["context_gates.weight"])
    states, moments = first, []
    for word in target:
        y = weights["embedding.weight"][word]
        scores, alpha, c = look(design.score, under(weights, "score"), states[-1][0], memory)  # with s_{t-1}
        states = stack_step(design.cell, cells, np.concatenate([y, c]), states)
        s = states[-1][0]
        hidden = maxout(weights, s, y, c) if deep else s
        moments.append(Moment(scores, alpha, c, states, hidden, predict(weights, hidden)))
    return Run(memory, first, moments)
