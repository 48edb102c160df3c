"""The parts of recurrent systems under mirada's names, whatever toolkit they come from: PyTorch's layers are in all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from mirada.importing.files import Tensors
from mirada.importing.transformers import Weights
from mirada.importing.words import WordList

GATES = {"lstm": 4, "gru": 3}


class Shape(NamedTuple):
    """The widths of a recurrent system."""

    kind: str  # lstm or gru
    embedding: int  # the wider one of both sides
    direction: int  # one direction of the encoder
    both: bool
    hidden: int  # the decoder

    @property
    def memory(self) -> int:
        """The width of the encoder's states."""
        return self.direction * (2 if self.both else 1)


def cell(tensors: Tensors, name: str, kind: str, *, inputs: int, size: int) -> Weights:
    """One layer in one direction of PyTorch's, `name` with a * for weight_ih and the others: w_x, w_h, b_x, and b_n.

    PyTorch's LSTM has its gates in the order i f g o, mirada's i f o g. Two biases that are added become one; the GRU's
    of the candidate that the reset gate multiplies stays apart.
    """
    rows = GATES[kind] * size
    w_x = tensors.take(name.replace("*", "weight_ih"), rows, inputs)
    w_h = tensors.take(name.replace("*", "weight_hh"), rows, size)
    b_x, b_h = (tensors.take(name.replace("*", part), rows) for part in ("bias_ih", "bias_hh"))
    if kind == "gru":
        summed = torch.cat((b_x[: 2 * size] + b_h[: 2 * size], b_x[2 * size :]))
        return {"w_x": w_x, "w_h": w_h, "b_x": summed, "b_n": b_h[2 * size :].clone()}
    order = torch.arange(rows).view(4, size)[[0, 1, 3, 2]].flatten()
    return {"w_x": w_x[order], "w_h": w_h[order], "b_x": (b_x + b_h)[order]}


def encoder(tensors: Tensors, prefix: str, shape: Shape, *, layers: int, embedding: int) -> Weights:
    """The layers of torch.nn.LSTM or GRU, which read embeddings of this width."""
    found: Weights = {}
    for layer in range(layers):
        for way, suffix in enumerate(("", "_reverse") if shape.both else ("",)):
            name = f"{prefix}*_l{layer}{suffix}"
            inputs = shape.memory if layer else embedding
            part = cell(tensors, name, shape.kind, inputs=inputs, size=shape.direction)
            if not layer:
                part["w_x"] = widened(part["w_x"], shape.embedding)
            found |= {f"encoder.layers.{layer}.{way}.{key}": value for key, value in part.items()}
    return found


def stack(tensors: Tensors, names: Sequence[str], shape: Shape, *, embedding: int, feeding: bool) -> Weights:
    """The decoder's layers, each by its name; the first reads the word and, with `feeding`, the last s̃."""
    found: Weights = {}
    for layer, name in enumerate(names):
        inputs = shape.hidden if layer else embedding + shape.hidden * feeding
        part = cell(tensors, name, shape.kind, inputs=inputs, size=shape.hidden)
        if not layer:
            if feeding:
                found["feed_gates.weight"] = part["w_x"][:, embedding:].clone()
            part["w_x"] = widened(part["w_x"][:, :embedding], shape.embedding)
        found |= {f"stack.cells.{layer}.{key}": value for key, value in part.items()}
    return found


def widened(weights: Tensor, width: int) -> Tensor:
    """Columns of zeros up to a width: what narrower embeddings, made as wide by zeros, are multiplied by."""
    return torch.nn.functional.pad(weights, (0, width - weights.size(1)))


def looked_up(
    embedded: tuple[Tensor, Tensor], sides: tuple[WordList, WordList], shape: Shape, *, tied: bool
) -> Weights:
    """The embeddings of both sides in mirada's order, once where they are `tied`."""
    source, target = (widened(table[side.rows], shape.embedding) for table, side in zip(embedded, sides, strict=True))
    return {"encoder.embedding.weight": source, **({} if tied else {"embedding.weight": target})}


def bridges(maps: Sequence[tuple[Tensor, Tensor]], layers: int) -> Weights:
    """One bridge of h (and one of c) for each decoder layer: weight and bias."""
    found: Weights = {}
    for number in range(layers * len(maps)):
        weight, bias = maps[number % len(maps)]
        found[f"bridge.maps.{number}.weight"], found[f"bridge.maps.{number}.bias"] = weight.clone(), bias.clone()
    return found
