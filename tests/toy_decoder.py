"""A decoder that is a table, and plain searches over it: Python lists, no batches, nothing clever."""

from __future__ import annotations

from itertools import product
from math import exp, inf, log
from typing import NamedTuple

import torch
from torch import Tensor

UNK, PAD, BOS, EOS = 0, 1, 2, 3


class ToyMemory(NamedTuple):
    sentence: Tensor  # [A]
    states: Tensor  # [A, S, 2]


class ToyState(NamedTuple):
    seen: tuple[Tensor, Tensor]  # [N] steps so far and [N] the token before the last, one level down
    sentence: Tensor  # [N]


class ToyStep(NamedTuple):
    logits: Tensor
    state: ToyState
    attention: Tensor | None


class ToyDecoder:
    """p(next | last two tokens, step, sentence) from a random table; `<pad>` and `<s>` would often win if they could.

    The distribution gets a little sharper with every step, or outputs made of the same pairs would tie.
    """

    def __init__(self, seed: int, *, sentences: int = 1, vocabulary: int = 6, sharpness: float = 2.0, end: float = 0.0):
        random = torch.Generator().manual_seed(seed)
        shape = (sentences, vocabulary, vocabulary)
        self.table = sharpness * torch.randn(*shape, vocabulary, generator=random, dtype=torch.float64)
        self.table[..., EOS] += end
        self.table[..., [PAD, BOS]] += 2
        self.weights = torch.randn(*shape, 4, generator=random, dtype=torch.float64)
        self.rows: list[tuple[int, int]] = []  # (N, A) of every call
        self.memory_sizes: list[int] = []

    def begin(self, *sentences: int) -> tuple[ToyMemory, ToyState]:
        """Memory and first state of some sentences; all of them when none is named."""
        ids = torch.tensor(sentences or range(len(self.table)))
        none = torch.zeros_like(ids)
        return ToyMemory(ids, torch.ones(len(ids), 4, 2)), ToyState((none, none), ids)

    def __call__(self, token: Tensor, state: ToyState, memory: ToyMemory) -> ToyStep:
        self.rows.append((len(token), len(memory.sentence)))
        self.memory_sizes.append(memory.states.numel())
        owner = memory.sentence.repeat_interleave(len(token) // len(memory.sentence))
        assert torch.equal(owner, state.sentence), "rows of the state and of the memory are of different sentences"
        steps, before = state.seen
        attention = ((steps + 1)[:, None] * self.weights[owner, before, token]).softmax(1)
        logits = self.table[owner, before, token] * (1 + steps[:, None] / 64)
        return ToyStep(logits, ToyState((steps + 1, token), owner), attention)

    def log_probabilities(self, sentence: int, tokens: list[int]) -> list[float]:
        """Log-probability of every next token after `tokens`, from exp and log alone."""
        before, last = [0, BOS, *tokens][-2:]
        logits = (self.table[sentence, before, last] * (1 + len(tokens) / 64)).tolist()
        total = log(sum(exp(value) for token, value in enumerate(logits) if token not in (PAD, BOS)))
        return [-inf if token in (PAD, BOS) else value - total for token, value in enumerate(logits)]

    def walk(self, sentence: int, tokens: list[int]) -> tuple[list[float], list[list[float]]]:
        """Log-probability and attention of each of `tokens`."""
        own = [self.log_probabilities(sentence, tokens[:step])[token] for step, token in enumerate(tokens)]
        pairs = zip([0, BOS, *tokens], [BOS, *tokens][: len(tokens)], strict=False)
        attention = [
            ((step + 1) * self.weights[sentence, before, last]).softmax(0).tolist()
            for step, (before, last) in enumerate(pairs)
        ]
        return own, attention


class Found(NamedTuple):
    """An output of a plain search, `</s>` included."""

    tokens: list[int]
    log_probability: float

    def score(self, alpha: float) -> float:
        return self.log_probability / ((5 + len(self.tokens)) / 6) ** alpha


def rank(found: list[Found], alpha: float) -> list[Found]:
    """Best first, finished before unfinished."""
    return sorted(found, key=lambda one: (one.tokens[-1] != EOS, -one.score(alpha)))


def exhaustive(toy: ToyDecoder, sentence: int, limit: int) -> list[Found]:
    """All outputs of at most `limit` tokens that end; those that do not are behind them all."""
    ordinary = [token for token in range(toy.table.shape[-1]) if token not in (PAD, BOS, EOS)]
    ended = [[*tokens, EOS] for length in range(limit + 1) for tokens in product(ordinary, repeat=length)]
    cut = [list(tokens) for tokens in product(ordinary, repeat=limit)]
    return [Found(tokens, sum(toy.walk(sentence, tokens)[0])) for tokens in ended + cut]


def next_tokens(tokens: list[int], own: list[float], *, prefix: list[int], min_length: int, ngram: int) -> list[int]:
    """Tokens that may come next, by the rules."""
    if len(tokens) < len(prefix):
        return [prefix[len(tokens)]]
    grams = {tuple(tokens[start : start + ngram]) for start in range(len(tokens) - ngram + 1)} if ngram else set()
    free = [
        token
        for token, value in enumerate(own)
        if value > -inf
        and not (token == EOS and len(tokens) < min_length)
        and not (ngram and tuple([*tokens, token][-ngram:]) in grams)
    ]
    return free or [EOS]


def plain_beam(
    toy: ToyDecoder, sentence: int, limit: int, *, width: int, alpha: float = 0.0, prefix: list[int] | None = None,
    min_length: int = 0, ngram: int = 0, wanted: int | None = None,
) -> list[Found]:  # fmt: skip
    """Beam search to the very end; with `wanted` only until no live one would be among so many if it ended next."""
    live, ended = [Found([], 0.0)], []
    for _ in range(max(limit, len(prefix or [])) + 1):
        candidates = []
        for one in live:
            own = toy.log_probabilities(sentence, one.tokens)
            for token in next_tokens(one.tokens, own, prefix=prefix or [], min_length=min_length, ngram=ngram):
                candidates.append(Found([*one.tokens, token], one.log_probability + own[token]))
        best = sorted(candidates, key=lambda one: -one.log_probability)[: 2 * width]
        now = [one for one in best[:width] if one.tokens[-1] == EOS]
        ended += now
        whole, live = live, [one for one in best if one.tokens[-1] != EOS][:width]
        if wanted and live and len(ended) >= wanted:
            next_end = Found([*live[0].tokens, EOS], live[0].log_probability)
            if next_end.score(alpha) <= rank(ended, alpha)[wanted - 1].score(alpha):
                return rank(ended, alpha)
    # The last step was for </s> alone.
    return rank(ended + [one for one in whole if [*one.tokens, EOS] not in [end.tokens for end in now]], alpha)


def plain_greedy(toy: ToyDecoder, sentence: int, limit: int) -> Found:
    """Follow the likeliest token."""
    tokens: list[int] = []
    while EOS not in tokens:
        own = toy.log_probabilities(sentence, tokens)
        best = own.index(max(own))
        if len(tokens) == limit and best != EOS:
            break
        tokens.append(best)
    return Found(tokens, sum(toy.walk(sentence, tokens)[0]))
