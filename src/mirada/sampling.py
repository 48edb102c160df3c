"""Greedy choice and random choice: every row follows one path of its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from mirada.config import SearchConfig
from mirada.decoding import SPECIALS, Paths, Rules, StepFunction, allowed, attention_of, largest, log_probabilities
from mirada.trees import select_rows

# Picks the next token of every row: allowed log-probabilities [N, V], sentences [A] and the step's number give [N].
Choose = Callable[[Tensor, Tensor, int], Tensor]
SEED_STRIDE = 1_000_003


class Walk(NamedTuple):
    """The sentences that are still searched, with `K` paths each."""

    sentences: Tensor  # [A] rows of the batch
    tokens: Tensor  # [A, K] last tokens
    done: Tensor  # [A, K] True after </s>
    history: Tensor | None  # [A, K, t] all tokens, kept only for the rule about n-grams


class Turn(NamedTuple):
    """What one step leaves behind for reading the outputs back."""

    sentences: Tensor  # [A]
    tokens: Tensor  # [A, K]
    log_probabilities: Tensor  # [A, K] of the tokens
    attention: Tensor | None  # [A, K, S]


def greedy_search(step: StepFunction, memory: Any, state: Any, rules: Rules, *, with_attention: bool) -> Paths:
    """Follow the likeliest token of every step: one output a sentence."""

    def likeliest(choice: Tensor, sentences: Tensor, number: int) -> Tensor:
        return largest(choice, 1)[1].flatten()

    return _follow(step, memory, state, rules, _start(rules, 1), choose=likeliest, with_attention=with_attention)


def sample(
    step: StepFunction,
    memory: Any,
    state: Any,
    rules: Rules,
    options: SearchConfig,
    *,
    ids: Sequence[int],
    with_attention: bool,
) -> Paths:
    """Draw `n_best` outputs a sentence; `ids` are `B` numbers.

    A sentence has its own generator, seeded by `sample_seed` and its number in `ids`, and one draw for each output and
    step. So what is drawn does not depend on the other sentences of the batch, nor on the limits.
    """
    outputs = options.n_best
    seeds = [options.sample_seed + SEED_STRIDE * number for number in ids]
    uniforms = _uniforms(seeds, outputs, int(rules.limits.max())).to(rules.limits.device, _widest(rules.limits.device))

    def drawn(choice: Tensor, sentences: Tensor, number: int) -> Tensor:
        return draw(choice, uniforms[sentences, number].flatten(), options)

    walk = _start(rules, outputs)
    rows = walk.sentences.repeat_interleave(outputs)
    return _follow(step, memory, select_rows(state, rows), rules, walk, choose=drawn, with_attention=with_attention)


def draw(choice: Tensor, uniforms: Tensor, options: SearchConfig) -> Tensor:
    """Turn numbers from [0, 1) `[N]` into tokens `[N]`: the inverse of the distribution that the options shape.

    The temperature comes first, then `top_k`, then `top_p` of what is left. Token ids are added up in their own order,
    so that a rounding error in a logit moves a border but does not reorder the tokens.
    """
    shifted = (choice - choice.amax(1, keepdim=True)).to(uniforms.dtype)
    probabilities = truncated((shifted / options.temperature).softmax(1), options.top_k, options.top_p)
    # A GPU adds up in parallel: where probabilities are 0, the sums may waver by a rounding error.
    possible = probabilities > 0
    cumulative = probabilities.cumsum(1)
    total = cumulative.where(possible, 0).amax(1)
    goal = torch.minimum(uniforms * total, total.nextafter(torch.zeros_like(total)))
    return (possible & (cumulative > goal[:, None])).byte().argmax(1)


def truncated(probabilities: Tensor, top_k: int, top_p: float) -> Tensor:
    """Set to 0 what is not among the `top_k` likeliest (0: all), then what the nucleus of `top_p` leaves out.

    The nucleus is the smallest set of likeliest tokens that together have at least `top_p` of the probability (Holtzman
    et al. 2020, section 3.1); it holds one token at least.
    """
    if 0 < top_k < probabilities.shape[1]:
        best, index = probabilities.topk(top_k, dim=1)
        probabilities = torch.zeros_like(probabilities).scatter_(1, index, best)
    if top_p < 1:
        ordered, index = probabilities.sort(dim=1, descending=True)
        before = ordered.cumsum(1) - ordered
        outside = before >= top_p * ordered.sum(1, keepdim=True)
        probabilities = torch.zeros_like(probabilities).scatter_(1, index, ordered.masked_fill(outside, 0))
    return probabilities


def _uniforms(seeds: Sequence[int], outputs: int, steps: int) -> Tensor:
    """Draw the numbers of all sentences, steps and outputs, on the CPU in float64: `[B, T, n]`."""
    generators = [torch.Generator().manual_seed(seed % 2**63) for seed in seeds]
    return torch.stack([torch.rand(steps, outputs, dtype=torch.float64, generator=one) for one in generators])


def _widest(device: torch.device) -> torch.dtype:
    """Apple's GPUs have no float64."""
    return torch.float32 if device.type == "mps" else torch.float64


def _start(rules: Rules, outputs: int) -> Walk:
    """Begin `outputs` empty paths a sentence."""
    tokens = torch.full((len(rules.limits), outputs), SPECIALS.bos, device=rules.limits.device)
    sentences = torch.arange(len(tokens), device=tokens.device)
    history = tokens.new_empty(*tokens.shape, 0) if rules.ngram_size else None
    return Walk(sentences, tokens, torch.zeros_like(tokens, dtype=torch.bool), history)


def _follow(
    step: StepFunction, memory: Any, state: Any, rules: Rules, walk: Walk, *, choose: Choose, with_attention: bool
) -> Paths:
    """Step until every path has ended or is at its limit; a sentence leaves the batch with its last path."""
    turns: list[Turn] = []
    outputs = walk.tokens.shape[1]
    while len(walk.sentences):
        result = step(walk.tokens.flatten(), state, memory)
        state = result.state
        own = log_probabilities(result.logits)
        history = None if walk.history is None else walk.history.flatten(0, 1)
        tokens = choose(allowed(own, rules, walk.sentences, len(turns), history), walk.sentences, len(turns))
        own = own.gather(1, tokens[:, None])
        attention = attention_of(result, len(walk.sentences)) if with_attention else None
        turns.append(Turn(walk.sentences, tokens.view(-1, outputs), own.view(-1, outputs), attention))
        walk = _advance(walk, turns[-1].tokens)
        stay = (~walk.done.all(1) & (rules.limits[walk.sentences] > len(turns))).nonzero().flatten()
        if len(stay) < len(walk.sentences):
            rows = (stay[:, None] * outputs + torch.arange(outputs, device=stay.device)).flatten()
            walk, memory, state = select_rows(walk, stay), select_rows(memory, stay), select_rows(state, rows)
    return _read_back(turns, rules.limits, outputs)


def _advance(walk: Walk, tokens: Tensor) -> Walk:
    """Move every path on by its token."""
    history = None if walk.history is None else torch.cat([walk.history, tokens[:, :, None]], 2)
    return Walk(walk.sentences, tokens, walk.done | (tokens == SPECIALS.eos), history)


def _read_back(turns: list[Turn], limits: Tensor, outputs: int) -> Paths:
    """Lay the turns side by side, each sentence in its row of the batch."""

    def laid(parts: list[Tensor]) -> Tensor:
        whole = parts[0].new_zeros(len(limits), outputs, len(parts), *parts[0].shape[2:])
        for number, (turn, part) in enumerate(zip(turns, parts, strict=True)):
            whole[turn.sentences, :, number] = part
        return whole

    tokens = laid([turn.tokens for turn in turns])
    ended = tokens == SPECIALS.eos
    lengths = torch.where(ended.any(2), ended.byte().argmax(2) + 1, limits[:, None])
    attention = [turn.attention for turn in turns if turn.attention is not None]
    own = laid([turn.log_probabilities for turn in turns])
    return Paths(tokens, own, lengths, laid(attention) if attention else None)
