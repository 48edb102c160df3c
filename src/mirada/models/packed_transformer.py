"""The Transformer's decoder step for searching: keys and values of past words are written once and never move.

A plain step lengthens every hypothesis's keys and values by a copy, and the search copies them again whenever
hypotheses change places. Here all that a sentence's hypotheses ever wrote stands in one place, and a hypothesis is a
list of the entries that are its own: changing places moves a few numbers, and the others' entries are masked out of the
softmax. What is computed is the same: softmax(QKᵀ/√d_k) V over a hypothesis's own words.
"""

from __future__ import annotations

from math import inf
from typing import NamedTuple, cast

import torch
from torch import Tensor, nn

from mirada.models.attention import multi_head
from mirada.models.base import Memory, Step
from mirada.models.transformer import Heads, KeyValue, Layer, Transformer, by_row

ROOM = 64  # entries that storage grows by, at least


class Storage:
    """Keys and values of everything written so far: for each layer `[A, h, room, d_k]`, of which `used` are filled."""

    def __init__(self, layers: tuple[KeyValue, ...], used: int):
        self.layers, self.used = layers, used

    def copy(self, rows: Tensor, used: int, room: int) -> Storage:
        """The first `used` entries of some sentences, with room for more."""

        def copied(part: Tensor) -> Tensor:
            new = part.new_empty(len(rows), part.size(1), room, part.size(3))
            new[:, :, :used] = part[:, :, :used].index_select(0, rows)
            return new

        return Storage(tuple(KeyValue(*map(copied, layer)) for layer in self.layers), used)


class Written(NamedTuple):
    """What `N` hypotheses have written. Choosing rows of it moves no keys or values."""

    sentence: Tensor  # [N] row of the storage
    entries: Tensor  # [N, t] the hypothesis's own, one a word
    storage: Storage
    used: int  # entries of the storage when this was the last that was written


class PackedTransformer(nn.Module):
    """`encode`, `start` and `step` of a Transformer whose products are packed; of a step only what a search reads."""

    def __init__(self, inner: Transformer, products: list[nn.Module]):
        super().__init__()
        self.inner, self.products = inner, nn.ModuleList(products)  # queries, keys and values of each layer at once

    def encode(self, source: Tensor, lengths: Tensor) -> Memory:
        """Read the source, as the Transformer does; its keys and values are laid out as the products read them."""
        memory = self.inner.encode(source, lengths)
        keys = tuple(KeyValue(*(part.contiguous() for part in layer)) for layer in memory.keys)
        return memory._replace(keys=keys)

    def start(self, memory: Memory) -> Written:
        """Nothing is written yet."""
        count = len(memory.mask)
        empty = tuple(KeyValue(*(part[:, :, :0] for part in layer)) for layer in memory.keys)
        rows = torch.arange(count, device=memory.mask.device)
        return Written(rows, rows.new_empty(count, 0), Storage(empty, 0), 0)

    def step(self, token: Tensor, state: Written, memory: Memory) -> Step:
        """One step of `N` hypotheses, the rows of a sentence together."""
        count, width = len(memory.mask), len(token) // len(memory.mask)
        storage = _with_room(state, count, width)
        new = torch.arange(storage.used, storage.used + width, device=token.device).repeat(count)[:, None]
        entries = torch.cat((state.entries, new), 1)
        storage.used += width
        own = torch.full((len(token), storage.used), -inf, device=token.device).scatter_(1, entries, 0)
        own = own.view(count, width, -1)  # added to the scores

        x = self.inner.embed(self.inner.embedding, token[:, None], state.entries.size(1))[:, 0]  # [N, d]
        for depth, layer in enumerate(self.inner.decoder):
            x, weights = self._layer(depth, cast(Layer, layer), x, (storage, own), memory)
        hidden = cast(Tensor, self.inner.decoder_norm(x))
        attention = by_row(weights, len(token))[:, :, 0].mean(1)  # [N, S]
        sentence = torch.arange(count, device=token.device).repeat_interleave(width)
        state = Written(sentence, entries, storage, storage.used)
        return Step(self.inner.logits(hidden), state, None, attention, None, hidden, None)

    def _layer(
        self, depth: int, layer: Layer, x: Tensor, past: tuple[Storage, Tensor], memory: Memory
    ) -> tuple[Tensor, Tensor]:
        """A decoder layer: its output `[N, d]`, and its weights over the source `[A, h, K, S]`."""
        looked: list[Tensor] = []

        def look_back(y: Tensor) -> Tensor:
            return _look_back(layer.self_heads, self.products[depth](y), past[0].layers[depth], past[1])

        def look_at_source(y: Tensor) -> Tensor:
            heads = cast(Heads, layer.cross_heads)
            query = heads.split(heads.q(y).view(len(memory.mask), -1, y.size(-1)))  # [A, h, K, d_k]
            keys, values = memory.keys[depth]
            seen = multi_head(query, keys, values, memory.mask[:, None, None], memory.forced)
            looked.append(seen.weights)
            return heads.join(seen.output).view_as(y)

        x = layer.residual(x, look_back, layer.norms[0])
        x = layer.residual(x, look_at_source, layer.norms[1])
        return layer.residual(x, lambda y: cast(Tensor, layer.ff_out(layer.ff_in(y).relu_())), layer.norms[2]), looked[
            0
        ]


def _with_room(state: Written, count: int, width: int) -> Storage:
    """Storage whose rows are the sentences that are left, in their order, where `width` entries can be added.

    It is the same one as long as nobody has left, it has room, and nobody else went on from this state.
    """
    storage, rows = state.storage, state.sentence[::width]
    kept, needed = storage.layers[0].keys, state.used + width
    in_place = len(kept) == count and torch.equal(rows, torch.arange(count, device=rows.device))
    if in_place and storage.used == state.used and kept.size(2) >= needed:
        return storage
    return storage.copy(rows, state.used, max(kept.size(2), needed + ROOM))


def _look_back(heads: Heads, projected: Tensor, kept: KeyValue, own: Tensor) -> Tensor:
    """Self-attention of the new words `[N, 3d]` over each one's own entries, the new ones written down: `[N, d]`."""
    count, width, used = own.shape
    query, key, value = projected.view(count, width, 3, heads.heads, -1).permute(2, 0, 3, 1, 4)  # each [A, h, K, d_k]
    kept.keys[:, :, used - width : used] = key
    kept.values[:, :, used - width : used] = value
    keys, values = kept.keys[:, :, :used], kept.values[:, :, :used]
    scores = (query * query.size(-1) ** -0.5) @ keys.transpose(2, 3)  # [A, h, K, used]
    return heads.join(scores.add_(own[:, None]).softmax(-1) @ values).view(count * width, -1)
