"""Bahdanau, Cho & Bengio 2015: the previous state looks at the source, then the context enters the update.

    attend with s_{t-1} → c_t        s_t = RNN(s_{t-1}, [c_t; y_{t-1}])        predict from s_t

Read next to luong.py: the same three comments, in another order, are the difference between the two papers.
"""

from __future__ import annotations

from typing import NamedTuple, cast

import torch
from torch import Tensor, nn

from mirada.models.attention import Attended, Score, attend
from mirada.models.base import Memory, Outputs, Step
from mirada.models.cells import CellState, Stack
from mirada.models.embedding import Embedding, MaxoutReadout, OutputLayer
from mirada.models.encoder import Bridge, RecurrentEncoder
from mirada.trees import put_rows


class BahdanauState(NamedTuple):
    """The recurrent state; the source is in the memory."""

    layers: tuple[CellState, ...]  # s_t of each layer, each part [N, D]


class Bahdanau(nn.Module):
    """Sequence to sequence with attention before the update."""

    def __init__(
        self,
        encoder: RecurrentEncoder,
        bridge: Bridge,
        embedding: Embedding,
        stack: Stack,
        score: nn.Module,
        output: OutputLayer,
        *,
        readout: MaxoutReadout | None = None,
    ):
        super().__init__()
        self.encoder, self.bridge, self.embedding = encoder, bridge, embedding
        self.stack, self.score, self.output, self.readout = stack, score, output, readout
        self.context_gates = nn.Linear(encoder.size, stack.gates, bias=False)  # C, C_z, C_r: c_t enters every gate

    def encode(self, source: Tensor, lengths: Tensor) -> Memory:
        """Read the source; the keys (U_a h_j) are made here, once a sentence."""
        encoded = self.encoder(source, lengths)
        keys = cast(Score, self.score).project(encoded.states)
        return Memory(encoded.states, encoded.mask, keys, encoded.final)

    def start(self, memory: Memory) -> BahdanauState:
        """s_0 = tanh(W_s ←h_1): from the backward state at word 1, which has read everything."""
        layers = self.bridge(memory.final)
        return BahdanauState(layers)

    def step(self, token: Tensor, state: BahdanauState, memory: Memory) -> Step:
        """Attend, update, predict."""
        embedded = self.embedding(token)  # [N, E]
        masks = self.stack.masks(embedded, len(token))
        attended, state = self._advance(self.stack.project(embedded), state, memory, masks)
        # 3. predict from s_t
        hidden = self._read(state.layers[-1][0], embedded, attended.context)  # [N, R]
        return Step(self.logits(hidden), state, attended.scores, attended.weights, attended.context, hidden, None)

    def _advance(
        self,
        y_gates: Tensor,
        state: BahdanauState,
        memory: Memory,
        masks: list[Tensor | None],
    ) -> tuple[Attended, BahdanauState]:
        # 1. attend with s_{t-1}
        query = state.layers[-1][0].unflatten(0, (memory.mask.size(0), -1))  # [B, K, D]
        looked = attend(cast(Score, self.score), query, memory)
        attended = Attended(*(part.flatten(0, 1) for part in looked))  # [N, S], [N, S], [N, H]
        # 2. update with [c_t; y_{t-1}]
        new = self.stack.step(y_gates + self.context_gates(attended.context), state.layers, masks)
        return attended, BahdanauState(new.states)

    def insert(self, state: BahdanauState, rows: Tensor, fresh: BahdanauState) -> BahdanauState:
        """Let others take rows of a batch that is searched."""
        return put_rows(state, rows, fresh)

    def forward(self, source: Tensor, lengths: Tensor, target_in: Tensor, *, with_attention: bool = False) -> Outputs:
        """All steps of known targets: the words' part of the gates and the readout at once, the rest step by step."""
        memory = self.encode(source, lengths)
        state = self.start(memory)
        embedded = self.embedding(target_in.T)  # [T, B, E]
        masks = self.stack.masks(embedded, embedded.size(1))
        states, contexts, weights = [], [], []
        for y_gates in self.stack.project(embedded):  # [B, G·D]
            attended, state = self._advance(y_gates, state, memory, masks)
            states.append(state.layers[-1][0])
            contexts.append(attended.context)
            weights.append(attended.weights)
        hidden = self._read(torch.stack(states), embedded, torch.stack(contexts))  # [T, B, R]
        return Outputs(hidden.transpose(0, 1), torch.stack(weights, 1) if with_attention else None)

    def logits(self, hidden: Tensor) -> Tensor:
        """Apply the output layer: `[…, R]` → `[…, V]`."""
        return cast(Tensor, self.output(hidden))

    def _read(self, states: Tensor, embedded: Tensor, context: Tensor) -> Tensor:
        return states if self.readout is None else cast(Tensor, self.readout(states, embedded, context))
