"""From ids to ids: sentences of any length, batched by length, searched, and given back in their order."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from itertools import chain
from threading import Event
from typing import Any, NamedTuple, cast

import torch
from torch import Tensor

from mirada.config.options import SearchConfig
from mirada.data.batches import pad
from mirada.data.vocabulary import EOS
from mirada.devices import halving
from mirada.fast.memory import resized
from mirada.fast.prepacked import ContinuousBatching, Decoding
from mirada.kernels.widths import round_up
from mirada.models.base import Memory, Model, State
from mirada.search.continuous import NewRequests
from mirada.search.decode import Hypothesis, Sentences, search_requests
from mirada.search.workers import StoppedError, spread
from mirada.trees import put_rows

# An automatic batch: numbers that a step's logits hold, sentences, and padded source positions, at most.
LOGITS, MOST_SENTENCES, POSITIONS = 1 << 22, 512, 1 << 14

MOST_TOGETHER = 16  # batches that share places, at most
FULL = 128  # rows of a step from which on more rows are not faster a row
Places = list[int]  # of equal requests, among all


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

    Equal requests are searched once, unless chance plays a part. `workers` threads take one job after the other: a
    batch, or several that refill one another. What shares a step with what, and so how numbers are rounded, depends on
    the number of workers. A batch that is too big for the memory is halved and tried again; raises DataError where one
    alone is too big.
    """

    def work(job: list[list[Places]], stop: Event) -> list[list[Hypothesis]]:
        def search_part(part: list[Places]) -> list[list[Hypothesis]]:
            blocks = [part[start : start + len(job[0])] for start in range(0, len(part), len(job[0]))]
            request_source = _Blocks(model, [[requests[places[0]] for places in block] for block in blocks], device)
            return _search_job(request_source, options, with_attention, stop)

        return halving(list(chain.from_iterable(job)), search_part, lambda places: _name(requests[places[0]]))

    groups = sorted(_equal_ones(requests, options), key=lambda places: -len(requests[places[0]].source))
    batches = _batches(groups, requests, batch_size)
    refilled = isinstance(model, ContinuousBatching) and not with_attention and _has_gaps(batches, options)
    count = _jobs(len(batches), workers) if refilled else len(batches)
    jobs = [batches[start::count] for start in range(count)]  # every count-th batch, so that all are equally long
    searched = chain.from_iterable(chain.from_iterable(jobs))
    outputs = chain.from_iterable(spread(jobs, work, workers))
    found = {place: output for places, output in zip(searched, outputs, strict=True) for place in places}
    return [found[i] for i in range(len(requests))]


def _has_gaps(batches: list[list[Places]], options: SearchConfig) -> bool:
    """Whether a step of half a batch's rows takes longer a row than that of all."""
    hypotheses = options.n_best if options.sample else options.beam_size
    return bool(batches) and len(batches[0]) * hypotheses <= FULL


def _jobs(batches: int, workers: int) -> int:
    """How many jobs the batches make: as few as give each worker one."""
    return max(min(workers, batches), -(-batches // MOST_TOGETHER))


def _batches(groups: list[Places], requests: Sequence[Request], size: int | Room) -> list[list[Places]]:
    """Cut what is to be searched, of which the longest stands first."""
    room = size if isinstance(size, Room) else Room(size, sys.maxsize)
    batches, start = [], 0
    while start < len(groups):
        count = max(1, min(room.sentences, room.positions // len(requests[groups[start][0]].source)))
        batches.append(groups[start : start + count])
        start += count
    return batches


def _equal_ones(requests: Sequence[Request], options: SearchConfig) -> list[Places]:
    """Places of the requests that have one result in common; when sampling each has its own."""
    groups: dict[tuple[object, ...], Places] = {}
    for i, request in enumerate(requests):
        key = (i,) if options.sample else (tuple(request.source), tuple(request.prefix))
        groups.setdefault(key, []).append(i)
    return list(groups.values())


def _name(request: Request) -> str:
    return f"line {request.number + 1} ({len(request.source) - 1} tokens)"


class _Blocks:
    """Requests that arrive in blocks and are read as they arrive; no block has a longer source than the one before."""

    def __init__(self, model: Decoding, blocks: list[list[Request]], device: torch.device):
        self.model, self.blocks, self.device = model, blocks, device
        self.coming, self.can_insert = iter(blocks), isinstance(model, ContinuousBatching)

    def next(self) -> NewRequests | None:
        """Read the next block."""
        if (block := next(self.coming, None)) is None:
            return None
        memory = self.model.encode(*pad([request.source for request in block], self.device))
        state = self.model.start(memory)
        return NewRequests(len(block), resized(memory, round_up(memory.mask.size(1))), state)

    def put(
        self, live: tuple[Memory, State], places: tuple[Tensor, Tensor], fresh: tuple[Memory, State], /
    ) -> tuple[Memory, State]:
        """Write the newcomers' rows over those of the sentences that are done."""
        memory, longest = live[0], max(int(part[0].mask.any(0).sum()) for part in (live, fresh))
        if (width := round_up(longest)) != memory.mask.size(1):
            memory = resized(memory, width)
        put_rows(memory, places[0], fresh[0])
        return memory, cast(ContinuousBatching, self.model).insert(live[1], places[1], fresh[1])


def _search_job(
    request_source: _Blocks, options: SearchConfig, with_attention: bool, stop: Event
) -> list[list[Hypothesis]]:
    def step(token: Tensor, state: Any, memory: Any) -> Any:
        if stop.is_set():
            raise StoppedError
        return request_source.model.step(token, state, memory)

    requests = list(chain.from_iterable(request_source.blocks))
    limits = torch.tensor([output_limit(len(request.source) - 1, options) for request in requests])
    prefix = pad([request.prefix for request in requests], request_source.device)[0]
    sentences = Sentences(limits.to(request_source.device), prefix, [request.number for request in requests])
    with torch.inference_mode():
        return search_requests(step, request_source, options, sentences, with_attention=with_attention)


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
    from mirada.search.step import producible

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
