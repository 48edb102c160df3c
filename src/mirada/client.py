"""A client of `mirada serve`, for programs that wait (Client) and for asyncio (AsyncClient).

>>> import mirada
>>> with mirada.Client("http://127.0.0.1:8080") as client:
...     client.translate(["How are you?"])

Both ask again after 502, 503 and broken connections, waiting as long as the service says (Retry-After), or twice as
long each time. The extra `serve` has what they need (httpx).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from mirada.errors import ConfigError, DataError, MiradaError

if TYPE_CHECKING:
    import httpx

BUSY = (502, 503)
FIRST_PAUSE, LONGEST_PAUSE = 0.2, 10.0  # seconds
Options = Mapping[str, Any]  # the keys of the request in /docs: beam_size, n_best, model, with_scores …
Answer = dict[str, Any]


class ServiceError(MiradaError):
    """The service refused, or cannot be reached; the message is its own."""


class Setting(NamedTuple):
    """Where the service is and how patient its clients are."""

    url: str
    token: str | None
    timeout: float
    retries: int


class Client:
    """Asks a service and waits for the answer. Raises ServiceError, with the service's own line."""

    def __init__(self, url: str, *, token: str | None = None, timeout: float = 60.0, retries: int = 5):
        self._setting = Setting(url.rstrip("/"), token, timeout, retries)
        self._http = _httpx().Client(base_url=self._setting.url, headers=_headers(token), timeout=timeout)

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def translate(self, texts: Sequence[str], *, options: Options | None = None) -> list[str]:
        """The best output of each text."""
        return [outputs[0]["text"] for outputs in self.outputs(texts, options=options)]

    def outputs(
        self, texts: Sequence[str], *, options: Options | None = None, batch_size: int = 64
    ) -> list[list[Answer]]:
        """The outputs of each text, best first; `batch_size` texts a request."""
        bodies = _bodies(texts, options, batch_size)
        return [found["outputs"] for body in bodies for found in self._ask("/v1/translate", body)["translations"]]

    def score(self, sources: Sequence[str], targets: Sequence[str], *, options: Options | None = None) -> list[float]:
        """Log-probabilities of given outputs."""
        body = {"source": _texts(sources), "target": _texts(targets), **(options or {})}
        return [found["log_probability"] for found in self._ask("/v1/score", body)["scores"]]

    def explain(self, text: str, *, options: Options | None = None) -> list[Answer]:
        """The traces of a text, as `mirada explain --format json` writes them."""
        traces: list[Answer] = self._ask("/v1/explain", {"text": text, **(options or {})})["traces"]
        return traces

    def models(self) -> list[Answer]:
        """What is served."""
        found: list[Answer] = self._ask("/v1/models", None)["models"]
        return found

    def _ask(self, path: str, body: Answer | None) -> Answer:
        waiting = _pauses(self._setting.retries)
        while True:
            try:
                response = self._http.request("GET" if body is None else "POST", path, json=body)
            except _httpx().TransportError as error:
                time.sleep(_pause(waiting, None, _unreachable(self._setting, error)))
                continue
            if response.status_code not in BUSY:
                return _read(response)
            time.sleep(_pause(waiting, response, _refusal(response)))


class AsyncClient:
    """The same for asyncio."""

    def __init__(self, url: str, *, token: str | None = None, timeout: float = 60.0, retries: int = 5):
        self._setting = Setting(url.rstrip("/"), token, timeout, retries)
        self._http = _httpx().AsyncClient(base_url=self._setting.url, headers=_headers(token), timeout=timeout)

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def translate(self, texts: Sequence[str], *, options: Options | None = None) -> list[str]:
        """The best output of each text."""
        return [outputs[0]["text"] for outputs in await self.outputs(texts, options=options)]

    async def outputs(
        self, texts: Sequence[str], *, options: Options | None = None, batch_size: int = 64
    ) -> list[list[Answer]]:
        """The outputs of each text, best first; `batch_size` texts a request."""
        answers = [await self._ask("/v1/translate", body) for body in _bodies(texts, options, batch_size)]
        return [found["outputs"] for answer in answers for found in answer["translations"]]

    async def explain(self, text: str, *, options: Options | None = None) -> list[Answer]:
        """The traces of a text, as `mirada explain --format json` writes them."""
        traces: list[Answer] = (await self._ask("/v1/explain", {"text": text, **(options or {})}))["traces"]
        return traces

    async def models(self) -> list[Answer]:
        """What is served."""
        found: list[Answer] = (await self._ask("/v1/models", None))["models"]
        return found

    async def _ask(self, path: str, body: Answer | None) -> Answer:
        waiting = _pauses(self._setting.retries)
        while True:
            try:
                response = await self._http.request("GET" if body is None else "POST", path, json=body)
            except _httpx().TransportError as error:
                await asyncio.sleep(_pause(waiting, None, _unreachable(self._setting, error)))
                continue
            if response.status_code not in BUSY:
                return _read(response)
            await asyncio.sleep(_pause(waiting, response, _refusal(response)))


def _httpx() -> Any:
    try:
        import httpx
    except ImportError:
        raise ConfigError("a client needs httpx: pip install 'mirada[serve]'") from None
    return httpx


def _headers(token: str | None) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"} if token else {}


def _texts(texts: Sequence[str]) -> list[str]:
    if isinstance(texts, str):  # whose letters would be taken for texts
        raise DataError("expected a list of texts, got one text; write [text]")
    return list(texts)


def _bodies(texts: Sequence[str], options: Options | None, size: int) -> list[Answer]:
    rows = _texts(texts)
    return [{"text": rows[start : start + size], **(options or {})} for start in range(0, len(rows), size)]


def _pauses(retries: int) -> Iterator[float]:
    """Seconds before each further try."""
    return (min(LONGEST_PAUSE, FIRST_PAUSE * 2**number) for number in range(retries))


def _pause(waiting: Iterator[float], response: httpx.Response | None, last: ServiceError) -> float:
    """Seconds to wait; raises the last error where no try is left."""
    seconds = next(waiting, None)
    if seconds is None:
        raise last from None
    said = response.headers.get("retry-after", "") if response is not None else ""
    return min(LONGEST_PAUSE, float(said)) if said.isdigit() else seconds


def _unreachable(setting: Setting, error: Exception) -> ServiceError:
    return ServiceError(
        f"{setting.url}: cannot be reached ({error or type(error).__name__}); is `mirada serve` running?"
    )


def _refusal(response: httpx.Response) -> ServiceError:
    try:
        said = response.json()["error"]
    except (ValueError, KeyError, TypeError):
        said = "no answer of mirada; is this its address?"
    return ServiceError(f"{response.url.copy_with(query=None)}: {response.status_code}, {said}")


def _read(response: httpx.Response) -> Answer:
    if response.status_code != 200:
        raise _refusal(response)
    try:
        answer: Answer = response.json()
    except ValueError:
        raise _refusal(response) from None
    return answer
