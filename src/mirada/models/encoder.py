"""The recurrent encoder: one or two directions, any depth, without packed sequences.

Padding stands at the right. A forward state at a real position never saw padding; the backward direction reads each
sentence reversed within its own length, so that it starts at the last real token. Final states are taken at each
sentence's own length. Nothing is masked inside the loop, and nothing wrong can leak.
"""

from __future__ import annotations

from typing import NamedTuple, cast

import torch
from torch import Tensor, nn

from mirada.kernels.dropout import dropout
from mirada.models.cells import Cell, CellState, Stack, recurrent_mask
from mirada.models.embedding import Embedding, OutputLayer


class EncoderOutput(NamedTuple):
    """What the encoder read."""

    states: Tensor  # [B, S, H] h_j, directions side by side; 0 on padding
    mask: Tensor  # [B, S]
    final: tuple[
        CellState, ...
    ]  # for each layer (h,) or (h, c), each [B, H]: forward at the last word, backward at word 1


class ReadingOrder(NamedTuple):
    """How a source is read: in both directions or one, last word first or not, with the </s> at its end or without."""

    both: bool
    reverse: bool = False
    end: bool = True


def without_end(lengths: Tensor) -> Tensor:
    """Lengths `[B]` when </s> is not read but where it stands alone: padding from there on."""
    return (lengths - 1).clamp(min=1)


def reversal(lengths: Tensor, width: int, *, keep_last: bool) -> Tensor:
    """Positions `[width, B]` that reverse each sentence within its length; with `keep_last` its </s> stays at the end.

    The map is its own inverse. Padding stays where it is.
    """
    positions = torch.arange(width, device=lengths.device)[:, None]  # [S, 1]
    last = (lengths - (2 if keep_last else 1))[None]  # [1, B]
    return torch.where(positions <= last, last - positions, positions)


def permute(x: Tensor, order: Tensor) -> Tensor:
    """Reorder the first axis of `x` `[S, B, …]` by `order` `[S, B]`, sentence by sentence."""
    return x[order, torch.arange(x.size(1), device=x.device)]


class RecurrentEncoder(nn.Module):
    """h_j = RNN(x_j, h_{j-1}) in one or two directions (Sutskever et al. 2014; Bahdanau et al. 2015)."""

    def __init__(
        self,
        kind: str,
        embedding: Embedding,
        size: int,
        *,
        layers: int,
        reading: ReadingOrder,
        drops: tuple[float, float],
    ):
        super().__init__()
        self.embedding = embedding
        embedding_size = embedding.weight.size(1)
        self.directions = 2 if reading.both else 1
        self.reading, (self.dropout, self.recurrent) = reading, drops
        self.size = size * self.directions
        inputs = [embedding_size] + [self.size] * (layers - 1)
        self.layers = nn.ModuleList(
            nn.ModuleList(Cell(kind, width, size) for _ in range(self.directions)) for width in inputs
        )

    def forward(self, source: Tensor, lengths: Tensor) -> EncoderOutput:
        """Read ids `[B, S]` of real lengths `[B]` (each at least 1)."""
        x = self.embedding(source.T, axis=0)  # [S, B, E]
        lengths = lengths if self.reading.end else without_end(lengths)
        order = reversal(lengths, x.size(0), keep_last=True) if self.reading.reverse else None
        if order is not None:
            x = permute(x, order)
        backward = reversal(lengths, x.size(0), keep_last=False)  # [S, B]
        finals = []
        for depth, cells in enumerate(self.layers):
            if depth:
                x = dropout(x, self.dropout, self.training)
            x, final = self._layer(cast(nn.ModuleList, cells), x, lengths, backward)
            finals.append(final)
        if order is not None:
            x = permute(x, order)
        mask = torch.arange(x.size(0), device=x.device) < lengths[:, None]  # [B, S]
        states = x.transpose(0, 1).contiguous() * mask[..., None]
        return EncoderOutput(states, mask, tuple(finals))

    def _layer(self, cells: nn.ModuleList, x: Tensor, lengths: Tensor, backward: Tensor) -> tuple[Tensor, CellState]:
        outputs, finals = [], []
        for direction, module in enumerate(cells):
            cell = cast(Cell, module)
            drop = recurrent_mask(x, (x.size(1), cell.size), self.recurrent, self.training)
            read = permute(x, backward) if direction else x  # [S, B, I]
            scanned = cell.scan(read, cell.zero_state(x, x.size(1)), lengths, drop=drop)
            finals.append(scanned.last)
            outputs.append(permute(scanned.hs, backward) if direction else scanned.hs)
        return torch.cat(outputs, -1), tuple(torch.cat(part, -1) for part in zip(*finals, strict=True))


class Bridge(nn.Module):
    """The decoder's first state from the encoder's last one, layer by layer, aligned at the top where depths differ.

    Identity (s_0 = c) where it fits; else h_0 = tanh(W h) and, for the LSTM, c_0 = W' c. With `only_backward` the
    bridge reads just the backward direction, s_0 = tanh(W_s ←h_1) (Bahdanau et al. 2015, appendix A.2.2). Other
    toolkits have one function (`function`: linear, tanh or relu) of h and c alike, and start all from the top layer's h
    (`from_top`).
    """

    def __init__(
        self,
        kind: str,
        sizes: tuple[int, int],
        *,
        layers: tuple[int, int],
        function: str | None,
        only_backward: bool = False,
        from_top: bool = False,
    ):
        super().__init__()
        memory_size, hidden_size = sizes
        encoder_layers, decoder_layers = layers
        self.sources = [max(0, encoder_layers - decoder_layers + layer) for layer in range(decoder_layers)]
        self.function, self.only_backward, self.from_top = function, only_backward, from_top
        width = memory_size // 2 if only_backward else memory_size
        parts = 0 if function == "copy" else decoder_layers * (2 if kind == "lstm" else 1)
        self.maps = nn.ModuleList(nn.Linear(width, hidden_size) for _ in range(parts))

    def forward(self, final: tuple[CellState, ...]) -> tuple[CellState, ...]:
        """Encoder finals, each part `[B, H]`, → decoder states, each part `[B, D]`."""
        chosen = [final[source] for source in self.sources]
        if self.from_top:
            chosen = [(final[-1][0],) * len(final[-1])] * len(chosen)
        if not self.maps:
            return tuple(chosen)
        maps = iter(self.maps)
        states = []
        for state in chosen:
            read = [part.chunk(2, -1)[1] if self.only_backward else part for part in state]
            mapped = [next(maps)(part) for part in read]
            states.append(self._applied(mapped))
        return tuple(states)

    def _applied(self, mapped: list[Tensor]) -> CellState:
        if self.function is None:
            return (mapped[0].tanh(), *mapped[1:])
        if self.function == "linear":
            return tuple(mapped)
        return tuple(part.tanh() if self.function == "tanh" else part.relu() for part in mapped)


class RecurrentParts(NamedTuple):
    """What every recurrent system is made of."""

    encoder: RecurrentEncoder
    bridge: Bridge
    embedding: Embedding  # of the target
    stack: Stack
    output: OutputLayer
