"""POST /v1/translate gives what the same options give offline, and refuses in one clear line what it cannot use."""

from __future__ import annotations

from typing import Any

import pytest

import tiny
from mirada.config.configfile import changed
from mirada.config.options import SearchConfig
from mirada.serving.schemas import StreamRequest, TranslateRequest
from mirada.translator import load

ALL: dict[str, Any] = {
    "beam_size": 2,
    "n_best": 2,
    "alpha": 0.0,
    "max_output_length": 4,
    "min_output_length": 3,
    "no_repeat_ngram_size": 1,
    "replace_unk": True,
    "sample": True,
    "temperature": 0.5,
    "top_k": 3,
    "top_p": 0.5,
    "sample_seed": 7,
}
NOT_OPTIONS = {"text", "model", "prefix", "with_scores", "with_attention"}


def outputs(client, **body: Any) -> list[list[dict]]:
    answer = client.post("/v1/translate", json=body)
    assert answer.status_code == 200, answer.text
    return [one["outputs"] for one in answer.json()["translations"]]


@pytest.mark.parametrize("name", tiny.MODELS)
def test_answers_are_those_of_the_translator(client, folders, name):
    texts = [*tiny.SOURCES, "", "x" * 40]
    offline = load(folders[name], device="cpu").translate(texts)
    assert [found[0]["text"] for found in outputs(client, model=name, text=texts)] == offline
    assert [outputs(client, model=name, text=text)[0][0]["text"] for text in texts] == offline


@pytest.mark.parametrize("option", ALL)
def test_every_option_acts_as_offline(client, folders, option):
    values = {option: ALL[option]} | (
        {"sample": True} if option in ("temperature", "top_k", "top_p", "sample_seed") else {}
    )
    translator = load(folders["luong"], device="cpu")
    options = changed(translator.config.search, values)
    offline = translator.search(tiny.SOURCES, options=options)
    online = outputs(client, model="luong", text=tiny.SOURCES, **values)
    assert [[one["text"] for one in found] for found in online] == [[one.text for one in found] for found in offline]


def test_every_option_of_a_request_is_one_of_the_search_and_tried_here():
    assert set(TranslateRequest.model_fields) - NOT_OPTIONS == set(ALL)
    assert set(ALL) <= set(SearchConfig.model_fields)
    assert set(StreamRequest.model_fields) - NOT_OPTIONS - {"steps"} <= set(ALL)


def test_prefixes(client, folders):
    offline = load(folders["luong"], device="cpu").search(tiny.SOURCES[:2], prefixes=["el gato", "un"])
    online = outputs(client, model="luong", text=tiny.SOURCES[:2], prefix=["el gato", "un"])
    assert [found[0]["text"] for found in online] == [found[0].text for found in offline]
    assert outputs(client, model="luong", text=tiny.SOURCES[0], prefix="el gato")[0] == online[0]


def test_scores_and_attention_are_given_where_asked_for(client, folders):
    expected = load(folders["bahdanau"], device="cpu").search(tiny.SOURCES[:1], with_attention=True)[0][0]
    assert outputs(client, model="bahdanau", text=tiny.SOURCES[0]) == [
        [{"text": expected.text, "finished": expected.finished}]
    ]
    found = outputs(client, model="bahdanau", text=tiny.SOURCES[0], with_scores=True, with_attention=True)[0][0]
    assert found["tokens"] == list(expected.tokens)
    assert found["source_tokens"] == list(expected.source_tokens)
    assert found["score"] == pytest.approx(expected.score, abs=1e-5)
    assert sum(found["token_log_probabilities"]) == pytest.approx(found["log_probability"], abs=1e-5)
    assert found["attention"] == [pytest.approx(row, abs=1e-5) for row in expected.attention.tolist()]
    assert all(sum(row) == pytest.approx(1, abs=1e-4) for row in found["attention"])


def test_no_texts_give_no_translations(client):
    answer = client.post("/v1/translate", json={"text": [], "sample": True})
    assert (answer.status_code, answer.json()["translations"]) == (200, [])
    libre = client.post("/translate", json={"q": [], "source": "en", "target": "es"})
    assert (libre.status_code, libre.json()["translatedText"]) == (200, [])


def test_the_first_model_is_the_default(client):
    assert client.post("/v1/translate", json={"text": "the cat"}).json()["model"] == next(iter(tiny.MODELS))


@pytest.mark.parametrize(
    ("body", "status", "message"),
    [
        ({}, 422, "text: field required"),
        ({"text": 7}, 422, "text: input should be a valid string (got 7)"),
        ({"text": "a", "beam": 3}, 422, "beam: unknown key"),
        ({"text": "a", "model": "../../etc"}, 404, "model '../../etc' is not served; GET /v1/models"),
        ({"text": "a", "beam_size": 0}, 422, "beam_size: input should be greater than or equal to 1 (got 0)"),
        ({"text": "a", "beam_size": 21}, 422, "beam_size: expected at most 20, got 21"),
        ({"text": "a", "n_best": 21, "sample": True}, 422, "n_best: expected at most 20, got 21"),
        ({"text": "a", "beam_size": 2, "n_best": 3}, 422, "n_best 3 is larger than beam_size 2; n_best must"),
        ({"text": "a", "max_output_length": 501}, 422, "max_output_length: expected at most 500, got 501"),
        ({"text": "a " * 501}, 422, "text 1: expected at most 500 tokens, got"),
        ({"text": "a" * 40_000}, 422, "text 1: expected at most 500 tokens, got 40000 characters"),
        ({"text": ["a"] * 257}, 422, "text: expected at most 256 texts, got 257; use several requests"),
        ({"text": ["a", "b"], "prefix": ["x"]}, 422, "prefix: expected one, or one for each of 2 texts, got 1"),
        ({"text": "a\0b"}, 422, "text: expected text, got the character U+0000"),
        ({"text": "a", "with_attention": True, "model": "classic"}, 422, "with_attention: a classic model has no"),
        ({"text": "a", "alpha": -1}, 422, "alpha: input should be greater than or equal to 0 (got -1.0)"),
    ],
)  # fmt: skip
def test_what_cannot_be_used_is_refused_in_one_line(client, body, status, message):
    answer = client.post("/v1/translate", json=body)
    assert (answer.status_code, set(answer.json())) == (status, {"error", "id"})
    assert message in answer.json()["error"]
    assert "\n" not in answer.json()["error"]
    assert answer.headers["x-request-id"] == answer.json()["id"]


def test_half_a_surrogate_pair_is_no_text(client):
    answer = client.post("/v1/translate", content=b'{"text": "\\ud800"}', headers={"Content-Type": "application/json"})
    assert answer.status_code == 422
    assert "half a surrogate pair" in answer.json()["error"]
