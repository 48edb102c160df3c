"""Bahdanau, Cho & Bengio 2015: the previous state looks at the source, then the context enters the update.

    attend with s_{t-1} → c_t        s_t = RNN(s_{t-1}, [c_t; y_{t-1}])        predict from s_t

Read next to luong.py: the same three comments, in another order, are the difference between the two papers.
"""

from __future__ import annotations

from typing import NamedTuple, cast

import torch
from torch import Tensor, nn

from mirada.kernels.scan import bahdanau_scan
from mirada.models.attention import Attended, Past, Score, attend_step, insert_rows, no_past, only_query
from mirada.models.base import Memory, Outputs, Step
from mirada.models.cells import CellState
from mirada.models.copying import CopyGate, Copying, copying, mixture
from mirada.models.embedding import MaxoutReadout
from mirada.models.encoder import RecurrentParts


class BahdanauState(NamedTuple):
    """The recurrent state; the source is in the memory."""

    layers: tuple[CellState, ...]  # s_t of each layer, each part [N, D]
    past: Past


class Bahdanau(nn.Module):
    """Sequence to sequence with attention before the update."""

    def __init__(
        self,
        parts: RecurrentParts,
        score: nn.Module,
        *,
        window: nn.Module | None = None,
        readout: MaxoutReadout | None = None,
        copy_gate: CopyGate | None = None,
    ):
        super().__init__()
        self.encoder, self.bridge, self.embedding, self.stack, output = parts
        self.score, self.window, self.output = score, window, output
        self.readout, self.copy_gate = readout, copy_gate
        # C, C_z, C_r: c_t enters every gate
        self.context_gates = nn.Linear(self.encoder.size, self.stack.gates, bias=False)

    def encode(self, source: Tensor, lengths: Tensor, copies: Tensor | None = None) -> Memory:
        """Read the source; the keys (U_a h_j) are made here, once a sentence."""
        encoded = self.encoder(source, lengths)
        keys = cast(Score, self.score).project(encoded.states)
        return Memory(encoded.states, encoded.mask, keys, encoded.final, copies=copies)

    def start(self, memory: Memory) -> BahdanauState:
        """s_0 = tanh(W_s ←h_1): from the backward state at word 1, which has read everything."""
        layers = self.bridge(memory.final)
        return BahdanauState(layers, no_past(self.score, self.window, memory))

    def step(self, token: Tensor, state: BahdanauState, memory: Memory) -> Step:
        """Attend, update, predict."""
        embedded = self.embedding(token)  # [N, E]
        masks = self.stack.masks(embedded, len(token))
        attended, state = self._advance(self.stack.project(embedded), state, memory, masks)
        # 3. predict from s_t
        hidden = self._read(state.layers[-1][0], embedded, attended.context)  # [N, R]
        read = (attended.context, state.layers[-1][0], embedded)
        copied = copying(self.copy_gate, read, attended.weights, memory)
        logits = self.logits(hidden, copied)
        return Step(logits, state, attended.scores, attended.weights, attended.context, hidden, None)

    def _advance(
        self,
        y_gates: Tensor,
        state: BahdanauState,
        memory: Memory,
        masks: list[Tensor | None],
    ) -> tuple[Attended, BahdanauState]:
        # 1. attend with s_{t-1}
        score = cast(Score, self.score)
        attended, past = attend_step(score, self.window, state.layers[-1][0], memory, state.past)
        # 2. update with [c_t; y_{t-1}]
        new = self.stack.step(y_gates + self.context_gates(attended.context), state.layers, masks)
        return attended, BahdanauState(new.states, past)

    def insert(self, state: BahdanauState, rows: Tensor, fresh: BahdanauState) -> BahdanauState:
        """Let others take rows of a batch that is searched."""
        return insert_rows(state, rows, fresh)

    def forward(
        self,
        source: Tensor,
        lengths: Tensor,
        target_in: Tensor,
        copies: Tensor | None = None,
        *,
        with_attention: bool = False,
    ) -> Outputs:
        """All steps of known targets: the words' part of the gates and the readout at once, the rest step by step."""
        memory = self.encode(source, lengths, copies)
        state = self.start(memory)
        embedded = self.embedding(target_in.T)  # [T, B, E]
        states, contexts, attention = self._loop(self.stack.project(embedded), state, memory)
        seen = (contexts, states, embedded.transpose(0, 1))  # [B, T, …]
        copied = copying(self.copy_gate, seen, attention, memory)
        hidden = self._read(seen[1], seen[2], seen[0])  # [B, T, R]
        return Outputs(hidden, attention if with_attention else None, copying=copied)

    def _loop(self, y_gates: Tensor, state: BahdanauState, memory: Memory) -> tuple[Tensor, Tensor, Tensor]:
        masks = self.stack.masks(y_gates, y_gates.size(1))
        layer = self.stack.only_layer(y_gates, state.layers, masks)
        source = only_query(cast(Score, self.score), self.window, memory)
        if layer is not None and source is not None:  # the same numbers, sooner
            return bahdanau_scan(layer, source, self.context_gates.weight)
        steps = []
        for gates in y_gates:  # [B, G·D]
            attended, state = self._advance(gates, state, memory, masks)
            steps.append((state.layers[-1][0], attended.context, attended.weights))
        states, contexts, weights = (torch.stack(part, 1) for part in zip(*steps, strict=True))  # [B, T, …]
        return states, contexts, weights

    def logits(self, hidden: Tensor, copied: Copying | None = None) -> Tensor:
        """Apply the output layer: `[…, R]` → `[…, V]`; with what steps copy, log P `[…, V + S]`."""
        logits = cast(Tensor, self.output(hidden))
        return logits if copied is None else mixture(logits, copied)

    def _read(self, states: Tensor, embedded: Tensor, context: Tensor) -> Tensor:
        return states if self.readout is None else cast(Tensor, self.readout(states, embedded, context))
