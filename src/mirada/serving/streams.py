"""Server-sent events: a long document line by line, in order; or one sentence, each decoder step as it is made."""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import AsyncIterator, Iterable, Iterator
from concurrent.futures import Future
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import StreamingResponse

from mirada.config.options import SearchConfig
from mirada.serving.endpoints import REFUSALS, log_fields, service_of
from mirada.serving.engine import Coming, Engine, Wanted, cancel
from mirada.serving.errors import RefusedError, too_late, translated
from mirada.serving.route import GivenBody
from mirada.serving.schemas import StreamRequest
from mirada.serving.service import Service
from mirada.serving.steps import sentence_steps

AHEAD = 64  # lines of a document that wait or are searched at once: others come in between, and memory stays constant
router = APIRouter(prefix="/v1", responses=REFUSALS, route_class=GivenBody)
EVENTS: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "events: `line` for each line in order, or `step` for each step and `done`; `error`; `end`",
        "content": {"text/event-stream": {"schema": {"type": "string"}}},
    }
}


class EventStream(StreamingResponse):
    """A stream of events, which nothing on the way may keep."""

    media_type = "text/event-stream"


@router.post("/translate/stream", response_class=EventStream, responses=EVENTS)
async def stream(request: Request, body: StreamRequest) -> EventStream:
    """Translate a document line by line, or one sentence step by step, as it is made."""
    service = service_of(request)
    name = service.shelf.name(body.model)
    engine = await service.engine(name)
    options = service.options(engine, {**body.model_dump(), "n_best": 1})
    lines = body.text.split("\n")
    if not body.steps and body.prefix:
        raise RefusedError(422, "prefix: it goes with steps true, where the text is one sentence")
    if len(lines) > service.settings.max_stream_lines:
        raise RefusedError(422, f"text: expected at most {service.settings.max_stream_lines} lines, got {len(lines)}")
    log_fields(request, {"model": name, "texts": 1 if body.steps else len(lines)})
    if body.steps:
        await service.check_texts(engine, [body.text])
        events = _steps(service, name, body, options)
    else:
        for start in range(0, len(lines), service.settings.max_texts):
            await service.check_texts(engine, lines[start : start + service.settings.max_texts], field="line")
        events = _lines(service, name, lines, options)
    return EventStream(_guarded(events), headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"})


def event(kind: str, values: dict[str, Any]) -> bytes:
    """One event."""
    return f"event: {kind}\ndata: {json.dumps(values, ensure_ascii=False)}\n\n".encode()


async def _guarded(events: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """The answer has begun, so that a refusal is an event as well."""
    try:
        async for one in events:
            yield one
    except Exception as error:
        yield event("error", {"error": translated(error).message})
        if translated(error).status == 500:
            raise
    else:
        yield event("end", {})


async def _lines(service: Service, name: str, lines: list[str], options: SearchConfig) -> AsyncIterator[bytes]:
    """Every line, in order; where the queue is full a document waits, for it has been accepted."""
    waiting: deque[Coming] = deque()
    coming, number = iter(enumerate(lines)), 0
    try:
        while await _fill(service, name, options, coming, waiting):
            outputs = await _in_time(service, waiting[0].future)
            [found] = waiting.popleft().read(outputs)
            service.count(name, [[found]])
            number += 1
            yield event("line", {"line": number, "text": found.text, "score": found.score, "finished": found.finished})
    finally:
        cancel(one.future for one in waiting)


async def _fill(
    service: Service,
    name: str,
    options: SearchConfig,
    coming: Iterator[tuple[int, str]],
    waiting: deque[Coming],
) -> int:
    """Queue lines until so many wait as may; returns how many wait."""
    while len(waiting) < AHEAD and (line := next(coming, None)) is not None:
        while not (queued := await _queued(service, name, options, line)):
            if waiting:  # first what is under way
                await _in_time(service, waiting[0].future)
            await asyncio.sleep(0.01)
        waiting += queued
    return len(waiting)


async def _queued(service: Service, name: str, options: SearchConfig, line: tuple[int, str]) -> list[Coming]:
    """Queue one line; nothing where the queue is full."""
    wanted = [Wanted(line[1], "", line[0])]
    try:
        return await service.submit(name, lambda engine: engine.translate(wanted, options))
    except RefusedError:
        return []


async def _in_time(service: Service, future: Future[Any]) -> Any:
    try:
        return await asyncio.wait_for(asyncio.shield(asyncio.wrap_future(future)), service.settings.time_limit)
    except TimeoutError:
        raise too_late(service.settings.time_limit) from None


async def _steps(service: Service, name: str, body: StreamRequest, options: SearchConfig) -> AsyncIterator[bytes]:
    """Each step as a thread makes it; the thread ends with the client."""
    loop = asyncio.get_running_loop()
    made: asyncio.Queue[tuple[str, dict[str, Any]] | None] = asyncio.Queue()
    left: list[bool] = []

    def work(engine: Engine) -> None:
        def hand_over(items: Iterable[tuple[str, dict[str, Any]]]) -> None:
            for item in items:
                if left:
                    return
                loop.call_soon_threadsafe(made.put_nowait, item)

        try:
            hand_over(sentence_steps(engine.translator, body.text, prefix=body.prefix or "", options=options))
        finally:
            loop.call_soon_threadsafe(made.put_nowait, None)

    future = await service.submit(name, lambda engine: engine.aside(lambda: work(engine)))
    try:
        async with asyncio.timeout(service.settings.time_limit):
            while (item := await made.get()) is not None:
                yield event(*item)
            await asyncio.wrap_future(future)  # raises what the thread met
    except TimeoutError:
        raise too_late(service.settings.time_limit) from None
    finally:
        left.append(True)
        cancel([future])
