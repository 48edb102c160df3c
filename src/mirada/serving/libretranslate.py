"""LibreTranslate's /translate and /languages, so that its clients work."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel

from mirada.serving.endpoints import REFUSALS, as_json, log_fields, service_of
from mirada.serving.engine import Wanted
from mirada.serving.errors import RefusedError
from mirada.serving.route import GivenBody
from mirada.serving.schemas import LibreRequest
from mirada.serving.service import Service, as_bytes, as_list

NAMES = {"en": "English", "es": "Spanish", "de": "German", "fr": "French", "it": "Italian", "pt": "Portuguese"}
router = APIRouter(responses=REFUSALS, route_class=GivenBody)


class LibreAnswer(BaseModel):
    """Texts as they were given: one, or several."""

    translatedText: str | list[str]  # noqa: N815
    alternatives: list[str] | list[list[str]] | None = None


class LibreLanguage(BaseModel):
    """A language and those that it can be translated into."""

    code: str
    name: str
    targets: list[str]


@router.get("/languages", response_model=list[LibreLanguage])
async def languages(request: Request) -> list[LibreLanguage]:
    """Languages that are read, and what they can be translated into."""
    pairs: dict[str, list[str]] = {}
    for place in service_of(request).shelf.places.values():
        targets = pairs.setdefault(place.source, [])
        if place.target not in targets:
            targets.append(place.target)
    return [LibreLanguage(code=code, name=NAMES.get(code, code), targets=targets) for code, targets in pairs.items()]


@router.post("/translate", response_model=LibreAnswer)
async def libre_translate(request: Request, body: LibreRequest) -> Response:
    """Translate by the first model of these two languages."""
    service = service_of(request)
    name, texts = _model(service, body.source, body.target), as_list(body.q)
    engine = await service.engine(name)
    own = engine.translator.config.search
    beam = {"beam_size": max(own.beam_size, body.alternatives + 1), "n_best": body.alternatives + 1}
    options = service.options(engine, beam if body.alternatives else {"n_best": 1})
    await service.check_texts(engine, texts, field="q")
    log_fields(request, {"model": name, "texts": len(texts)})
    wanted = [Wanted(text, "", number) for number, text in enumerate(texts)]
    found = await service.translations(request, name, wanted, options, with_attention=False)
    service.count(name, found)
    best, others = [outputs[0].text for outputs in found], [[one.text for one in outputs[1:]] for outputs in found]
    one = isinstance(body.q, str)
    answer = LibreAnswer(translatedText=best[0] if one else best)
    if body.alternatives:
        answer.alternatives = others[0] if one else others
    return as_json(as_bytes(answer))


def _model(service: Service, source: str, target: str) -> str:
    """The first model that reads and writes these languages; `auto` is the first that writes the target."""
    for name, place in service.shelf.places.items():
        if source in (place.source, "auto") and target == place.target:
            return name
    raise RefusedError(400, f"no served model goes from {source[:20]!r} to {target[:20]!r}; see GET /languages")
