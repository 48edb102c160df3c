"""The recurrent encoder and the bridge to the decoder.

One direction, source perhaps reversed: Sutskever et al. 2014, section 3.3. Both directions, h_j = [→h_j; ←h_j]:
Bahdanau et al. 2015, section 3.2 and appendix A.2.1.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from mirada.reference import Array, CellState, Design, Named, Weights, count_read, embedded, numbered, under
from mirada.reference.cells import cell_step, zero_state


class EncoderOutput(NamedTuple):
    """What was read."""

    memory: list[Array]  # h_1 … h_S of the top layer, in the order of the words
    finals: list[CellState]  # every layer's last state
    named: Named


def read(cell: str, weights: Weights, words: list[Array]) -> list[CellState]:
    """List h_j = RNN(x_j, h_{j-1}) from h_0 = 0, in the order of reading."""
    state = zero_state(cell, weights)
    states = []
    for x in words:
        state = cell_step(cell, weights, x, state)
        states.append(state)
    return states


def beside(left: CellState, right: CellState) -> CellState:
    """Put two states side by side: [→h; ←h], and for the LSTM [→c; ←c]."""
    return tuple(np.concatenate(pair) for pair in zip(left, right, strict=True))


def read_both_ways(cell: str, right: Weights, left: Weights, words: list[Array]) -> tuple[list[Array], CellState]:
    """States h_j = [→h_j; ←h_j], and the last state of each direction: →h at the last word, ←h at the first."""
    forward = read(cell, right, words)
    backward = read(cell, left, words[::-1])[::-1]
    states = [beside(f, b)[0] for f, b in zip(forward, backward, strict=True)]
    return states, beside(forward[-1], backward[0])


def content_reversed(sentence: list[Array]) -> list[Array]:
    """A B C </s> → C B A </s>: the words in reverse, the end still at the end."""
    return sentence[-2::-1] + sentence[-1:] if len(sentence) > 1 else sentence


def encode(design: Design, weights: Weights, source: list[int]) -> EncoderOutput:
    """Read all layers, each the states of the one below; h is 0 where nothing is read."""
    words = embedded(under(weights, "encoder.embedding"), source)
    named: Named = {"x": np.array(words)}
    words = words[: count_read(len(source), end=design.source_end)]
    if design.reverse:
        words = content_reversed(words)
    finals = []
    for layer in range(design.encoder_layers):
        right, left = (under(weights, f"encoder.layers.{layer}.{direction}") for direction in range(2))
        if design.bidirectional:
            words, final = read_both_ways(design.cell, right, left, words)
        else:
            states = read(design.cell, right, words)
            words, final = [state[0] for state in states], states[-1]
        finals.append(final)
        memory = content_reversed(words) if design.reverse else words
        memory = memory + [0 * words[0]] * (len(source) - len(words))
        ends = dict(zip(("final", "final_cell"), final, strict=False))
        named |= numbered({"h": np.array(memory), **ends}, layer)
    named["h"] = np.array(memory)
    return EncoderOutput(memory, finals, named)


def matching_layer(design: Design, layer: int) -> int:
    """Find the encoder layer that starts this decoder layer: top to top; the lowest one serves all that remain."""
    return max(0, design.encoder_layers - design.decoder_layers + layer)


def copied(design: Design, finals: list[CellState]) -> list[CellState]:
    """s_0 = c: every layer starts where the encoder's stopped (Sutskever et al. 2014; Luong et al. 2015)."""
    return [finals[matching_layer(design, layer)] for layer in range(design.decoder_layers)]


def bridged(design: Design, weights: Weights, finals: list[CellState], *, only_backward: bool) -> list[CellState]:
    """h_0 = tanh(W h), and for the LSTM c_0 = W' c, with weights of its own for each layer.

    `only_backward` reads ←h_1 alone: s_0 = tanh(W_s ←h_1) (Bahdanau et al. 2015, appendix A.2.2).
    """
    parts = 2 if design.cell == "lstm" else 1
    first = []
    for layer, state in enumerate(copied(design, finals)):
        mapped = []
        for number, vector in enumerate(state):
            name = f"bridge.maps.{layer * parts + number}"
            read_part = vector[len(vector) // 2 :] if only_backward else vector
            value = weights[f"{name}.weight"] @ read_part + weights[f"{name}.bias"]
            mapped.append(np.tanh(value) if number == 0 else value)
        first.append(tuple(mapped))
    return first


FUNCTIONS: dict[str, Callable[[Array], Array]] = {
    "linear": lambda x: x,
    "tanh": np.tanh,
    "relu": lambda x: np.maximum(0, x),
}


def as_elsewhere(design: Design, weights: Weights, finals: list[CellState]) -> list[CellState]:
    """s_0 as other toolkits have it: f(W h + b), and for the LSTM f(W' c + b'); or h and c as they are.

    With `from_top` all layers, and their c, start from the top layer's h.
    """
    parts = 2 if design.cell == "lstm" else 1
    start = [(finals[-1][0],) * parts] * design.decoder_layers if design.from_top else copied(design, finals)
    if design.bridge == "copy":
        return start
    maps = [under(weights, f"bridge.maps.{number}") for number in range(parts * design.decoder_layers)]
    function = FUNCTIONS[design.bridge]
    vectors = [vector for state in start for vector in state]
    mapped = [function(own["weight"] @ vector + own["bias"]) for own, vector in zip(maps, vectors, strict=True)]
    return [tuple(mapped[place : place + parts]) for place in range(0, len(mapped), parts)]


def first_states(design: Design, weights: Weights, finals: list[CellState]) -> list[CellState]:
    """s_0: the encoder's last states as they are where one direction is as wide as the decoder, else bridged."""
    if design.bridge:
        return as_elsewhere(design, weights, finals)
    same = not design.bidirectional and len(finals[0][0]) == weights["stack.cells.0.w_h"].shape[1]
    return copied(design, finals) if same else bridged(design, weights, finals, only_backward=False)
