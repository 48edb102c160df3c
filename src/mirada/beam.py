"""Beam search, vectorised over sentences and hypotheses.

No hypothesis is handled in Python. Every step writes down which candidates it had (`Turn`); hypotheses are slots that
point to candidates, and tokens are read once, at the end, by walking the pointers back. `C` candidates a sentence are
twice the width, so that, as each slot can end only once, enough candidates without `</s>` are left to fill all slots.
"""

from __future__ import annotations

from math import inf
from typing import Any, NamedTuple

import torch
from torch import Tensor

from mirada.config import SearchConfig
from mirada.decoding import SPECIALS, Paths, Rules, StepFunction, allowed, largest, penalty, producible
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
    """Return the `n_best` best outputs of every sentence; `state` and `memory` have `B` rows.

    A sentence leaves the batch, and its rows leave state and memory, as soon as nothing can change its result.
    """
    beams = _start(rules, options.n_best)
    turns: list[Turn] = []
    closed: list[tuple[Tensor, Ends]] = []
    while len(beams.sentences):
        result = step(beams.tokens.flatten(), state, memory)
        # As long as every sentence is inside its prefix there is one hypothesis each.
        width = options.beam_size if len(turns) >= rules.shortest_prefix else 1
        candidates = _expand(result.logits, beams, rules, len(turns), 2 * width)
        survivors = torch.where(candidates.tokens == SPECIALS.eos, -inf, candidates.scores).topk(width, dim=1).indices
        attention = (
            result.attention.unflatten(0, beams.tokens.shape)
            if with_attention and result.attention is not None
            else None
        )
        turns.append(Turn(beams.sentences, candidates, survivors, attention))
        rows = candidates.slots.gather(1, survivors) + _first_rows(beams)
        beams = _advance(beams, candidates, survivors, len(turns), options.alpha)
        settled = _settled(beams, rules, len(turns), options.alpha)
        if settled.any():
            stay, leave = (~settled).nonzero().flatten(), settled.nonzero().flatten()
            closed.append((beams.sentences[leave], select_rows(_close(beams, survivors, len(turns)), leave)))
            beams, memory, rows = select_rows(beams, stay), select_rows(memory, stay), rows[stay]
        state = _reordered(result.state, rows.flatten(), candidates.tokens.shape[0])
    return _read_back(turns, closed)
