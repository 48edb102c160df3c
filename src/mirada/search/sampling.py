"""Greedy choice and random choice: every row follows one path of its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from mirada.config.options import SearchConfig
from mirada.data.vocabulary import EOS
from mirada.search.continuous import Advanced, Group, NewRequests, Search
from mirada.search.step import (
    Hypothesis,
    StepFunction,
    Trail,
    allowed,
    attention_of,
    hosts,
    hypothesis,
    largest,
    log_probabilities,
)

# Picks the next token of every row of a group: allowed log-probabilities [N, V] give [N].
Choose = Callable[[Tensor, Group], Tensor]
SEED_STRIDE = 1_000_003


class SampleStep(NamedTuple):
    """What one step leaves behind for reading the outputs back."""

    tokens: np.ndarray  # [A, K]
    log_probabilities: np.ndarray  # [A, K] of the tokens
    attention: np.ndarray | None  # [A, K, S]


class SampleState(NamedTuple):
    """What sampling knows of a group's paths."""

    done: Tensor  # [A, K] bool: </s> was chosen
    uniforms: Tensor  # [A, T, K] a random number for each step; greedy choice has none


def greedy_search(step: StepFunction, options: SearchConfig, *, with_attention: bool) -> Search:
    """Follow the likeliest token of every step: one output a sentence."""

    def uniforms(new: NewRequests) -> Tensor:
        return torch.empty(len(new.tickets), 0, 1, device=new.rules.limits.device)

    def likeliest(choice: Tensor, group: Group) -> Tensor:
        return largest(choice, 1)[1].flatten()

    return _search(step, options, 1, uniforms, choose=likeliest, with_attention=with_attention)


def sample(step: StepFunction, options: SearchConfig, *, with_attention: bool) -> Search:
    """Draw `n_best` outputs a sentence.

    A sentence has its own generator, seeded by `sample_seed` and its own number, and one draw for each output and step.
    So what is drawn does not depend on the other sentences of the batch, nor on the limits.
    """
    outputs = options.n_best

    def uniforms(new: NewRequests) -> Tensor:
        seeds, device = [options.sample_seed + SEED_STRIDE * number for number in new.seeds], new.rules.limits.device
        return _uniforms(seeds, outputs, int(new.rules.limits.max()) + 1).to(device, _widest(device))

    def drawn(choice: Tensor, group: Group) -> Tensor:
        rows = torch.arange(len(group.ages), device=choice.device)
        return draw(choice, group.own.uniforms[rows, group.ages].flatten(), options)

    return _search(step, options, outputs, uniforms, choose=drawn, with_attention=with_attention)


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


def _search(
    step: StepFunction,
    options: SearchConfig,
    outputs: int,
    uniforms: Callable[[NewRequests], Tensor],
    *,
    choose: Choose,
    with_attention: bool,
) -> Search:
    """A sentence leaves with the last of its `outputs` paths that ends or, with `limit` tokens, does not end now."""

    def begin(new: NewRequests) -> tuple[int, SampleState]:
        done = torch.zeros(len(new.tickets), outputs, dtype=torch.bool, device=new.rules.limits.device)
        return outputs, SampleState(done, uniforms(new))

    def advance(group: Group) -> Advanced:
        result = step(group.tokens.flatten(), group.state, group.memory)
        own = log_probabilities(result.logits)
        history = None if group.history is None else group.history.flatten(0, 1)
        choice = allowed(own, group.rules, group.ages, history)
        chosen = choose(choice, group)[:, None]
        tokens, log_p = chosen.view(-1, outputs), own.gather(1, chosen).view(-1, outputs)
        weights = attention_of(result, len(group.ages)) if with_attention else []
        over = group.rules.limits <= group.ages
        group = _advance(group._replace(state=result.state), tokens)
        done, chosen_now, log_now, *attention = hosts((group.own.done.all(1) | over, tokens, log_p, *weights))
        record = SampleStep(chosen_now, log_now, attention[0] if attention else None)
        finished = torch.from_numpy(np.flatnonzero(done))
        return Advanced(group, None, record, finished, [None] * len(finished))

    def read_back(trail: Trail, _ends: None) -> list[Hypothesis]:
        found = [_path(trail, place, options.alpha) for place in range(outputs)]
        return sorted(found, key=lambda output: (not output.finished, -output.score))

    return Search(begin, advance, read_back, outputs)


def _advance(group: Group, tokens: Tensor) -> Group:
    """Move every path on by its token."""
    history = None if group.history is None else torch.cat([group.history, tokens[:, :, None]], 2)
    own = group.own._replace(done=group.own.done | (tokens == EOS))
    return group._replace(ages=group.ages + 1, tokens=tokens, history=history, own=own)


def _path(trail: Trail, place: int, alpha: float) -> Hypothesis:
    """One of a sentence's paths, to its `</s>`; without one it ends before the last step, which was for `</s>` only."""
    tokens = [int(past.tokens[row, place]) for past, row in trail]
    length = tokens.index(EOS) + 1 if EOS in tokens else len(tokens) - 1
    log_p = [float(past.log_probabilities[row, place]) for past, row in trail[:length]]
    attention = [past.attention[row, place] for past, row in trail[:length] if past.attention is not None]
    return hypothesis(tokens[:length], log_p, attention, alpha)
