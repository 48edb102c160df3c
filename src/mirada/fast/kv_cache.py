"""The Transformer's decoder step for searching: keys and values of past words are written once and never move.

A plain step lengthens every hypothesis's keys and values by a copy, and the search copies them again whenever
hypotheses change places. Here all that a sentence's hypotheses wrote stands in one place, and a hypothesis is a mark on
the entries that are its own: changing places moves the marks, the others' entries are masked out of the softmax, and
entries that are nobody's any more are written over. What is computed is the same: softmax(QKᵀ/√d_k) V over a
hypothesis's own words. 1/√d_k is in W_q.
"""

from __future__ import annotations

from math import inf
from typing import NamedTuple, cast

import torch
from torch import Tensor, nn
from torch.nn.functional import pad

from mirada.fast.scripted import Compiled, layers
from mirada.kernels.widths import round_up
from mirada.models.base import Memory
from mirada.models.transformer import Heads, KeyValue, Layer, Transformer

ROOM = 8  # entries that storage grows by, at least


class KVCache:
    """Keys and values that hypotheses wrote: of each layer `[A, h, room, d_k]`."""

    def __init__(self, layers: tuple[KeyValue, ...]):
        self.layers = layers
        self.writings = 0  # how often it was written to

    def copy(self, rows: Tensor, used: int, room: int) -> KVCache:
        """The first `used` entries of some sentences, with other room."""

        def copied(part: Tensor) -> Tensor:
            new = part.new_empty(len(rows), part.size(1), room, part.size(3))
            new[:, :, :used] = part[:, :, :used].index_select(0, rows)
            new[:, :, used:] = 0  # an entry that is nobody's has weight 0, which only numbers survive
            return new

        return KVCache(tuple(KeyValue(*map(copied, layer)) for layer in self.layers))


class CacheState(NamedTuple):
    """What `N` hypotheses have written. Choosing rows of it moves no keys or values."""

    sentence: Tensor  # [N] row of the storage
    own: Tensor  # [N, room] 0 at the hypothesis's own entries, −inf at all others: added to the scores
    length: Tensor  # [N] words
    storage: KVCache
    writings: int  # of the storage, as this was written
    used: int  # entries that are or were anybody's, counted from the first


class CacheIndex(NamedTuple):
    """How a step writes and reads the storage, the same in every layer."""

    places: Tensor  # [A·h·K] where the new keys and values go, among all rows of d_k numbers
    own: Tensor  # [A·h, K, used]


class DecoderOutput(NamedTuple):
    """What a search sees of a step."""

    logits: Tensor  # [N, V]
    state: CacheState
    hidden: Tensor  # [N, d]
    weights: Tensor  # [A·h, K, S] of the last layer over the source

    @property
    def heads(self) -> Tensor:
        """The weights by sentence and head, `[A, h, K, S]`."""
        return cast(Tensor, self.weights.unflatten(0, (len(self.hidden) // self.weights.size(1), -1)))

    @property
    def attention(self) -> Tensor:
        """The mean over the heads, `[N, S]`."""
        return self.heads.mean(1).flatten(0, 1)


class CachedTransformer(nn.Module):
    """`encode`, `start` and `step` of a Transformer whose products are packed; of a step only what a search reads."""

    def __init__(self, inner: Transformer, weights: list[list[Tensor]]):
        super().__init__()
        self.inner, self.weights = inner, weights  # of all layers, as scripted.py reads them
        first = cast(Layer, inner.decoder[0])
        self.heads = cast(Heads, first.cross_heads).heads
        self.design = (first.pre_norm, first.activation, cast(nn.LayerNorm, first.norms[0]).eps)
        self.positions = inner.places.sinusoids(0, 64, inner.embedding.weight.detach())
        self.layers = Compiled(layers)

    def encode(self, source: Tensor, lengths: Tensor, copies: Tensor | None = None) -> Memory:
        """Read the source, as the Transformer does; its keys and values are laid out as the products read them."""
        memory = self.inner.encode(source, lengths, copies)
        keys = tuple(KeyValue(*(part.contiguous() for part in layer)) for layer in memory.keys)
        return memory._replace(keys=keys)

    def start(self, memory: Memory) -> CacheState:
        """Nothing is written yet."""
        rows = torch.arange(len(memory.mask), device=memory.mask.device)
        empty = tuple(KeyValue(*(part[:, :, :0] for part in layer)) for layer in memory.keys)
        return CacheState(rows, memory.states.new_empty(len(rows), 0), torch.zeros_like(rows), KVCache(empty), 0, 0)

    def insert(self, state: CacheState, rows: Tensor, fresh: CacheState) -> CacheState:
        """Let others' hypotheses take `rows`, all those of some sentences. The state itself is used up by this."""
        width = int((fresh.sentence == fresh.sentence[0]).sum())
        state = _with_room(state, width, fresh.used)
        places, others = state.sentence[rows[::width]], fresh.sentence[::width]
        for kept, new in zip(state.storage.layers, fresh.storage.layers, strict=True):
            for part, new_part in zip(kept, new, strict=True):
                part[:, :, : fresh.used].index_copy_(0, places, new_part[others, :, : fresh.used])
        state.storage.writings += 1
        own = pad(fresh.own[:, : fresh.used], (0, state.own.size(1) - fresh.used), value=-inf)
        return state._replace(
            own=state.own.index_copy(0, rows, own),
            length=state.length.index_copy(0, rows, fresh.length),
            writings=state.storage.writings,
            used=max(state.used, fresh.used),
        )

    def step(self, token: Tensor, state: CacheState, memory: Memory) -> DecoderOutput:
        """One step of `N` hypotheses, the rows of a sentence together."""
        if memory.replaced is not None:
            raise ValueError("weights are replaced in the model itself, not on its copy for searching")
        width = len(token) // len(memory.mask)
        state, past = _written(state, width)
        hidden_by = memory.states.new_zeros(memory.mask.shape).masked_fill_(~memory.mask, -inf)  # [A, S]
        unseen = hidden_by.repeat_interleave(self.heads, 0)[:, None]  # [A·h, 1, S] added to the scores
        y = self.inner.embedding(token) * self.inner.scale + self._positions(state.length)  # [N, d]
        kept, source = ([part for pair in pairs for part in pair] for pairs in (state.storage.layers, memory.keys))
        x, weights = self.layers(y, self.weights, kept, source, (*past, unseen), self.design)
        hidden = cast(Tensor, self.inner.decoder_norm(x))
        output = DecoderOutput(hidden, state._replace(length=state.length + 1), hidden, weights)
        copied = self.inner.copying(output.heads, hidden, y, memory) if self.inner.copy_gate is not None else None
        return output._replace(logits=self.inner.logits(hidden, copied))

    def _positions(self, length: Tensor) -> Tensor:
        """What stands for the next position of each hypothesis: `[N]` → `[N, d]`."""
        table, longest = self.positions, int(length.max())  # other threads may put another table there meanwhile
        if len(table) <= longest:
            self.positions = table = self.inner.places.sinusoids(0, 2 * longest, table)
        return table[length]


def _written(state: CacheState, width: int) -> tuple[CacheState, CacheIndex]:
    """Choose an entry for the new word of each hypothesis: one that is nobody's, or nobody's any more."""
    state = _with_room(state, width, 0)
    storage, kept = state.storage, state.storage.layers[0].keys
    count, (_, heads, room, _) = len(state.sentence) // width, kept.shape
    columns = _free(state.own.view(count, width, room), width)  # [A, K]
    used = max(state.used, int(columns.max()) + 1)
    own = state.own.scatter(1, columns.view(-1, 1), 0)  # [N, room]
    storage.writings += 1
    rows = torch.arange(0, count * heads * room, room, device=kept.device).view(count, heads, 1)
    marks = own.view(count, width, room)[:, :, : min(room, round_up(used))]
    past = CacheIndex((rows + columns[:, None]).flatten(), marks.repeat_interleave(heads, 0))
    return state._replace(own=own, writings=storage.writings, used=used), past


def _free(own: Tensor, count: int) -> Tensor:
    """The first entries that none of a sentence's hypotheses has: marks `[A, K, room]` → `[A, count]`."""
    free = own.amax(1) == -inf  # [A, room]
    return (free * torch.arange(own.size(2), 0, -1, device=own.device)).topk(count, dim=1).indices


def _with_room(state: CacheState, width: int, used: int) -> CacheState:
    """The state on storage whose first rows are its sentences, in their order, with room for `used` and new entries.

    The storage stays as long as nobody has left and it has room, but not too much. Entries of hypotheses that were
    given up are written over, so a state that others went on from is of no use any more.
    """
    storage, rows, layer = state.storage, state.sentence[::width], state.storage.layers[0].keys
    if storage.writings != state.writings:
        raise RuntimeError("this state was gone on from; a search goes on from the last state only")
    room = layer.size(2)
    in_place = torch.equal(rows, torch.arange(len(rows), device=rows.device))
    if in_place and max(used, state.used + width) <= room:
        return state
    marks = state.own.view(len(rows), width, room).amax(1) == 0  # [A, room]
    needed = max(used, int(marks.sum(1).max()) + width)
    if in_place and needed <= room <= 2 * round_up(needed):
        return state
    last = int(marks.any(0).nonzero().max()) + 1 if marks.any() else 0
    room = round_up(max(needed, last) + ROOM)
    sentence = torch.arange(len(rows), device=rows.device).repeat_interleave(width)
    own = pad(state.own[:, :last], (0, room - last), value=-inf)
    return CacheState(sentence, own, state.length, storage.copy(rows, last, room), 0, last)
