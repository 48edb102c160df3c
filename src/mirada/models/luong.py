"""Luong, Pham & Manning 2015: the state is updated first, then looks at the source, then both make s̃_t.

    s_t = RNN(s_{t-1}, y_{t-1})        attend with s_t → c_t        s̃_t = tanh(W_c [c_t; s_t])        predict from s̃_t

With input feeding the RNN reads [y_{t-1}; s̃_{t-1}]. Read next to bahdanau.py: the same three comments, in another
order.
"""

from __future__ import annotations

from typing import NamedTuple, cast

import torch
from torch import Tensor, nn

from mirada.models.attention import Attended, Score, attend
from mirada.models.base import Memory, Outputs, Step
from mirada.models.cells import CellState, Stack
from mirada.models.embedding import Embedding, OutputLayer
from mirada.models.encoder import Bridge, RecurrentEncoder
from mirada.trees import put_rows


class LuongState(NamedTuple):
    """The recurrent state and, with input feeding, the last attentional state."""

    layers: tuple[CellState, ...]  # s_t of each layer, each part [N, D]
    fed: Tensor | None  # [N, D] s̃_t, zeros at the start


class Luong(nn.Module):
    """Sequence to sequence with attention after the update."""

    def __init__(
        self,
        encoder: RecurrentEncoder,
        bridge: Bridge,
        embedding: Embedding,
        stack: Stack,
        score: nn.Module,
        output: OutputLayer,
        *,
        input_feeding: bool,
    ):
        super().__init__()
        self.encoder, self.bridge, self.embedding = encoder, bridge, embedding
        self.stack, self.score, self.output, self.input_feeding = stack, score, output, input_feeding
        self.w_c = nn.Linear(encoder.size + stack.size, stack.size, bias=False)
        self.feed_gates = nn.Linear(stack.size, stack.gates, bias=False) if input_feeding else None

    def encode(self, source: Tensor, lengths: Tensor) -> Memory:
        """Read the source; the keys (W_a h_j for general) are made here, once a sentence."""
        encoded = self.encoder(source, lengths)
        keys = cast(Score, self.score).project(encoded.states)
        return Memory(encoded.states, encoded.mask, keys, encoded.final)

    def start(self, memory: Memory) -> LuongState:
        """The encoder's last states, layer by layer; s̃_0 = 0."""
        layers = self.bridge(memory.final)
        return LuongState(layers, layers[-1][0] * 0 if self.input_feeding else None)

    def step(self, token: Tensor, state: LuongState, memory: Memory) -> Step:
        """Update, attend, predict."""
        embedded = self.embedding(token)  # [N, E]
        masks = self.stack.masks(embedded, len(token))
        hidden, attended, state = self._advance(self.stack.project(embedded), state, memory, masks)
        return Step(self.logits(hidden), state, attended.scores, attended.weights, attended.context, hidden, None)

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
        query = new.output.unflatten(0, (memory.mask.size(0), -1))  # [B, K, D]
        looked = attend(cast(Score, self.score), query, memory)
        attended = Attended(*(part.flatten(0, 1) for part in looked))  # [N, S], [N, S], [N, H]
        # 3. the attentional state s̃_t, from which the word is predicted
        hidden = self._attentional(attended.context, new.output)  # [N, D]
        return hidden, attended, LuongState(new.states, hidden if self.input_feeding else None)

    def insert(self, state: LuongState, rows: Tensor, fresh: LuongState) -> LuongState:
        """Let others take rows of a batch that is searched."""
        return put_rows(state, rows, fresh)

    def forward(self, source: Tensor, lengths: Tensor, target_in: Tensor, *, with_attention: bool = False) -> Outputs:
        """All steps of known targets. Without input feeding nothing loops but the recurrence itself."""
        memory = self.encode(source, lengths)
        state = self.start(memory)
        embedded = self.embedding(target_in.T)  # [T, B, E]
        if not self.input_feeding:
            states = self.stack.scan(embedded, state.layers).transpose(0, 1)  # [B, T, D]
            attended = attend(cast(Score, self.score), states, memory)
            return Outputs(self._attentional(attended.context, states), attended.weights if with_attention else None)
        masks = self.stack.masks(embedded, embedded.size(1))
        hidden, weights = [], []
        for y_gates in self.stack.project(embedded):  # [B, G·D]
            s_tilde, attended, state = self._advance(y_gates, state, memory, masks)
            hidden.append(s_tilde)
            weights.append(attended.weights)
        return Outputs(torch.stack(hidden, 1), torch.stack(weights, 1) if with_attention else None)

    def logits(self, hidden: Tensor) -> Tensor:
        """Apply the output layer: `[…, R]` → `[…, V]`."""
        return cast(Tensor, self.output(hidden))

    def _attentional(self, context: Tensor, state: Tensor) -> Tensor:
        return cast(Tensor, self.w_c(torch.cat((context, state), -1)).tanh())
