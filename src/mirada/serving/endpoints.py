"""The endpoints of /v1: translate, score, explain, models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.responses import HTMLResponse

from mirada.errors import ConfigError
from mirada.serving.engine import Engine, Wanted
from mirada.serving.errors import RefusedError
from mirada.serving.route import GivenBody
from mirada.serving.schemas import (
    ErrorAnswer,
    ExplainAnswer,
    ExplainRequest,
    ModelsAnswer,
    ScoreAnswer,
    ScoreRequest,
    ScoresAnswer,
    TranslateAnswer,
    TranslateRequest,
    TranslationAnswer,
)
from mirada.serving.service import Service, as_bytes, as_list, output

REFUSALS: dict[int | str, dict[str, Any]] = {
    400: {"model": ErrorAnswer, "description": "no JSON, or not UTF-8"},
    401: {"model": ErrorAnswer, "description": "no known token"},
    404: {"model": ErrorAnswer, "description": "no such model"},
    413: {"model": ErrorAnswer, "description": "the body is too large"},
    415: {"model": ErrorAnswer, "description": "not JSON"},
    422: {"model": ErrorAnswer, "description": "a value that cannot be used, or beyond a limit"},
    503: {"model": ErrorAnswer, "description": "the queue is full: wait for Retry-After"},
    504: {"model": ErrorAnswer, "description": "not done within the time limit"},
}
router = APIRouter(prefix="/v1", responses=REFUSALS, route_class=GivenBody)


def service_of(request: Request) -> Service:
    """The service behind an application."""
    found: Service = request.app.state.service
    return found


def log_fields(request: Request, fields: Mapping[str, object]) -> None:
    """Add to the request's line in the log."""
    request.state.exchange.fields.update(fields)


def as_json(content: bytes) -> Response:
    """Bytes of JSON as an answer."""
    return Response(content, media_type="application/json")


@router.get("/models", response_model=ModelsAnswer)
async def models(request: Request) -> Response:
    """Served models: languages, system, sizes, metrics; the first is the default."""
    shelf = service_of(request).shelf
    cards = [card.model_copy(update={"loaded": shelf.loaded(name)}) for name, card in shelf.cards.items()]
    return as_json(ModelsAnswer(models=cards).model_dump_json().encode())


@router.post("/translate", response_model=TranslateAnswer)
async def translate(request: Request, body: TranslateRequest) -> Response:
    """Translate one text or several. What arrives together is searched together, with the result of each alone."""
    service = service_of(request)
    name, texts = service.shelf.name(body.model), as_list(body.text)
    engine = await service.engine(name)
    options = service.options(engine, body.model_dump())
    _check_attention(engine, body.with_attention, options.replace_unk)
    await service.check_texts(engine, texts)
    wanted = _wanted(texts, body.prefix)
    log_texts = {"sources": texts} if service.settings.log_texts else {}
    log_fields(request, {"model": name, "texts": len(texts), **log_texts})
    found = await service.translations(request, name, wanted, options, with_attention=body.with_attention)
    service.count(name, found)
    flags = {"with_scores": body.with_scores, "with_attention": body.with_attention}
    translations = [
        TranslationAnswer.model_construct(
            text=outputs[0].text,
            outputs=[
                output(one, with_scores=flags["with_scores"], with_attention=flags["with_attention"]) for one in outputs
            ],
        )
        for outputs in found
    ]
    return as_json(as_bytes(TranslateAnswer.model_construct(model=name, translations=translations)))


def _wanted(texts: Sequence[str], prefix: str | list[str] | None) -> list[Wanted]:
    """Texts with their prefixes."""
    prefixes = [prefix or ""] * len(texts) if isinstance(prefix, str | None) else prefix
    if len(prefixes) != len(texts):
        raise RefusedError(422, f"prefix: expected one, or one for each of {len(texts)} texts, got {len(prefixes)}")
    return [Wanted(*pair, number) for number, pair in enumerate(zip(texts, prefixes, strict=True))]


def _check_attention(engine: Engine, wanted: bool, replaces: bool) -> None:
    """Raise ConfigError where attention is wanted of a system that has none."""
    if (wanted or replaces) and not engine.translator.config.model.has_attention:
        what = "with_attention" if wanted else "replace_unk"
        raise ConfigError(f"{what}: a classic model has no attention; use another model, or leave it out")


@router.post("/score", response_model=ScoresAnswer)
async def score(request: Request, body: ScoreRequest) -> Response:
    """Log-probabilities of given outputs (forced decoding)."""
    service = service_of(request)
    name, sources, targets = service.shelf.name(body.model), as_list(body.source), as_list(body.target)
    if len(sources) != len(targets):
        raise RefusedError(422, f"target: expected one for each of {len(sources)} sources, got {len(targets)}")
    engine = await service.engine(name)
    _check_attention(engine, body.with_attention, replaces=False)
    await service.check_texts(engine, sources, field="source")
    _check_targets(engine, targets, service.settings.max_tokens)
    log_fields(request, {"model": name, "texts": len(sources)})
    found = await service.aside(
        request, name, lambda engine: engine.translator.score(sources, targets, with_attention=body.with_attention)
    )
    scores = [
        ScoreAnswer(
            log_probability=one.log_probability,
            source_tokens=one.source_tokens,
            tokens=one.tokens,
            token_log_probabilities=one.token_log_probabilities,
            attention=None if one.attention is None else [[round(w, 6) for w in row] for row in one.attention.tolist()],
        )
        for one in found
    ]
    return as_json(as_bytes(ScoresAnswer(model=name, scores=scores)))


def _check_targets(engine: Engine, targets: Sequence[str], most: int) -> None:
    """Raise RefusedError for a target with too many tokens."""
    for number, text in enumerate(targets, start=1):
        count = len(engine.translator.target_tokenizer.encode([text[: 64 * most]])[0]) + (len(text) > 64 * most)
        if count > most:
            raise RefusedError(422, f"target {number}: expected at most {most} tokens, got {count} or more")


@router.post("/explain", response_model=ExplainAnswer)
async def explain(request: Request, body: ExplainRequest) -> Response:
    """Every number of one sentence, step by step; with an intervention the traces before and after it."""
    from mirada.explain.record import as_file

    return as_json(as_file(await _traces(request, body)).encode())


@router.post("/explain/page", response_class=HTMLResponse)
async def explain_page(request: Request, body: ExplainRequest) -> Response:
    """The same as a page of its own: one HTML file that needs neither service nor network."""
    from mirada.explain.page import page_of, without_logits

    traces = await _traces(request, body)
    headers = {"Content-Disposition": 'attachment; filename="mirada.html"'}
    return HTMLResponse(page_of([without_logits(trace) for trace in traces]), headers=headers)


async def _traces(request: Request, body: ExplainRequest) -> list[dict[str, Any]]:
    from mirada.serving.traces import edits_of, traces

    service = service_of(request)
    name = service.shelf.name(body.model)
    engine = await service.engine(name)
    options = service.options(engine, body.model_dump())
    await service.check_texts(engine, [body.text])
    _check_targets(engine, [body.reference or "", body.force or ""], service.settings.max_tokens)
    edits = edits_of(body)
    log_fields(request, {"model": name})
    return await service.aside(
        request, name, lambda engine: traces(engine.translator, body, options=options, edits=edits)
    )
