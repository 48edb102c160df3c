"""`mirada.Client` and `mirada translate --server`: what they ask, what they give back, and how often they try."""

from __future__ import annotations

import asyncio
import json

import httpx
import pytest

import mirada
from cli_tools import refusal, works
from mirada import client as module
from mirada.client import AsyncClient, Client, ServiceError

URL = "http://127.0.0.1:9"


class Service:
    """Answers as told, one after the other, then as a service that turns every text round."""

    def __init__(self, *first: httpx.Response | Exception):
        self.first, self.asked = list(first), []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.asked.append(request)
        if self.first:
            answer = self.first.pop(0)
            if isinstance(answer, Exception):
                raise answer
            return answer
        path = request.url.path
        if path == "/v1/models":
            return httpx.Response(200, json={"models": [{"name": "m"}]})
        body = json.loads(request.content)
        if path == "/v1/score":
            return httpx.Response(200, json={"scores": [{"log_probability": -len(text)} for text in body["target"]]})
        if path == "/v1/explain":
            return httpx.Response(200, json={"traces": [body]})
        outputs = [[{"text": text[::-1], "score": -0.5}] * body.get("n_best", 1) for text in body["text"]]
        return httpx.Response(200, json={"translations": [{"outputs": found} for found in outputs]})


def over(monkeypatch, service: Service) -> None:
    """Let every client speak with this service; no pause is waited for."""
    plain, asynchronous = httpx.Client, httpx.AsyncClient
    transport = httpx.MockTransport(service)
    monkeypatch.setattr(httpx, "Client", lambda **options: plain(**options, transport=transport))
    monkeypatch.setattr(httpx, "AsyncClient", lambda **options: asynchronous(**options, transport=transport))
    monkeypatch.setattr(module, "FIRST_PAUSE", 0.0)


def test_texts_go_in_several_requests_and_come_back_in_order(monkeypatch):
    service = Service()
    over(monkeypatch, service)
    with mirada.Client(URL, token="secret") as client:
        assert client.outputs(["ab", "cd", "ef"], options={"n_best": 2}, batch_size=2)[2][1]["text"] == "fe"
        assert client.translate(["ab"]) == ["ba"]
        assert client.score(["a"], ["bcd"]) == [-3]
        assert client.explain("a", options={"beam_size": 1}) == [{"text": "a", "beam_size": 1}]
        assert client.models() == [{"name": "m"}]
        with pytest.raises(mirada.MiradaError, match="expected a list of texts, got one text"):
            client.translate("ab")
    assert len(service.asked) == 6
    assert all(request.headers["authorization"] == "Bearer secret" for request in service.asked)


def test_asyncio(monkeypatch):
    service = Service(httpx.Response(503, json={"error": "full", "id": "1"}))
    over(monkeypatch, service)

    async def ask():
        async with AsyncClient(URL) as client:
            texts = await asyncio.gather(*(client.translate([text]) for text in ("ab", "cd")))
            return texts, await client.models(), await client.explain("a")

    assert asyncio.run(ask()) == ([["ba"], ["dc"]], [{"name": "m"}], [{"text": "a"}])


@pytest.mark.parametrize(
    ("trouble", "reason"),
    [
        (httpx.Response(503, json={"error": "full"}, headers={"Retry-After": "0"}), "503, full"),
        (httpx.ConnectError("refused"), r"cannot be reached \(refused\); is `mirada serve` running\?"),
    ],
)
def test_it_tries_again_and_in_the_end_gives_up(monkeypatch, trouble, reason):
    service = Service(*[trouble] * 3)
    over(monkeypatch, service)
    assert Client(URL, retries=3).translate(["ab"]) == ["ba"]
    service.first = [trouble] * 4
    with pytest.raises(ServiceError, match=reason):
        Client(URL, retries=3).translate(["ab"])


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (httpx.Response(422, json={"error": "beam_size: expected at most 20, got 21"}), "422, beam_size: expected"),
        (httpx.Response(200, text="<html>"), "200, no answer of mirada; is this its address"),
        (httpx.Response(404, text="<html>"), "404, no answer of mirada; is this its address"),
    ],
)  # fmt: skip
def test_refusals_are_the_services_own_words(monkeypatch, answer, message):
    over(monkeypatch, Service(answer))
    with pytest.raises(ServiceError, match=message):
        Client(URL).translate(["a"])


def test_the_command_asks_the_service(monkeypatch):
    service = Service()
    over(monkeypatch, service)
    there = ("translate", "--server", URL)
    assert works(*there, given="ab\n\ncd\n").lines == ["ba", "", "dc"]
    assert works(*there, "--scores", given="ab\n").lines == ["ba\t-0.5000"]
    arguments = ("m", "--n-best", 2, "--alpha", 0.5, "--sample", "--token", "t")
    assert works(*there, *arguments, given="ab\n").lines == ["0 ||| ba ||| -0.5000"] * 2
    body = json.loads(service.asked[-1].content)
    assert body == {"text": ["ab"], "model": "m", "n_best": 2, "alpha": 0.5, "sample": True, "with_scores": True}
    assert service.asked[-1].headers["authorization"] == "Bearer t"


def test_what_only_a_local_model_gives_is_refused():
    message = "--alignment: it needs the model in this process; leave out --server"
    assert refusal("translate", "--server", URL, "--alignment", "hard") == message
    message = "--save-attention: it needs the model in this process; leave out --server"
    assert refusal("translate", "--server", URL, "--save-attention", "a.jsonl") == message
    assert refusal("translate") == "give a model folder, or --server URL; see `mirada translate --help`"
