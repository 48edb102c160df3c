"""What every model offers, so that training, search and plots know nothing else about it.

`encode` reads the source once; `start` gives the decoder's first state; `step` makes one decoder step; `forward` makes
all steps at once for known targets. Letters for shapes: `B` sentences, `N` rows (`B` × `K` hypotheses a sentence),
`S` source positions, `T` target positions, `H` memory width, `A` key width, `D` decoder width, `R` readout width,
`V` vocabulary.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

from torch import Tensor

from mirada.models.embedding import OutputLayer

# A decoder state is a (nested) tuple of tensors, batch first; what is in it is the model's own business.
State = Any


class Memory(NamedTuple):
    """What the decoder may look at: made once a sentence, never repeated over hypotheses.

    `states` is h_1…h_S. `keys` is what the score function compares with, computed once (U_a h_j for additive).
    `final` is what the decoder starts from. `replaced` replaces the weights for an intervention (mirada explain), and
    `copies` are the ids that each position would write (copying.py): None otherwise. Every tensor is batch first.
    """

    states: Tensor  # [B, S, H]
    mask: Tensor  # [B, S] True on real tokens
    keys: Any  # [B, S, A], or a tree of such
    final: Any  # a tree of [B, …]
    replaced: Tensor | None = None  # [B, 1 or K, S]
    copies: Tensor | None = None  # [B, S]


class Step(NamedTuple):
    """One decoder step, with everything a reader wants to see. Fields a model does not have are None."""

    logits: Tensor  # [N, V]; of a model that copies log P, [N, V + S]
    state: State
    scores: Tensor | None  # [N, S] e_tj, before the mask and the softmax
    attention: Tensor | None  # [N, S] α_tj; for the Transformer the mean over the last layer's heads
    context: Tensor | None  # [N, H] c_t
    hidden: Tensor  # [N, R] what the output layer reads
    heads: Tensor | None  # [N, L, heads, S] the Transformer's cross-attention, every layer and head


class Outputs(NamedTuple):
    """All steps of known targets at once: what the loss needs, and the attention if it was asked for."""

    hidden: Tensor  # [B, T, R] what the output layer reads
    attention: Tensor | None  # [B, T, S]
    heads: Tensor | None = None  # [B, L, heads, T, S] the Transformer's, with `attention`
    copying: Any = None  # Copying, of a model that copies


class Network(Protocol):
    """The four verbs. `N` rows of `step` may be any multiple of the memory's `B`, the rows of a sentence together."""

    def encode(self, source: Tensor, lengths: Tensor, copies: Tensor | None = None) -> Memory:
        """Read the source: ids `[B, S]` padded at the right, real lengths `[B]`; what it would write, to copy it."""
        ...

    def start(self, memory: Memory) -> State:
        """Return the decoder's state before the first step, `B` rows."""
        ...

    def step(self, token: Tensor, state: State, memory: Memory) -> Step:
        """Make one step from the previous tokens `[N]`, where row n belongs to sentence n // (N / B)."""
        ...

    def forward(
        self,
        source: Tensor,
        lengths: Tensor,
        target_in: Tensor,
        copies: Tensor | None = None,
        *,
        with_attention: bool = False,
    ) -> Outputs:
        """Make all steps for known previous tokens `[B, T]` (teacher forcing)."""
        ...

    def logits(self, hidden: Tensor, copied: Any = None) -> Tensor:
        """Apply the output layer: `[…, R]` → `[…, V]`; with what steps copy, log P `[…, V + S]`."""
        ...

    @property
    def output(self) -> OutputLayer:
        """The output layer itself, for the loss that never holds all logits."""
        ...
