"""Attention before the update: Bahdanau, Cho & Bengio 2015, section 3 and appendix A.

e_tj = score(s_{t-1}, h_j)    α_t = softmax(e_t)    c_t = Σ_j α_tj h_j    s_t = f(s_{t-1}, y_{t-1}, c_t)
"""

from __future__ import annotations

import numpy as np

from mirada.reference import Design, Named, Replaced, Run, Weights, layer_states, maxout, predict, under
from mirada.reference.attention import attend, key, replaced_at
from mirada.reference.cells import stack_step, stacked
from mirada.reference.copying import Copies, copied, read_word
from mirada.reference.encoder import bridged, encode


def run(
    design: Design,
    weights: Weights,
    source: list[int],
    target: list[int],
    *,
    deep: bool,
    replaced: Replaced = (),
    copies: Copies = (),
) -> Run:
    """s_0 = tanh(W_s ←h_1); then attend, update, predict for each word. `deep` is the maxout readout."""
    memory, finals, encoder = encode(design, weights, source)
    score = under(weights, "score")
    encoder["keys"] = np.array([key(design.score, score, h) for h in memory])
    first = bridged(design, weights, finals, only_backward=design.bidirectional)
    cells = stacked(weights, design.decoder_layers, weights["context_gates.weight"])
    states = first
    steps: list[Named] = []
    for t, word in enumerate(target):
        y, s_prev = read_word(weights, word), states[-1][0]
        earlier = [step["alpha"] for step in steps]
        attended = attend(design, weights, s_prev, memory, replaced_at(replaced, t), earlier)  # with s_{t-1}
        states = stack_step(design.cell, cells, np.concatenate([y, attended.c]), states)
        read = s = states[-1][0]
        seen = {"y": y, "s_prev": s_prev, **attended.named, **layer_states(states)}
        if deep:
            read = seen["maxout"] = maxout(weights, s, y, attended.c)
        logits = predict(weights, read)
        steps.append({**seen, "logits": logits, **copied(weights, (attended.c, s, y), attended.alpha, logits, copies)})
    return Run(encoder, layer_states(first, start=True), steps)
