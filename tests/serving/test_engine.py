"""Many at once: shared batches with the results of each alone, a bounded queue, time limits, clients that leave."""

from __future__ import annotations

import asyncio
import time
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from types import SimpleNamespace
from unicodedata import normalize

import pytest
from fastapi.testclient import TestClient

import tiny
from mirada.config.configfile import changed
from mirada.serving.app import build
from mirada.serving.engine import Coming, Engine, Wanted, cancel
from mirada.serving.errors import RefusedError, RetiredError
from mirada.serving.service import Service
from mirada.translator import load
from serving.conftest import settings_for


class Gate:
    """Lets the steps of an engine's model wait; `steps` are the rows of each."""

    def __init__(self, engine: Engine):
        self.free, self.begun, self.steps = Event(), Event(), list[int]()
        decoder = engine.translator.fast_model
        step = decoder.step

        def wait(token, *rest):
            self.steps.append(len(token))
            self.begun.set()
            assert self.free.wait(20)
            return step(token, *rest)

        decoder.step = wait


@pytest.fixture
def held(folders):
    """An engine whose searches wait until they are let go."""
    engine = Engine(load(folders["luong"], device="cpu", workers=1), queue_size=8, batch_size=4)
    gate = Gate(engine)
    yield engine, gate
    gate.free.set()
    engine.retire()


def wanted(count: int, first: int = 0) -> list[Wanted]:
    return [Wanted(tiny.SOURCES[i % 6], "", i) for i in range(first, first + count)]


def texts(coming: list[Coming]) -> list[str]:
    return [one.read(one.future.result(20))[0].text for one in coming]


def test_what_waits_with_equal_options_shares_steps(held, folders):
    engine, gate = held
    own = changed(engine.translator.config.search, {"beam_size": 1})
    coming = engine.translate(wanted(1), own)
    gate.begun.wait(20)
    for number, options in enumerate((own, changed(own, {"beam_size": 3}), own), start=1):
        coming += engine.translate(wanted(1, number), options)
    assert engine.waiting == 3
    gate.free.set()
    offline = load(folders["luong"], device="cpu")
    best = {size: offline.translate(tiny.SOURCES, beam_size=size) for size in (1, 3)}
    assert texts(coming) == [best[1][0], best[1][1], best[3][2], best[1][3]]
    assert 3 in gate.steps, "those with the same options"


def test_a_full_queue_refuses_all_of_a_request_and_a_cancelled_one_leaves_room(held):
    engine, gate = held
    own = changed(engine.translator.config.search, {"sample": True})  # no two are equal
    running = engine.translate(wanted(4), own)
    gate.begun.wait(20)
    coming = engine.translate(wanted(7, 4), own)
    with pytest.raises(RefusedError, match=r"^the queue is full \(7 of 8 texts wait for this model\)") as caught:
        engine.translate(wanted(2, 11), own)
    assert (caught.value.status, caught.value.headers) == (503, {"Retry-After": "1"})
    for one in coming:
        assert one.future.cancel()
    assert engine.waiting == 0
    more = engine.translate(wanted(8, 11), own)
    gate.free.set()
    assert len(texts([*running, *more])) == 12


def test_a_text_that_nobody_waits_for_leaves_the_batch(held):
    engine, gate = held
    long = changed(engine.translator.config.search, {"beam_size": 1, "min_output_length": 400})
    coming = engine.translate(wanted(2), long)
    gate.begun.wait(20)
    cancel([one.future for one in coming])
    coming = engine.translate(wanted(1), changed(long, {"min_output_length": 0}))
    gate.free.set()
    assert len(texts(coming)) == 1
    assert len(gate.steps) < 200


def test_a_text_without_tokens_waits_for_nobody(held):
    engine, _ = held
    [empty] = engine.translate([Wanted("  ", "", 0)], engine.translator.config.search)
    assert [one.text for one in empty.read(empty.future.result(0))] == [""]


def test_a_retired_engine_finishes_and_takes_no_more(held):
    engine, gate = held
    own = engine.translator.config.search
    coming, aside = engine.translate(wanted(6), own), engine.aside(lambda: [7])
    engine.retire()
    for call in (lambda: engine.translate(wanted(1), own), lambda: engine.aside(lambda: 1)):
        with pytest.raises(RetiredError):
            call()
    gate.free.set()
    assert len(texts(coming)) == 6
    assert aside.result(20) == [7]


def test_an_error_goes_to_those_whose_texts_it_met(held):
    engine, gate = held
    own = engine.translator.config.search
    decoder = engine.translator.fast_model
    encode = decoder.encode
    decoder.encode = lambda *a: 1 / 0
    [coming] = engine.translate(wanted(1), own)
    with pytest.raises(ZeroDivisionError):
        coming.future.result(20)
    decoder.encode = encode
    gate.free.set()
    assert len(texts(engine.translate(wanted(1), own))) == 1


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
    """Let every step of the default model take a while."""
    decoder = shelf.engine(next(iter(shelf.places))).translator.fast_model
    step = decoder.step

    def wait(*arguments):
        time.sleep(seconds)
        return step(*arguments)

    decoder.step = wait


def test_a_request_that_takes_too_long_is_ended(folders):
    app, shelf = build(settings_for({"luong": folders["luong"]}, time_limit=0.1))
    with TestClient(app) as client:
        slow(shelf, 0.2)
        answer = client.post("/v1/translate", json={"text": "a"})
        assert answer.status_code == 504
        assert answer.json()["error"] == "not done within 0.1 s; send fewer or shorter texts, or a smaller beam"
        stream = client.post("/v1/translate/stream", json={"text": "a\nb"}).text
        assert "event: error" in stream
        assert "not done within 0.1 s" in stream


def test_a_full_queue_is_503_with_retry_after(folders):
    app, shelf = build(settings_for({"luong": folders["luong"]}, queue_size=2, batch_size=1))
    with TestClient(app) as client, ThreadPoolExecutor(8) as pool:
        slow(shelf, 0.1)
        answers = list(pool.map(lambda i: client.post("/v1/translate", json={"text": "a" * (i + 1)}), range(8)))
    assert {answer.status_code for answer in answers} == {200, 503}
    refused = next(answer for answer in answers if answer.status_code == 503)
    assert refused.headers["retry-after"] == "1"


def test_a_document_waits_for_room_instead(folders):
    app, shelf = build(settings_for({"luong": folders["luong"]}, queue_size=2, batch_size=1))
    with TestClient(app) as client, ThreadPoolExecutor(8) as pool:
        slow(shelf, 0.001)
        bodies = [{"text": "\n".join(f"{a}{b}" for b in "abcde"), "beam_size": 1} for a in "abcd"]
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
    app, shelf = build(settings_for({"luong": folders["luong"]}, batch_size=1))
    engine = shelf.engine("luong")
    gate = Gate(engine)
    [first] = engine.translate(wanted(1, 1), engine.translator.config.search)
    gate.begun.wait(20)
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
    assert engine.waiting == 0
    gate.free.set()
    assert texts([first])
    engine.retire()


@pytest.mark.parametrize(("text", "refused"), [("ﷺﷺ", True), ("ab", False), ("a" * 31, True)])
def test_texts_whose_normal_form_is_longer_are_still_cut_to_be_counted(text, refused):
    """U+FDFA is one character, and eighteen once it is normalised."""
    cutting = SimpleNamespace(pieces=lambda texts: [list(normalize("NFKC", one)) for one in texts])
    engine = SimpleNamespace(translator=SimpleNamespace(source_tokenizer=cutting))
    limits = SimpleNamespace(max_texts=1, max_tokens=30)
    check = Service(None, limits, None).check_texts(engine, [text])
    if refused:
        with pytest.raises(RefusedError, match=r"^text 1: expected at most 30 tokens, got \d+$"):
            asyncio.run(check)
    else:
        asyncio.run(check)
