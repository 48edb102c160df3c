"""Many at once: shared batches with the results of each alone, a bounded queue, time limits, clients that leave."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from threading import Event

import pytest
from fastapi.testclient import TestClient

import tiny
from mirada.config.configfile import changed
from mirada.serving.app import build
from mirada.serving.engine import Engine, Wanted
from mirada.serving.errors import RefusedError, RetiredError
from mirada.translator import load
from serving.conftest import settings_for


@pytest.fixture
def held(folders):
    """An engine whose searches wait until they are let go."""
    translator = load(folders["luong"], device="cpu")
    search, free, sizes = translator.search, Event(), []

    def wait(*arguments, **options):
        assert free.wait(20)
        return search(*arguments, **options)

    translator.search = wait
    engine = Engine(translator, queue_size=8, batch_size=4, on_batch=sizes.append)
    yield engine, free, sizes
    free.set()
    engine.retire()


def wanted(count: int) -> list[Wanted]:
    return [Wanted(tiny.SOURCES[i % 6], "", i) for i in range(count)]


def test_what_waits_with_equal_options_is_searched_together(held, folders):
    engine, free, sizes = held
    own = engine.translator.config.search
    other = changed(own, {"beam_size": 1})
    futures = engine.translate(wanted(1), own)  # begun at once, alone
    while engine.waiting:
        pass
    for options in (own, other, own, other):
        futures += engine.translate(wanted(1), options)
    futures += engine.translate(wanted(3), own)
    free.set()
    found = [future.result(20)[0].text for future in futures]
    assert sizes == [1, 4, 2, 1]
    offline = load(folders["luong"], device="cpu")
    best = {size: offline.translate(tiny.SOURCES, beam_size=size) for size in (1, own.beam_size)}
    assert found[1:5] == [best[size][0] for size in (own.beam_size, 1) * 2]
    assert found[5:] == best[own.beam_size][:3]


def test_a_full_queue_refuses_all_of_a_request_and_a_cancelled_one_leaves_room(held):
    engine, free, _ = held
    own = engine.translator.config.search
    running = engine.translate(wanted(1), own)
    while engine.waiting:
        pass
    futures = engine.translate(wanted(7), own)
    with pytest.raises(RefusedError, match=r"^the queue is full \(7 of 8 texts wait for this model\)") as caught:
        engine.translate(wanted(2), own)
    assert (caught.value.status, caught.value.headers) == (503, {"Retry-After": "1"})
    for future in futures:
        assert future.cancel()
    free.set()
    assert running[0].result(20)
    assert engine.translate(wanted(8), own)[7].result(20)


def test_a_retired_engine_finishes_and_takes_no_more(held):
    engine, free, _ = held
    own = engine.translator.config.search
    futures = [*engine.translate(wanted(6), own), engine.aside(lambda: [7])]
    engine.retire()
    for call in (lambda: engine.translate(wanted(1), own), lambda: engine.aside(lambda: 1)):
        with pytest.raises(RetiredError):
            call()
    free.set()
    assert all(future.result(20) for future in futures)
    engine.join(20)


def test_an_error_goes_to_those_whose_texts_it_met(held):
    engine, free, _ = held
    own = engine.translator.config.search
    futures = engine.translate([Wanted("a", "</s>", 0)], own)  # no token of the vocabulary's text: only text is forced
    engine.translator.search = lambda *a, **k: 1 / 0
    futures = engine.translate([Wanted("a", "", 0)], own)
    free.set()
    with pytest.raises(ZeroDivisionError):
        futures[0].result(20)


def test_many_clients_at_once_get_what_each_gets_alone(folders):
    app, _ = build(settings_for({"luong": folders["luong"]}, batch_size=8))
    alone = load(folders["luong"], device="cpu")
    own = alone.config.search
    kinds = [{}, {"beam_size": 1}, {"n_best": 2}, {"sample": True, "n_best": 2}, {"with_attention": True}]

    def ask(number: int) -> bool:
        kind, text = kinds[number % 5], tiny.SOURCES[number % 6]
        answer = client.post("/v1/translate", json={"text": text, **kind})
        options = changed(own, {key: value for key, value in kind.items() if key != "with_attention"})
        expected = [one.text for one in alone.search([text], options=options)[0]]
        return [one["text"] for one in answer.json()["translations"][0]["outputs"]] == expected

    with TestClient(app) as client, ThreadPoolExecutor(8) as pool:
        assert all(pool.map(ask, range(60)))


def slow(shelf, seconds: float) -> None:
    """Let every search of the default model take a while."""
    import time

    engine = shelf.engine(next(iter(shelf.places)))
    search = engine.translator.search

    def wait(*arguments, **options):
        time.sleep(seconds)
        return search(*arguments, **options)

    engine.translator.search = wait


def test_a_request_that_takes_too_long_is_ended(folders):
    app, shelf = build(settings_for({"luong": folders["luong"]}, time_limit=0.1))
    with TestClient(app) as client:
        slow(shelf, 0.5)
        answer = client.post("/v1/translate", json={"text": "a"})
        assert answer.status_code == 504
        assert answer.json()["error"] == "not done within 0.1 s; send fewer or shorter texts, or a smaller beam"
        stream = client.post("/v1/translate/stream", json={"text": "a\nb"}).text
        assert "event: error" in stream
        assert "not done within 0.1 s" in stream


def test_a_full_queue_is_503_with_retry_after(folders):
    app, shelf = build(settings_for({"luong": folders["luong"]}, queue_size=2, searches=1))
    with TestClient(app) as client, ThreadPoolExecutor(8) as pool:
        slow(shelf, 0.3)
        answers = list(pool.map(lambda _: client.post("/v1/translate", json={"text": "a"}), range(8)))
    assert {answer.status_code for answer in answers} == {200, 503}
    refused = next(answer for answer in answers if answer.status_code == 503)
    assert refused.headers["retry-after"] == "1"


def test_a_document_waits_for_room_instead(folders):
    app, shelf = build(settings_for({"luong": folders["luong"]}, queue_size=2, searches=1))
    with TestClient(app) as client, ThreadPoolExecutor(8) as pool:
        slow(shelf, 0.02)
        bodies = [{"text": "a\nb\nc\nd\ne"}] * 4
        answers = list(pool.map(lambda body: client.post("/v1/translate/stream", json=body).text, bodies))
    assert [answer.count("event: line") for answer in answers] == [5] * 4


def test_when_the_service_ends_it_says_so(folders):
    app, shelf = build(settings_for({"luong": folders["luong"]}))
    with TestClient(app) as client:
        shelf.engine("luong")
        shelf.stop()
        answer = client.post("/v1/translate", json={"text": "a"})
    assert (answer.status_code, answer.json()["error"]) == (503, "the service is ending")


def test_a_client_that_leaves_frees_its_place(folders):
    """Over plain ASGI: the client goes while its text waits."""
    app, shelf = build(settings_for({"luong": folders["luong"]}, searches=1))
    engine = shelf.engine("luong")
    free = Event()
    search = engine.translator.search
    engine.translator.search = lambda *a, **k: free.wait(20) and search(*a, **k)
    first = engine.translate(wanted(1), engine.translator.config.search)
    sent: list[dict] = []

    async def ask() -> None:
        come = [
            {"type": "http.request", "body": b'{"text": "the cat"}', "more_body": False},
            {"type": "http.disconnect"},
        ]

        async def receive():
            if len(come) == 1:
                await asyncio.sleep(0.2)
                assert engine.waiting == 1
            return come.pop(0)

        async def send(message):
            sent.append(message)

        headers = [(b"content-type", b"application/json")]
        scope = {"type": "http", "method": "POST", "path": "/v1/translate", "headers": headers, "query_string": b""}
        scope |= {"root_path": "", "http_version": "1.1", "scheme": "http", "client": ("x", 1), "server": ("x", 1)}
        await app(scope, receive, send)

    asyncio.run(ask())
    assert sent[0]["status"] == 499
    free.set()
    assert first[0].result(20)
    engine.retire()
    engine.join(20)
    assert engine.waiting == 0
