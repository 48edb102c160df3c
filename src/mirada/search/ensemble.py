"""Several models as one for search and scoring: one distribution of the next token out of theirs. Knows no model.

    linear       p(w) = 1/M Σ_m p_m(w)                  the mean of the probabilities
    log_linear   p(w) ∝ exp(1/M Σ_m ln p_m(w))          the mean of the log-probabilities, brought to sum 1 again

The models write one target vocabulary. Each reads a source in its own tokens, or all in the same; those that copy
(models/copying.py) do so from the same tokens, and what another cannot write has no probability there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import log
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import pad

from mirada.data.vocabulary import UNK
from mirada.search.decoder import ContinuousDecoder
from mirada.search.step import StepResult, log_probabilities

Mode = Literal["linear", "log_linear"]


def mixed(parts: Sequence[Tensor], mode: Mode) -> Tensor:
    """ln p of an ensemble from its members' `[N, V]`, −∞ where a member knows fewer words than another."""
    width = max(part.size(1) for part in parts)
    every = torch.stack([pad(part, (0, width - part.size(1)), value=-torch.inf) for part in parts])  # [M, N, V]
    return every.logsumexp(0) - log(len(parts)) if mode == "linear" else every.mean(0).log_softmax(-1)


def mean_attention(parts: Sequence[Tensor | None]) -> Tensor | None:
    """The mean of the weights of those that have some; none where the sources were not read in the same tokens."""
    known = [part for part in parts if part is not None]
    if not known or len({part.size(-1) for part in known}) > 1:
        return None
    return torch.stack(known).mean(0)


class EnsembleStep(NamedTuple):
    """One step of all members."""

    logits: Tensor  # [N, V] log-probabilities of the ensemble
    state: tuple[Any, ...]
    parts: tuple[StepResult, ...]  # each member's own

    @property
    def attention(self) -> Tensor | None:
        """The mean of the members' weights, `[N, S]`."""
        return mean_attention([part.attention for part in self.parts])


class EnsembleOutputs(NamedTuple):
    """All steps of known targets, of each member."""

    hidden: tuple[Tensor, ...]  # each [B, T, R]
    copying: tuple[Any, ...]
    attention: Tensor | None  # [B, T, S]
    heads: None = None


class Ensemble:
    """The verbs of a decoder, and `forward`, of several models; a memory and a state are a tuple of theirs.

    `vocabulary` is the number of target tokens. Sources are ids `[B, S]` for all members, or `[B, M, S]`, a row each.
    """

    def __init__(self, members: Sequence[Any], *, vocabulary: int, mode: Mode = "linear"):
        self.members, self.vocabulary, self.mode = tuple(members), vocabulary, mode
        if all(isinstance(member, ContinuousDecoder) for member in members):
            self.insert = self._insert  # what only all together can have

    def encode(self, source: Tensor, lengths: Tensor, copies: Tensor | None = None) -> tuple[Any, ...]:
        """Let each member read the source; `lengths` `[B]` or `[B, M]`."""
        return tuple(member.encode(*read, copies) for member, *read in self._each(source, lengths))

    def start(self, memory: tuple[Any, ...]) -> tuple[Any, ...]:
        """Each member's first state."""
        return tuple(member.start(part) for member, part in zip(self.members, memory, strict=True))

    def step(self, token: Tensor, state: tuple[Any, ...], memory: tuple[Any, ...]) -> EnsembleStep:
        """One step of each from the previous tokens `[N]`, and one distribution out of theirs."""
        known = self._known(token)
        parts = tuple(member.step(known, *own) for member, *own in zip(self.members, state, memory, strict=True))
        logits = mixed([log_probabilities(part.logits) for part in parts], self.mode)
        return EnsembleStep(logits, tuple(part.state for part in parts), parts)

    def forward(
        self,
        source: Tensor,
        lengths: Tensor,
        target_in: Tensor,
        copies: Tensor | None = None,
        *,
        with_attention: bool = False,
    ) -> EnsembleOutputs:
        """All steps of known previous tokens `[B, T]`."""
        known = self._known(target_in)
        outputs = [
            member.forward(*read, known, copies, with_attention=with_attention)
            for member, *read in self._each(source, lengths)
        ]
        attention = mean_attention([output.attention for output in outputs]) if with_attention else None
        return EnsembleOutputs(
            tuple(output.hidden for output in outputs), tuple(output.copying for output in outputs), attention
        )

    def logits(self, hidden: tuple[Tensor, ...], copied: tuple[Any, ...]) -> Tensor:
        """The ensemble's log-probabilities of all steps, `[B, T, V]`."""
        each: list[Tensor] = [member.logits(*own) for member, *own in zip(self.members, hidden, copied, strict=True)]
        rows = mixed([log_probabilities(part.flatten(0, -2)) for part in each], self.mode)
        return rows.view(*each[0].shape[:-1], -1)

    def _insert(self, state: tuple[Any, ...], rows: Tensor, fresh: tuple[Any, ...]) -> tuple[Any, ...]:
        """Let others take rows of every member's state."""
        each = zip(self.members, state, fresh, strict=True)
        return tuple(member.insert(own, rows, new) for member, own, new in each)

    def _each(self, source: Tensor, lengths: Tensor) -> Iterator[tuple[Any, Tensor, Tensor]]:
        """Each member with the source as it reads it."""
        for number, member in enumerate(self.members):
            if source.dim() == 2:
                yield member, source, lengths
            else:
                own = lengths[:, number]
                yield member, source[:, number, : int(own.max())], own

    def _known(self, token: Tensor) -> Tensor:
        """What the vocabulary does not hold, a word copied from the source, is read as `<unk>` by all."""
        return token.masked_fill(token >= self.vocabulary, UNK)
