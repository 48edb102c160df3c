"""The gate: tokens, sizes, what is no JSON, headers, and a log that knows ids and not texts."""

from __future__ import annotations

import json
import logging

import pytest
from fastapi.testclient import TestClient

import tiny
from mirada.serving.app import build
from mirada.serving.guard import POLICY, read_tokens
from mirada.serving.logs import Lines
from serving.conftest import settings_for

JSON = {"Content-Type": "application/json"}


@pytest.fixture(scope="module")
def small(folders, tmp_path_factory):
    """A service with tokens, an allowed origin and small limits."""
    file = tmp_path_factory.mktemp("tokens") / "tokens"
    file.write_text("# for tests\nfirst\n\nsecond-ñ\n", encoding="utf-8")
    app, _ = build(
        settings_for(
            {"luong": folders["luong"]},
            token_file=str(file),
            cors_origins=("https://school.example",),
            max_body_bytes=1000,
            max_texts=2,
            languages=("luong=en-es",),
        )
    )
    with TestClient(app) as client:
        yield client


@pytest.mark.parametrize(
    ("content", "headers", "status", "message"),
    [
        (b"{", JSON, 400, "the body is no JSON: "),
        (b"", JSON, 400, "the body is no JSON: "),
        (b'{"text": NaN}', JSON, 400, "the body is no JSON: NaN is no number of JSON"),
        (b'{"alpha": 1' + b"0" * 5000 + b"}", JSON, 400, "the body is no JSON: "),
        (b'{"text": "\xff"}', JSON, 400, "the body is not valid UTF-8 (byte 11)"),
        (b"[" * 100_000, JSON, 400, "the body is nested too deep"),
        (b'{"text": "a"}', {"Content-Type": "text/plain"}, 415, "expected Content-Type: application/json"),
        (b"text=a", {"Content-Type": "application/x-www-form-urlencoded"}, 415, "expected Content-Type: application"),
        (b"x" * 1_000_001, JSON, 413, "the body is larger than 1,000,000 bytes; send fewer or shorter texts a request"),
        (b"[1]", JSON, 422, "body: input should be a valid dictionary"),
    ],
)  # fmt: skip
def test_bodies_that_are_refused(client, content, headers, status, message):
    answer = client.post("/v1/translate", content=content, headers=headers)
    assert answer.status_code == status, answer.text
    assert answer.json()["error"].startswith(message)


def test_a_body_without_a_length_is_counted_as_it_comes(small):
    def parts():
        yield from [b"x" * 100] * 20

    headers = {**JSON, "Authorization": "Bearer first"}
    assert small.post("/v1/translate", content=parts(), headers=headers).status_code == 413


@pytest.mark.parametrize("token", ["first", "second-ñ"])
def test_a_known_token_opens(small, token):
    headers = {"Authorization": f"Bearer {token}".encode()}
    assert small.get("/v1/models", headers=headers).status_code == 200
    libre = {"q": "the cat", "source": "en", "target": "es"}
    assert small.post("/translate", json=libre, headers=headers).status_code == 200


def test_libretranslate_sends_the_token_in_the_body(small):
    libre = {"q": "the cat", "source": "en", "target": "es"}
    assert small.post("/translate", json={**libre, "api_key": "first"}).status_code == 200
    assert small.post("/translate", json={**libre, "api_key": "wrong"}).status_code == 401
    assert small.post("/translate", json=libre).status_code == 401


@pytest.mark.parametrize("authorization", ["", "Bearer", "Bearer wrong", "Basic first", "first"])
def test_without_one_nothing_is_told(small, authorization):
    for path in ("/v1/models", "/metrics", "/languages"):
        answer = small.get(path, headers={"Authorization": authorization} if authorization else {})
        assert answer.status_code == 401
        assert answer.headers["www-authenticate"] == "Bearer"
        assert answer.json()["error"] == "a token is needed: Authorization: Bearer TOKEN"
    for path in ("/", "/docs", "/healthz", "/readyz", "/openapi.json"):
        assert small.get(path).status_code == 200


def test_tokens_are_lines_without_comments():
    assert read_tokens(" a \n# b\n\nc\n") == (b"a", b"c")


def test_the_number_of_texts_is_limited(small):
    headers = {"Authorization": "Bearer first"}
    answer = small.post("/v1/translate", json={"text": ["a"] * 3}, headers=headers)
    assert answer.json()["error"] == "text: expected at most 2 texts, got 3; use several requests"


def test_only_listed_origins_may_call(client, small):
    ask = {"Origin": "https://school.example", "Access-Control-Request-Method": "POST"}
    assert small.options("/v1/translate", headers=ask).headers["access-control-allow-origin"] == ask["Origin"]
    other = {**ask, "Origin": "https://evil.example"}
    assert "access-control-allow-origin" not in small.options("/v1/translate", headers=other).headers
    assert "access-control-allow-origin" not in client.get("/healthz", headers=ask).headers


def test_every_answer_has_the_security_headers(client):
    for path in ("/", "/docs", "/healthz", "/nothing", "/static/docs.css"):
        headers = client.get(path).headers
        assert headers["content-security-policy"] == POLICY
        assert (headers["x-content-type-options"], headers["x-frame-options"]) == ("nosniff", "DENY")
    assert "unsafe" not in POLICY


def test_a_request_keeps_the_id_it_brings_if_that_is_one(client):
    assert client.get("/healthz", headers={"X-Request-Id": "a-1_2.B"}).headers["x-request-id"] == "a-1_2.B"
    made = client.get("/healthz", headers={"X-Request-Id": "a b"}).headers["x-request-id"]
    assert len(made) == 16


@pytest.fixture
def logged():
    """The records of the service's log, whose own handlers other tests may have set."""
    records = []
    handler = logging.Handler()
    handler.emit = records.append
    logger = logging.getLogger("mirada.serve")
    logger.addHandler(handler)
    level = logger.level
    logger.setLevel(logging.INFO)
    yield records
    logger.removeHandler(handler)
    logger.setLevel(level)


@pytest.mark.parametrize("shown", [False, True])
def test_texts_are_in_the_log_only_if_asked_for(folders, logged, shown):
    app, _ = build(settings_for({"luong": folders["luong"]}, log_texts=shown))
    with TestClient(app) as client:
        answer = client.post("/v1/translate", json={"text": tiny.SOURCES[0]})
    lines = {kind: [Lines(as_json=kind).format(record) for record in logged] for kind in (True, False)}
    line = next(line for line in lines[True] if '"message": "request"' in line)
    found = json.loads(line)
    assert (found["id"], found["status"], found["model"]) == (answer.headers["x-request-id"], 200, "luong")
    assert found["texts"] == 1
    assert all((tiny.SOURCES[0] in "".join(lines[kind])) is shown for kind in lines)
    assert f'id="{found["id"]}"' in "".join(lines[False])


def test_a_line_of_the_log_is_one_line():
    record = logging.LogRecord("x", logging.INFO, "", 0, "a\nb\x1b[31m", (), None)
    assert Lines(as_json=False).format(record).endswith(r"info a\nb\x1b[31m")
