"""Scores, traces, models, streams, health, counters, documentation, LibreTranslate."""

from __future__ import annotations

import json
import re

import pytest
from fastapi.testclient import TestClient

import tiny
from cli_tools import works
from mirada.config.options import SearchConfig
from mirada.serving.app import build
from mirada.translator import load
from serving.conftest import settings_for


def test_scores_are_those_of_the_translator(client, folders):
    expected = load(folders["luong"], device="cpu").score(tiny.SOURCES, tiny.TARGETS, with_attention=True)
    body = {"model": "luong", "source": tiny.SOURCES, "target": tiny.TARGETS, "with_attention": True}
    found = client.post("/v1/score", json=body).json()["scores"]
    assert [one["log_probability"] for one in found] == pytest.approx(
        [one.log_probability for one in expected], abs=1e-4
    )
    assert found[0]["attention"] == [pytest.approx(row, abs=1e-5) for row in expected[0].attention.tolist()]
    one = client.post("/v1/score", json={"model": "luong", "source": tiny.SOURCES[0], "target": tiny.TARGETS[0]}).json()
    assert one["scores"][0]["tokens"] == found[0]["tokens"]
    assert "attention" not in one["scores"][0]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"source": ["a", "b"], "target": "c"}, "target: expected one for each of 2 sources, got 1"),
        ({"source": "a", "target": "c " * 501}, "target 1: expected at most 500 tokens, got"),
        ({"source": "a", "target": "c", "with_attention": True}, "with_attention: a classic model has no attention"),
    ],
)
def test_pairs_that_cannot_be_scored(client, body, message):
    answer = client.post("/v1/score", json=body)
    assert answer.status_code == 422
    assert answer.json()["error"].startswith(message)


@pytest.mark.parametrize("name", tiny.MODELS)
def test_a_trace_is_what_the_command_writes(client, folders, name):
    offline = json.loads(works("explain", folders[name], tiny.SOURCES[0], "--format", "json").output)
    body = {"model": name, "text": tiny.SOURCES[0], "logits": True}
    online = client.post("/v1/explain", json=body).json()
    assert online.keys() == offline.keys()
    for mine, theirs in zip(online["traces"], offline["traces"], strict=True):
        limit = mine["asked"]["search"].pop("max_input_length")  # the service's own
        assert limit <= theirs["asked"]["search"].pop("max_input_length")
        assert mine == theirs
    short = client.post("/v1/explain", json={**body, "logits": False}).json()
    assert not any("logits" in step for step in short["traces"][0]["steps"])


def test_interventions_add_the_traces_after_them(client):
    body = {"model": "luong", "text": tiny.SOURCES[0], "attention": "uniform", "from_step": 1}
    before, after = client.post("/v1/explain", json=body).json()["traces"]
    assert (before["asked"]["edits"], after["asked"]["edits"]["attention"]) == (None, "uniform")
    shuffled = client.post("/v1/explain", json={**body, "attention": "shuffled", "shuffle_seed": 3}).json()["traces"][1]
    assert shuffled["asked"]["edits"]["seed"] == 3
    fed = client.post("/v1/explain", json={"model": "luong", "text": "a", "no_input_feeding": True}).json()["traces"]
    assert fed[1]["asked"]["edits"]["no_input_feeding"]
    head = client.post("/v1/explain", json={"model": "transformer", "text": "a", "drop_head": "1.2"}).json()["traces"]
    assert head[1]["asked"]["edits"]["drop_head"] == [1, 2]


def test_weights_can_be_given(client):
    body = {"model": "luong", "text": tiny.SOURCES[0], "from_step": 2}
    plain = client.post("/v1/explain", json={"model": "luong", "text": body["text"]}).json()["traces"][0]
    count = len(plain["source"]["ids"])
    _, after = client.post("/v1/explain", json={**body, "weights": [2.0] + [0.0] * (count - 1)}).json()["traces"]
    assert after["attention"][1] == [1.0] + [0.0] * (count - 1)
    for wrong, message in (
        ([0.0] * count, "weights: expected numbers that add up to more than 0, and no attention beside them"),
        ([1.0, 1.0], f"weights: expected one for each of {count} source tokens, got 2"),
        ([-1.0], "weights.0: input should be greater than or equal to 0 (got -1.0)"),
    ):
        answer = client.post("/v1/explain", json={**body, "weights": wrong})
        assert (answer.status_code, answer.json()["error"]) == (422, message)


def test_a_beginning_can_be_given_as_ids_of_a_trace(client):
    body = {"model": "luong", "text": tiny.SOURCES[0], "top": 3}
    free = client.post("/v1/explain", json=body).json()["traces"][0]
    other = next(choice for choice in free["steps"][0]["top"] if not choice["chosen"] and choice["id"] > 3)
    forced = client.post("/v1/explain", json={**body, "force_ids": [other["id"]]}).json()["traces"][0]
    assert forced["output"]["ids"][0] == other["id"]
    assert [step["given"] for step in forced["steps"]][:2] == [True, False]
    for ids, message in (
        ([10_000], "force_ids: expected ids from 0 to 59, got 10000"),
        ([2], "token 1 of the forced prefix is the special token"),
    ):
        answer = client.post("/v1/explain", json={**body, "force_ids": ids})
        assert answer.status_code == 422
        assert message in answer.json()["error"]
    both = client.post("/v1/explain", json={**body, "force_ids": [7], "force": "a"})
    assert both.json()["error"] == "force_ids: it excludes reference and force"


def test_a_page_of_its_own(client):
    answer = client.post("/v1/explain/page", json={"model": "bahdanau", "text": tiny.SOURCES[0]})
    assert answer.headers["content-disposition"] == 'attachment; filename="mirada.html"'
    traces = json.loads(re.search(r'id="traces">(.*?)</script>', answer.text, re.S)[1])
    assert traces == client.post("/v1/explain", json={"model": "bahdanau", "text": tiny.SOURCES[0]}).json()["traces"]
    page = client.get("/")
    for name in re.findall(r'(?:src|href)="(/static/[^"]+)"', page.text):
        assert client.get(name).status_code == 200
    assert client.get("/static/app.js").headers["content-type"].startswith("text/javascript")


def test_given_outputs_are_traced(client):
    body = {"model": "luong", "text": tiny.SOURCES[0], "top": 2, "beam_size": 2, "n_best": 2, "alpha": 1.0}
    given = client.post("/v1/explain", json={**body, "reference": tiny.TARGETS[0]}).json()["traces"][0]
    assert given["output"]["text"] == tiny.TARGETS[0]
    assert (len(given["steps"][0]["top"]), given["output"]["alpha"]) == (2, 1.0)
    begun = client.post("/v1/explain", json={**body, "force": "el", "max_output_length": 3}).json()["traces"]
    assert len(begun) == 2
    assert all(trace["output"]["text"].startswith("el") and len(trace["steps"]) <= 4 for trace in begun)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"text": ""}, "the text is empty, so there is nothing to look into; give a sentence"),
        ({"text": "a", "attention": "uniform"}, "--attention: a classic model has no attention"),
        ({"text": "a", "top": 99}, "top: input should be less than or equal to 50 (got 99)"),
        ({"text": "a", "reference": "b", "force": "c"}, "--reference and --force exclude each other"),
    ],
)
def test_what_cannot_be_traced(client, body, message):
    answer = client.post("/v1/explain", json=body)
    assert answer.status_code == 422
    assert answer.json()["error"].startswith(message)


def test_models_are_described(client):
    found = client.get("/v1/models").json()["models"]
    assert [one["name"] for one in found] == list(tiny.MODELS)
    luong = found[2]
    assert (luong["source"], luong["target"]) == ("en", "es")
    assert (luong["system"]["decoder"], luong["system"]["score"]) == ("luong", "general")
    assert luong["parameters"] > 1000
    assert luong["metrics"] == tiny.METRICS
    assert (found[0]["source"], found[0]["target"]) == ("und", "und")


# Streams


def events(client, **body) -> list[tuple[str, dict]]:
    with client.stream("POST", "/v1/translate/stream", json=body) as answer:
        assert answer.status_code == 200
        assert answer.headers["content-type"].startswith("text/event-stream")
        text = "".join(answer.iter_text())
    return [(kind, json.loads(data)) for kind, data in re.findall(r"event: (\w+)\ndata: (.*)\n\n", text)]


def test_a_document_comes_line_by_line_in_order(client, folders):
    lines = [*tiny.SOURCES, ""] * 30
    offline = load(folders["bahdanau"], device="cpu").translate(lines)
    *found, end = events(client, model="bahdanau", text="\n".join(lines))
    assert end == ("end", {})
    assert [(kind, one["line"], one["text"]) for kind, one in found] == [
        ("line", number, text) for number, text in enumerate(offline, start=1)
    ]


@pytest.mark.parametrize("name", tiny.MODELS)
@pytest.mark.parametrize(
    "options", [{"beam_size": 1}, {"beam_size": 3}, {"beam_size": 1, "max_output_length": 2}, {"prefix": "el"}]
)
def test_steps_are_those_of_the_search(client, folders, name, options):
    translator = load(folders[name], device="cpu")
    search = {key: value for key, value in options.items() if key != "prefix"}
    expected = translator.search(
        [tiny.SOURCES[1]],
        options=SearchConfig(**{**translator.config.search.model_dump(), **search}),
        prefixes=[options.get("prefix", "")],
        with_attention=name != "classic",
    )[0][0]
    source, *steps, done, end = events(client, model=name, text=tiny.SOURCES[1], steps=True, **options)
    assert source[1]["tokens"] == list(expected.source_tokens)
    assert [step["token"] for _, step in steps] == list(expected.tokens)
    assert (done[1]["text"], end[0]) == (expected.text, "end")
    if expected.attention is not None:
        assert [step["attention"] for _, step in steps] == [
            pytest.approx(row, abs=1e-4) for row in expected.attention.tolist()
        ]
    assert [step["forced"] for _, step in steps][:1] == ["prefix" in options]


def test_a_refusal_in_a_stream_is_an_event(client):
    kind, values = events(client, text="", steps=True)[-1]
    assert (kind, values["error"]) == ("error", "the text is empty, so there is nothing to look into; give a sentence")
    answer = client.post("/v1/translate/stream", json={"text": "a\nb", "prefix": "c"})
    assert answer.json()["error"] == "prefix: it goes with steps true, where the text is one sentence"
    answer = client.post("/v1/translate/stream", json={"text": "\n" * 10_000})
    assert answer.json()["error"] == "text: expected at most 10000 lines, got 10001"


# The rest


def test_health_counters_and_documentation(client):
    assert client.get("/healthz").json() == {"status": "ok"}
    assert client.get("/readyz").json() == {"status": "ready"}
    client.post("/v1/translate", json={"text": tiny.SOURCES, "model": "luong"})
    counted = client.get("/metrics").text
    assert 'mirada_requests_total{endpoint="/v1/translate",status="200"}' in counted
    for name in ("mirada_batch_size_bucket", "mirada_tokens_total", "mirada_queue", "mirada_request_seconds_bucket"):
        assert name in counted
    docs = client.get("/docs").text
    assert all(path in docs for path in ("POST /v1/translate", "GET /v1/models", "POST /translate", "beam_size"))
    assert not re.search(r"""(src|href)=["']?(https?:)?//""", docs)
    assert "/v1/explain" in client.get("/openapi.json").json()["paths"]


def test_libretranslate(client, folders):
    offline = load(folders["luong"], device="cpu").translate(tiny.SOURCES)
    body = {"q": tiny.SOURCES, "source": "en", "target": "es"}
    assert client.post("/translate", json=body).json() == {"translatedText": offline}
    one = {**body, "q": tiny.SOURCES[0], "source": "auto", "format": "text", "alternatives": 2}
    answer = client.post("/translate", data={key: str(value) for key, value in one.items()})
    assert answer.json()["translatedText"] == offline[0]
    assert len(answer.json()["alternatives"]) == 2
    assert {"code": "en", "name": "English", "targets": ["es"]} in client.get("/languages").json()
    wrong = client.post("/translate", json={**body, "target": "xx"})
    assert wrong.status_code == 400
    assert wrong.json()["error"] == "no served model goes from 'en' to 'xx'; see GET /languages"


def test_unknown_paths_and_methods(client):
    for method, path, status in (
        ("GET", "/nothing", 404),
        ("GET", "/v1/translate", 405),
        ("GET", "/static/../app.py", 404),
    ):
        answer = client.request(method, path)
        assert (answer.status_code, set(answer.json())) == (status, {"error", "id"})


def test_settings_that_cannot_be_served(folders, tmp_path):
    from mirada.errors import ConfigError, ModelFolderError

    folder = folders["luong"]
    for options, message in (
        ({"models": ()}, "models: none is given"),
        ({"models": (str(folder), str(folder))}, "models: two are named 'luong'"),
        ({"languages": ("luong=en",)}, "languages: expected NAME=SOURCE-TARGET"),
        ({"token_file": str(tmp_path / "none")}, "cannot be read"),
        ({"memory_limit_mb": 1, "models": (f"big={folder}",)}, None),
    ):
        if message:
            with pytest.raises(ConfigError, match=re.escape(message)):
                build(settings_for({"luong": folder}, **options))
    with pytest.raises(ModelFolderError):
        build(settings_for({"x": tmp_path / "none"}))


def test_unexpected_errors_tell_nothing_of_the_inside(folders, monkeypatch):
    app, shelf = build(settings_for({"luong": folders["luong"]}))
    with TestClient(app, raise_server_exceptions=False) as client:
        engine = shelf.engine("luong")
        monkeypatch.setattr(engine.translator, "read_back", lambda *a, **k: 1 / 0)
        answer = client.post("/v1/translate", json={"text": "a"})
    assert answer.status_code == 500
    assert answer.json()["error"] == "an error inside the service; its log has it under this id"
