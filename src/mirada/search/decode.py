"""Find a decoder's output: greedy choice, beam search or sampling over a step function, knowing no model.

`search` chooses among greedy choice, random choice (sampling.py) and beam search (beam.py), and turns the paths they
find into hypotheses.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import fsum
from typing import Any, NamedTuple

import torch
from torch import Tensor

from mirada.config.options import SearchConfig
from mirada.errors import ConfigError, DataError
from mirada.search.beam import beam_search
from mirada.search.continuous import NewRequests, RequestSource, SingleBatch
from mirada.search.sampling import greedy_search, sample
from mirada.search.step import SPECIALS, Paths, Rules, Specials, StepFunction, StepResult, penalty
from mirada.trees import map_tensors

__all__ = ["SPECIALS", "Hypothesis", "Sentences", "Specials", "StepFunction", "StepResult", "search", "search_requests"]


class Sentences(NamedTuple):
    """What the caller says about each of the `B` sentences, on any device.

    An output has at most `limits` tokens, `</s>` not counted: with so many tokens it is closed as it is, unfinished.
    A `prefix` (forced) starts the output whatever its probability; one longer than its limit raises that limit to its
    length. `ids` tell sentences apart when sampling, so that what is drawn does not depend on the batch.
    """

    limits: Tensor  # [B] int, at least 1
    prefix: Tensor | None = None  # [B, P] int, <pad> at the right
    ids: Sequence[int] | None = None  # B numbers; 0 … B - 1 where left out


@dataclass(frozen=True)
class Hypothesis:
    """One output. Log-probabilities are natural and the model's own, whatever rules limited the choice."""

    tokens: tuple[int, ...]  # without </s>
    log_probability: float  # sum over the tokens, and </s> when finished
    score: float  # log_probability / ((5 + n) / 6)^α, where n counts the tokens, and </s> when finished
    token_log_probabilities: tuple[float, ...]  # one a token, and one for </s> when finished
    finished: bool  # </s> was produced
    attention: Tensor | None = field(default=None, compare=False)  # [n, S] the rows of exactly these steps


def search(
    step: StepFunction,
    memory: Any,
    state: Any,
    options: SearchConfig,
    sentences: Sentences,
    *,
    with_attention: bool = False,
) -> list[list[Hypothesis]]:
    """Return each sentence's `n_best` outputs, best first: finished ones before unfinished ones, then by score.

    `step(token, state, memory)` makes one decoder step; `memory` and `state` are trees of tensors with a row a
    sentence. The memory is never repeated over hypotheses: with N tokens and A rows of memory, row i belongs to
    sentence i // (N / A). Sentences leave the batch, and their rows leave state and memory, when their result is
    finished. Fewer than `n_best` outputs come back where there are no more. With `with_attention`, attention weights
    come back too, as wide as the batch's padded sources. Results are on the CPU.

    `<pad>` and `<s>` are never produced: −inf before the softmax, so log-probabilities are normalised over the other
    tokens, and forced decoding of a given output (`score`) does the same.

    Raises ConfigError for a limit below 1, DataError for a prefix that holds `<s>`, `</s>`, or `<pad>` inside.
    """
    limits = sentences.limits.to(_device_of((state, memory), sentences.limits.device))
    request_source = SingleBatch(NewRequests(len(limits), memory, state))
    return search_requests(
        step, request_source, options, sentences._replace(limits=limits), with_attention=with_attention
    )


def search_requests(
    step: StepFunction,
    request_source: RequestSource,
    options: SearchConfig,
    sentences: Sentences,
    *,
    with_attention: bool = False,
) -> list[list[Hypothesis]]:
    """The same for sentences that arrive little by little and take the places of those that leave (continuous.py).

    `sentences.limits` are on the device of the search.
    """
    if not len(sentences.limits):
        return []
    with torch.inference_mode():
        rules = _rules(sentences, options)
        if options.sample:
            ids = range(len(sentences.limits)) if sentences.ids is None else sentences.ids
            paths = sample(step, request_source, rules, options, ids=ids, with_attention=with_attention)
        elif options.beam_size == 1:
            paths = greedy_search(step, request_source, rules, with_attention=with_attention)
        else:
            paths = beam_search(step, request_source, rules, options, with_attention=with_attention)
        paths = map_tensors(Tensor.cpu, paths)
    return _hypotheses(paths, options.alpha)


def _rules(sentences: Sentences, options: SearchConfig) -> Rules:
    """Check what the caller says and lay it out for the searches."""
    limits = sentences.limits.long()
    prefix = limits.new_empty(len(limits), 0) if sentences.prefix is None else sentences.prefix.to(limits)
    lengths = (prefix != SPECIALS.pad).sum(1)
    _check(limits, prefix, lengths)
    return Rules(
        limits=torch.maximum(limits, lengths),
        prefix=prefix,
        prefix_lengths=lengths,
        shortest_prefix=int(lengths.min()),
        min_length=options.min_output_length,
        ngram_size=options.no_repeat_ngram_size,
    )


def _check(limits: Tensor, prefix: Tensor, lengths: Tensor) -> None:
    """Raise for a limit without room for a token and for a prefix that no output can start with."""
    for number, limit in enumerate(limits.tolist()):
        if limit < 1:
            raise ConfigError(f"sentence {number + 1}: the output limit is {limit}; it must be at least 1")
    inside = torch.arange(prefix.shape[1], device=prefix.device) < lengths[:, None]
    for number, position in (inside & _unusable(prefix)).nonzero()[:1].tolist():
        token = Specials._fields[SPECIALS.index(int(prefix[number, position]))]
        raise DataError(
            f"sentence {number + 1}: token {position + 1} of the forced prefix is the special token {token!r}; "
            "a prefix holds ordinary tokens, with padding only behind them"
        )


def _unusable(prefix: Tensor) -> Tensor:
    """Mark the special tokens that cannot be forced; `<unk>` can."""
    return (prefix == SPECIALS.pad) | (prefix == SPECIALS.bos) | (prefix == SPECIALS.eos)


def _device_of(tree: Any, default: torch.device) -> torch.device:
    """Find where a tree's tensors are."""
    devices: list[torch.device] = []

    def note(leaf: Tensor) -> Tensor:
        devices.append(leaf.device)
        return leaf

    map_tensors(note, tree)
    return devices[0] if devices else default


def _hypotheses(paths: Paths, alpha: float) -> list[list[Hypothesis]]:
    """Cut every path to its length and rank each sentence's outputs."""
    found: list[list[Hypothesis]] = []
    for row, lengths in enumerate(paths.lengths.tolist()):
        places = [(place, length) for place, length in enumerate(lengths) if length]
        outputs = [_hypothesis(paths, (row, place), length, alpha) for place, length in places]
        found.append(sorted(outputs, key=lambda output: (not output.finished, -output.score)))
    return found


def _hypothesis(paths: Paths, where: tuple[int, int], length: int, alpha: float) -> Hypothesis:
    """Read one path of `length` steps."""
    tokens = paths.tokens[where][:length].tolist()
    own = paths.log_probabilities[where][:length].tolist()
    finished = tokens[-1] == SPECIALS.eos
    total = fsum(own)
    return Hypothesis(
        tokens=tuple(tokens[:-1] if finished else tokens),
        log_probability=total,
        score=total / penalty(length, alpha),
        token_log_probabilities=tuple(own),
        finished=finished,
        # A copy of its own, so that one kept output does not keep the batch's whole attention.
        attention=None if paths.attention is None else paths.attention[where][:length].clone(),
    )
