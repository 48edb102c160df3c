"""The classic encoder-decoder: one fixed vector holds the whole source (Sutskever et al. 2014; Cho et al. 2014).

    c = h_T        s_0 = c        s_t = RNN(y_{t-1}, s_{t-1})        p(y_t) = softmax(W_y s_t + b_y)

With `feed_context` it is Cho's: c = tanh(V h_T), s_0 = tanh(V' c), c enters every step and the maxout readout.
"""

from __future__ import annotations

from typing import Any, NamedTuple, cast

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


class Classic(nn.Module):
    """Sequence to sequence through one vector."""

    def __init__(self, parts: RecurrentParts, *, readout: MaxoutReadout | None = None):
        super().__init__()
        self.encoder, self.bridge, self.embedding, self.stack, self.output = parts
        self.readout = readout
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
            return ClassicState(layers, None)
        context = self.summary(memory.final[-1][0]).tanh()  # [B, D]
        zeros = cast(Tensor, context) * 0
        layers = tuple(
            (start(context).tanh(), *([zeros] if self.stack.kind == "lstm" else [])) for start in self.starts
        )
        return ClassicState(layers, context)

    def step(self, token: Tensor, state: ClassicState, memory: Memory) -> Step:
        """Update from the previous word, predict from the new state. The source is not looked at again."""
        embedded = self.embedding(token)  # [N, E]
        # 1. update: s_t = RNN(y_{t-1}, s_{t-1})
        new = self.stack.step(
            self._gates(embedded, state.context), state.layers, self.stack.masks(embedded, len(token))
        )
        # 2. predict
        hidden = self._read(new.output, embedded, state.context)  # [N, R]
        state = ClassicState(new.states, state.context)
        return Step(self.logits(hidden), state, None, None, state.context, hidden, None)

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
        """All steps at once: the recurrence is one scan. There is no attention to return."""
        state = self.start(self.encode(source, lengths))
        embedded = self.embedding(target_in.T)  # [T, B, E]
        shift = None if state.context is None else self.context_gates(state.context)  # [B, G·D]
        states = self.stack.scan(embedded, state.layers, shift=shift)  # [T, B, D]
        return Outputs(self._read(states, embedded, state.context).transpose(0, 1), None)

    def logits(self, hidden: Tensor, copied: Any = None) -> Tensor:
        """Apply the output layer: `[…, R]` → `[…, V]`."""
        return cast(Tensor, self.output(hidden))

    def _gates(self, embedded: Tensor, context: Tensor | None) -> Tensor:
        gates = self.stack.project(embedded)
        return gates if context is None else gates + self.context_gates(context)

    def _read(self, states: Tensor, embedded: Tensor, context: Tensor | None) -> Tensor:
        if self.readout is None or context is None:
            return states
        return cast(Tensor, self.readout(states, embedded, context))
