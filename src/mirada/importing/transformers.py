"""The parts of a Transformer under mirada's names, whatever toolkit they come from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor

from mirada.errors import ModelFolderError
from mirada.importing.files import Tensors
from mirada.models.embedding import Places

Weights = dict[str, Tensor]
READERS = ("q.weight", "k.weight", "v.weight", "ff_in.weight", "embedding.weight", "output.weight")  # by columns
WRITERS = ("o.weight", "o.bias", "ff_out.weight", "ff_out.bias")  # by rows


class Ties(NamedTuple):
    """What is one and the same."""

    embeddings: bool
    softmax: bool


class Names(NamedTuple):
    """What a toolkit calls the parts of a layer; attention's parts are q, k, v, o, the norms in mirada's order."""

    own: tuple[str, str]  # the encoder's and the decoder's
    cross: str
    attention: Mapping[str, str]
    feed_forward: tuple[str, str]
    encoder_norms: tuple[str, ...]
    decoder_norms: tuple[str, ...]
    heads_have_biases: bool = True  # without, those of a layer are zeros
    ff_has_biases: bool = True


FAIRSEQ = Names(  # which Hugging Face's Marian took over
    ("self_attn", "self_attn"),
    "encoder_attn",
    {"q": "q_proj", "k": "k_proj", "v": "v_proj", "o": "out_proj"},
    ("fc1", "fc2"),
    ("self_attn_layer_norm", "final_layer_norm"),
    ("self_attn_layer_norm", "encoder_attn_layer_norm", "final_layer_norm"),
)


def layer(tensors: Tensors, names: Names, prefix: str, *, sizes: tuple[int, int], cross: bool) -> Weights:
    """One layer's weights under mirada's names, without the layer's own. `sizes`: d_model and the inner width.

    Keys' biases are taken and left out: they add the same number to every score of a query, and the softmax takes it
    out again.
    """
    width, inner = sizes
    found: Weights = {}
    for heads, called in (("self_heads", names.own[cross]), *([("cross_heads", names.cross)] if cross else [])):
        for part, name in names.attention.items():
            found[f"{heads}.{part}.weight"] = tensors.take(f"{prefix}{called}.{name}.weight", width, width)
            bias = _bias(tensors, f"{prefix}{called}.{name}.bias", width, there=names.heads_have_biases)
            if part != "k":
                found[f"{heads}.{part}.bias"] = bias
    for part, name, rows, columns in zip(
        ("ff_in", "ff_out"), names.feed_forward, (inner, width), (width, inner), strict=True
    ):
        found[f"{part}.weight"] = tensors.take(f"{prefix}{name}.weight", rows, columns)
        found[f"{part}.bias"] = _bias(tensors, f"{prefix}{name}.bias", rows, there=names.ff_has_biases)
    for number, name in enumerate(names.decoder_norms if cross else names.encoder_norms):
        for part in ("weight", "bias"):
            found[f"norms.{number}.{part}"] = tensors.take(f"{prefix}{name}.{part}", width)
    return found


def _bias(tensors: Tensors, name: str, width: int, *, there: bool) -> Tensor:
    return tensors.take(name, width) if there else torch.zeros(width)


def layers(tensors: Tensors, names: Names, options: Mapping[str, Any], places: Mapping[str, str]) -> Weights:
    """All layers of both sides; `places` are what stands before a layer's number, and before the last norms' parts."""
    width, inner = options["embedding_dim"], options["ff_size"]
    found: Weights = {}
    for side, prefix in (("encoder", "enc"), ("decoder", "dec")):
        for number in range(options[f"{prefix}_layers"]):
            part = layer(tensors, names, f"{places[side]}{number}.", sizes=(width, inner), cross=side == "decoder")
            found |= {f"{side}.{number}.{name}": tensor for name, tensor in part.items()}
        if options["norm"] == "pre":
            last = f"{side}_norm"
            found |= {f"{last}.{part}": tensors.take(f"{places[last]}.{part}", width) for part in ("weight", "bias")}
    return found


def looked_up(embedded: tuple[Tensor, Tensor], output: Tensor, rows: tuple[Tensor, Tensor], tied: Ties) -> Weights:
    """The embeddings of both sides and the output layer's weights, each in mirada's order, once where they are tied."""
    found = {"source_embedding.weight": embedded[0][rows[0]]}
    if not tied.embeddings:
        found["embedding.weight"] = embedded[1][rows[1]]
    if not tied.softmax:
        found["output.weight"] = output[rows[1]]
    return found


def check_positions(tensors: Tensors, name: str, width: int, places: Places, *, halves: bool) -> None:
    """Pass over a table of positions; raises ModelFolderError if it holds others than the sinusoids of `places`.

    `halves`: the table has all sines, then all cosines.
    """
    if name not in tensors:
        return
    table = tensors.take(name, *tensors.shape(name)).reshape(-1, width)
    ours = places.sinusoids(0, len(table), table)
    if not torch.allclose(table[:, from_halves(width)] if halves else table, ours, atol=1e-3):
        raise ModelFolderError(f"{tensors.path}: {name} are not sinusoids; learned positions are not known")


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
