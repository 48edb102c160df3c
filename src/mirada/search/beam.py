"""Beam search, vectorised over sentences and hypotheses.

No hypothesis is handled in Python while the search runs. Every step writes down which candidates it had (`BeamStep`);
hypotheses are beams that point to candidates, and tokens are read once, when a sentence is done, by walking the
pointers back.

The rule is that of Sutskever et al. 2014 (section 3.2): the `K` likeliest continuations stay, and those of them that
end with `</s>` move to the finished outputs. Their beams are not lost but go to the next best continuations. For that,
each step finds `C` = 2 × `K` candidates: a beam can end only once, so at least `K` of them go on.
"""

from __future__ import annotations

from math import inf
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
    largest_sums,
    log_probabilities,
    penalty,
    perhaps_any,
)
from mirada.trees import select_rows


class Ends(NamedTuple):
    """The best hypotheses of each sentence that ended, best first; a score of −inf marks a free place."""

    scores: Tensor  # [A, n] log-probability over length penalty
    lengths: Tensor  # [A, n] steps taken, </s> counted
    candidates: Tensor  # [A, n] which candidate of the last step


class BeamState(NamedTuple):
    """What beam search knows of a group's beams, best first: 1 a sentence before the first choice, then `K`."""

    scores: Tensor  # [A, K] log-probabilities; −inf marks an empty beam
    kept: Tensor  # [A, K] the candidates of the last step that they are
    ends: Ends


class Candidates(NamedTuple):
    """The likeliest continuations of each sentence's hypotheses, best first."""

    scores: Tensor  # [A, C] log-probabilities of the hypotheses, this token included
    tokens: Tensor  # [A, C]
    log_probabilities: Tensor  # [A, C] of this token
    beams: Tensor  # [A, C] the hypothesis that is continued


class BeamStep(NamedTuple):
    """What one step leaves behind for reading the outputs back."""

    tokens: np.ndarray  # [A, C] of the candidates
    log_probabilities: np.ndarray  # [A, C]
    beams: np.ndarray  # [A, C]
    kept: np.ndarray  # [A, K] the candidates in the beams of the next step
    attention: np.ndarray | None  # [A, K, S] of this step's beams


def beam_search(step: StepFunction, options: SearchConfig, *, with_attention: bool) -> Search:
    """The search for the `n_best` best outputs of every sentence.

    A sentence leaves, and its rows leave state and memory, as soon as nothing can change its result.
    """

    def begin(new: NewRequests) -> tuple[int, BeamState]:
        return 1, _start(len(new.tickets), options.n_best, new.rules.limits.device)

    def advance(group: Group) -> Advanced:
        result = step(group.tokens.flatten(), group.state, group.memory)
        # As long as every sentence is inside its prefix, there is one hypothesis each.
        spread = group.tokens.size(1) > 1 or int(group.ages[0]) >= group.rules.shortest_prefix
        width = options.beam_size if spread else 1
        candidates = _expand(result.logits, group, 2 * width)
        # With fewer live candidates than beams, ended ones are among the kept: their beams are empty.
        ended = candidates.tokens == EOS
        scores, kept = candidates.scores.masked_fill(ended, -inf).topk(width, dim=1)
        ends = _with_ended(group.own.ends, candidates, ended, group.ages + 1, options.alpha)
        own, before = BeamState(scores, kept, ends), group
        rows = candidates.beams.gather(1, kept) + _first_rows(group)
        group = _advance(group, candidates, kept)._replace(own=own, state=result.state)
        weights = attention_of(result, len(group.ages)) if with_attention else []
        done, *made = hosts((_finished(group, options), *candidates[1:], kept, *weights))
        tokens, log_p, beams, parents, *attention = made
        record = BeamStep(tokens, log_p, beams, parents, attention[0] if attention else None)
        finished = torch.from_numpy(np.flatnonzero(done))
        last = _ends_of(_close(before, ends, candidates, ended), finished) if len(finished) else []
        return Advanced(group, rows, record, finished, last)

    def read_back(trail: Trail, ends: list[tuple[int, int]]) -> list[Hypothesis]:
        found = [_path(trail[:length], candidate, options.alpha) for length, candidate in ends]
        return sorted(found, key=lambda output: (not output.finished, -output.score))

    return Search(begin, advance, read_back, options.beam_size)


def _start(count: int, places: int, device: torch.device) -> BeamState:
    """One empty hypothesis a sentence."""
    none = torch.zeros(count, places, dtype=torch.long, device=device)
    ends = Ends(torch.full((count, places), -inf, device=device), none, none.clone())
    return BeamState(torch.zeros(count, 1, device=device), none[:, :1], ends)


def _expand(logits: Tensor, group: Group, count: int) -> Candidates:
    """Find the `count` best continuations of each sentence, of all its hypotheses together."""
    own = log_probabilities(logits)
    history = None if group.history is None else group.history.flatten(0, 1)
    choice = allowed(own, group.rules, group.ages, history).view(*group.tokens.shape, -1)  # [A, K, V]
    vocabulary = choice.shape[2]
    some = min(count, choice.shape[1] * vocabulary)
    scores, places = largest_sums(choice, group.own.scores, some)
    # A small vocabulary may have fewer continuations; the rest are candidates that cannot be chosen.
    if some < count:
        scores = torch.nn.functional.pad(scores, (0, count - some), value=-inf)
        places = torch.nn.functional.pad(places, (0, count - some))
    log_probability = choice.flatten(1).gather(1, places)
    return Candidates(scores, places % vocabulary, log_probability, places // vocabulary)


def _first_rows(group: Group) -> Tensor:
    """Row of each sentence's first beam in the decoder's state, `[A, 1]`."""
    rows, width = group.tokens.numel(), group.tokens.shape[1]
    return torch.arange(0, rows, width, device=group.tokens.device)[:, None]


def _advance(group: Group, candidates: Candidates, kept: Tensor) -> Group:
    """Fill the beams with the kept."""
    tokens, history = candidates.tokens.gather(1, kept), group.history
    if history is not None:
        parents = candidates.beams.gather(1, kept)[:, :, None].expand(-1, -1, history.shape[2])
        history = torch.cat([history.gather(1, parents), tokens[:, :, None]], 2)
    return group._replace(ages=group.ages + 1, tokens=tokens, history=history)


def _with_ended(ends: Ends, candidates: Candidates, ended: Tensor, ages: Tensor, alpha: float) -> Ends:
    """Let those of the best `K` candidates that ended compete for the places."""
    best = ended.shape[1] // 2
    if not perhaps_any(ended[:, :best]):
        return ends._replace(scores=ends.scores.to(candidates.scores.dtype))
    scores = candidates.scores[:, :best].masked_fill(~ended[:, :best], -inf)
    index = torch.arange(best, device=scores.device).expand_as(scores)
    lengths = ages[:, None].expand_as(index)
    every = _beside(ends, Ends(scores / penalty(lengths.to(scores.dtype), alpha), lengths, index))
    return _places(every, every.scores.topk(ends.scores.shape[1], dim=1).indices)


def _finished(group: Group, options: SearchConfig) -> Tensor:
    """Say for which sentences the search is over, `[A]` bool.

    That is one step behind the limit, or when no live hypothesis would beat the worst of `n_best` finished ones if it
    ended with the next token. With `exact_stop`, when none can at any length: log-probabilities only fall, the penalty
    grows with the length, and a finished output has at most `limit` tokens and its `</s>`, so that the best score still
    to come is at most the best live log-probability over the penalty of one more than the limit. Stopping there gives
    exactly what going on would give; without a penalty (α = 0) so does the other.
    """
    own: BeamState = group.own
    limits, ages = group.rules.limits, group.ages
    lengths = (limits if options.exact_stop else ages) + 1
    reachable = own.scores[:, 0] / penalty(lengths.to(own.scores.dtype), options.alpha)
    return (limits < ages) | (reachable <= own.ends.scores[:, -1])


def _close(before: Group, ends: Ends, candidates: Candidates, ended: Tensor) -> Ends:
    """Fill the free places of sentences at their limit with the hypotheses of `limit` tokens, behind all finished ones.

    The step behind the limit was for `</s>` only. Hypotheses that ended with it are not taken again without it.
    """
    over = before.rules.limits <= before.ages
    if not over.any():
        return ends
    best = ended.shape[1] // 2
    gone = torch.zeros_like(before.own.scores).scatter_add_(
        1, candidates.beams[:, :best], (ended & (candidates.scores != -inf))[:, :best].to(before.own.scores)
    )
    live = over[:, None] & (gone == 0)
    scores = before.own.scores.masked_fill(~live, -inf)
    lengths = before.ages[:, None].expand_as(before.own.kept)
    every = _beside(ends, Ends(scores.to(ends.scores), lengths, before.own.kept))
    order = (every.scores == -inf).int().argsort(dim=1, stable=True)
    return _places(every, order[:, : ends.scores.shape[1]])


def _beside(left: Ends, right: Ends) -> Ends:
    return Ends(*(torch.cat(pair, 1) for pair in zip(left, right, strict=True)))


def _places(ends: Ends, index: Tensor) -> Ends:
    return Ends(*(field.gather(1, index) for field in ends))


def _ends_of(ends: Ends, finished: Tensor) -> list[list[tuple[int, int]]]:
    """Length and last candidate of every output of the sentences that are done."""
    known = hosts(select_rows(ends, finished.to(ends.scores.device)))
    rows = zip(*(field.tolist() for field in known), strict=True)
    return [
        [(length, candidate) for score, length, candidate in zip(*row, strict=True) if score != -inf] for row in rows
    ]


def _path(trail: Trail, candidate: int, alpha: float) -> Hypothesis:
    """Read an output from its last step to its first.

    A candidate names the beam that it continues, and a beam the candidate of the step before.
    """
    tokens, log_p, attention = [], [], []
    beam = -1
    for past, row in reversed(trail):
        index = candidate if beam < 0 else past.kept[row, beam]
        tokens.append(int(past.tokens[row, index]))
        log_p.append(float(past.log_probabilities[row, index]))
        beam = past.beams[row, index]
        if past.attention is not None:
            attention.append(past.attention[row, beam])
    return hypothesis(tokens[::-1], log_p[::-1], attention[::-1], alpha)
