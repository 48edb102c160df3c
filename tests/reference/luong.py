"""Attention after the update: Luong, Pham & Manning 2015, section 3.

s_t = RNN(s_{t-1}, y_{t-1})    e_tj = score(s_t, h_j)    c_t = Σ_j α_tj h_j    s̃_t = tanh(W_c [c_t; s_t])
"""

from __future__ import annotations

import numpy as np

from reference import Design, Moment, Run, Weights, predict, under
from reference.attention import look
from reference.cells import stack_step, stacked
from reference.encoder import bridged, copied, encode


def run(design: Design, weights: Weights, source: list[int], target: list[int], *, input_feeding: bool) -> Run:
    """Update, attend, predict from s̃_t (equations 5 and 6). With input feeding (section 3.3) the RNN reads [y; s̃]."""
    memory, finals = encode(design, weights, source)
    decoder_width = weights["stack.cells.0.w_h"].shape[1]
    same = not design.bidirectional and len(finals[0][0]) == decoder_width
    first = copied(design, finals) if same else bridged(design, weights, finals, only_backward=False)
    cells = stacked(weights, design.decoder_layers, weights["feed_gates.weight"] if input_feeding else None)
    s_tilde = np.zeros(decoder_width)
    states, moments = first, []
    for word in target:
        y = weights["embedding.weight"][word]
        states = stack_step(design.cell, cells, np.concatenate([y, s_tilde]) if input_feeding else y, states)
        s = states[-1][0]
        scores, alpha, c = look(design.score, under(weights, "score"), s, memory)  # with s_t
        s_tilde = np.tanh(weights["w_c.weight"] @ np.concatenate([c, s]))
        moments.append(Moment(scores, alpha, c, states, s_tilde, predict(weights, s_tilde)))
    return Run(memory, first, moments)
