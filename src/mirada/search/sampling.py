"""Greedy choice and random choice: every row follows one path of its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from mirada.config.options import SearchConfig
from mirada.search.continuous import Advanced, Group, RequestSource, Search, follow
from mirada.search.step import SPECIALS, Paths, Rules, StepFunction, allowed, attention_of, largest, log_probabilities

# Picks the next token of every row: allowed log-probabilities [N, V], sentences [A] and their ages [A] give [N].
Choose = Callable[[Tensor, Tensor, Tensor], Tensor]
SEED_STRIDE = 1_000_003


class SampleStep(NamedTuple):
    """What one step leaves behind for reading the outputs back."""

    sentences: Tensor  # [A]
    ages: Tensor  # [A] steps that each had behind it
    tokens: Tensor  # [A, K]
    log_probabilities: Tensor  # [A, K] of the tokens
    attention: Tensor | None  # [A, K, S]


def greedy_search(step: StepFunction, request_source: RequestSource, rules: Rules, *, with_attention: bool) -> Paths:
    """Follow the likeliest token of every step: one output a sentence."""

    def likeliest(choice: Tensor, sentences: Tensor, ages: Tensor) -> Tensor:
        return largest(choice, 1)[1].flatten()

    return _follow(step, request_source, rules, 1, choose=likeliest, with_attention=with_attention)


def sample(
    step: StepFunction,
    request_source: RequestSource,
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

    def drawn(choice: Tensor, sentences: Tensor, ages: Tensor) -> Tensor:
        return draw(choice, uniforms[sentences, ages].flatten(), options)

    return _follow(step, request_source, rules, outputs, choose=drawn, with_attention=with_attention)


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


def _follow(
    step: StepFunction,
    request_source: RequestSource,
    rules: Rules,
    outputs: int,
    *,
    choose: Choose,
    with_attention: bool,
) -> Paths:
    """Step until every path has ended or is at its limit; a sentence leaves with the last of its `outputs` paths."""
    steps: list[SampleStep] = []

    def begin(count: int) -> tuple[int, Tensor]:
        return outputs, torch.zeros(count, outputs, dtype=torch.bool, device=rules.limits.device)  # True after </s>

    def advance(group: Group) -> Advanced:
        result = step(group.tokens.flatten(), group.state, group.memory)
        own = log_probabilities(result.logits)
        history = None if group.history is None else group.history.flatten(0, 1)
        choice = allowed(own, rules, group.sentences, group.ages, history)
        chosen = choose(choice, group.sentences, group.ages)[:, None]
        tokens, log_p = chosen.view(-1, outputs), own.gather(1, chosen).view(-1, outputs)
        attention = attention_of(result, len(group.sentences)) if with_attention else None
        steps.append(SampleStep(group.sentences, group.ages, tokens, log_p, attention))
        group = _advance(group._replace(state=result.state), tokens)
        return Advanced(group, None, group.own.all(1) | (rules.limits[group.sentences] <= group.ages))

    follow(Search(begin, advance, outputs), request_source, rules)
    return _read_back(steps, rules.limits, outputs)


def _advance(group: Group, tokens: Tensor) -> Group:
    """Move every path on by its token."""
    history = None if group.history is None else torch.cat([group.history, tokens[:, :, None]], 2)
    done = group.own | (tokens == SPECIALS.eos)
    return group._replace(ages=group.ages + 1, tokens=tokens, history=history, own=done)


def _read_back(steps: list[SampleStep], limits: Tensor, outputs: int) -> Paths:
    """Lay the steps side by side, each sentence in its row of the batch."""
    longest = max(int(past.ages.max()) for past in steps) + 1
    tokens = limits.new_zeros(len(limits), outputs, longest)
    log_p = steps[0].log_probabilities.new_zeros(tokens.shape)
    weights = [past.attention for past in steps if past.attention is not None]
    widest = max((part.size(2) for part in weights), default=0)
    attention = weights[0].new_zeros(*tokens.shape, widest) if weights else None
    for past in steps:
        tokens[past.sentences, :, past.ages] = past.tokens
        log_p[past.sentences, :, past.ages] = past.log_probabilities
        if attention is not None and past.attention is not None:
            attention[past.sentences, :, past.ages, : past.attention.size(2)] = past.attention
    ended = tokens == SPECIALS.eos
    lengths = torch.where(ended.any(2), ended.byte().argmax(2) + 1, limits[:, None])
    return Paths(tokens, log_p, lengths, attention)
