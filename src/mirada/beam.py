"""Beam search, vectorised over sentences and hypotheses.

No hypothesis is handled in Python. Every step writes down which candidates it had (`Turn`); hypotheses are slots that
point to candidates, and tokens are read once, at the end, by walking the pointers back.

The rule is that of Sutskever et al. 2014 (section 3.2): the `K` likeliest continuations stay, and those of them that
end with `</s>` move to the finished outputs. Their slots are not lost but go to the next best continuations. For that,
each step finds `C` = 2 × `K` candidates: a slot can end only once, so at least `K` of them go on.
"""

from __future__ import annotations

from math import inf
from typing import Any, NamedTuple

import torch
from torch import Tensor

from mirada.config import SearchConfig
from mirada.decoding import (
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
from mirada.trees import Tree, select_rows


class Ends(NamedTuple):
    """The best hypotheses of each sentence that ended, best first; a score of −inf marks a free place."""

    scores: Tensor  # [A, n] log-probability over length penalty
    lengths: Tensor  # [A, n] steps taken, </s> counted
    candidates: Tensor  # [A, n] which candidate of the last step


class Beams(NamedTuple):
    """The live hypotheses, best first: 1 slot a sentence before the first choice, then `K`."""

    sentences: Tensor  # [A] rows of the batch
    tokens: Tensor  # [A, K] last tokens
    scores: Tensor  # [A, K] log-probabilities; −inf marks an empty slot
    history: Tensor | None  # [A, K, t] all tokens, kept only for the rule about n-grams
    ends: Ends


class Candidates(NamedTuple):
    """The likeliest continuations of each sentence's hypotheses, best first."""

    scores: Tensor  # [A, C] log-probabilities of the hypotheses, this token included
    tokens: Tensor  # [A, C]
    log_probabilities: Tensor  # [A, C] of this token
    slots: Tensor  # [A, C] the hypothesis that is continued


class Turn(NamedTuple):
    """What one step leaves behind for reading the outputs back."""

    sentences: Tensor  # [A]
    candidates: Candidates  # [A, C]
    survivors: Tensor  # [A, K] the candidates in the slots of the next step
    attention: Tensor | None  # [A, K, S] of this step's slots


def beam_search(
    step: StepFunction, memory: Any, state: Any, rules: Rules, options: SearchConfig, *, with_attention: bool
) -> Paths:
    """Return the `n_best` best outputs of every sentence; `state` and `memory` have a row a sentence.

    A sentence leaves the batch, and its rows leave state and memory, as soon as nothing can change its result.
    """
    beams = _start(rules, options.n_best)
    turns: list[Turn] = []
    closed: list[tuple[Tensor, Ends]] = []
    while len(beams.sentences):
        result = step(beams.tokens.flatten(), state, memory)
        # As long as every sentence is inside its prefix, there is one hypothesis each.
        width = options.beam_size if len(turns) >= rules.shortest_prefix else 1
        candidates = _expand(result.logits, beams, rules, len(turns), 2 * width)
        survivors = _without_ends(candidates).topk(width, dim=1).indices
        attention = attention_of(result, len(beams.sentences)) if with_attention else None
        turns.append(Turn(beams.sentences, candidates, survivors, attention))
        rows = candidates.slots.gather(1, survivors) + _first_rows(beams)
        beams = _advance(beams, candidates, survivors, len(turns), options.alpha)
        settled = _settled(beams, rules, len(turns), options.alpha)
        if settled.any():
            stay, leave = (~settled).nonzero().flatten(), settled.nonzero().flatten()
            closed.append((beams.sentences[leave], select_rows(_close(beams, survivors, len(turns)), leave)))
            beams, memory, rows = select_rows(beams, stay), select_rows(memory, stay), rows[stay]
        state = _reordered(result.state, rows.flatten(), len(result.logits))
    return _read_back(turns, _in_order(closed))


def _start(rules: Rules, places: int) -> Beams:
    """One empty hypothesis a sentence."""
    batch, device = len(rules.limits), rules.limits.device
    none = torch.zeros(batch, places, dtype=torch.long, device=device)
    return Beams(
        sentences=torch.arange(batch, device=device),
        tokens=none.new_full((batch, 1), SPECIALS.bos),
        scores=torch.zeros(batch, 1, device=device),
        history=none.new_empty(batch, 1, 0) if rules.ngram_size else None,
        ends=Ends(torch.full((batch, places), -inf, device=device), none, none),
    )


def _expand(logits: Tensor, beams: Beams, rules: Rules, step: int, count: int) -> Candidates:
    """Find the `count` best continuations of each sentence, of all its hypotheses together."""
    own = log_probabilities(logits)
    history = None if beams.history is None else beams.history.flatten(0, 1)
    choice = allowed(own, rules, beams.sentences, step, history).view(*beams.tokens.shape, -1)  # [A, K, V]
    vocabulary = choice.shape[2]
    some = min(count, choice.shape[1] * vocabulary)
    scores, places = largest_sums(choice, beams.scores, some)
    # A small vocabulary may have fewer continuations; the rest are candidates that cannot be chosen.
    if some < count:
        scores = torch.nn.functional.pad(scores, (0, count - some), value=-inf)
        places = torch.nn.functional.pad(places, (0, count - some))
    log_probability = choice.flatten(1).gather(1, places)
    return Candidates(scores, places % vocabulary, log_probability, places // vocabulary)


def _without_ends(candidates: Candidates) -> Tensor:
    """Scores of the candidates that can live on: −inf for those that end with `</s>`."""
    return candidates.scores.masked_fill(candidates.tokens == SPECIALS.eos, -inf)


def _first_rows(beams: Beams) -> Tensor:
    """Row of each sentence's first slot in the decoder's state, `[A, 1]`."""
    rows, width = beams.tokens.numel(), beams.tokens.shape[1]
    return torch.arange(0, rows, width, device=beams.tokens.device)[:, None]


def _advance(beams: Beams, candidates: Candidates, survivors: Tensor, length: int, alpha: float) -> Beams:
    """Fill the slots with the survivors and the finished places with the candidates that ended, now `length` long."""
    tokens = candidates.tokens.gather(1, survivors)
    history = beams.history
    if history is not None:
        parents = candidates.slots.gather(1, survivors)[:, :, None].expand(-1, -1, history.shape[2])
        history = torch.cat([history.gather(1, parents), tokens[:, :, None]], 2)
    # With fewer live candidates than slots, ended ones are among the survivors: their slots are empty.
    scores = _without_ends(candidates).gather(1, survivors)
    return Beams(beams.sentences, tokens, scores, history, _with_ended(beams.ends, candidates, length, alpha))


def _with_ended(ends: Ends, candidates: Candidates, length: int, alpha: float) -> Ends:
    """Let those of the best `K` candidates that ended compete for the places."""
    tokens, scores = (field[:, : field.shape[1] // 2] for field in (candidates.tokens, candidates.scores))
    index = torch.arange(tokens.shape[1], device=tokens.device).expand_as(tokens)
    new = Ends(
        scores.masked_fill(tokens != SPECIALS.eos, -inf) / penalty(length, alpha), torch.full_like(index, length), index
    )
    every = _beside(ends, new)
    best = every.scores.topk(ends.scores.shape[1], dim=1).indices
    return _places(every, best)


def _settled(beams: Beams, rules: Rules, length: int, alpha: float) -> Tensor:
    """Say for which sentences nothing can change any more, `[A]` bool.

    That is at the limit, or when no live hypothesis can still beat the worst of `n_best` finished ones.
    Log-probabilities only fall, the penalty grows with the length, and a finished output has at most `limit` tokens
    with its `</s>`: the best score still to come is at most the best live log-probability over the penalty of the
    limit. So stopping here gives exactly what going on would give.
    """
    limits = rules.limits[beams.sentences]
    reachable = beams.scores.amax(1) / penalty(limits.to(beams.scores.dtype), alpha)
    return (limits <= length) | (reachable <= beams.ends.scores[:, -1])


def _close(beams: Beams, survivors: Tensor, length: int) -> Ends:
    """Fill the free places with the best live hypotheses as they are, behind all finished ones."""
    every = _beside(beams.ends, Ends(beams.scores, torch.full_like(survivors, length), survivors))
    order = (every.scores == -inf).int().argsort(dim=1, stable=True)
    return _places(every, order[:, : beams.ends.scores.shape[1]])


def _beside(left: Ends, right: Ends) -> Ends:
    return Ends(*(torch.cat(pair, 1) for pair in zip(left, right, strict=True)))


def _places(ends: Ends, index: Tensor) -> Ends:
    return Ends(*(field.gather(1, index) for field in ends))


def _reordered(tree: Tree, rows: Tensor, count: int) -> Tree:
    """Take `rows` of a tree of `count` rows; a tree whose order stays is left alone."""
    if len(rows) == count and torch.equal(rows, torch.arange(count, device=rows.device)):
        return tree
    return select_rows(tree, rows)


def _in_order(closed: list[tuple[Tensor, Ends]]) -> Ends:
    """Put the results of the sentences, which left one after the other, back into the batch's order."""
    sentences = torch.cat([sentences for sentences, _ in closed])
    ends = Ends(*(torch.cat(fields) for fields in zip(*(ends for _, ends in closed), strict=True)))
    return select_rows(ends, sentences.argsort())


def _read_back(turns: list[Turn], ends: Ends) -> Paths:
    """Read the tokens, their log-probabilities and their attention along every output."""
    path = list(zip(turns, _walk_back(turns, ends), strict=True))
    slots = [(turn.attention, rows, turn.candidates.slots[rows, index]) for turn, (rows, index) in path]
    attention = [weights[rows, slot] for weights, rows, slot in slots if weights is not None]
    return Paths(
        tokens=torch.stack([turn.candidates.tokens[where] for turn, where in path], 2),
        log_probabilities=torch.stack([turn.candidates.log_probabilities[where] for turn, where in path], 2),
        lengths=ends.lengths.where(ends.scores != -inf, 0),
        attention=torch.stack(attention, 2) if attention else None,
    )


def _walk_back(turns: list[Turn], ends: Ends) -> list[tuple[Tensor, Tensor]]:
    """Say where each output is in every turn: row of the sentence `[B, 1]` and candidate `[B, n]`.

    A candidate names the slot that it continues, and a slot the candidate of the turn before. Beyond an output's end
    the walk follows some candidate or other, and row 0 stands in for a sentence that had left.
    """
    slot = torch.zeros_like(ends.candidates)
    walked: list[tuple[Tensor, Tensor]] = []
    for length in range(len(turns), 0, -1):
        turn = turns[length - 1]
        count = torch.arange(len(turn.sentences), device=slot.device)
        rows = slot.new_zeros(len(slot)).index_copy(0, turn.sentences, count)[:, None]
        index = torch.where(ends.lengths == length, ends.candidates, turn.survivors[rows, slot])
        slot = turn.candidates.slots[rows, index]
        walked.append((rows, index))
    return walked[::-1]
