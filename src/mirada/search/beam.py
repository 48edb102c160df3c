"""Beam search, vectorised over sentences and hypotheses.

No hypothesis is handled in Python. Every step writes down which candidates it had (`BeamStep`); hypotheses are beams
that point to candidates, and tokens are read once, at the end, by walking the pointers back.

The rule is that of Sutskever et al. 2014 (section 3.2): the `K` likeliest continuations stay, and those of them that
end with `</s>` move to the finished outputs. Their beams are not lost but go to the next best continuations. For that,
each step finds `C` = 2 × `K` candidates: a beam can end only once, so at least `K` of them go on.
"""

from __future__ import annotations

from math import inf
from typing import NamedTuple

import torch
from torch import Tensor

from mirada.config.options import SearchConfig
from mirada.search.continuous import Advanced, Group, RequestSource, Search, follow
from mirada.search.step import (
    SPECIALS,
    Paths,
    Rules,
    StepFunction,
    allowed,
    attention_of,
    largest_sums,
    log_probabilities,
    penalty,
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
    ends: Ends


class Candidates(NamedTuple):
    """The likeliest continuations of each sentence's hypotheses, best first."""

    scores: Tensor  # [A, C] log-probabilities of the hypotheses, this token included
    tokens: Tensor  # [A, C]
    log_probabilities: Tensor  # [A, C] of this token
    beams: Tensor  # [A, C] the hypothesis that is continued


class BeamStep(NamedTuple):
    """What one step leaves behind for reading the outputs back."""

    sentences: Tensor  # [A]
    ages: Tensor  # [A] steps that each had behind it
    candidates: Candidates  # [A, C]
    kept: Tensor  # [A, K] the candidates in the beams of the next step
    attention: Tensor | None  # [A, K, S] of this step's beams


def beam_search(
    step: StepFunction, request_source: RequestSource, rules: Rules, options: SearchConfig, *, with_attention: bool
) -> Paths:
    """Return the `n_best` best outputs of every sentence that arrives.

    A sentence leaves, and its rows leave state and memory, as soon as nothing can change its result.
    """
    steps: list[BeamStep] = []
    closed: list[tuple[Tensor, Ends]] = []

    def begin(count: int) -> tuple[int, BeamState]:
        return 1, _start(count, options.n_best, rules.limits.device)

    def advance(group: Group) -> Advanced:
        result = step(group.tokens.flatten(), group.state, group.memory)
        # As long as every sentence is inside its prefix, there is one hypothesis each.
        spread = group.tokens.size(1) > 1 or int(group.ages[0]) >= rules.shortest_prefix
        width = options.beam_size if spread else 1
        candidates = _expand(result.logits, group, rules, 2 * width)
        # With fewer live candidates than beams, ended ones are among the kept: their beams are empty.
        ended = candidates.tokens == SPECIALS.eos
        scores, kept = candidates.scores.masked_fill(ended, -inf).topk(width, dim=1)
        attention = attention_of(result, len(group.sentences)) if with_attention else None
        steps.append(BeamStep(group.sentences, group.ages, candidates, kept, attention))
        rows = candidates.beams.gather(1, kept) + _first_rows(group)
        ends = _with_ended(group.own.ends, candidates, ended, group.ages + 1, options.alpha)
        group = _advance(group, candidates, kept)._replace(own=BeamState(scores, ends), state=result.state)
        finished = _finished(group, rules, options.alpha)
        if finished.any():
            leave = finished.nonzero().flatten()
            closed.append((group.sentences[leave], select_rows(_close(group, kept), leave)))
        return Advanced(group, rows, finished)

    follow(Search(begin, advance, options.beam_size), request_source, rules)
    return _read_back(steps, _in_order(closed))


def _start(count: int, places: int, device: torch.device) -> BeamState:
    """One empty hypothesis a sentence."""
    none = torch.zeros(count, places, dtype=torch.long, device=device)
    ends = Ends(torch.full((count, places), -inf, device=device), none, none.clone())
    return BeamState(torch.zeros(count, 1, device=device), ends)


def _expand(logits: Tensor, group: Group, rules: Rules, count: int) -> Candidates:
    """Find the `count` best continuations of each sentence, of all its hypotheses together."""
    own = log_probabilities(logits)
    history = None if group.history is None else group.history.flatten(0, 1)
    choice = allowed(own, rules, group.sentences, group.ages, history).view(*group.tokens.shape, -1)  # [A, K, V]
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
    if not ended[:, :best].any():
        return ends._replace(scores=ends.scores.to(candidates.scores.dtype))
    scores = candidates.scores[:, :best].masked_fill(~ended[:, :best], -inf)
    index = torch.arange(best, device=scores.device).expand_as(scores)
    lengths = ages[:, None].expand_as(index)
    every = _beside(ends, Ends(scores / penalty(lengths.to(scores.dtype), alpha), lengths, index))
    return _places(every, every.scores.topk(ends.scores.shape[1], dim=1).indices)


def _finished(group: Group, rules: Rules, alpha: float) -> Tensor:
    """Say for which sentences nothing can change any more, `[A]` bool.

    That is at the limit, or when no live hypothesis can still beat the worst of `n_best` finished ones.
    Log-probabilities only fall, the penalty grows with the length, and a finished output has at most `limit` tokens
    with its `</s>`: the best score still to come is at most the best live log-probability over the penalty of the
    limit. So stopping here gives exactly what going on would give.
    """
    own: BeamState = group.own
    limits = rules.limits[group.sentences]
    reachable = own.scores.amax(1) / penalty(limits.to(own.scores.dtype), alpha)
    return (limits <= group.ages) | (reachable <= own.ends.scores[:, -1])


def _close(group: Group, kept: Tensor) -> Ends:
    """Fill the free places with the best live hypotheses as they are, behind all finished ones."""
    own = group.own
    every = _beside(own.ends, Ends(own.scores, group.ages[:, None].expand_as(kept), kept))
    order = (every.scores == -inf).int().argsort(dim=1, stable=True)
    return _places(every, order[:, : own.ends.scores.shape[1]])


def _beside(left: Ends, right: Ends) -> Ends:
    return Ends(*(torch.cat(pair, 1) for pair in zip(left, right, strict=True)))


def _places(ends: Ends, index: Tensor) -> Ends:
    return Ends(*(field.gather(1, index) for field in ends))


def _in_order(closed: list[tuple[Tensor, Ends]]) -> Ends:
    """Put the results of the sentences, which left one after the other, back into the batch's order."""
    sentences = torch.cat([sentences for sentences, _ in closed])
    ends = Ends(*(torch.cat(fields) for fields in zip(*(ends for _, ends in closed), strict=True)))
    return select_rows(ends, sentences.argsort())


def _read_back(steps: list[BeamStep], ends: Ends) -> Paths:
    """Read the tokens, their log-probabilities and their attention along every output, from the last turn to the first.

    A candidate names the beam that it continues, and a beam the candidate of the step before. Beyond an output's end
    the walk follows some candidate or other.
    """
    paths = _blank(steps, ends)
    beams = torch.zeros_like(ends.candidates)  # [B, n]
    for past in reversed(steps):
        rows, at = past.sentences, past.ages
        last = ends.lengths[rows] == at[:, None] + 1
        index = torch.where(last, ends.candidates[rows], past.kept.gather(1, beams[rows]))  # [A, n]
        beams[rows] = beam = past.candidates.beams.gather(1, index)
        paths.tokens[rows, :, at] = past.candidates.tokens.gather(1, index)
        paths.log_probabilities[rows, :, at] = past.candidates.log_probabilities.gather(1, index)
        if paths.attention is not None and past.attention is not None:
            weights = past.attention[torch.arange(len(rows), device=rows.device)[:, None], beam]  # [A, n, S]
            paths.attention[rows, :, at, : weights.size(2)] = weights
    return paths


def _blank(steps: list[BeamStep], ends: Ends) -> Paths:
    """Room for every output, and how long each is."""
    longest = max(int(past.ages.max()) for past in steps) + 1
    numbers = steps[0].candidates.log_probabilities.new_zeros(*ends.lengths.shape, longest)
    widths = [past.attention.size(2) for past in steps if past.attention is not None]
    weights = [past.attention for past in steps if past.attention is not None]
    return Paths(
        tokens=torch.zeros_like(numbers, dtype=torch.long),
        log_probabilities=numbers,
        lengths=ends.lengths.where(ends.scores != -inf, 0),
        attention=weights[0].new_zeros(*numbers.shape, max(widths)) if weights else None,
    )
