"""The application: endpoints, the page, and the gate before them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from threading import Thread

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware

from mirada.config.serving import ServeConfig
from mirada.errors import ConfigError, MiradaError
from mirada.explain.page import static
from mirada.files import expanded, read_regular
from mirada.serving import endpoints, libretranslate, streams
from mirada.serving.docs import describe
from mirada.serving.errors import RefusedError, complaint, translated
from mirada.serving.guard import App, Guard, error_body, read_tokens
from mirada.serving.metrics import Metrics
from mirada.serving.places import places
from mirada.serving.service import Service
from mirada.serving.shelf import Shelf

KINDS = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
ABOUT = "Translation, scores and every number of a sentence, by models trained with mirada."


def build(settings: ServeConfig) -> tuple[App, Shelf]:
    """The application and the models behind it; raises ConfigError or ModelFolderError."""
    tokens = _tokens(settings)
    metrics = Metrics()
    shelf = Shelf(places(settings), settings, metrics)
    app = FastAPI(
        title="mirada", version=version("mirada"), description=ABOUT, docs_url=None, redoc_url=None, lifespan=_lifespan
    )
    app.state.service = Service(shelf, settings, metrics)
    for router in (endpoints.router, streams.router, libretranslate.router):
        app.include_router(router)
    _add_plain(app, metrics)
    _add_page(app)
    _add_errors(app)
    guarded: App = Guard(app, settings, metrics, tokens)
    if settings.cors_origins:
        headers = ["Authorization", "Content-Type", "X-Request-Id"]
        guarded = CORSMiddleware(
            guarded, allow_origins=settings.cors_origins, allow_methods=["*"], allow_headers=headers
        )
    return guarded, shelf


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    shelf: Shelf = app.state.service.shelf
    watch = Thread(target=shelf.watch, daemon=True, name="watch")
    watch.start()
    yield
    shelf.stop()


def _tokens(settings: ServeConfig) -> tuple[bytes, ...]:
    if settings.token_file is None:
        return ()
    try:
        tokens = read_tokens(read_regular(expanded(settings.token_file)).decode("utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"token_file {settings.token_file}: cannot be read ({error})") from None
    if not tokens:
        raise ConfigError(f"token_file {settings.token_file}: no token in it; write one a line")
    return tokens


def _add_plain(app: FastAPI, metrics: Metrics) -> None:
    @app.get("/healthz")
    async def healthz() -> dict[str, str]:
        """The process answers."""
        return {"status": "ok"}

    @app.get("/readyz", responses={503: {"description": "models are still being loaded"}})
    async def readyz(request: Request) -> dict[str, str]:
        """Models that are to be preloaded are loaded."""
        service: Service = request.app.state.service
        missing = [name for name in service.shelf.places if not service.shelf.loaded(name)]
        if service.settings.preload and missing and not service.settings.memory_limit_mb:
            raise RefusedError(503, f"loading: {', '.join(missing)}")
        return {"status": "ready"}

    @app.get("/metrics", response_class=Response)
    def exposition() -> Response:
        """Counters of this process in Prometheus' text format."""
        return Response(metrics.exposition(), media_type="text/plain; version=0.0.4")


def _add_page(app: FastAPI) -> None:
    parts = {
        part.name: part
        for folder in (static(), files("mirada.serving").joinpath("static"))
        for part in folder.iterdir()
    }

    @app.get("/", include_in_schema=False)
    def page() -> Response:
        return Response(parts["index.html"].read_bytes(), media_type="text/html")

    @app.get("/docs", include_in_schema=False)
    def docs() -> Response:
        return Response(describe(app.openapi()), media_type="text/html")

    @app.get("/static/{name}", include_in_schema=False)
    def asset(name: str) -> Response:
        kind = KINDS.get(Path(name).suffix)
        if name not in parts or kind is None:
            raise RefusedError(404, "no such file")
        return Response(parts[name].read_bytes(), media_type=kind, headers={"Cache-Control": "no-cache"})


def _add_errors(app: FastAPI) -> None:
    """One line for each error, with the request's id."""

    def answer(request: Request, refusal: RefusedError) -> Response:
        content = error_body(refusal, request.state.exchange)
        return Response(content, refusal.status, headers=refusal.headers, media_type="application/json")

    @app.exception_handler(RequestValidationError)
    async def invalid(request: Request, error: RequestValidationError) -> Response:
        return answer(request, RefusedError(422, complaint(error.errors())))

    @app.exception_handler(MiradaError)
    async def mistaken(request: Request, error: MiradaError) -> Response:
        return answer(request, translated(error))

    @app.exception_handler(Exception)  # it still goes on to the gate, which writes it into the log
    async def unexpected(request: Request, error: Exception) -> Response:
        return answer(request, translated(error))

    @app.exception_handler(HTTPException)
    async def plain(request: Request, error: HTTPException) -> Response:
        return answer(request, RefusedError(error.status_code, str(error.detail), headers=error.headers or {}))
