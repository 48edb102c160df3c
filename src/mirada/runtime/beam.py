"""Beam search on NumPy arrays: search/beam.py's rule for a batch that only shrinks.

Each step finds `C` = 2 × `K` candidates a sentence: the `K` likeliest stay, those of the best `K` that end with </s>
move to the finished outputs, and their beams go to the next best continuations (Sutskever et al. 2014, section 3.2).
"""

from __future__ import annotations

from math import inf
from typing import NamedTuple

import numpy as np

from mirada.config.options import SearchConfig
from mirada.data.vocabulary import BOS, EOS
from mirada.runtime.engine import Batch, Wanted
from mirada.runtime.rules import Output, Rules, allowed, largest, output, penalty, ranked, taken, there


class Ends(NamedTuple):
    """The best hypotheses of each sentence that ended, best first; a score of −inf marks a free place."""

    scores: np.ndarray  # [A, n] log-probability over length penalty
    lengths: np.ndarray  # [A, n] steps taken, </s> counted
    candidates: np.ndarray  # [A, n] which candidate of the last step


class Candidates(NamedTuple):
    """The likeliest continuations of each sentence's hypotheses, best first."""

    scores: np.ndarray  # [A, C] log-probabilities of the hypotheses, this token included
    tokens: np.ndarray  # [A, C]
    log_probabilities: np.ndarray  # [A, C] of this token
    beams: np.ndarray  # [A, C] the hypothesis that is continued


class BeamStep(NamedTuple):
    """What one step leaves behind for reading the outputs back."""

    sentences: np.ndarray  # [A] in rising order
    candidates: Candidates
    kept: np.ndarray  # [A, K] the candidates in the beams of the next step
    attention: np.ndarray | None  # [A, K, S] of this step's beams


class Beams(NamedTuple):
    """The sentences still searched, with `K` beams each: 1 before the first choice."""

    sentences: np.ndarray  # [A]
    tokens: np.ndarray  # [A, K]
    rows: np.ndarray  # [A, K] the row of the step before that each goes on from
    scores: np.ndarray  # [A, K] log-probabilities; −inf marks an empty beam
    kept: np.ndarray  # [A, K] the candidates of the last step that they are
    ends: Ends
    history: np.ndarray | None  # [A, K, t] all tokens; kept only where rules need it


def beam_search(batch: Batch, rules: Rules, options: SearchConfig, *, with_attention: bool) -> list[list[Output]]:
    """The `n_best` best outputs of each sentence. One leaves as soon as nothing can change its result."""
    beams, steps, age = _start(len(rules.limits), options, rules), list[BeamStep](), 0
    found: list[list[Output]] = [[] for _ in rules.limits]
    while len(beams.sentences):
        width = options.beam_size if beams.tokens.shape[1] > 1 or age >= rules.prefix_lengths.min() else 1
        candidates, attention = _expand(batch, beams, rules, age, Wanted(2 * width, with_attention))
        ended = candidates.tokens == EOS
        scores, kept = largest(np.where(ended, np.float32(-inf), candidates.scores), width)
        steps.append(BeamStep(beams.sentences, candidates, kept, attention))
        ends = _with_ended(beams.ends, candidates, ended, age + 1, options.alpha)
        finished = _finished(scores, ends, rules, age + 1, options)
        done, sentences = finished.nonzero()[0], beams.sentences
        if len(done):
            last = _close(beams, ends, candidates, ended, (rules.limits <= age, age))
            for place in map(int, done):
                found[sentences[place]] = _read_back(steps, int(sentences[place]), last, place, options.alpha)
        beams, age = _advance(beams, candidates, (scores, kept), ends), age + 1
        if len(done):
            stay = (~finished).nonzero()[0]
            beams, rules = _selected(beams, stay), rules.of(stay)
            batch.keep(stay)
    return found


def _start(count: int, options: SearchConfig, rules: Rules) -> Beams:
    """One empty hypothesis a sentence."""
    none = np.zeros((count, options.n_best), np.int64)
    ends = Ends(np.full(none.shape, -inf, np.float32), none, none)
    first = np.arange(count)[:, None]
    history = np.empty((count, 1, 0), np.int64) if rules.need_history else None
    scores = np.zeros((count, 1), np.float32)
    return Beams(first[:, 0], np.full_like(first, BOS), first, scores, none[:, :1], ends, history)


def _expand(batch: Batch, beams: Beams, rules: Rules, age: int, wanted: Wanted) -> tuple[Candidates, np.ndarray | None]:
    """Find the `count` best continuations of each sentence, of all its hypotheses together; and the attention."""
    sentences, width = beams.tokens.shape
    acts = rules.act(age)
    step = batch.step(beams.tokens.ravel(), beams.rows.ravel(), wanted._replace(continuations=0) if acts else wanted)
    if step.best is None or step.tokens is None:
        history = None if beams.history is None else beams.history.reshape(sentences * width, -1)
        choice = allowed(there(step.log_probabilities), rules, age, history)
        best, tokens = largest(choice, min(wanted.continuations, choice.shape[1]))
    else:
        best, tokens = step.best, step.tokens
    each = best.shape[1]
    log_p, tokens = best.reshape(sentences, -1), tokens.reshape(sentences, -1)  # [A, K·each]
    sums = np.repeat(beams.scores, each, axis=1) + log_p
    scores, places = largest(sums, min(wanted.continuations, sums.shape[1]))
    if missing := wanted.continuations - places.shape[1]:  # a small vocabulary may have fewer continuations
        short = ((0, 0), (0, missing))
        scores, places = np.pad(scores, short, constant_values=-inf), np.pad(places, short)
    picked = [taken(part, places) for part in (tokens, log_p)]
    attention = None if step.attention is None else step.attention.reshape(sentences, width, -1)
    return Candidates(scores, picked[0], picked[1], places // each), attention


def _with_ended(ends: Ends, candidates: Candidates, ended: np.ndarray, age: int, alpha: float) -> Ends:
    """Let those of the best `K` candidates that ended compete for the places."""
    best = ended.shape[1] // 2
    if not ended[:, :best].any():
        return ends
    scores = np.where(ended[:, :best], candidates.scores[:, :best], np.float32(-inf)) / np.float32(penalty(age, alpha))
    index = np.broadcast_to(np.arange(best), scores.shape)
    every = _beside(ends, Ends(scores, np.full_like(index, age), index))
    return _places(every, largest(every.scores, ends.scores.shape[1])[1])


def _finished(scores: np.ndarray, ends: Ends, rules: Rules, age: int, options: SearchConfig) -> np.ndarray:
    """Say for which sentences the search is over, `[A]`: one step behind the limit, or no hope (search/beam.py)."""
    lengths = rules.limits + 1 if options.exact_stop else age + 1
    reachable = scores.max(1) / np.float32(penalty(lengths, options.alpha))
    hopeless: np.ndarray = reachable <= ends.scores[:, -1]
    return hopeless | (rules.limits < age)


def _close(before: Beams, ends: Ends, candidates: Candidates, ended: np.ndarray, limit: tuple[np.ndarray, int]) -> Ends:
    """Fill the free places of sentences at their limit with the hypotheses of `limit` tokens, behind all finished."""
    (over, age), best = limit, ended.shape[1] // 2
    gone = np.zeros(before.scores.shape, bool)
    places, column = (ended & (candidates.scores != -inf))[:, :best].nonzero()
    gone[places, candidates.beams[places, column]] = True
    scores = np.where(over[:, None] & ~gone, before.scores, np.float32(-inf))
    every = _beside(ends, Ends(scores, np.full(scores.shape, age), before.kept))
    order = (every.scores == -inf).argsort(axis=1, kind="stable")
    return _places(every, order[:, : ends.scores.shape[1]])


def _beside(left: Ends, right: Ends) -> Ends:
    return Ends(*(np.concatenate(pair, 1) for pair in zip(left, right, strict=True)))


def _places(ends: Ends, index: np.ndarray) -> Ends:
    return Ends(*(taken(field, index) for field in ends))


def _advance(beams: Beams, candidates: Candidates, chosen: tuple[np.ndarray, np.ndarray], ends: Ends) -> Beams:
    """Fill the beams with the kept."""
    scores, kept = chosen
    tokens, parents = (taken(part, kept) for part in (candidates.tokens, candidates.beams))
    history = beams.history
    if history is not None:
        history = taken(history, parents)
        history = np.concatenate([history, tokens[:, :, None]], 2)
    rows = parents + np.arange(len(tokens))[:, None] * beams.tokens.shape[1]
    return Beams(beams.sentences, tokens, rows, scores, kept, ends, history)


def _selected(beams: Beams, stay: np.ndarray) -> Beams:
    ends = Ends(*(field[stay] for field in beams.ends))
    parts = {name: getattr(beams, name)[stay] for name in ("sentences", "tokens", "rows", "scores", "kept")}
    history = None if beams.history is None else beams.history[stay]
    return Beams(parts["sentences"], parts["tokens"], parts["rows"], parts["scores"], parts["kept"], ends, history)


def _read_back(steps: list[BeamStep], sentence: int, ends: Ends, place: int, alpha: float) -> list[Output]:
    """Read a sentence's outputs from their last steps to their first."""
    rows = [int(np.searchsorted(step.sentences, sentence)) for step in steps]
    found = []
    for score, length, candidate in zip(*(field[place] for field in ends), strict=True):
        if score != -inf:
            found.append(_path(list(zip(steps, rows, strict=True))[:length], int(candidate), alpha))
    return ranked(found)


def _path(trail: list[tuple[BeamStep, int]], index: int, alpha: float) -> Output:
    """One output: a candidate names the beam that it continues, and a beam the candidate of the step before."""
    tokens, log_p, attention, beam = [], [], [], -1
    for step, row in reversed(trail):
        if beam >= 0:
            index = step.kept[row, beam]
        tokens.append(int(step.candidates.tokens[row, index]))
        log_p.append(float(step.candidates.log_probabilities[row, index]))
        beam = int(step.candidates.beams[row, index])
        if step.attention is not None:
            attention.append(step.attention[row, beam])
    return output(tokens[::-1], log_p[::-1], attention[::-1], alpha)
