"""Luong, Pham & Manning 2015: the state is updated first, then looks at the source, then both make s̃_t.

    s_t = RNN(s_{t-1}, y_{t-1})        attend with s_t → c_t        s̃_t = tanh(W_c [c_t; s_t])        predict from s̃_t

With input feeding the RNN reads [y_{t-1}; s̃_{t-1}]. Read next to bahdanau.py: the same three comments, in another
order.
"""

from __future__ import annotations

from typing import NamedTuple, cast

import torch
from torch import Tensor, nn

from mirada.kernels.scan import Mixing, luong_scan
from mirada.models.attention import Attended, Past, Score, attend, attend_step, insert_rows, no_past, only_query
from mirada.models.base import Memory, Outputs, Step
from mirada.models.cells import CellState
from mirada.models.copying import CopyGate, Copying, copying, mixture
from mirada.models.encoder import RecurrentParts


class LuongState(NamedTuple):
    """The recurrent state and, with input feeding, the last attentional state."""

    layers: tuple[CellState, ...]  # s_t of each layer, each part [N, D]
    fed: Tensor | None  # [N, D] s̃_t, zeros at the start
    past: Past


class Luong(nn.Module):
    """Sequence to sequence with attention after the update."""

    def __init__(
        self,
        parts: RecurrentParts,
        score: nn.Module,
        *,
        input_feeding: bool,
        window: nn.Module | None = None,
        copy_gate: CopyGate | None = None,
        bias: bool = False,
        squashed: bool = True,
    ):
        super().__init__()
        self.encoder, self.bridge, self.embedding, self.stack, output = parts
        self.score, self.window, self.output = score, window, output
        self.copy_gate, self.input_feeding, self.squashed = copy_gate, input_feeding, squashed
        self.w_c = nn.Linear(self.encoder.size + self.stack.size, self.stack.size, bias=bias)
        self.feed_gates = nn.Linear(self.stack.size, self.stack.gates, bias=False) if input_feeding else None

    def encode(self, source: Tensor, lengths: Tensor, copies: Tensor | None = None) -> Memory:
        """Read the source; the keys (W_a h_j for general) are made here, once a sentence."""
        encoded = self.encoder(source, lengths)
        keys = cast(Score, self.score).project(encoded.states)
        return Memory(encoded.states, encoded.mask, keys, encoded.final, copies=copies)

    def start(self, memory: Memory) -> LuongState:
        """The encoder's last states, layer by layer; s̃_0 = 0."""
        layers = self.bridge(memory.final)
        fed = layers[-1][0] * 0 if self.input_feeding else None
        return LuongState(layers, fed, no_past(self.score, self.window, memory))

    def step(self, token: Tensor, state: LuongState, memory: Memory) -> Step:
        """Update, attend, predict."""
        embedded = self.embedding(token)  # [N, E]
        masks = self.stack.masks(embedded, len(token))
        hidden, attended, state = self._advance(self.stack.project(embedded), state, memory, masks)
        read = (attended.context, state.layers[-1][0], embedded)
        logits = self.logits(hidden, copying(self.copy_gate, read, attended.weights, memory))
        return Step(logits, state, attended.scores, attended.weights, attended.context, hidden, None)

    def _advance(
        self,
        y_gates: Tensor,
        state: LuongState,
        memory: Memory,
        masks: list[Tensor | None],
    ) -> tuple[Tensor, Attended, LuongState]:
        # 1. update from y_{t-1} (and s̃_{t-1})
        gates = y_gates if self.feed_gates is None else y_gates + self.feed_gates(state.fed)
        new = self.stack.step(gates, state.layers, masks)
        # 2. attend with s_t
        attended, past = attend_step(cast(Score, self.score), self.window, new.output, memory, state.past)
        # 3. the attentional state s̃_t, from which the word is predicted
        hidden = self._attentional(attended.context, new.output)  # [N, D]
        return hidden, attended, LuongState(new.states, hidden if self.input_feeding else None, past)

    def insert(self, state: LuongState, rows: Tensor, fresh: LuongState) -> LuongState:
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
        """All steps of known targets. Without input feeding nothing loops but the recurrence itself."""
        memory = self.encode(source, lengths, copies)
        state = self.start(memory)
        embedded = self.embedding(target_in.T)  # [T, B, E]
        if self.input_feeding or state.past.coverage is not None:
            hidden, *seen = self._loop(self.stack.project(embedded), state, memory)
        else:
            states = self.stack.scan(embedded, state.layers).transpose(0, 1)  # [B, T, D]
            steps = torch.arange(target_in.size(1), device=target_in.device).expand_as(target_in)
            attended = attend(cast(Score, self.score), states, memory, self.window, Past(steps))
            hidden = self._attentional(attended.context, states)
            seen = [states, attended.context, attended.weights]
        states, context, weights = seen  # [B, T, …]
        copied = copying(self.copy_gate, (context, states, embedded.transpose(0, 1)), weights, memory)
        return Outputs(hidden, weights if with_attention else None, copying=copied)

    def _loop(self, y_gates: Tensor, state: LuongState, memory: Memory) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        masks = self.stack.masks(y_gates, y_gates.size(1))
        layer = self.stack.only_layer(y_gates, state.layers, masks)
        source = only_query(cast(Score, self.score), self.window, memory)
        if layer is not None and source is not None and self.feed_gates is not None:  # the same numbers, sooner
            mixing = Mixing(self.feed_gates.weight, self.w_c.weight, self.w_c.bias, self.squashed)
            return luong_scan(layer, source, mixing)
        steps = []
        for gates in y_gates:  # [B, G·D]
            s_tilde, attended, state = self._advance(gates, state, memory, masks)
            steps.append((s_tilde, state.layers[-1][0], attended.context, attended.weights))
        hidden, states, contexts, weights = (torch.stack(part, 1) for part in zip(*steps, strict=True))  # [B, T, …]
        return hidden, states, contexts, weights

    def logits(self, hidden: Tensor, copied: Copying | None = None) -> Tensor:
        """Apply the output layer: `[…, R]` → `[…, V]`; with what steps copy, log P `[…, V + S]`."""
        logits = cast(Tensor, self.output(hidden))
        return logits if copied is None else mixture(logits, copied)

    def _attentional(self, context: Tensor, state: Tensor) -> Tensor:
        mixed = cast(Tensor, self.w_c(torch.cat((context, state), -1)))
        return mixed.tanh() if self.squashed else mixed
