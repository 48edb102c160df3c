"""What endpoints do with models: options checked against limits, work queued, results waited for, and no longer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from typing import Any, TypeVar
from unicodedata import normalize

from pydantic import BaseModel
from starlette.requests import Request

from mirada.config.configfile import changed
from mirada.config.options import SearchConfig
from mirada.config.serving import ServeConfig
from mirada.serving.engine import Engine, Wanted, cancel
from mirada.serving.errors import RefusedError, RetiredError, too_late
from mirada.serving.metrics import Metrics
from mirada.serving.schemas import OutputAnswer
from mirada.serving.shelf import Shelf
from mirada.translator import Translation

Result = TypeVar("Result")
LETTERS = 64  # characters a token, at most: a longer text is refused before it is read
REMEMBERED = 1000  # different options of requests
MARKS = 2  # tokens that a tokeniser may add which are no part of the text
SLOW = 4000  # characters from which on tokenising is done beside the event loop


class Service:
    """The shelf, its limits and its counters."""

    def __init__(self, shelf: Shelf, settings: ServeConfig, metrics: Metrics):
        self.shelf, self.settings, self.metrics = shelf, settings, metrics
        self._options: dict[tuple[SearchConfig, tuple[tuple[str, Any], ...]], SearchConfig] = {}

    async def engine(self, name: str) -> Engine:
        """The engine of a model, loaded beside the event loop if need be."""
        engine = self.shelf.at_hand(name)
        return await asyncio.to_thread(self.shelf.engine, name) if engine is None else engine

    def options(self, engine: Engine, values: Mapping[str, Any]) -> SearchConfig:
        """The model's own search options with those of a request; raises MiradaError beyond the limits."""
        known, own = SearchConfig.model_fields, engine.translator.config.search
        given = {key: value for key, value in values.items() if key in known and value is not None}
        asked = (own, tuple(sorted(given.items())))
        if asked not in self._options:  # most requests want what others want: to check it takes as long as to queue it
            if len(self._options) >= REMEMBERED:
                self._options.clear()
            self._options[asked] = self._checked(own, given)
        return self._options[asked]

    def _checked(self, own: SearchConfig, given: Mapping[str, Any]) -> SearchConfig:
        options, limits = changed(own, given), self.settings
        for name in ("beam_size", "n_best"):
            if getattr(options, name) > limits.max_beam_size:
                raise RefusedError(
                    422, f"{name}: expected at most {limits.max_beam_size}, got {getattr(options, name)}"
                )
        for name in ("max_output_length", "min_output_length"):
            if (getattr(options, name) or 0) > limits.max_tokens:
                raise RefusedError(422, f"{name}: expected at most {limits.max_tokens}, got {getattr(options, name)}")
        return changed(options, {"max_input_length": limits.max_tokens})

    async def check_texts(self, engine: Engine, texts: Sequence[str], *, field: str = "text") -> None:
        """Raise RefusedError for too many texts, or one with too many tokens.

        A token has a character at least, of the text or of what a tokeniser makes of it: most texts need not be cut to
        be known as short enough.
        """
        most, limit = self.settings.max_texts, self.settings.max_tokens
        if len(texts) > most:
            raise RefusedError(422, f"{field}: expected at most {most} texts, got {len(texts)}; use several requests")
        for number, text in enumerate(texts, start=1):
            if len(text) > LETTERS * limit:
                raise RefusedError(
                    422, f"{field} {number}: expected at most {limit} tokens, got {len(text)} characters"
                )
        long = {number: text for number, text in enumerate(texts, start=1) if _most_tokens(text) > limit}
        pieces = engine.translator.source_tokenizer.pieces
        small = sum(map(len, long.values())) < SLOW
        rows = pieces([*long.values()]) if small else await asyncio.to_thread(pieces, [*long.values()])
        for number, row in zip(long, rows, strict=True):
            if len(row) > limit:
                raise RefusedError(422, f"{field} {number}: expected at most {limit} tokens, got {len(row)}")

    async def submit(self, name: str, work: Callable[[Engine], Result]) -> Result:
        """Hand work to a model's engine; to the next one if it was replaced at this very moment."""
        while True:
            engine = await self.engine(name)
            try:
                return work(engine)
            except RetiredError:
                if self.shelf.stopped.is_set():
                    raise RefusedError(503, "the service is ending") from None
                await asyncio.sleep(0.001)

    async def translations(
        self, request: Request, name: str, wanted: Sequence[Wanted], options: SearchConfig, *, with_attention: bool
    ) -> list[list[Translation]]:
        """Outputs of each text."""
        coming = await self.submit(
            name, lambda engine: engine.translate(wanted, options, with_attention=with_attention)
        )
        found = await self.results(request, [one.future for one in coming])
        return [one.read(outputs) for one, outputs in zip(coming, found, strict=True)]

    async def aside(self, request: Request, name: str, work: Callable[[Engine], Result]) -> Result:
        """What a function of the engine gives, computed beside the searches."""
        future = await self.submit(name, lambda engine: engine.aside(lambda: work(engine)))
        return (await self.results(request, [future]))[0]

    async def results(self, request: Request, futures: Sequence[Future[Result]]) -> list[Result]:
        """Wait for all, but no longer than the time limit, nor than the client: what is left is cancelled."""
        loop, ready, limit = asyncio.get_running_loop(), all_of(futures), self.settings.time_limit

        def give_up(error: RefusedError) -> None:
            if not ready.done():
                ready.set_exception(error)

        gone = loop.create_task(departure(request))
        gone.add_done_callback(lambda _: give_up(RefusedError(499, "the client left")))
        timer = loop.call_later(limit, give_up, too_late(limit))
        try:
            await ready
            return [future.result() for future in futures]
        finally:
            timer.cancel()
            gone.cancel()
            cancel(futures)

    def count(self, name: str, outputs: Sequence[Sequence[Translation]]) -> None:
        """Count the tokens of texts that were read and written."""
        read = sum(max(0, len(output.source_tokens) - 1) for found in outputs for output in found[:1])
        written = sum(len(output.tokens) for found in outputs for output in found[:1])
        self.metrics.tokens.labels(name, "source").inc(read)
        self.metrics.tokens.labels(name, "target").inc(written)


def all_of(futures: Sequence[Future[Result]]) -> asyncio.Future[None]:
    """What is done with the last of them, or the first that has an error: one call into the event loop for each."""
    loop, left = asyncio.get_running_loop(), len(futures)
    ready: asyncio.Future[None] = loop.create_future()
    if not futures:
        ready.set_result(None)

    def one_less(future: Future[Result]) -> None:
        nonlocal left
        left -= 1
        if ready.done():
            return
        if error := future.exception():
            ready.set_exception(error)
        elif not left:
            ready.set_result(None)

    for future in futures:
        future.add_done_callback(lambda done: loop.call_soon_threadsafe(one_less, done))
    return ready


async def departure(request: Request) -> None:
    """Wait until the client has gone."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


def _most_tokens(text: str) -> int:
    """More tokens than a text can have: normalising may write one character as eighteen, lower case one as two."""
    return 2 * len(normalize("NFKC", text)) + MARKS


def as_list(texts: str | list[str]) -> list[str]:
    """One text or several, as several."""
    return [texts] if isinstance(texts, str) else texts


def output(found: Translation, *, with_scores: bool, with_attention: bool) -> OutputAnswer:
    """An output with what was asked for."""
    answer = OutputAnswer.model_construct(text=found.text, finished=found.finished)
    if with_scores:
        answer.score, answer.log_probability = found.score, found.log_probability
        answer.token_log_probabilities = found.token_log_probabilities
    if with_scores or with_attention:
        answer.source_tokens, answer.tokens = found.source_tokens, found.tokens
    if with_attention and found.attention is not None:
        answer.attention = [[round(weight, 6) for weight in row] for row in found.attention.tolist()]
    return answer


def as_bytes(answer: BaseModel) -> bytes:
    """An answer as JSON, without what was not asked for."""
    return answer.model_dump_json(exclude_none=True).encode()
