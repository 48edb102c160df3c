"""Attention after the update: Luong, Pham & Manning 2015, section 3.

s_t = RNN(s_{t-1}, y_{t-1})    e_tj = score(s_t, h_j)    c_t = Σ_j α_tj h_j    s̃_t = tanh(W_c [c_t; s_t])
"""

from __future__ import annotations

import numpy as np

from mirada.reference import Design, Named, Replaced, Run, Weights, layer_states, predict, under
from mirada.reference.attention import attend, key, replaced_at
from mirada.reference.cells import stack_step, stacked
from mirada.reference.copying import Copies, copied, read_word
from mirada.reference.encoder import encode, first_states


def run(
    design: Design,
    weights: Weights,
    source: list[int],
    target: list[int],
    *,
    input_feeding: bool,
    replaced: Replaced = (),
    copies: Copies = (),
) -> Run:
    """Update, attend, predict from s̃_t (equations 5 and 6). With input feeding (section 3.3) the RNN reads [y; s̃].

    Other toolkits have a bias in s̃_t = tanh(W_c [c_t; s_t] + b), or no tanh.
    """
    memory, finals, encoder = encode(design, weights, source)
    score = under(weights, "score")
    encoder["keys"] = np.array([key(design.score, score, h) for h in memory])
    first = first_states(design, weights, finals)
    cells = stacked(weights, design.decoder_layers, weights["feed_gates.weight"] if input_feeding else None)
    s_tilde = np.zeros(len(first[-1][0]))
    states = first
    steps: list[Named] = []
    for t, word in enumerate(target):
        y = read_word(weights, word)
        before = {"y": y, "s_prev": states[-1][0], **({"s_tilde_prev": s_tilde} if input_feeding else {})}
        states = stack_step(design.cell, cells, np.concatenate([y, s_tilde]) if input_feeding else y, states)
        s = states[-1][0]
        earlier = [step["alpha"] for step in steps]
        attended = attend(design, weights, s, memory, replaced_at(replaced, t), earlier)  # with s_t
        mixed = weights["w_c.weight"] @ np.concatenate([attended.c, s]) + weights.get("w_c.bias", 0)
        s_tilde = np.tanh(mixed) if design.squashed else mixed
        seen = {**before, **layer_states(states), **attended.named, "s_tilde": s_tilde}
        logits = predict(weights, s_tilde)
        steps.append({**seen, "logits": logits, **copied(weights, (attended.c, s, y), attended.alpha, logits, copies)})
    return Run(encoder, layer_states(first, start=True), steps)
