"""The gate before every endpoint: ids, tokens, sizes, JSON that can be read, security headers, log, counters."""

from __future__ import annotations

import asyncio
import hmac
import json
import logging
import re
from collections.abc import Awaitable, Callable, MutableMapping
from time import perf_counter
from typing import Any, NoReturn
from urllib.parse import parse_qs
from uuid import uuid4

from mirada.config.serving import ServeConfig
from mirada.serving.errors import RefusedError, translated
from mirada.serving.logs import FIELDS
from mirada.serving.metrics import Metrics

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

GOOD_ID = re.compile(rb"[A-Za-z0-9._-]{1,64}")
OPEN = ("/healthz", "/readyz", "/", "/docs", "/openapi.json")  # without a token: nothing of any text is in them
FORM = b"application/x-www-form-urlencoded"
LIBRE = "/translate"
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data: blob:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = [
    (b"content-security-policy", POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), geolocation=(), microphone=()"),
]


class Exchange:
    """One request: what was given, and what is known of its answer."""

    def __init__(self, scope: Scope):
        headers = dict(scope["headers"])
        given = headers.get(b"x-request-id", b"")
        self.id = given.decode() if GOOD_ID.fullmatch(given) else uuid4().hex[:16]
        self.headers, self.path, self.method = headers, str(scope["path"]), str(scope["method"])
        self.status, self.begun, self.fields = 0, perf_counter(), dict[str, object]()
        self.values: object = None  # of the body
        scope.setdefault("state", {})["exchange"] = self


class Guard:
    """An ASGI application around another one, which reads no body: what it says is in the exchange."""

    def __init__(self, app: App, settings: ServeConfig, metrics: Metrics, tokens: tuple[bytes, ...]):
        self.app, self.settings, self.metrics, self.tokens = app, settings, metrics, tokens
        self.log = logging.getLogger("mirada.serve")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, or hand it on once its body is whole and read."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        exchange = Exchange(scope)

        async def answer(message: Message) -> None:
            if message["type"] == "http.response.start":
                exchange.status = message["status"]
                message["headers"] = [*message["headers"], *HEADERS, (b"x-request-id", exchange.id.encode())]
            await send(message)

        self.metrics.running.inc()
        try:
            exchange.values = await self._values(exchange, receive)
            await self.app(scope, receive, answer)
        except Exception as error:  # the last place where one can be met
            await self._refuse(exchange, error, answer)
        finally:
            self.metrics.running.dec()
            self._log(exchange, scope)

    async def _values(self, exchange: Exchange, receive: Receive) -> object:
        """What the whole body says; raises RefusedError for one that is too large, too slow, or no JSON."""
        self._check_token(exchange)
        if exchange.method not in ("POST", "PUT", "PATCH"):
            return None
        kind = exchange.headers.get(b"content-type", b"").split(b";")[0].strip().lower()
        form = kind == FORM and exchange.path == LIBRE
        if kind != b"application/json" and not form:
            raise RefusedError(415, "expected Content-Type: application/json")
        body = await self._read(exchange, receive)
        values = _form(body) if form else _json(body)
        self._check_key(exchange, values)
        return values

    async def _read(self, exchange: Exchange, receive: Receive) -> bytes:
        most = self.settings.max_body_bytes
        said = exchange.headers.get(b"content-length", b"0")
        if said.isdigit() and int(said[:18]) > most:
            _too_large(most)
        parts, size, more = [], 0, True
        try:
            async with asyncio.timeout(self.settings.read_seconds):
                while more:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise RefusedError(499, "the client left")
                    parts.append(message.get("body", b""))
                    size, more = size + len(parts[-1]), message.get("more_body", False)
                    if size > most:
                        _too_large(most)
        except TimeoutError:
            limit = self.settings.read_seconds
            raise RefusedError(
                408, f"the body did not arrive within {limit:g} s", headers={"Connection": "close"}
            ) from None
        return b"".join(parts)

    def _check_token(self, exchange: Exchange) -> None:
        """Raise RefusedError for a request without one of the tokens, where there are any."""
        if not self.tokens or exchange.path in OPEN or exchange.path.startswith("/static/"):
            return
        scheme, _, token = exchange.headers.get(b"authorization", b"").partition(b" ")
        if scheme.lower() == b"bearer" and self._known(token.strip()):
            return
        if exchange.path == LIBRE and exchange.method == "POST":
            return  # its key stands in the body
        _unknown_token()

    def _check_key(self, exchange: Exchange, values: object) -> None:
        """LibreTranslate's clients send the token as `api_key`."""
        if not self.tokens or exchange.path != LIBRE:
            return
        token = exchange.headers.get(b"authorization", b"").partition(b" ")[2].strip()
        key = values.get("api_key") if isinstance(values, dict) else None
        if not self._known(token) and not self._known(str(key).encode(errors="replace")):
            _unknown_token()

    def _known(self, token: bytes) -> bool:
        """Compare with every token, always in the same time."""
        same = [hmac.compare_digest(token, known) for known in self.tokens]
        return any(same)

    async def _refuse(self, exchange: Exchange, error: Exception, answer: Send) -> None:
        refusal = translated(error)
        if refusal.status >= 500 and not isinstance(error, RefusedError):
            self.log.error("request failed", exc_info=error, extra={FIELDS: {"id": exchange.id}})
        if exchange.status:  # the answer has begun: nothing else can be said
            return
        content = error_body(refusal, exchange)
        headers = {"content-type": "application/json", "content-length": str(len(content)), **refusal.headers}
        raw = [(name.lower().encode(), value.encode()) for name, value in headers.items()]
        await answer({"type": "http.response.start", "status": refusal.status, "headers": raw})
        await answer({"type": "http.response.body", "body": content})

    def _log(self, exchange: Exchange, scope: Scope) -> None:
        seconds = perf_counter() - exchange.begun
        route = scope.get("route")
        endpoint = getattr(route, "path", "other")
        self.metrics.requests.labels(endpoint, str(exchange.status or 499)).inc()
        self.metrics.seconds.labels(endpoint).observe(seconds)
        fields = {
            "id": exchange.id,
            "client": (scope.get("client") or ("?",))[0],
            "method": exchange.method,
            "path": exchange.path[:200],
            "status": exchange.status or 499,
            "ms": round(1000 * seconds, 1),
            **exchange.fields,
        }
        self.log.info("request", extra={FIELDS: fields})


def error_body(refusal: RefusedError, exchange: Exchange) -> bytes:
    """An error as JSON: LibreTranslate's clients read `error` as well."""
    return json.dumps({"error": refusal.message, "id": exchange.id}).encode()


def read_tokens(content: str) -> tuple[bytes, ...]:
    """The tokens of a file, one a line; lines that begin with # are comments."""
    lines = (line.strip() for line in content.splitlines())
    return tuple(line.encode() for line in lines if line and not line.startswith("#"))


def _form(body: bytes) -> dict[str, Any]:
    """A form's fields as JSON would give them."""
    fields = parse_qs(_text(body), keep_blank_values=True, max_num_fields=20)
    values: dict[str, Any] = {name: found[0] if len(found) == 1 else found for name, found in fields.items()}
    if str(values.get("alternatives", "")).isdigit():
        values["alternatives"] = int(values["alternatives"][:9])
    return values


def _json(body: bytes) -> object:
    """Read a body as strict JSON, so that nothing behind meets one that cannot be read."""

    def refuse(name: str) -> NoReturn:
        raise ValueError(f"{name} is no number of JSON")

    try:
        return json.loads(_text(body), parse_constant=refuse)
    except RecursionError:
        raise RefusedError(400, "the body is nested too deep") from None
    except ValueError as error:
        raise RefusedError(400, f"the body is no JSON: {error}"[:200]) from None


def _text(body: bytes) -> str:
    try:
        return body.decode("utf-8")
    except UnicodeDecodeError as error:
        raise RefusedError(400, f"the body is not valid UTF-8 (byte {error.start + 1})") from None


def _too_large(most: int) -> NoReturn:
    raise RefusedError(413, f"the body is larger than {most:,} bytes; send fewer or shorter texts a request")


def _unknown_token() -> NoReturn:
    raise RefusedError(401, "a token is needed: Authorization: Bearer TOKEN", headers={"WWW-Authenticate": "Bearer"})
