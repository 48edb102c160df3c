"""Every attention equation, in the order of the papers.

A score compares queries (decoder states) with keys made once a sentence; softmax over the real positions turns scores
into weights; the weights average the encoder's states into the context. Any flow takes any score:
`T` is the axis of queries of one sentence, be they steps of a known target or hypotheses of a beam.

    e_tj = score(s, h_j)        α_tj = exp(e_tj) / Σ_k exp(e_tk)        c_t = Σ_j α_tj h_j
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple, Protocol, TypeVar, cast

import torch
from torch import Tensor, nn
from torch.nn.functional import pad

from mirada.kernels.energy import additive_energy
from mirada.kernels.scan import Attention
from mirada.models.base import Memory
from mirada.models.local import Monotonic, Window
from mirada.trees import map_tensors, put_rows


class Score(Protocol):
    """A score function: `project` the encoder's states once, then compare queries with them."""

    def project(self, states: Tensor) -> Tensor:
        """Make keys `[B, S, A]` from states `[B, S, H]`."""
        ...

    def __call__(self, query: Tensor, keys: Tensor, coverage: Tensor | None = None) -> Tensor:
        """Compare queries `[B, T, D]` with keys `[B, S, A]`, knowing the coverage `[B, T, S]`: scores `[B, T, S]`."""
        ...

    def source(self, memory: Memory) -> Attention:
        """The same comparison without coverage, as kernels/scan.py takes it."""
        ...


class Attended(NamedTuple):
    """What attending to the source gives."""

    scores: Tensor  # [B, T, S] e_tj
    weights: Tensor  # [B, T, S] α_tj, 0 on padding
    context: Tensor  # [B, T, H] c_t


def _initialised(size: int) -> Tensor:
    """v_a, uniform within ±1/√size; where only shapes are wanted (device meta) torch takes a second to divide."""
    weights = torch.empty(size).uniform_(-1, 1)
    return weights if weights.is_meta else weights / math.sqrt(size)


class AdditiveScore(nn.Module):
    """e_tj = v_aᵀ tanh(W_a s + U_a h_j), no bias (Bahdanau et al. 2015, appendix A.1.2).

    With coverage w_c c_tj is added before the tanh (See, Liu & Manning 2017, equation 11). `bias`, as other toolkits
    have it, adds a b there.
    """

    def __init__(
        self, query_size: int, memory_size: int, attention_size: int, *, bias: bool = False, coverage: bool = False
    ):
        super().__init__()
        self.w_a = nn.Linear(query_size, attention_size, bias=False)
        self.u_a = nn.Linear(memory_size, attention_size, bias=bias)
        self.v_a = nn.Parameter(_initialised(attention_size))
        self.w_c = nn.Parameter(torch.zeros(attention_size)) if coverage else None

    def project(self, states: Tensor) -> Tensor:
        """U_a h_j (+ b): `[B, S, H]` → `[B, S, A]`."""
        return cast(Tensor, self.u_a(states))

    def forward(self, query: Tensor, keys: Tensor, coverage: Tensor | None = None) -> Tensor:
        """Scores `[B, T, S]`."""
        return energy(self.w_a(query), keys, self.v_a, covered(coverage, self.w_c))

    def source(self, memory: Memory) -> Attention:
        """W_a and v_a."""
        return Attention(memory.states, memory.keys, memory.mask, self.w_a.weight, self.v_a)


class ConcatScore(nn.Module):
    """e_tj = v_aᵀ tanh(W_a [s; h_j]), no bias (Luong et al. 2015, equation 8).

    W_a's columns for h_j make the keys once a sentence, its columns for s meet them at each step: the same numbers as
    the product with the concatenation, without writing the concatenation out. Bias and coverage as for the additive
    score.
    """

    def __init__(
        self, query_size: int, memory_size: int, attention_size: int, *, bias: bool = False, coverage: bool = False
    ):
        super().__init__()
        self.query_size = query_size
        self.w_a = nn.Linear(query_size + memory_size, attention_size, bias=bias)
        self.v_a = nn.Parameter(_initialised(attention_size))
        self.w_c = nn.Parameter(torch.zeros(attention_size)) if coverage else None

    def project(self, states: Tensor) -> Tensor:
        """W_a's part for h_j (+ b): `[B, S, H]` → `[B, S, A]`."""
        return nn.functional.linear(states, self.w_a.weight[:, self.query_size :], self.w_a.bias)

    def forward(self, query: Tensor, keys: Tensor, coverage: Tensor | None = None) -> Tensor:
        """Scores `[B, T, S]`."""
        return energy(query @ self.w_a.weight[:, : self.query_size].T, keys, self.v_a, covered(coverage, self.w_c))

    def source(self, memory: Memory) -> Attention:
        """W_a's part for s, and v_a."""
        return Attention(memory.states, memory.keys, memory.mask, self.w_a.weight[:, : self.query_size], self.v_a)


class DotScore(nn.Module):
    """e_tj = sᵀ h_j (Luong et al. 2015, equation 8), or divided by √d (Vaswani et al. 2017, equation 1)."""

    def __init__(self, size: int, *, scaled: bool):
        super().__init__()
        self.scale = 1 / math.sqrt(size) if scaled else 1.0

    def project(self, states: Tensor) -> Tensor:
        """The keys are the states."""
        return states

    def forward(self, query: Tensor, keys: Tensor, coverage: Tensor | None = None) -> Tensor:
        """Scores `[B, T, S]`; this score has no place for a coverage."""
        return (query * self.scale) @ keys.transpose(1, 2)

    def source(self, memory: Memory) -> Attention:
        """The keys divided instead of the queries."""
        return Attention(memory.states, memory.keys * self.scale, memory.mask, None, None)


class GeneralScore(nn.Module):
    """e_tj = sᵀ W_a h_j (Luong et al. 2015, equation 8); W_a h_j is made once, so that each step is a dot product."""

    def __init__(self, query_size: int, memory_size: int):
        super().__init__()
        self.w_a = nn.Linear(memory_size, query_size, bias=False)

    def project(self, states: Tensor) -> Tensor:
        """W_a h_j: `[B, S, H]` → `[B, S, D]`."""
        return cast(Tensor, self.w_a(states))

    def forward(self, query: Tensor, keys: Tensor, coverage: Tensor | None = None) -> Tensor:
        """Scores `[B, T, S]`; this score has no place for a coverage."""
        return query @ keys.transpose(1, 2)

    def source(self, memory: Memory) -> Attention:
        """W_a is in the keys."""
        return Attention(memory.states, memory.keys, memory.mask, None, None)


def build_score(
    name: str, *, query_size: int, memory_size: int, attention_size: int, bias: bool = False, coverage: bool = False
) -> nn.Module:
    """Make the score function of this name: additive, concat, general, dot or scaled_dot."""
    if name == "additive":
        return AdditiveScore(query_size, memory_size, attention_size, bias=bias, coverage=coverage)
    if name == "concat":
        return ConcatScore(query_size, memory_size, attention_size, bias=bias, coverage=coverage)
    if name == "general":
        return GeneralScore(query_size, memory_size)
    return DotScore(query_size, scaled=name == "scaled_dot")


def masked_softmax(scores: Tensor, mask: Tensor) -> Tensor:
    """Softmax over the positions where `mask` is True; 0 elsewhere, and zeros (not NaN) in a wholly masked row.

    The mask acts before the softmax, which is computed in float32 at least. `mask` broadcasts against `scores`.
    """
    filled = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
    return filled.softmax(-1, dtype=torch.promote_types(scores.dtype, torch.float32)) * mask


class Past(NamedTuple):
    """What attention depends on of earlier steps: `[N, …]` in a decoder's state, `[B, T, …]` for `attend`."""

    steps: Tensor | None = None  # [N] how many were made, for local-m
    coverage: Tensor | None = None  # [N, S] c_t, the sum of all weights so far (See et al. 2017, equation 10)

    def after(self, weights: Tensor) -> Past:
        """The same after one more step with these weights `[N, S]`."""
        steps = None if self.steps is None else self.steps + 1
        return Past(steps, None if self.coverage is None else self.coverage + weights)

    def padded(self, width: int) -> Past:
        """The same for other padding of the sources, which has no weight."""
        if self.coverage is None or self.coverage.size(1) == width:
            return self
        return self._replace(coverage=pad(self.coverage, (0, width - self.coverage.size(1))))


Attending = TypeVar("Attending", bound=Any)  # a decoder's state with a `past`


def no_past(score: nn.Module, window: nn.Module | None, memory: Memory) -> Past:
    """Before the first step, `B` rows; without what this attention does not depend on."""
    zeros = memory.states.new_zeros(memory.mask.shape)
    steps = memory.mask.new_zeros(len(zeros), dtype=torch.long) if isinstance(window, Monotonic) else None
    return Past(steps, zeros if getattr(score, "w_c", None) is not None else None)


def insert_rows(state: Attending, rows: Tensor, fresh: Attending) -> Attending:
    """Let others take rows of a state that has a `past`, whatever the padding of their sources."""
    widths = [part.past.coverage.size(1) for part in (state, fresh) if part.past.coverage is not None]
    if widths:
        state = state._replace(past=state.past.padded(max(widths)))
    return put_rows(state, rows, fresh)


def only_query(score: Score, window: nn.Module | None, memory: Memory) -> Attention | None:
    """What kernels/scan.py needs of attention; None where weights depend on more than the query."""
    if window is not None or memory.replaced is not None or getattr(score, "w_c", None) is not None:
        return None
    return score.source(memory)


def attend_step(
    score: Score, window: nn.Module | None, query: Tensor, memory: Memory, past: Past
) -> tuple[Attended, Past]:
    """Attend with queries `[N, D]`, a step of each row, N a multiple of the memory's B; parts are `[N, …]` again."""
    past = past.padded(memory.mask.size(1))
    by_sentence = map_tensors(lambda part: part.unflatten(0, (len(memory.mask), -1)), (query, past))  # [B, K, …]
    attended = attend(score, by_sentence[0], memory, window, by_sentence[1])
    attended = Attended(*(part.flatten(0, 1) for part in attended))
    return attended, past.after(attended.weights)


def attend(
    score: Score, query: Tensor, memory: Memory, window: nn.Module | None = None, past: Past | None = None
) -> Attended:
    """Attend with queries `[B, T, D]`: scores, weights and context of each."""
    past = past or Past()
    scores = score(query, memory.keys, past.coverage)  # [B, T, S]
    if window is None:
        weights = masked_softmax(scores, memory.mask[:, None])  # [B, T, S]
    else:
        near: Window = window(query, memory.mask, past.steps)
        weights = masked_softmax(scores, near.mask)
        weights = weights if near.factor is None else weights * near.factor
    if memory.replaced is not None:
        weights = memory.replaced.expand_as(weights)
    return Attended(scores, weights, weights @ memory.states)  # context [B, T, H]


def covered(coverage: Tensor | None, w_c: Tensor | None) -> Tensor | None:
    """w_c c_tj: coverage `[B, T, S]` → `[B, T, S, A]`."""
    return None if coverage is None or w_c is None else coverage[..., None] * w_c


def energy(query: Tensor, keys: Tensor, v: Tensor, more: Tensor | None) -> Tensor:
    """vᵀ tanh(query + key + more) for all pairs: `[B, T, A]`, `[B, S, A]`, `[A]`, `[B, T, S, A]` → `[B, T, S]`."""
    if more is None:
        return additive_energy(query, keys, v)
    return (query[:, :, None] + keys[:, None] + more).tanh() @ v


def additive_energy_plain(query: Tensor, keys: Tensor, v: Tensor) -> Tensor:
    """vᵀ tanh(query + key) for all pairs, as written: `[B, T, A]`, `[B, S, A]`, `[A]` → `[B, T, S]`."""
    return (query[:, :, None] + keys[:, None]).tanh() @ v


class HeadsAttended(NamedTuple):
    """What every head saw."""

    output: Tensor  # [B, h, T, d_k]
    scores: Tensor  # [B, h, T, S]
    weights: Tensor  # [B, h, T, S]


def multi_head(
    query: Tensor, keys: Tensor, values: Tensor, mask: Tensor, replaced: Tensor | None = None
) -> HeadsAttended:
    """softmax(QKᵀ/√d_k) V in each head (Vaswani et al. 2017, equation 1).

    `query` `[B, h, T, d_k]`; `keys`, `values` `[B, h, S, d_k]`; `mask` broadcasts to `[B, h, T, S]`.
    `replaced` `[B, 1 or T, S]` replaces every head's weights.
    """
    scores = query @ keys.transpose(-2, -1) / math.sqrt(query.size(-1))  # [B, h, T, S]
    weights = masked_softmax(scores, mask)
    if replaced is not None:
        weights = replaced[:, None].expand_as(weights)
    return HeadsAttended(weights @ values, scores, weights)
