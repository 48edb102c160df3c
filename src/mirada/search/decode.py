"""Find a decoder's output: greedy choice, beam search or sampling over a step function, knowing no model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from mirada.config.options import SearchConfig
from mirada.data.batches import pad
from mirada.data.beginnings import Spelling
from mirada.data.vocabulary import BOS, EOS, PAD, SPECIAL_TOKENS
from mirada.errors import ConfigError, DataError
from mirada.search.beam import beam_search
from mirada.search.continuous import Insert, NewRequests, RunningBatch, Search
from mirada.search.sampling import greedy_search, sample
from mirada.search.step import Hypothesis, Rules, StepFunction, StepResult
from mirada.trees import map_tensors

__all__ = ["Hypothesis", "Sentences", "StepFunction", "StepResult", "rules_of", "search"]


class Sentences(NamedTuple):
    """What the caller says about each of the `B` sentences, on any device.

    An output has at most `limits` tokens, `</s>` not counted: with so many tokens it is closed as it is, unfinished,
    where `</s>` is not what comes next. A `prefix` (forced) starts the output whatever its probability; one longer than
    its limit raises that limit to its length; the tokens behind it spell `rests`. `ids` tell sentences apart when
    sampling, so that what is drawn does not depend on the batch.
    """

    limits: Tensor  # [B] int, at least 1
    prefix: Tensor | None = None  # [B, P] int, <pad> at the right
    ids: Sequence[int] | None = None  # B numbers; 0 … B - 1 where left out
    rests: Sequence[str] | None = None  # B, what the tokens behind the prefix must spell
    spelling: Spelling | None = None  # by which they do


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
    count = len(sentences.limits)
    if not count:
        return []
    limits = sentences.limits.to(_device_of((state, memory), sentences.limits.device))
    ids = range(count) if sentences.ids is None else sentences.ids
    new = NewRequests(range(count), ids, rules_of(sentences._replace(limits=limits), options), memory, state)
    found: dict[int, list[Hypothesis]] = {}
    with torch.inference_mode():
        batch = running_batch(step, None, options, with_attention=with_attention)
        found.update(batch.insert(new, count))
        while not batch.empty:
            found.update(batch.step(count))
    return [found[i] for i in range(count)]


def running_batch(
    step: StepFunction, insert: Insert | None, options: SearchConfig, *, with_attention: bool
) -> RunningBatch:
    """An empty batch that searches as the options say; `insert` is the decoder's, where it has one."""
    return RunningBatch(_chosen(step, options, with_attention), insert)


def _chosen(step: StepFunction, options: SearchConfig, with_attention: bool) -> Search:
    if options.sample:
        return sample(step, options, with_attention=with_attention)
    if options.beam_size == 1:
        return greedy_search(step, options, with_attention=with_attention)
    return beam_search(step, options, with_attention=with_attention)


def rules_of(sentences: Sentences, options: SearchConfig) -> Rules:
    """Check what the caller says and lay it out for the searches, on the device of the limits."""
    limits = sentences.limits.long()
    prefix = limits.new_empty(len(limits), 0) if sentences.prefix is None else sentences.prefix.to(limits)
    lengths = (prefix != PAD).sum(1)
    _check(limits, prefix, lengths)
    rests = _characters(sentences, limits.device)
    return Rules(
        limits=torch.maximum(limits, lengths + (rests > PAD).sum(1)),
        prefix=prefix,
        prefix_lengths=lengths,
        shortest_prefix=int(lengths.min()),
        min_length=options.min_output_length,
        ngram_size=options.no_repeat_ngram_size,
        rests=rests,
        spelling=sentences.spelling,
    )


def _characters(sentences: Sentences, device: torch.device) -> Tensor:
    """What the tokens after each prefix must spell, as numbers of characters `[B, R]`."""
    texts = sentences.rests or [""] * len(sentences.limits)
    return pad([[ord(char) for char in text] for text in texts], device)[0]


def _check(limits: Tensor, prefix: Tensor, lengths: Tensor) -> None:
    """Raise for a limit without room for a token and for a prefix that no output can start with."""
    for number, limit in enumerate(limits.tolist()):
        if limit < 1:
            raise ConfigError(f"sentence {number + 1}: the output limit is {limit}; it must be at least 1")
    if prefix.shape[1]:
        for number, (row, length) in enumerate(zip(prefix.tolist(), lengths.tolist(), strict=True)):
            check_prefix(f"sentence {number + 1}", row[:length])


def check_prefix(name: str, prefix: Sequence[int]) -> None:
    """Raise DataError for a special token in a forced prefix; `<unk>` can be forced."""
    for position, token in enumerate(prefix):
        if token in (PAD, BOS, EOS):
            raise DataError(
                f"{name}: token {position + 1} of the forced prefix is the special token "
                f"{SPECIAL_TOKENS[token]!r}; "
                "a prefix holds ordinary tokens, with padding only behind them"
            )


def _device_of(tree: Any, default: torch.device) -> torch.device:
    """Find where a tree's tensors are."""
    devices: list[torch.device] = []

    def keep(leaf: Tensor) -> Tensor:
        devices.append(leaf.device)
        return leaf

    map_tensors(keep, tree)
    return devices[0] if devices else default
