"""From ids to ids: sentences of any length, batched by length, searched, and given back in their order."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from itertools import chain
from threading import Event
from typing import Any, NamedTuple

import torch
from torch import Tensor

from mirada.config import SearchConfig
from mirada.data.batches import pad
from mirada.data.vocabulary import EOS
from mirada.devices import halving
from mirada.models.base import Model
from mirada.models.packed import Decoding
from mirada.search import Hypothesis, Sentences, search
from mirada.workers import StoppedError, spread

# An automatic batch: numbers that a step's logits hold, sentences, and padded source positions, at most.
LOGITS, MOST_SENTENCES, POSITIONS = 1 << 22, 512, 1 << 14


class Request(NamedTuple):
    """One source to be searched: ids with </s>, the forced beginning of its output, and a number for sampling."""

    source: list[int]
    prefix: list[int]
    number: int


def output_limit(source_tokens: int, options: SearchConfig) -> int:
    """Most tokens of an output: of this sentence alone, never of the batch it happens to be in."""
    by_ratio = int(options.max_length_ratio * source_tokens) + 10
    return max(1, options.max_output_length or by_ratio, options.min_output_length)


class Room(NamedTuple):
    """How large a batch may be: sentences, and source positions with padding."""

    sentences: int
    positions: int


def automatic(vocabulary: int, options: SearchConfig) -> Room:
    """Room that is fast and bounds the memory: a step's logits, sentences × hypotheses × vocabulary, stay few."""
    hypotheses = options.n_best if options.sample else options.beam_size
    return Room(max(1, min(MOST_SENTENCES, LOGITS // (hypotheses * vocabulary))), POSITIONS)


def search_all(
    model: Decoding,
    requests: Sequence[Request],
    options: SearchConfig,
    *,
    batch_size: int | Room,
    device: torch.device,
    with_attention: bool = False,
    workers: int = 1,
) -> list[list[Hypothesis]]:
    """Search every request; results in the order of the requests. Similar lengths share a batch, longest first.

    Equal requests are searched once, unless chance plays a part. `workers` threads take one batch after the other; the
    batches are the same for any number of them. A batch that is too big for the memory is halved and tried again;
    raises DataError where one alone is too big.
    """

    def work(batch: list[Request], stop: Event) -> list[list[Hypothesis]]:
        def search_part(part: list[Request]) -> list[list[Hypothesis]]:
            return _search_batch(model, part, options, device, with_attention, stop)

        return halving(batch, search_part, _name)

    groups = sorted(_equal_ones(requests, options), key=lambda places: -len(requests[places[0]].source))
    chosen = [requests[places[0]] for places in groups]
    outputs = chain.from_iterable(spread(_batches(chosen, batch_size), work, workers))
    found = {place: output for places, output in zip(groups, outputs, strict=True) for place in places}
    return [found[i] for i in range(len(requests))]


def _batches(chosen: list[Request], size: int | Room) -> list[list[Request]]:
    """Cut requests, of which the longest stand first."""
    room = size if isinstance(size, Room) else Room(size, sys.maxsize)
    batches, start = [], 0
    while start < len(chosen):
        count = max(1, min(room.sentences, room.positions // len(chosen[start].source)))
        batches.append(chosen[start : start + count])
        start += count
    return batches


def _equal_ones(requests: Sequence[Request], options: SearchConfig) -> list[list[int]]:
    """Places of the requests that have one result in common; when sampling each has its own."""
    groups: dict[tuple[object, ...], list[int]] = {}
    for i, request in enumerate(requests):
        key = (i,) if options.sample else (tuple(request.source), tuple(request.prefix))
        groups.setdefault(key, []).append(i)
    return list(groups.values())


def _name(request: Request) -> str:
    return f"line {request.number + 1} ({len(request.source) - 1} tokens)"


def _search_batch(
    model: Decoding,
    batch: list[Request],
    options: SearchConfig,
    device: torch.device,
    with_attention: bool,
    stop: Event,
) -> list[list[Hypothesis]]:
    def step(token: Tensor, state: Any, memory: Any) -> Any:
        if stop.is_set():
            raise StoppedError
        return model.step(token, state, memory)

    with torch.inference_mode():
        source, lengths = pad([request.source for request in batch], device)
        memory = model.encode(source, lengths)
        limits = torch.tensor([output_limit(len(request.source) - 1, options) for request in batch])
        prefix = pad([request.prefix for request in batch], device)[0]
        sentences = Sentences(limits, prefix, [request.number for request in batch])
        return search(step, memory, model.start(memory), options, sentences, with_attention=with_attention)


class Forced(NamedTuple):
    """A given output under the model: natural logs, one a token and one for </s>."""

    token_log_probabilities: list[float]
    attention: Tensor | None  # [n, S]
    heads: Tensor | None = None  # [L, heads, n, S]


def force(
    model: Model,
    sources: list[list[int]],
    targets: list[list[int]],
    device: torch.device,
    *,
    with_attention: bool = False,
    with_heads: bool = False,
) -> list[Forced]:
    """Score given targets (without </s>) for one batch of sources (with </s>), as the search would score them.

    `with_heads` also gives the Transformer's attention layer by layer and head by head.
    """
    from mirada.data.batches import Encoded, collate
    from mirada.decoding import producible

    batch = collate(Encoded(sources, targets), range(len(sources)), device)
    with torch.inference_mode():
        look = with_attention or with_heads
        outputs = model.forward(batch.source, batch.lengths, batch.target_in, with_attention=look)
        logits = producible(model.logits(outputs.hidden.flatten(0, 1)))  # [B·T, V]
        spoken = logits.gather(1, batch.target_out.reshape(-1, 1))[:, 0] - logits.logsumexp(-1)
        log_p = spoken.view_as(batch.target_out)  # [B, T]
    forced = []
    for i, target in enumerate(targets):
        rows, columns = len(target) + 1, len(sources[i])
        attention = None if outputs.attention is None else outputs.attention[i, :rows, :columns].cpu()
        heads = outputs.heads[i, :, :, :rows, :columns].cpu() if with_heads and outputs.heads is not None else None
        forced.append(Forced(log_p[i, :rows].tolist(), attention, heads))
    return forced


def with_end(ids: list[int], most: int) -> list[int]:
    """A source as the model reads it: cut to `most` tokens, then </s>."""
    return [*ids[:most], EOS]
