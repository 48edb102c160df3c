"""Text in, text out: the one interface behind the command line, Python and everything that explains a model.

n texts in give n results in order, whatever is in them: an empty text gives an empty output, one that is too long is
cut with a warning.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from threading import Lock
from typing import Any, cast

from mirada.config.configfile import changed
from mirada.config.options import SearchConfig
from mirada.data.copying import copy_ids, written_ids
from mirada.data.tokenizer import Piece
from mirada.devices import choose_device, halving
from mirada.errors import ConfigError, DataError
from mirada.fast.prepacked import Decoding, Precision, can_prepack, prepacked
from mirada.kernels.private import missing
from mirada.scoring import Forced, force
from mirada.search.chunks import chunks, growing
from mirada.search.queue import MOST_SENTENCES
from mirada.search.scheduler import Request, Scheduler, with_end
from mirada.search.step import Hypothesis
from mirada.search.workers import apart, default_workers
from mirada.store.checkpoint import Loaded, load_model
from mirada.texts import (
    EMPTY,
    END,
    Scored,
    Translation,
    input_limit,
    scored,
    source_pieces,
    source_text,
    translation,
    word_links,
)

__all__ = ["EMPTY", "END", "Scored", "Translation", "Translator", "load"]

UNCOPIED = ("_making", "_scheduler", "fast_model")
Row = tuple[int, list[Piece], list[Piece]]  # a pair's number from 0, its source and its target


def load(
    folder: str | Path, *, device: str = "auto", precision: Precision = "float32", workers: int | None = None
) -> Translator:
    """Load a model folder; raises ModelFolderError, naming what is wrong with it.

    For searching: `precision` of the large products (raises ConfigError for int8 where that is not to be had), and how
    many batches are searched at once, `workers` (None: as many as serve).
    """
    loaded = apart(lambda: load_model(Path(folder).expanduser(), choose_device(device)))
    return Translator(loaded, precision=precision, workers=workers)


class Translator:
    """A model with its tokenisers. `warn` receives one line for each thing a user should know.

    Searching is done by a copy of the model whose large products are faster (mirada.fast.prepacked), made when it is
    first wanted; scoring and explaining by the model itself. Any number of threads may use one translator, copies of
    the process made by `fork` too; it can be pickled and copied, without what it made for searching.
    """

    def __init__(
        self,
        loaded: Loaded,
        *,
        warn: Callable[[str], None] | None = None,
        precision: Precision = "float32",
        workers: int | None = None,
    ):
        self.config, self.model, self.metrics = loaded.config, loaded.model, loaded.metrics
        self.source_tokenizer, self.target_tokenizer = loaded.source, loaded.target
        self.device = loaded.model.output.weight.device
        self.warn = warn or _silent
        self._making, self._scheduler = Lock(), cast(Scheduler | None, None)
        self.precision, self.workers = precision, workers or default_workers(self.device)
        if precision == "int8" and not can_prepack(self.model, precision):
            raise ConfigError(
                "precision int8 needs a CPU with 8-bit products (AVX-512 VNNI) and a model on it; use float32"
            )

    @cached_property
    def fast_model(self) -> Decoding:
        """The copy that searches."""
        if line := missing():
            self.warn(line)
        return apart(lambda: prepacked(self.model, self.precision))

    def __getstate__(self) -> dict[str, Any]:
        """What a pickle or a copy holds."""
        return {name: value for name, value in vars(self).items() if name not in UNCOPIED}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Nothing is made yet."""
        vars(self).update(state, _making=Lock(), _scheduler=None)

    @property
    def scheduler(self) -> Scheduler:
        """Where requests of ids are searched, for all who call from whatever thread."""
        with self._making:
            if self._scheduler is None:
                vocabulary = len(self.target_tokenizer)
                self._scheduler = Scheduler(
                    self.fast_model, device=self.device, vocabulary=vocabulary, workers=self.workers
                )
            return self._scheduler

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

        `prefixes` force how outputs begin; `first` is the number of the first text, for warnings and for sampling.
        No `batch_size` stands for as many as are fast and fit (queue.automatic). Raises DataError for one text, and
        if there are prefixes, but not one a text.
        """
        options = options or self.config.search
        _check_texts(texts)
        _check_texts(prefixes or [], "prefixes", "prefix")
        _check_batch(batch_size)
        if prefixes and len(prefixes) != len(texts):
            raise DataError(f"{len(texts)} texts and {len(prefixes)} prefixes; give each text one, or an empty one")
        pieces = self._pieces(texts, options, first)
        starts = self.target_tokenizer.pieces(prefixes) if prefixes else [[] for _ in texts]
        requests = {i: self._request(row, starts[i], first + i) for i, row in enumerate(pieces) if row}
        found = self.scheduler.search(
            list(requests.values()),
            options,
            batch_size=batch_size,
            with_attention=with_attention or options.replace_unk,
        )
        outputs = dict(zip(requests, found, strict=True))
        return [
            [self._translation(pieces[i], hypothesis, options) for hypothesis in outputs[i]]
            if i in outputs
            else [EMPTY]
            for i in range(len(texts))
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
        source = iter(lines)
        blocks = (list(itertools.islice(source, count)) for count in growing(batch_size))
        for outputs in self.stream_blocks(
            itertools.takewhile(bool, blocks), options=options, batch_size=batch_size, with_attention=with_attention
        ):
            yield from outputs

    def stream_blocks(
        self,
        blocks: Iterable[Sequence[str]],
        *,
        options: SearchConfig | None = None,
        batch_size: int | None = 64,
        with_attention: bool = False,
        prefixes: Iterator[str] | None = None,
    ) -> Iterator[list[list[Translation]]]:
        """Outputs of blocks of lines, such as those that have arrived, in order: as many lines at once as are ready.

        No line waits for one of the next block; a large block is cut, so that memory stays constant. `prefixes` gives
        how each output must begin, in turn; raises DataError if it ends before the lines.
        """
        _check_batch(batch_size)
        first = 0
        for chunk in chunks(blocks, batch_size or MOST_SENTENCES):
            begins = None if prefixes is None else list(itertools.islice(prefixes, len(chunk)))
            if begins is not None and len(begins) < len(chunk):
                raise DataError(f"{first + len(begins)} prefixes, and more lines; each line needs one, or an empty one")
            yield self.search(
                chunk,
                options=options,
                batch_size=batch_size,
                with_attention=with_attention,
                first=first,
                prefixes=begins,
            )
            first += len(chunk)

    def score(
        self,
        sources: Sequence[str],
        targets: Sequence[str],
        *,
        batch_size: int = 64,
        with_attention: bool = False,
        with_heads: bool = False,
    ) -> list[Scored]:
        """Log-probabilities of given outputs (forced decoding); raises DataError if the counts differ.

        `with_heads` also gives the attention of each layer and head, where the model has several.
        """
        _check_texts(sources, "sources", "source")
        _check_texts(targets, "targets", "target")
        _check_batch(batch_size)
        if len(sources) != len(targets):
            raise DataError(f"{len(sources)} sources and {len(targets)} targets; line n of both must belong together")
        sides = (self._pieces(sources, self.config.search, 0), self.target_tokenizer.pieces(targets))
        rows = list(zip(range(len(sources)), *sides, strict=True))

        def work(batch: list[Row]) -> list[Scored]:
            return apart(lambda: self._score_batch(batch, with_attention, with_heads))

        order = sorted(range(len(rows)), key=lambda i: -len(rows[i][2]))
        scored: dict[int, Scored] = {}
        for start in range(0, len(order), batch_size):
            chosen = order[start : start + batch_size]
            batch = halving([rows[i] for i in chosen], work, _pair_name)
            scored |= dict(zip(chosen, batch, strict=True))
        return [scored[i] for i in range(len(rows))]

    def _score_batch(self, rows: list[Row], with_attention: bool, with_heads: bool) -> list[Scored]:
        sources = [with_end([piece.id for piece in source], len(source)) for _, source, _ in rows]
        copies = [self._copies(source) for _, source, _ in rows]
        targets = [written_ids(target, source, own) for (_, source, target), own in zip(rows, copies, strict=True)]
        forced = force(
            self.model,
            sources,
            targets,
            self.device,
            copies=copies if any(copies) else None,
            with_attention=with_attention,
            with_heads=with_heads,
        )
        return [_scored(*row[1:], found) for row, found in zip(rows, forced, strict=True)]

    def word_links(self, found: Translation) -> str:
        """Pharaoh links i-j of an output with attention (texts.word_links)."""
        return word_links(found, self.target_tokenizer)

    def _pieces(self, texts: Sequence[str], options: SearchConfig, first: int) -> list[list[Piece]]:
        data = self.config.data
        limit = input_limit(data, options.max_input_length)
        sources = [source_text(text, data, f"line {number}") for number, text in enumerate(texts, start=first + 1)]
        return source_pieces(self.source_tokenizer, sources, limit, first=first, warn=self.warn)

    def _request(self, source: list[Piece], start: list[Piece], number: int) -> Request:
        copies = tuple(self._copies(source))
        prefix = written_ids(start, source, copies)
        return Request(with_end([piece.id for piece in source], len(source)), prefix, number, copies)

    def _copies(self, source: list[Piece]) -> list[int]:
        """What each source token would write, for a model that copies."""
        return copy_ids(source, self.target_tokenizer) if self.config.model.copy_attn else []

    def _translation(self, source: list[Piece], found: Hypothesis, options: SearchConfig) -> Translation:
        attention = None if found.attention is None else found.attention.numpy()
        return translation(self.target_tokenizer, source, found, attention, replace_unk=options.replace_unk)


def _check_texts(texts: Sequence[str], names: str = "texts", name: str = "text") -> None:
    """Raise DataError for one text, whose letters would be taken for texts, and for what is no text."""
    if isinstance(texts, str):
        raise DataError(f"expected a list of {names}, got one {name}; write [{name}]")
    for number, text in enumerate(texts, start=1):
        if not isinstance(text, str):
            raise DataError(f"{name} {number} is {type(text).__name__}, not a string")


def _check_batch(size: int | None) -> None:
    if size is not None and size < 1:
        raise ConfigError(f"batch_size is {size}; it must be at least 1")


def _silent(line: str) -> None:
    """Nobody is warned."""


def _pair_name(row: Row) -> str:
    return f"pair {row[0] + 1} ({len(row[1])} and {len(row[2])} tokens)"


def _scored(source: list[Piece], target: list[Piece], found: Forced) -> Scored:
    attention, heads = (None if part is None else part.numpy() for part in (found.attention, found.heads))
    return scored(source, target, tuple(found.token_log_probabilities), attention=attention, heads=heads)
