"""LSTM and GRU: one class with the cell as a value. A step for decoding, a scan over a whole sequence for training.

Gates are computed from `x_gates`, the input's part (W_x x + b), which the caller makes for all steps in one product.
States are tuples of `[N, H]`: `(h,)` for the GRU, `(h, c)` for the LSTM.
"""

from __future__ import annotations

import math
from typing import NamedTuple, cast

import torch
from torch import Tensor, nn

from mirada.kernels.dropout import dropout, mask
from mirada.kernels.recurrence import gru_scan, lstm_scan
from mirada.kernels.scan import Recurrence

CellState = tuple[Tensor, ...]
GATES = {"lstm": 4, "gru": 3}


def lstm_step(gates: Tensor, c: Tensor) -> CellState:
    """c' = f·c + i·g, h' = o·tanh(c') from gates `[N, 4H]` in the order i, f, o, g (Hochreiter & Schmidhuber; Gers)."""
    i, f, o = gates[..., : 3 * c.size(-1)].sigmoid().chunk(3, -1)
    c = f * c + i * gates[..., 3 * c.size(-1) :].tanh()
    return o * c.tanh(), c


def gru_step(x_gates: Tensor, h_gates: Tensor, b_n: Tensor, h: Tensor) -> CellState:
    """h' = z·h + (1 − z)·n, n = tanh(x_n + r·(U_n h + b_n)); gates `[N, 3H]` in the order r, z, n.

    z keeps the old state as in Cho et al. 2014 (Bahdanau writes 1 − z); r acts after the product with U_n, as in the
    first version of that paper (arXiv 1406.1078v1) and in cuDNN.
    """
    size = 2 * h.size(-1)
    r, z = (x_gates[..., :size] + h_gates[..., :size]).sigmoid().chunk(2, -1)
    n = torch.addcmul(x_gates[..., size:], r, h_gates[..., size:] + b_n).tanh()
    return (torch.lerp(n, h, z),)


class Cell(nn.Module):
    """One recurrent layer in one direction.

    Weights: `w_x` `[G·H, I]` and `b_x` for the input, `w_h` `[G·H, H]` for the state, and for the GRU `b_n` `[H]`
    inside the reset. Recurrent blocks start orthogonal, the LSTM's forget bias at 1.
    """

    def __init__(self, kind: str, input_size: int, hidden_size: int):
        super().__init__()
        self.kind, self.size = kind, hidden_size
        gates = GATES[kind]
        self.w_x = nn.Parameter(torch.empty(gates * hidden_size, input_size))
        self.w_h = nn.Parameter(torch.empty(gates * hidden_size, hidden_size))
        self.b_x = nn.Parameter(torch.zeros(gates * hidden_size))
        self.b_n = nn.Parameter(torch.zeros(hidden_size)) if kind == "gru" else None
        self._reset()

    def _reset(self) -> None:
        if self.w_x.is_meta:  # only shapes are wanted, and torch takes a second to draw what is not there
            return
        bound = math.sqrt(6 / (self.w_x.size(1) + self.size))
        nn.init.uniform_(self.w_x, -bound, bound)
        for block in self.w_h.data.split(self.size):
            nn.init.orthogonal_(block)
        if self.kind == "lstm":
            self.b_x.data[self.size : 2 * self.size] = 1.0

    def project(self, x: Tensor) -> Tensor:
        """W_x x + b: `[…, I]` → `[…, G·H]`, for any number of steps at once."""
        return nn.functional.linear(x, self.w_x, self.b_x)

    def step(self, x_gates: Tensor, state: CellState, *, drop: Tensor | None = None) -> CellState:
        """One step from `x_gates` `[N, G·H]`; `drop` `[N, H]` is the recurrent dropout's mask for this sequence."""
        h = state[0] if drop is None else state[0] * drop
        if self.kind == "lstm":
            return lstm_step(torch.addmm(x_gates, h, self.w_h.T), state[1])
        return gru_step(x_gates, h @ self.w_h.T, cast(Tensor, self.b_n), state[0])

    def scan_plain(self, x_gates: Tensor, state: CellState, *, drop: Tensor | None = None) -> CellState:
        """All steps of `x_gates` `[T, N, G·H]`, as repeated `step`: every state, each part `[T, N, H]`."""
        states = []
        for gates in x_gates:
            state = self.step(gates, state, drop=drop)
            states.append(state)
        return tuple(torch.stack(part) for part in zip(*states, strict=True))

    def scan(self, x: Tensor, state: CellState, lengths: Tensor, *, drop: Tensor | None = None) -> Scanned:
        """All steps of inputs `[T, N, I]`, each sequence of its own length `[N]`; torch's own layer where no `drop`."""
        if drop is not None:
            return at_lengths(self.scan_plain(self.project(x), state, drop=drop), lengths)
        if self.kind == "gru":
            weights = (self.w_x, self.w_h, self.b_x, cast(Tensor, self.b_n))
            return at_lengths((gru_scan(x, state[0], weights),), lengths)
        padding = torch.arange(len(x), device=x.device)[:, None] >= lengths  # [T, N]
        hs, c = lstm_scan(x, (state[0], state[1]), (self.w_x, self.w_h, self.b_x), padding)
        return Scanned(hs, (*at_lengths((hs,), lengths).last, c))

    def zero_state(self, like: Tensor, rows: int) -> CellState:
        """A state of zeros for `rows` rows, with dtype and device of `like`."""
        return tuple(like.new_zeros(rows, self.size) for _ in range(2 if self.kind == "lstm" else 1))


class Scanned(NamedTuple):
    """All steps of a layer."""

    hs: Tensor  # [T, N, H]
    last: CellState  # of each sequence at its own length, each part [N, H]


def at_lengths(states: CellState, lengths: Tensor) -> Scanned:
    """Every h, and the states at each sequence's own end, of states whose parts are `[T, N, H]`."""
    rows = torch.arange(len(lengths), device=lengths.device)
    return Scanned(states[0], tuple(part[lengths - 1, rows] for part in states))


class StackStep(NamedTuple):
    """One step of a stack: the top layer's output, and every layer's new state."""

    output: Tensor  # [N, H]
    states: tuple[CellState, ...]


class Stack(nn.Module):
    """A decoder's recurrent layers, one above the other, with dropout between them (Zaremba et al. 2014)."""

    def __init__(self, kind: str, input_size: int, hidden_size: int, *, layers: int, dropout: float, recurrent: float):
        super().__init__()
        sizes = [input_size] + [hidden_size] * (layers - 1)
        self.cells = nn.ModuleList(Cell(kind, size, hidden_size) for size in sizes)
        self.kind, self.size, self.gates = kind, hidden_size, GATES[kind] * hidden_size
        self.dropout, self.recurrent = dropout, recurrent

    def project(self, x: Tensor) -> Tensor:
        """The first layer's W_x x + b, for any number of steps at once."""
        return cast(Cell, self.cells[0]).project(x)

    def masks(self, like: Tensor, rows: int) -> list[Tensor | None]:
        """Recurrent dropout's masks, one `[rows, H]` a layer for the whole sequence; None where it is off."""
        return [
            recurrent_mask(like, (rows, cast(Cell, cell).size), self.recurrent, self.training) for cell in self.cells
        ]

    def only_layer(
        self, x_gates: Tensor, states: tuple[CellState, ...], masks: list[Tensor | None]
    ) -> Recurrence | None:
        """What kernels/scan.py needs of the recurrence with gates `[T, N, G·H]`; None where there are more layers."""
        if len(self.cells) > 1:
            return None
        cell, ((h, *c),) = cast(Cell, self.cells[0]), states
        return Recurrence(x_gates, h, c[0] if c else None, cell.w_h, cell.b_n, masks[0])

    def step(self, x_gates: Tensor, states: tuple[CellState, ...], masks: list[Tensor | None]) -> StackStep:
        """One step of all layers from the first one's `x_gates` `[N, G·H]`."""
        new: list[CellState] = []
        for depth, (cell, state, drop) in enumerate(zip(self.cells, states, masks, strict=True)):
            if depth:
                x_gates = cast(Cell, cell).project(self._dropped(new[-1][0]))
            new.append(cast(Cell, cell).step(x_gates, state, drop=drop))
        return StackStep(new[-1][0], tuple(new))

    def scan(self, x: Tensor, states: tuple[CellState, ...], *, shift: Tensor | None = None) -> Tensor:
        """All steps of all layers: inputs `[T, N, I]` → the top layer's outputs `[T, N, H]`.

        `shift` `[N, G·H]` is added to the first layer's gates at every step.
        """
        steps = torch.full((x.size(1),), len(x), device=x.device)
        for depth, (cell, state, drop) in enumerate(zip(self.cells, states, self.masks(x, x.size(1)), strict=True)):
            x = self._dropped(x) if depth else x
            if depth == 0 and shift is not None:
                x = cast(Cell, cell).scan_plain(cast(Cell, cell).project(x) + shift, state, drop=drop)[0]
            else:
                x = cast(Cell, cell).scan(x, state, steps, drop=drop).hs
        return x

    def _dropped(self, x: Tensor) -> Tensor:
        return dropout(x, self.dropout, self.training)


def recurrent_mask(like: Tensor, shape: tuple[int, int], rate: float, training: bool) -> Tensor | None:
    """One dropout mask for all steps of a sequence (Gal & Ghahramani 2016), already divided by what it keeps."""
    if not training or rate == 0:
        return None
    return mask(like.new_empty(shape), rate)
