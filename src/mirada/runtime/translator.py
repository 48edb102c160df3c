"""Text in, text out over exported graphs: what mirada.translator offers for a search, a score and its attention."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import NamedTuple, TypeVar

from mirada.config.configfile import changed
from mirada.config.options import SearchConfig
from mirada.data.beginnings import Beginning, Rest
from mirada.data.copying import copy_ids, written_ids
from mirada.data.tokenizer import Piece
from mirada.data.vocabulary import EOS
from mirada.errors import DataError
from mirada.files import expanded
from mirada.runtime.beam import beam_search
from mirada.runtime.engine import Engine
from mirada.runtime.folder import Exported, read
from mirada.runtime.rules import Output, rules_of
from mirada.runtime.sampling import greedy, sample
from mirada.runtime.scoring import force
from mirada.search.chunks import blocks_of, growing, searched
from mirada.texts import (
    EMPTY,
    Scored,
    Translation,
    check_texts,
    input_limit,
    output_limit,
    scored,
    source_pieces,
    source_text,
    translation,
    word_links,
)

MOST_SENTENCES = 512
MOST_WORKERS = 8


Job = TypeVar("Job")
Made = TypeVar("Made")


class Request(NamedTuple):
    """One source to be searched or scored, as ids; its output begins with `prefix` and `rest` (data/beginnings.py)."""

    source: list[int]  # with </s>
    copies: list[int]  # what each would write (data/copying.py), of a model that copies
    prefix: list[int]
    rest: Rest | None
    number: int  # for sampling


def load(folder: str | Path, *, workers: int | None = None) -> Translator:
    """Load the folder of an exported model; raises ModelFolderError, naming what is wrong with it.

    `workers` batches are searched at once (None: one for each core, up to 8).
    """
    where = expanded(folder)
    return Translator(read(where), where, workers=workers)


class Translator:
    """An exported model with its tokenisers. `warn` receives one line for each thing a user should know."""

    def __init__(self, exported: Exported, where: Path, *, workers: int | None = None):
        self.config, self.precision = exported.config, exported.precision
        self.source_tokenizer, self.target_tokenizer = exported.source, exported.target
        self.warn: Callable[[str], None] = lambda line: None
        self.workers = workers or min(_cores(), MOST_WORKERS)
        self.engine = Engine(exported, where)

    @property
    def has_attention(self) -> bool:
        """Whether outputs can come with weights over the source."""
        return self.engine.has_attention

    def translate(self, texts: Sequence[str], *, beam_size: int | None = None) -> list[str]:
        """The best output of each text, with the model's own search options (or another beam)."""
        options = self.config.search if beam_size is None else changed(self.config.search, {"beam_size": beam_size})
        return [outputs[0].text for outputs in self.search(texts, options=options)]

    def search(
        self,
        texts: Sequence[str],
        *,
        options: SearchConfig | None = None,
        prefixes: Sequence[str] | None = None,
        batch_size: int | None = 64,
        with_attention: bool = False,
        first: int = 0,
    ) -> list[list[Translation]]:
        """The `n_best` outputs of each text, best first.

        `prefixes` are how outputs begin, to the character (data/beginnings.py);
        `first` is the number of the first text, for warnings and for sampling.
        Raises DataError for one text, and if there are prefixes, but not one a text.
        """
        options = options or self.config.search
        check_texts(texts)
        if prefixes and len(prefixes) != len(texts):
            raise DataError(f"{len(texts)} texts and {len(prefixes)} prefixes; give each text one, or an empty one")
        limit = input_limit(self.config.data, options.max_input_length)
        named = enumerate(texts, start=first + 1)
        texts = [source_text(text, self.config.data, f"line {number}") for number, text in named]
        pieces = source_pieces(self.source_tokenizer, texts, limit, first=first, warn=self.warn)
        starts = [self.target_tokenizer.beginning(text) for text in prefixes or [""] * len(texts)]
        requests = [self._request(row, starts[i], first + i) for i, row in enumerate(pieces) if row]
        with_attention = with_attention or options.replace_unk
        found = iter(self._search(requests, options, batch_size or MOST_SENTENCES, with_attention))
        return [
            [self._translation(row, start, one, options) for one in next(found)] if row else [EMPTY]
            for row, start in zip(pieces, starts, strict=True)
        ]

    def stream(
        self,
        lines: Iterable[str],
        *,
        options: SearchConfig | None = None,
        batch_size: int = 64,
        with_attention: bool = False,
    ) -> Iterator[list[Translation]]:
        """Outputs of each line, in order, at constant memory; the first lines come early, then batches grow."""
        blocks = blocks_of(lines, batch_size)
        for found in self.stream_blocks(blocks, options=options, batch_size=batch_size, with_attention=with_attention):
            yield from found

    def stream_blocks(
        self,
        blocks: Iterable[Sequence[str]],
        *,
        options: SearchConfig | None = None,
        batch_size: int | None = 64,
        with_attention: bool = False,
        prefixes: Iterator[str] | None = None,
    ) -> Iterator[list[list[Translation]]]:
        """Outputs of blocks of lines in order: as many lines at once as are ready.

        `prefixes` gives how each output must begin, in turn; raises DataError if it ends before the lines.
        """
        search = partial(self.search, options=options, batch_size=batch_size, with_attention=with_attention)
        yield from searched(search, blocks, growing(batch_size or MOST_SENTENCES), prefixes)

    def score(
        self, sources: Sequence[str], targets: Sequence[str], *, batch_size: int = 64, with_attention: bool = False
    ) -> list[Scored]:
        """Log-probabilities of given outputs (forced decoding); raises DataError if the counts differ."""
        if len(sources) != len(targets):
            raise DataError(f"{len(sources)} sources and {len(targets)} targets; line n of both must belong together")
        limit = input_limit(self.config.data, self.config.search.max_input_length)
        named = enumerate(sources, start=1)
        sources = [source_text(text, self.config.data, f"line {number}") for number, text in named]
        rows = source_pieces(self.source_tokenizer, sources, limit, first=0, warn=self.warn)
        pairs = list(zip(rows, self.target_tokenizer.pieces(targets), strict=True))
        order = sorted(range(len(pairs)), key=lambda i: -len(pairs[i][1]))
        batches = [order[start : start + batch_size] for start in range(0, len(order), batch_size)]
        work = partial(self._score_batch, pairs, with_attention)
        found = dict(zip(order, itertools.chain.from_iterable(self._spread(work, batches)), strict=True))
        return [found[i] for i in range(len(pairs))]

    def word_links(self, found: Translation) -> str:
        """Pharaoh links i-j of an output with attention (texts.word_links)."""
        return word_links(found, self.target_tokenizer)

    def _translation(self, source: list[Piece], start: Beginning, found: Output, options: SearchConfig) -> Translation:
        replace = options.replace_unk
        return translation(
            self.target_tokenizer, source, found, found.attention, replace_unk=replace, start=start.pieces
        )

    def _request(self, row: list[Piece], start: Beginning, number: int) -> Request:
        target = self.target_tokenizer
        copies = copy_ids(row, target) if self.config.model.copy_attn else []
        source = [*(piece.id for piece in row), EOS]
        return Request(source, copies, written_ids(start.pieces, row, copies), start.rest, number)

    def _search(
        self, requests: list[Request], options: SearchConfig, size: int, with_attention: bool
    ) -> list[list[Output]]:
        """Search every request, similar lengths together; equal ones once, unless chance plays a part."""
        groups: dict[object, list[int]] = {}
        for i, request in enumerate(requests):
            ids = (tuple(request.source), tuple(request.copies), tuple(request.prefix))
            key = i if options.sample else (ids, request.rest)
            groups.setdefault(key, []).append(i)
        order = sorted(groups.values(), key=lambda places: -len(requests[places[0]].source))
        batches = [order[start : start + size] for start in range(0, len(order), size)]
        work = partial(self._search_batch, requests, options, with_attention)
        searched = itertools.chain.from_iterable(self._spread(work, batches))
        found = {place: outputs for places, outputs in zip(order, searched, strict=True) for place in places}
        return [found[i] for i in range(len(requests))]

    def _search_batch(
        self, requests: list[Request], options: SearchConfig, with_attention: bool, groups: list[list[int]]
    ) -> list[list[Output]]:
        chosen = [requests[places[0]] for places in groups]
        limits = [output_limit(len(request.source) - 1, options) for request in chosen]
        rules = rules_of([one.prefix for one in chosen], [one.rest for one in chosen], limits, options)
        batch = self.engine.read([request.source for request in chosen], [request.copies for request in chosen])
        if options.sample:
            numbers = [request.number for request in chosen]
            return sample(batch, rules, options, numbers, with_attention=with_attention)
        find = greedy if options.beam_size == 1 else beam_search
        return find(batch, rules, options, with_attention=with_attention)

    def _score_batch(
        self, pairs: list[tuple[list[Piece], list[Piece]]], with_attention: bool, places: list[int]
    ) -> list[Scored]:
        chosen = [pairs[i] for i in places]
        given = [self._request(source, Beginning(target), 0) for source, target in chosen]
        sources, targets = [one.source for one in given], [one.prefix for one in given]
        copies = [one.copies for one in given]
        forced = force(self.engine, sources, targets, copies, with_attention=with_attention)
        return [
            scored(source, target, log_p, attention=seen)
            for (source, target), (log_p, seen) in zip(chosen, forced, strict=True)
        ]

    def _spread(self, work: Callable[[Job], Made], jobs: list[Job]) -> list[Made]:
        """Do the work on every job, several at once; results in the order of the jobs."""
        workers = min(self.workers, len(jobs))
        if workers <= 1:
            return [work(job) for job in jobs]
        with ThreadPoolExecutor(workers) as pool:
            return list(pool.map(work, jobs))


def _cores() -> int:
    """Cores for this process: as many as OMP_NUM_THREADS says, else as many as it may use."""
    given = os.environ.get("OMP_NUM_THREADS", "")
    if given.isdigit() and int(given):
        return int(given)
    # Only Linux says which cores are a process's own.
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
