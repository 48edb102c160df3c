"""Text in, text out: the one interface behind the command line, Python and everything that explains a model.

n texts in give n results in order, whatever is in them: an empty text gives an empty output, one that is too long is
cut with a warning.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property, partial
from pathlib import Path
from threading import Lock
from typing import Any, cast

from mirada.config.configfile import changed
from mirada.config.options import SearchConfig
from mirada.data.batches import Encoded
from mirada.data.beginnings import Beginning
from mirada.data.tokenizer import Piece
from mirada.devices import choose_device, halving
from mirada.ensemble import Members, gather
from mirada.errors import ConfigError, DataError
from mirada.fast.prepacked import Precision, can_prepack, prepacked
from mirada.files import expanded
from mirada.kernels.private import missing
from mirada.scoring import Forced, force
from mirada.search.chunks import blocks_of, growing, searched
from mirada.search.ensemble import Mode
from mirada.search.queue import MOST_SENTENCES, Outputs, Request
from mirada.search.scheduler import Scheduler
from mirada.search.step import Hypothesis
from mirada.search.workers import apart, default_workers
from mirada.store.checkpoint import Loaded, load_model
from mirada.texts import (
    EMPTY,
    END,
    Scored,
    Translation,
    check_batch,
    check_texts,
    scored,
    translation,
    word_links,
)

__all__ = ["EMPTY", "END", "Scored", "Translation", "Translator", "load"]

UNCOPIED = ("_making", "_scheduler", "fast_model")
Row = tuple[int, list[list[Piece]], list[Piece]]  # a pair's number from 0, its source for each model, its target


def load(
    folder: str | Path | Sequence[str | Path],
    *,
    device: str = "auto",
    precision: Precision = "float32",
    workers: int | None = None,
    ensemble_mode: Mode = "linear",
) -> Translator:
    """Load a model folder, or several as an ensemble; raises ModelFolderError, naming what is wrong with one.

    For searching: `precision` of the large products (raises ConfigError for int8 where that is not to be had), and how
    many batches are searched at once, `workers` (None: as many as serve). `ensemble_mode`: search/ensemble.py.
    """
    folders = [expanded(one) for one in ([folder] if isinstance(folder, str | Path) else folder)]
    models = apart(lambda: [load_model(one, choose_device(device)) for one in folders])
    return Translator(
        gather([str(one) for one in folders], models, ensemble_mode), precision=precision, workers=workers
    )


class Translator:
    """A model, or an ensemble, with its tokenisers. `warn` receives one line for each thing a user should know.

    `model`, `config`, `metrics` and the tokenisers are those of the first of an ensemble's `members`, whose tokens also
    tell of sources: scores are the ensemble's.

    Searching is done by a copy of the model whose large products are faster (mirada.fast.prepacked), made when it is
    first wanted; scoring and explaining by the model itself. Any number of threads may use one translator, copies of
    the process made by `fork` too; it can be pickled and copied, without what it made for searching.
    """

    def __init__(
        self,
        loaded: Loaded | Members,
        *,
        warn: Callable[[str], None] | None = None,
        precision: Precision = "float32",
        workers: int | None = None,
    ):
        self.members = loaded if isinstance(loaded, Members) else Members([loaded])
        self.config, self.model, self.source_tokenizer, self.target_tokenizer, self.metrics = self.members.models[0]
        self.device = self.model.output.weight.device
        self.warn = warn or _silent
        self._making, self._scheduler = Lock(), cast(Scheduler | None, None)
        self.precision, self.workers = precision, workers or default_workers(self.device)
        if precision == "int8" and not all(can_prepack(one.model, precision) for one in self.members.models):
            raise ConfigError(
                "precision int8 needs a CPU with 8-bit products (AVX-512 VNNI) and a model on it; use float32"
            )

    @property
    def has_attention(self) -> bool:
        """Whether outputs can come with weights over the source."""
        return self.members.have_attention

    @cached_property
    def fast_model(self) -> Any:
        """The copy that searches."""
        if line := missing():
            self.warn(line)
        return apart(lambda: self.members.decoder(lambda model: prepacked(model, self.precision)))

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
                weights = sum(one.numel() for member in self.members.models for one in member.model.parameters())
                self._scheduler = Scheduler(
                    self.fast_model,
                    device=self.device,
                    vocabulary=len(self.target_tokenizer),
                    weights=weights,
                    weight_bytes=weights if self.precision == "int8" else 4 * weights,
                    workers=self.workers,
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

        `prefixes` are how outputs begin, to the character (data/beginnings.py);
        `first` is the number of the first text, for warnings and for sampling.
        No `batch_size` stands for as many as are fast and fit (queue.automatic). Raises DataError for one text, and
        if there are prefixes, but not one a text.
        """
        options = options or self.config.search
        check_batch(batch_size)
        with_attention = with_attention or options.replace_unk
        self.members.check_attention(with_attention)
        pieces, requests = self.requests(texts, options, prefixes, first)
        found = self.scheduler.search(
            list(requests.values()), options, batch_size=batch_size, with_attention=with_attention
        )
        outputs = dict(zip(requests, found, strict=True))
        begins = prefixes or [""] * len(texts)
        return [self.read_back(row, outputs.get(i, []), options, begins[i]) for i, row in enumerate(pieces)]

    def requests(
        self, texts: Sequence[str], options: SearchConfig, prefixes: Sequence[str] | None, first: int
    ) -> tuple[list[list[Piece]], dict[int, Request]]:
        """The tokens of each text, and by its place what is to be searched of each that has any; raises as `search`."""
        check_texts(texts)
        check_texts(prefixes or [], "prefixes", "prefix")
        if prefixes and len(prefixes) != len(texts):
            raise DataError(f"{len(texts)} texts and {len(prefixes)} prefixes; give each text one, or an empty one")
        pieces = self.members.pieces(texts, options, first=first, warn=self.warn)
        starts = [self.target_tokenizer.beginning(text) for text in prefixes or [""] * len(texts)]
        requests = {i: self.members.request(row, starts[i], first + i) for i, row in enumerate(pieces) if row[0]}
        return [row[0] for row in pieces], requests

    def read_back(
        self, source: list[Piece], found: Outputs, options: SearchConfig, prefix: str = ""
    ) -> list[Translation]:
        """What was found for a text, with the prefix it had; one without tokens has an empty output."""
        start = self.target_tokenizer.beginning(prefix).pieces

        def read(one: Hypothesis) -> Translation:
            weights = None if one.attention is None else one.attention.numpy()
            replace = options.replace_unk
            return translation(self.target_tokenizer, source, one, weights, replace_unk=replace, start=start)

        return [read(one) for one in found] if source else [EMPTY]

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
        """Outputs of blocks of lines, such as those that have arrived, in order: as many lines at once as are ready.

        No line waits for one of the next block; a large block is cut, so that memory stays constant. `prefixes` gives
        how each output must begin, in turn; raises DataError if it ends before the lines.
        """
        check_batch(batch_size)
        search = partial(self.search, options=options, batch_size=batch_size, with_attention=with_attention)
        yield from searched(search, blocks, growing(batch_size or MOST_SENTENCES), prefixes)

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
        check_texts(sources, "sources", "source")
        check_texts(targets, "targets", "target")
        check_batch(batch_size)
        if len(sources) != len(targets):
            raise DataError(f"{len(sources)} sources and {len(targets)} targets; line n of both must belong together")
        self.members.check_attention(with_attention, with_heads)
        read = self.members.pieces(sources, self.config.search, first=0, warn=self.warn)
        rows = list(zip(range(len(sources)), read, self.target_tokenizer.pieces(targets), strict=True))

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
        requests = [self.members.request(source, Beginning(target), number) for number, source, target in rows]
        copies = [list(request.copies) for request in requests] if self.members.copy else None
        others = [request.others for request in requests]
        given = Encoded([request.source for request in requests], [request.prefix for request in requests], copies)
        forced = force(
            self.members.decoder(),
            given._replace(others=others),
            self.device,
            with_attention=with_attention,
            with_heads=with_heads,
        )
        return [_scored(row[0], target, found) for (_, row, target), found in zip(rows, forced, strict=True)]

    def word_links(self, found: Translation) -> str:
        """Pharaoh links i-j of an output with attention (texts.word_links)."""
        return word_links(found, self.target_tokenizer)


def _silent(line: str) -> None:
    """Nobody is warned."""


def _pair_name(row: Row) -> str:
    return f"pair {row[0] + 1} ({len(row[1][0])} and {len(row[2])} tokens)"


def _scored(source: list[Piece], target: list[Piece], found: Forced) -> Scored:
    attention, heads = (None if part is None else part.numpy() for part in (found.attention, found.heads))
    return scored(source, target, tuple(found.token_log_probabilities), attention=attention, heads=heads)
