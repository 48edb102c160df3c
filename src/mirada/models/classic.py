"""The classic encoder-decoder: one fixed vector holds the whole source (Sutskever et al. 2014; Cho et al. 2014).

    c = h_T        s_0 = c        s_t = RNN(y_{t-1}, s_{t-1})        p(y_t) = softmax(W_y s_t + b_y)

With `feed_context` it is Cho's: c = tanh(V h_T), s_0 = tanh(V' c), c enters every step and the maxout readout. With
`input_feeding`, as in other toolkits without their attention, the RNN reads [y_{t-1}; s_{t-1}], at first [y_0; 0].
"""

from __future__ import annotations

from typing import Any, NamedTuple, cast

import torch
from torch import Tensor, nn

from mirada.models.base import Memory, Outputs, Step
from mirada.models.cells import CellState
from mirada.models.embedding import MaxoutReadout
from mirada.models.encoder import RecurrentParts
from mirada.trees import put_rows


class ClassicState(NamedTuple):
    """The decoder's memory of the source and of what it wrote."""

    layers: tuple[CellState, ...]  # s_t of each layer, each part [N, D]
    context: Tensor | None  # [N, D] Cho's c, the same at every step
    fed: Tensor | None  # [N, D] s_{t-1} of the top layer as part of the input, zeros at the start


class Classic(nn.Module):
    """Sequence to sequence through one vector."""

    def __init__(self, parts: RecurrentParts, *, readout: MaxoutReadout | None = None, input_feeding: bool = False):
        super().__init__()
        self.encoder, self.bridge, self.embedding, self.stack, self.output = parts
        self.readout = readout
        self.feed_gates = nn.Linear(self.stack.size, self.stack.gates, bias=False) if input_feeding else None
        if readout is not None:
            size = self.stack.size
            self.summary = nn.Linear(self.encoder.size, size)  # V
            self.starts = nn.ModuleList(nn.Linear(size, size) for _ in self.stack.cells)  # V'
            self.context_gates = nn.Linear(size, self.stack.gates, bias=False)  # C

    def encode(self, source: Tensor, lengths: Tensor, copies: Tensor | None = None) -> Memory:
        """Read the source; `final` is every layer's last state."""
        encoded = self.encoder(source, lengths)
        return Memory(encoded.states, encoded.mask, (), encoded.final)

    def start(self, memory: Memory) -> ClassicState:
        """s_0 = c, layer by layer (through a bridge where sizes or directions differ)."""
        if self.readout is None:
            layers = self.bridge(memory.final)
            return ClassicState(layers, None, None if self.feed_gates is None else layers[-1][0] * 0)
        context = self.summary(memory.final[-1][0]).tanh()  # [B, D]
        zeros = cast(Tensor, context) * 0
        layers = tuple(
            (start(context).tanh(), *([zeros] if self.stack.kind == "lstm" else [])) for start in self.starts
        )
        return ClassicState(layers, context, None)

    def step(self, token: Tensor, state: ClassicState, memory: Memory) -> Step:
        """Update from the previous word, predict from the new state. The source is not looked at again."""
        embedded = self.embedding(token)  # [N, E]
        # 1. update: s_t = RNN(y_{t-1}, s_{t-1})
        output, state = self._advance(self.stack.project(embedded), state, self.stack.masks(embedded, len(token)))
        # 2. predict
        hidden = self._read(output, embedded, state.context)  # [N, R]
        return Step(self.logits(hidden), state, None, None, state.context, hidden, None)

    def _advance(self, gates: Tensor, state: ClassicState, masks: list[Tensor | None]) -> tuple[Tensor, ClassicState]:
        if state.context is not None:
            gates = gates + self.context_gates(state.context)
        if self.feed_gates is not None:
            gates = gates + self.feed_gates(state.fed)
        new = self.stack.step(gates, state.layers, masks)
        return new.output, ClassicState(new.states, state.context, new.output if self.feed_gates else None)

    def insert(self, state: ClassicState, rows: Tensor, fresh: ClassicState) -> ClassicState:
        """Let others take rows of a batch that is searched."""
        return put_rows(state, rows, fresh)

    def forward(
        self,
        source: Tensor,
        lengths: Tensor,
        target_in: Tensor,
        copies: Tensor | None = None,
        *,
        with_attention: bool = False,
    ) -> Outputs:
        """All steps at once: the recurrence is one scan, but with input feeding. There is no attention to return."""
        state = self.start(self.encode(source, lengths))
        embedded = self.embedding(target_in.T)  # [T, B, E]
        if self.feed_gates is not None:
            states = self._loop(embedded, state)  # [T, B, D]
        else:
            shift = None if state.context is None else self.context_gates(state.context)  # [B, G·D]
            states = self.stack.scan(embedded, state.layers, shift=shift)  # [T, B, D]
        return Outputs(self._read(states, embedded, state.context).transpose(0, 1), None)

    def logits(self, hidden: Tensor, copied: Any = None) -> Tensor:
        """Apply the output layer: `[…, R]` → `[…, V]`."""
        return cast(Tensor, self.output(hidden))

    def _loop(self, embedded: Tensor, state: ClassicState) -> Tensor:
        masks = self.stack.masks(embedded, embedded.size(1))
        outputs = []
        for y_gates in self.stack.project(embedded):  # [B, G·D]
            output, state = self._advance(y_gates, state, masks)
            outputs.append(output)
        return torch.stack(outputs)  # [T, B, D]

    def _read(self, states: Tensor, embedded: Tensor, context: Tensor | None) -> Tensor:
        if self.readout is None or context is None:
            return states
        return cast(Tensor, self.readout(states, embedded, context))
