"""The parts of a Transformer under mirada's names, whatever toolkit they come from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import torch
from torch import Tensor

from mirada.importing.files import Tensors

Weights = dict[str, Tensor]
READERS = ("q.weight", "k.weight", "v.weight", "ff_in.weight", "embedding.weight", "output.weight")  # by columns
WRITERS = ("o.weight", "o.bias", "ff_out.weight", "ff_out.bias")  # by rows


class Names(NamedTuple):
    """What a toolkit calls the parts of a layer; attention's parts are q, k, v, o, the norms in mirada's order."""

    own: str
    cross: str
    attention: Mapping[str, str]
    feed_forward: tuple[str, str]
    encoder_norms: tuple[str, ...]
    decoder_norms: tuple[str, ...]


def layer(tensors: Tensors, names: Names, prefix: str, *, sizes: tuple[int, int], cross: bool) -> Weights:
    """One layer's weights under mirada's names, without the layer's own. `sizes`: d_model and the inner width.

    Keys' biases are taken and left out: they add the same number to every score of a query, and the softmax takes it
    out again.
    """
    width, inner = sizes
    found: Weights = {}
    for heads, called in (("self_heads", names.own), *([("cross_heads", names.cross)] if cross else [])):
        for part, name in names.attention.items():
            found[f"{heads}.{part}.weight"] = tensors.take(f"{prefix}{called}.{name}.weight", width, width)
            bias = tensors.take(f"{prefix}{called}.{name}.bias", width)
            if part != "k":
                found[f"{heads}.{part}.bias"] = bias
    for part, name, rows, columns in zip(
        ("ff_in", "ff_out"), names.feed_forward, (inner, width), (width, inner), strict=True
    ):
        found[f"{part}.weight"] = tensors.take(f"{prefix}{name}.weight", rows, columns)
        found[f"{part}.bias"] = tensors.take(f"{prefix}{name}.bias", rows)
    for number, name in enumerate(names.decoder_norms if cross else names.encoder_norms):
        for part in ("weight", "bias"):
            found[f"norms.{number}.{part}"] = tensors.take(f"{prefix}{name}.{part}", width)
    return found


def reordered(weights: Weights, order: Tensor) -> Weights:
    """The same model with the numbers of every position in another order: all that reads or writes them is moved.

    Nothing but the sinusoids knows which of the d_model numbers is which.
    """

    def moved(name: str, tensor: Tensor) -> Tensor:
        if name.endswith(READERS):
            return tensor[:, order]
        return tensor[order] if name.endswith(WRITERS) or "norm" in name else tensor

    return {name: moved(name, tensor) for name, tensor in weights.items()}


def from_halves(width: int) -> Tensor:
    """Where the numbers of a position stand that are sines, then cosines, when they are to take turns."""
    middle = (width + 1) // 2
    return torch.stack((torch.arange(middle), torch.arange(middle, 2 * middle)), 1).flatten()[:width]
