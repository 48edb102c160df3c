"""What a search needs of a model: the verbs of a decoder. Knows no model."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

from torch import Tensor

from mirada.search.step import StepResult


class Decoder(Protocol):
    """A model that is searched."""

    def encode(self, source: Tensor, lengths: Tensor, copies: Tensor | None = None) -> Any:
        """Read the source: ids `[B, S]` padded at the right, real lengths `[B]`. Gives a memory, or several.

        A memory is a named tuple of tensors with a row a sentence (search/memory.py): `states` `[B, S, H]`, `mask`
        `[B, S]` True on real tokens, `keys`, a tree of `[B, …, S, A]`, and `final`, which only `start` reads.
        An ensemble may be given `[B, M, S]` and `[B, M]`, a row for each member.

        `copies` `[B, S]` are the ids that the source tokens would write, for a model that copies.
        """

    def start(self, memory: Any) -> Any:
        """Return the decoder's state before the first step: a tree of tensors `[B, …]`."""

    def step(self, token: Tensor, state: Any, memory: Any) -> StepResult:
        """Make one step from the previous tokens `[N]`, where row n belongs to sentence n // (N / B)."""


@runtime_checkable
class ContinuousDecoder(Protocol):
    """A decoder in whose batch sentences of different ages stand side by side: all but the plain Transformer."""

    def insert(self, state: Any, rows: Tensor, fresh: Any) -> Any:
        """Let others take `rows` of a state, which is used up by this."""
