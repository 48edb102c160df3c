"""Every system that the options can describe, in small, and one batch to put through them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any, NamedTuple

import torch
from torch import Tensor

from mirada.config.options import ModelConfig
from mirada.models import AnyModel, build_model

Options = dict[str, Any]

VOCAB = 13
SCORES = ("additive", "dot", "scaled_dot", "general", "concat")
FAMILIES = [("classic", None), *product(("bahdanau", "luong"), SCORES), ("transformer", None)]
ATTENTIVE = [family for family in FAMILIES if family[0] != "classic"]
DEPTHS = ((1, 1), (2, 2), (2, 1), (1, 2))
# Rows of a batch: different lengths, one of them a lone </s>; 1 is padding.
SOURCE = torch.tensor([[5, 9, 4, 7, 8, 3], [3, 1, 1, 1, 1, 1], [8, 6, 3, 1, 1, 1]])
LENGTHS = torch.tensor([6, 1, 3])
TARGET = torch.tensor([[2, 7, 7, 4, 12], [2, 3, 1, 1, 1], [2, 10, 5, 11, 1]])

# What each source position would write: a word of the target, or V + the position where the same word stands first.
COPIES = torch.tensor([[VOCAB, 9, VOCAB, 7, VOCAB + 4, 3], [3, 1, 1, 1, 1, 1], [VOCAB, VOCAB + 1, 3, 1, 1, 1]])
COPIED = torch.tensor([[2, 7, VOCAB, 4, 12], [2, 3, 1, 1, 1], [2, VOCAB + 1, 5, VOCAB, 1]])


class Batch(NamedTuple):
    """What `forward` takes."""

    source: Tensor
    lengths: Tensor
    target: Tensor


BATCH = Batch(SOURCE, LENGTHS, TARGET)


def systems(decoder: str, score: str | None) -> Iterator[Options]:
    """Yield every cell × direction × depth × variant of a decoder with a score."""
    if decoder == "transformer":
        yield from transformers()
        return
    for cell, bidirectional, depth in product(("lstm", "gru"), (False, True), DEPTHS):
        for variant in variants(decoder, score):
            yield {
                "decoder": decoder,
                "score": score,
                "rnn_type": cell,
                "bidirectional": bidirectional,
                "enc_layers": depth[0],
                "dec_layers": depth[1],
                "embedding_dim": 4,
                "hidden_size": 6,
                **variant,
            }


def variants(decoder: str, score: str | None) -> list[Options]:
    """List the options that change a recurrent system's equations, every value at least once."""
    sizes: Options = {"attention_size": 5} if score in ("additive", "concat") else {}
    if score not in ("dot", "scaled_dot"):
        sizes["encoder_hidden_size"] = 5  # a width that no identity fits
    plain: list[Options] = [{}, {"reverse_source": True}, {"tied_embeddings": True, **sizes}]
    bias: Options = {"attention_bias": True} if score in ("additive", "concat") else {}
    if decoder == "classic":
        return [
            *plain,
            {"feed_context": True},
            {"feed_context": True, "tied_softmax": True, **sizes},
            *CLASSIC_ELSEWHERE,
        ]
    if decoder == "bahdanau":
        plain = [{**options, "readout": "state"} for options in plain]
        deep = {"readout": "deep", "tied_softmax": True, "reverse_source": True, **sizes}
        return [*plain, {}, deep, {"add_source_eos": False, **bias}]
    plain += [{"input_feeding": False}, {"tied_softmax": True, "embedding_dim": 6, **sizes}]
    copied, linear, top = LUONG_ELSEWHERE
    return [*plain, copied, {**linear, **sizes}, {**top, **bias}]


# What other toolkits' systems are: between the two every bridge.
CLASSIC_ELSEWHERE: list[Options] = [{"bridge": "relu", "input_feeding": True}, {"bridge": "copy", "bridge_from": "top"}]
LUONG_ELSEWHERE: list[Options] = [
    {"bridge": "copy", "attentional_bias": True},
    {"bridge": "linear"},
    {
        "bridge": "tanh",
        "bridge_from": "top",
        "add_source_eos": False,
        "attentional": "linear",
        "attentional_bias": True,
    },
]
PLACES: list[Options] = [
    {},
    {"norm_eps": 1e-3},
    {"position_encoding": "tensor2tensor"},
    {"position_encoding": "tensor2tensor", "first_position": 2},
    {"add_source_eos": False},
]


def transformers() -> Iterator[Options]:
    """Yield every norm × depth × heads × sharing of the Transformer, activations in turn; 6 / 2 heads: an odd d_k."""
    ties: list[Options] = [{}, {"tied_softmax": True}, {"tied_softmax": True, "tied_embeddings": True}]
    for number, (norm, depth, heads, tie) in enumerate(product(("pre", "post"), DEPTHS, (1, 2), ties)):
        yield {
            "decoder": "transformer",
            "norm": norm,
            "enc_layers": depth[0],
            "dec_layers": depth[1],
            "num_heads": heads,
            "embedding_dim": 6,
            "ff_size": 7,
            "activation": ("relu", "gelu", "swish")[(number + number // 3) % 3],
            **PLACES[number % len(PLACES)],
            **tie,
        }


def some_systems(decoder: str, score: str | None) -> list[Options]:
    """List every seventh, each score from another one on.

    7 shares no factor with the sides of the grid, so that every value of every option comes up.
    """
    return list(systems(decoder, score))[FAMILIES.index((decoder, score)) % 7 :: 7]


def build(options: Options, *, dtype: torch.dtype = torch.float64, seed: int = 1) -> AnyModel:
    """Make the model in evaluation mode, every parameter (biases, v_a, gains too) drawn from U(−0.7, 0.7)."""
    torch.manual_seed(seed)
    model = build_model(ModelConfig(**options), source_vocab=VOCAB, target_vocab=VOCAB).to(dtype).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.uniform_(-0.7, 0.7)
    return model


def leaves(tree: Any) -> list[Tensor]:
    """List the tensors of a tree of tuples."""
    if isinstance(tree, Tensor):
        return [tree]
    return [leaf for branch in tree or () for leaf in leaves(branch)]


def assert_same(actual: Any, expected: Any, tolerance: float, what: object) -> None:
    """Fail unless two trees of tensors have the same shapes and agree to `tolerance` everywhere."""
    pairs = list(zip(leaves(actual), leaves(expected), strict=True))
    for number, (left, right) in enumerate(pairs):
        assert left.shape == right.shape, f"{what}, tensor {number}: {tuple(left.shape)} and {tuple(right.shape)}"
        error = (left.double() - right.double()).abs().max().item() if left.numel() else 0.0
        assert error <= tolerance, f"{what}, tensor {number}: differ by {error:.3g}"
