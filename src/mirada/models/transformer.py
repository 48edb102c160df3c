"""Vaswani et al. 2017: no recurrence; every position looks at every other through scaled dot products.

Post-norm is the paper's LN(x + Sub(x)); pre-norm is x + Sub(LN(x)) with one more LN after the last layer. Attention
weights of the decoder over the source are returned for every layer and head.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple, cast

import torch
from torch import Tensor, nn

from mirada.devices import synchronous
from mirada.kernels.dropout import dropout
from mirada.models.attention import multi_head
from mirada.models.base import Memory, Outputs, Step
from mirada.models.copying import CopyGate, Copying, copying, mixture
from mirada.models.embedding import Embedding, OutputLayer, Places
from mirada.models.encoder import without_end


class KeyValue(NamedTuple):
    """One layer's keys and values."""

    keys: Tensor  # [N, h, S, d_k]
    values: Tensor  # [N, h, S, d_k]


class TransformerState(NamedTuple):
    """What the decoder keeps of the words so far: each layer's self-attention keys and values."""

    cache: tuple[KeyValue, ...]  # each [N, h, t, d_k]


class CrossAttended(NamedTuple):
    """What one decoder layer saw of the source."""

    scores: Tensor  # [B, h, T, S]
    weights: Tensor  # [B, h, T, S]
    context: Tensor  # [B, T, d]


class Sizes(NamedTuple):
    """Width d_model, heads, feed-forward width and activation, dropout, where the layer norm stands and its ε."""

    model: int
    heads: int
    ff: int
    activation: str
    dropout: float
    pre_norm: bool
    norm_eps: float = 1e-5


class Heads(nn.Module):
    """The four projections of multi-head attention (section 3.2.2)."""

    def __init__(self, size: int, heads: int):
        super().__init__()
        self.heads = heads
        self.q, self.v, self.o = (_linear(size, size) for _ in range(3))
        # No bias: it would add the same number to every score of a query, which the softmax takes out again.
        self.k = nn.Linear(size, size, bias=False)
        nn.init.xavier_uniform_(self.k.weight)

    def split(self, x: Tensor) -> Tensor:
        """`[N, T, d]` → `[N, h, T, d_k]`."""
        return cast(Tensor, x.unflatten(-1, (self.heads, -1)).transpose(1, 2))

    def join(self, x: Tensor) -> Tensor:
        """`[N, h, T, d_k]` → W_o applied, `[N, T, d]`."""
        return cast(Tensor, self.o(x.transpose(1, 2).flatten(2)))

    def key_value(self, x: Tensor) -> KeyValue:
        """Keys and values of `[N, S, d]`."""
        return KeyValue(self.split(self.k(x)), self.split(self.v(x)))

    def self_attend(
        self, x: Tensor, past: KeyValue | None, mask: Tensor | None, *, causal: bool
    ) -> tuple[Tensor, KeyValue]:
        """Positions `[N, T, d]` look at themselves and at `past`: output `[N, T, d]`, all keys and values."""
        new = self.key_value(x)
        if past is not None:
            new = KeyValue(torch.cat((past.keys, new.keys), 2), torch.cat((past.values, new.values), 2))
        query = self.split(self.q(x))
        seen = nn.functional.scaled_dot_product_attention(query, new.keys, new.values, attn_mask=mask, is_causal=causal)
        return self.join(seen), new

    def cross_attend(self, x: Tensor, source: KeyValue, memory: Memory) -> CrossAttended:
        """Positions `[N, T, d]`, N a multiple of the memory's B, look at the source `[B, h, S, d_k]`."""
        query = self.split(self.q(x.reshape(len(memory.mask), -1, x.size(-1))))  # [B, h, K·T, d_k]
        attended = multi_head(query, source.keys, source.values, memory.mask[:, None, None], memory.replaced)
        context = self.join(attended.output)
        return CrossAttended(attended.scores, attended.weights, context)

    def cross_context(self, x: Tensor, source: KeyValue, memory: Memory) -> Tensor:
        """The context of `cross_attend` alone, by fused attention: no weights are ever written, `[B, T, d]`."""
        query = self.split(self.q(x))  # [B, h, T, d_k]
        mask = memory.mask[:, None, None]
        return self.join(nn.functional.scaled_dot_product_attention(query, *source, attn_mask=mask))


class Layer(nn.Module):
    """Self-attention, (in the decoder) attention over the source, feed-forward; each with residual and norm."""

    def __init__(self, sizes: Sizes, *, cross: bool):
        super().__init__()
        self.pre_norm, self.dropout, self.activation = sizes.pre_norm, sizes.dropout, sizes.activation
        self.self_heads = Heads(sizes.model, sizes.heads)
        self.cross_heads = Heads(sizes.model, sizes.heads) if cross else None
        self.ff_in, self.ff_out = _linear(sizes.model, sizes.ff), _linear(sizes.ff, sizes.model)
        self.norms = nn.ModuleList(nn.LayerNorm(sizes.model, eps=sizes.norm_eps) for _ in range(3 if cross else 2))

    def residual(self, x: Tensor, part: Callable[[Tensor], Tensor], norm: nn.Module) -> Tensor:
        """x + Sub(LN(x)) or LN(x + Sub(x)), dropout on what the part gives."""
        added = part(norm(x) if self.pre_norm else x)
        x = x + dropout(added, self.dropout, self.training)
        return x if self.pre_norm else cast(Tensor, norm(x))

    def feed_forward(self, x: Tensor) -> Tensor:
        """W_2 f(W_1 x + b_1) + b_2, in the paper f(u) = max(0, u) (equation 2)."""
        return cast(Tensor, self.ff_out(activated(self.ff_in(x), self.activation)))

    def encode(self, x: Tensor, mask: Tensor) -> Tensor:
        """Encoder layer on `[B, S, d]`."""

        def attend_itself(y: Tensor) -> Tensor:
            return self.self_heads.self_attend(y, None, mask[:, None, None], causal=False)[0]

        x = self.residual(x, attend_itself, self.norms[0])
        return self.residual(x, self.feed_forward, self.norms[1])

    def decode(
        self, x: Tensor, past: KeyValue | None, source: KeyValue, memory: Memory, *, seeing: bool = True
    ) -> tuple[Tensor, KeyValue, list[CrossAttended]]:
        """Decoder layer on `[N, T, d]`: all steps with a causal mask, or (with `past`) one step.

        What it saw of the source comes as a list of one; of none where that is not wanted (`seeing`).
        """
        kept: list[KeyValue] = []
        seen: list[CrossAttended] = []

        def attend_past(y: Tensor) -> Tensor:
            output, new = self.self_heads.self_attend(y, past, None, causal=past is None)
            kept.append(new)
            return output

        def attend_source(y: Tensor) -> Tensor:
            heads = cast(Heads, self.cross_heads)
            if not seeing:
                return heads.cross_context(y, source, memory)
            seen.append(heads.cross_attend(y, source, memory))
            return seen[0].context.view_as(y)

        x = self.residual(x, attend_past, self.norms[0])
        x = self.residual(x, attend_source, self.norms[1])
        x = self.residual(x, self.feed_forward, self.norms[2])
        return x, kept[0], seen


class Transformer(nn.Module):
    """Sequence to sequence by attention alone."""

    def __init__(
        self,
        embeddings: tuple[Embedding, Embedding],
        output: OutputLayer,
        sizes: Sizes,
        *,
        layers: tuple[int, int],
        places: Places,
        copying: tuple[CopyGate | None, int | None] = (None, None),
    ):
        super().__init__()
        self.copy_gate, self.copy_head = copying
        self.places = places
        self.source_embedding, self.embedding = embeddings
        self.output, self.scale, self.dropout = output, math.sqrt(sizes.model), sizes.dropout
        self.encoder = nn.ModuleList(Layer(sizes, cross=False) for _ in range(layers[0]))
        self.decoder = nn.ModuleList(Layer(sizes, cross=True) for _ in range(layers[1]))
        self.encoder_norm, self.decoder_norm = (
            nn.LayerNorm(sizes.model, eps=sizes.norm_eps) if sizes.pre_norm else nn.Identity() for _ in range(2)
        )

    def encode(self, source: Tensor, lengths: Tensor, copies: Tensor | None = None) -> Memory:
        """Read the source; each decoder layer's keys and values are made here, once a sentence."""
        lengths = lengths if self.places.source_end else without_end(lengths)
        mask = torch.arange(source.size(1), device=source.device) < lengths[:, None]  # [B, S]
        x = self.embed(self.source_embedding, source, 0)  # [B, S, d]
        for layer in self.encoder:
            x = cast(Layer, layer).encode(x, mask)
        x = self.encoder_norm(x) * mask[..., None]
        keys = tuple(cast(Heads, cast(Layer, layer).cross_heads).key_value(x) for layer in self.decoder)
        return Memory(x, mask, keys, (), copies=copies)

    def start(self, memory: Memory) -> TransformerState:
        """No words yet: empty keys and values."""
        return TransformerState(tuple(KeyValue(*(part[:, :, :0] for part in pair)) for pair in memory.keys))

    def step(self, token: Tensor, state: TransformerState, memory: Memory) -> Step:
        """One step over the cached keys and values."""
        y = self.embed(self.embedding, token[:, None], state.cache[0].keys.size(2))  # [N, 1, d]
        x, cache, seen = self._decode(y, state.cache, memory)
        hidden = x[:, 0]  # [N, d]
        heads = torch.stack([by_row(layer.weights, len(token))[:, :, 0] for layer in seen], 1)  # [N, L, h, S]
        scores = by_row(seen[-1].scores, len(token))[:, :, 0].mean(1)  # [N, S]
        context = seen[-1].context.reshape(len(token), -1)  # [N, d]
        attention = heads[:, -1].mean(1)  # [N, S]
        logits = self.logits(hidden, self.copying(heads[:, -1], hidden, y[:, 0], memory))
        return Step(logits, TransformerState(cache), scores, attention, context, hidden, heads)

    def forward(
        self,
        source: Tensor,
        lengths: Tensor,
        target_in: Tensor,
        copies: Tensor | None = None,
        *,
        with_attention: bool = False,
    ) -> Outputs:
        """All steps at once under a causal mask; a GPU makes no weights where nobody wants them."""
        memory = self.encode(source, lengths, copies)
        y = self.embed(self.embedding, target_in, 0)  # [B, T, d]
        seeing = with_attention or self.copy_gate is not None or synchronous(y.device)
        x, _, seen = self._decode(y, None, memory, seeing=seeing)
        copied = self.copying(seen[-1].weights, x, y, memory) if seeing else None
        if not with_attention:
            return Outputs(x, None, copying=copied)
        heads = torch.stack([layer.weights for layer in seen], 1)
        return Outputs(x, heads[:, -1].mean(1), heads, copied)

    def copying(self, heads: Tensor, hidden: Tensor, embedded: Tensor, memory: Memory) -> Copying | None:
        """What steps `[…, d]` copy, and the context c_t = Σ_j α_tj h_j, by the last layer's heads.

        Their weights stand on axis 1 of `heads`: α is their mean, or those of `copy_head`, counted from 1.
        """
        if self.copy_gate is None:
            return None
        chosen = heads.mean(1) if self.copy_head is None else heads[:, self.copy_head - 1]
        attention = chosen.reshape(*hidden.shape[:-1], heads.size(-1))
        context = attention.view(len(memory.mask), -1, attention.size(-1)) @ memory.states  # [B, K, d]
        return copying(self.copy_gate, (context.view_as(hidden), hidden, embedded), attention, memory)

    def logits(self, hidden: Tensor, copied: Copying | None = None) -> Tensor:
        """Apply the output layer: `[…, d]` → `[…, V]`; with what steps copy, log P `[…, V + S]`."""
        logits = cast(Tensor, self.output(hidden))
        return logits if copied is None else mixture(logits, copied)

    def _decode(
        self, x: Tensor, cache: tuple[KeyValue, ...] | None, memory: Memory, *, seeing: bool = True
    ) -> tuple[Tensor, tuple[KeyValue, ...], list[CrossAttended]]:
        kept, seen = list[KeyValue](), list[CrossAttended]()
        for depth, layer in enumerate(self.decoder):
            past = cache[depth] if cache is not None else None
            x, new, attended = cast(Layer, layer).decode(x, past, memory.keys[depth], memory, seeing=seeing)
            kept.append(new)
            seen += attended
        return self.decoder_norm(x), tuple(kept), seen

    def embed(self, embedding: Embedding, ids: Tensor, start: int) -> Tensor:
        """Words and their places, the first at `start`: ids `[B, T]` → `[B, T, d]`."""
        x = embedding(ids) * self.scale
        return dropout(x + self.places.sinusoids(start, ids.size(1), x), self.dropout, self.training)


def activated(x: Tensor, activation: str) -> Tensor:
    """relu max(0, u), gelu u Φ(u) (Hendrycks & Gimpel 2016), or swish u σ(u) (Ramachandran et al. 2017)."""
    if activation == "gelu":
        return nn.functional.gelu(x)
    return nn.functional.silu(x) if activation == "swish" else x.relu()


def by_row(part: Tensor, rows: int) -> Tensor:
    """`[B, h, K·T, …]` → `[N, h, T, …]`, where the K rows of a sentence become rows of their own."""
    return cast(Tensor, part.unflatten(2, (rows // len(part), -1))).transpose(1, 2).flatten(0, 1)


def _linear(inputs: int, outputs: int) -> nn.Linear:
    layer = nn.Linear(inputs, outputs)
    nn.init.xavier_uniform_(layer.weight)
    nn.init.zeros_(layer.bias)
    return layer
