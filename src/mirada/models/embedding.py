"""Token embeddings with word dropout, positions, and the output layer that may share their weights."""

from __future__ import annotations

import math
from typing import NamedTuple, cast

import torch
from torch import Tensor, nn

from mirada.data.vocabulary import SEP, UNK
from mirada.kernels.dropout import dropout


def _initialised(vocab: int, size: int) -> Tensor:
    """Weights from N(0, 1/size); where only shapes are wanted (device meta) none are drawn: torch takes a second to."""
    if torch.get_default_device().type == "meta":
        return torch.empty(vocab, size)
    return torch.randn(vocab, size) / math.sqrt(size)


class Embedding(nn.Module):
    """E[y], drawn from N(0, 1/d) so that it can also serve as an output layer.

    `word_dropout` zeroes whole tokens (Sennrich & Zhang 2019), `dropout` single numbers. With `segments`, sources have
    parts, and a token's embedding is the sum of its own and its part's (Devlin et al. 2019, section 3). With `copied`,
    ids that no entry has (words copied from the source) are read as `<unk>`.
    """

    def __init__(
        self,
        vocab: int,
        size: int,
        *,
        dropout: float = 0.0,
        word_dropout: float = 0.0,
        segments: int = 0,
        copied: bool = False,
    ):
        super().__init__()
        self.weight = nn.Parameter(_initialised(vocab, size))
        self.segments = nn.Parameter(_initialised(segments, size)) if segments else None
        self.dropout, self.word_dropout, self.copied = dropout, word_dropout, copied

    def forward(self, ids: Tensor, *, axis: int = -1) -> Tensor:
        """Ids `[…]` → embeddings `[…, E]`; the positions of a sentence lie along `axis`."""
        if self.copied:
            ids = ids.masked_fill(ids >= len(self.weight), UNK)
        embedded = nn.functional.embedding(ids, self.weight)
        if self.segments is not None:
            part = (ids == SEP).cumsum(axis).clamp(max=len(self.segments) - 1)
            embedded = embedded + nn.functional.embedding(part, self.segments)
        if self.training and self.word_dropout:
            keep = torch.rand(ids.shape, device=ids.device) >= self.word_dropout
            embedded = embedded * keep[..., None]
        return dropout(embedded, self.dropout, self.training)


class Places(NamedTuple):
    """How a Transformer numbers positions: wavelengths, the first one's number, and whether a source's </s> has one."""

    encoding: str = "sinusoidal"
    first: int = 0
    source_end: bool = True

    def sinusoids(self, start: int, count: int, like: Tensor) -> Tensor:
        """What is added to words, the start-th of a sentence (from 0) and on: `[count, d]`."""
        return positions(self.first + start, count, like, encoding=self.encoding)


def positions(start: int, count: int, like: Tensor, *, encoding: str = "sinusoidal") -> Tensor:
    """Sinusoids for positions start … start + count − 1: `[count, d]`, sines and cosines in turn (section 3.5).

    The i-th pair has the wavelength 2π · 10000^(2i/d); tensor2tensor and those who follow it have d − 2 instead of d.
    """
    size = like.size(-1)
    exact = torch.promote_types(like.dtype, torch.float32)  # half precision cannot count beyond a few hundred
    place = torch.arange(start, start + count, device=like.device, dtype=exact)[:, None]
    slowest = size - 2 if encoding == "tensor2tensor" else size
    rate = torch.arange(0, size, 2, device=like.device, dtype=exact) * (-math.log(10000.0) / slowest)
    angle = place * rate.exp()  # [count, ceil(d/2)]
    return torch.stack((angle.sin(), angle.cos()), -1).flatten(1)[:, :size].to(like.dtype)


class MaxoutReadout(nn.Module):
    """t = max over pairs of U_o s + V_o E y + C_o c (Bahdanau et al. 2015, appendix A.2.2; Cho et al. 2014).

    The appendix writes s_{t-1}, equation 4 writes s_t: this is s_t.
    """

    def __init__(self, state_size: int, embedding_size: int, context_size: int, *, size: int):
        super().__init__()
        self.u_o = nn.Linear(state_size, 2 * size)
        self.v_o = nn.Linear(embedding_size, 2 * size, bias=False)
        self.c_o = nn.Linear(context_size, 2 * size, bias=False)

    def forward(self, state: Tensor, embedded: Tensor, context: Tensor) -> Tensor:
        """States `[…, D]`, previous words `[…, E]`, contexts `[…, H]` → `[…, R]`."""
        pairs = self.u_o(state) + self.v_o(embedded) + self.c_o(context)  # [..., 2R]
        return cast(Tensor, pairs.unflatten(-1, (-1, 2)).amax(-1))


class OutputLayer(nn.Module):
    """W y + b over the vocabulary, with dropout on what it reads; W is the target embedding itself when tied."""

    def __init__(self, size: int, vocab: int, *, dropout: float = 0.0, tied: Embedding | None = None):
        super().__init__()
        self.dropout = dropout
        self.weight = tied.weight if tied else nn.Parameter(_initialised(vocab, size))
        self.bias = nn.Parameter(torch.zeros(vocab))

    def dropped(self, hidden: Tensor) -> Tensor:
        """What the layer reads in training: `[…, R]` with dropout."""
        return dropout(hidden, self.dropout, self.training)

    def forward(self, hidden: Tensor) -> Tensor:
        """`[…, R]` → logits `[…, V]`."""
        return nn.functional.linear(self.dropped(hidden), self.weight, self.bias)
