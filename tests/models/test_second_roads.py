"""Our layers against PyTorch's own, with the weights carried over: the same numbers by another road."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from mirada.models import Memory
from mirada.models.cells import Cell
from mirada.models.embedding import Embedding
from mirada.models.encoder import ReadingOrder, RecurrentEncoder
from mirada.models.transformer import Heads, Layer, Sizes
from systems import LENGTHS, SOURCE, VOCAB, assert_same

REAL = torch.arange(SOURCE.size(1)) < LENGTHS[:, None]
SIZE, INPUT = 5, 4


def shake(module: nn.Module) -> None:
    """Draw every parameter from U(−0.7, 0.7), biases and gains included."""
    torch.manual_seed(1)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.uniform_(-0.7, 0.7)


def reordered(block: Tensor, kind: str) -> Tensor:
    """Our gates i, f, o, g in PyTorch's order i, f, g, o; the GRU's r, z, n are the same."""
    if kind == "gru":
        return block
    i, f, o, g = block.chunk(4)
    return torch.cat((i, f, g, o))


def carry_cell(cell: Cell, other: nn.Module, suffix: str = "") -> None:
    """Copy a cell's weights into nn.LSTM, nn.GRU or their cells, which have a second bias."""
    second = torch.zeros_like(cell.b_x)
    if cell.b_n is not None:
        second[2 * cell.size :] = cell.b_n  # inside the reset, where only their second bias stands
    values = {"weight_ih": cell.w_x, "weight_hh": cell.w_h, "bias_ih": cell.b_x, "bias_hh": second}
    with torch.no_grad():
        for name, value in values.items():
            getattr(other, name + suffix).copy_(reordered(value, cell.kind))


@pytest.mark.parametrize(("kind", "theirs"), [("lstm", nn.LSTMCell), ("gru", nn.GRUCell)])
def test_a_cell_equals_pytorchs(kind: str, theirs: type[nn.Module]) -> None:
    cell, other = Cell(kind, INPUT, SIZE).double(), theirs(INPUT, SIZE).double()
    shake(cell)
    carry_cell(cell, other)
    x, h, c = (torch.randn(3, width, dtype=torch.float64) for width in (INPUT, SIZE, SIZE))
    ours = cell.step(cell.project(x), (h, c) if kind == "lstm" else (h,))
    expected = other(x, (h, c)) if kind == "lstm" else (other(x, h),)
    assert_same(ours, expected, 1e-14, kind)


@pytest.mark.parametrize(("kind", "theirs"), [("lstm", nn.LSTM), ("gru", nn.GRU)])
@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("layers", [1, 3])
def test_the_encoder_equals_pytorchs_on_packed_sequences(
    kind: str, theirs: type[nn.Module], bidirectional: bool, layers: int
) -> None:
    """States at every position and final states of every layer: packing is how PyTorch keeps padding out."""
    encoder = RecurrentEncoder(
        kind,
        Embedding(VOCAB, INPUT),
        SIZE,
        layers=layers,
        reading=ReadingOrder(bidirectional),
        drops=(0.0, 0.0),
    ).double()
    shake(encoder)
    other = theirs(INPUT, SIZE, layers, bidirectional=bidirectional, batch_first=True).double()
    for layer, cells in enumerate(encoder.layers):
        for direction, cell in enumerate(cells):
            carry_cell(cell, other, f"_l{layer}" + "_reverse" * direction)
    packed = pack_padded_sequence(encoder.embedding(SOURCE), LENGTHS, batch_first=True, enforce_sorted=False)
    output, last = other(packed)
    states, _ = pad_packed_sequence(output, batch_first=True, total_length=SOURCE.size(1))
    encoded = encoder(SOURCE, LENGTHS)
    assert_same(encoded.states, states, 1e-14, "states")
    for number, part in enumerate(last if kind == "lstm" else (last,)):
        for layer, sides in enumerate(part.unflatten(0, (layers, -1))):  # [directions, B, H]
            assert_same(encoded.final[layer][number], torch.cat(tuple(sides), -1), 1e-14, f"final of layer {layer}")


def carry_heads(heads: Heads, other: nn.MultiheadAttention) -> None:
    """Copy the four projections; PyTorch's keys have a bias, which changes nothing."""
    with torch.no_grad():
        other.in_proj_weight.copy_(torch.cat((heads.q.weight, heads.k.weight, heads.v.weight)))
        other.in_proj_bias.copy_(torch.cat((heads.q.bias, torch.randn_like(heads.q.bias), heads.v.bias)))
        other.out_proj.load_state_dict(heads.o.state_dict())


def carry_layer(layer: Layer, other: nn.TransformerEncoderLayer | nn.TransformerDecoderLayer) -> None:
    carry_heads(layer.self_heads, other.self_attn)
    if layer.cross_heads is not None:
        carry_heads(layer.cross_heads, other.multihead_attn)
    other.linear1.load_state_dict(layer.ff_in.state_dict())
    other.linear2.load_state_dict(layer.ff_out.state_dict())
    for number, norm in enumerate(layer.norms, start=1):
        getattr(other, f"norm{number}").load_state_dict(norm.state_dict())


@pytest.mark.parametrize("pre_norm", [False, True])
@pytest.mark.parametrize("heads", [1, 2])
def test_a_transformer_encoder_layer_equals_pytorchs(pre_norm: bool, heads: int) -> None:
    layer = Layer(Sizes(6, heads, 7, "relu", 0.1, pre_norm), cross=False).double().eval()
    shake(layer)
    other = nn.TransformerEncoderLayer(6, heads, 7, 0.1, batch_first=True, norm_first=pre_norm).double().eval()
    carry_layer(layer, other)
    x = torch.randn(*SOURCE.shape, 6, dtype=torch.float64)
    ours, expected = layer.encode(x, REAL), other(x, src_key_padding_mask=~REAL)
    assert_same(ours[REAL], expected[REAL], 1e-13, "real positions")


@pytest.mark.parametrize("pre_norm", [False, True])
@pytest.mark.parametrize("heads", [1, 2])
def test_a_transformer_decoder_layer_equals_pytorchs(pre_norm: bool, heads: int) -> None:
    """With a causal mask over the words and a padding mask over the source; and its weights over the source."""
    layer = Layer(Sizes(6, heads, 7, "relu", 0.1, pre_norm), cross=True).double().eval()
    shake(layer)
    other = nn.TransformerDecoderLayer(6, heads, 7, 0.1, batch_first=True, norm_first=pre_norm).double().eval()
    carry_layer(layer, other)
    x, states, query = (torch.randn(3, width, 6, dtype=torch.float64) for width in (4, SOURCE.size(1), 4))
    source, memory = layer.cross_heads.key_value(states), Memory(states, REAL, (), ())
    ours, _, _ = layer.decode(x, None, source, memory)
    causal = torch.ones(4, 4, dtype=torch.bool).triu(1)
    assert_same(ours, other(x, states, tgt_mask=causal, memory_key_padding_mask=~REAL), 1e-13, "output")
    attended = layer.cross_heads.cross_attend(query, source, memory)
    context, weights = other.multihead_attn(query, states, states, key_padding_mask=~REAL, average_attn_weights=False)
    assert_same((attended.context, attended.weights), (context, weights), 1e-13, "the source")
