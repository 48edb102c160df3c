"""Models come when wanted, go when others need the room, and are replaced without losing a request."""

from __future__ import annotations

import shutil

import pytest
import torch
from fastapi.testclient import TestClient

import tiny
from mirada.errors import ConfigError, MiradaError
from mirada.serving.app import build
from mirada.serving.metrics import Metrics
from mirada.serving.places import places
from mirada.serving.shelf import Shelf, check
from mirada.store import checkpoint
from mirada.translator import load
from serving.conftest import settings_for


def test_models_are_loaded_when_first_wanted_or_at_once(folders):
    app, shelf = build(settings_for(folders))
    with TestClient(app) as client:
        assert [one["loaded"] for one in client.get("/v1/models").json()["models"]] == [False] * 4
        client.post("/v1/translate", json={"text": "a", "model": "luong"})
        assert [one["loaded"] for one in client.get("/v1/models").json()["models"]] == [False, False, True, False]
    app, shelf = build(settings_for({"luong": folders["luong"]}, preload=True))
    with TestClient(app) as client:
        assert client.get("/readyz").status_code == 503
        assert client.get("/readyz").json()["error"] == "loading: luong"
        shelf.preload()
        assert client.get("/readyz").status_code == 200


def test_the_least_recently_used_model_makes_room(folders, monkeypatch):
    settings = settings_for(folders, memory_limit_mb=10)
    shelf = Shelf(places(settings), settings, Metrics())
    monkeypatch.setattr(shelf, "_megabytes", lambda name: 4.0)
    for name in ("classic", "bahdanau"):
        shelf.engine(name)
    shelf.at_hand("classic")
    shelf.engine("luong")
    assert [shelf.loaded(name) for name in folders] == [True, False, True, False]
    shelf.stop()


def test_a_model_that_can_never_fit_is_refused(folders, monkeypatch):
    settings = settings_for(folders, memory_limit_mb=10)
    monkeypatch.setattr(Shelf, "_megabytes", lambda self, name: 12.0)
    with pytest.raises(ConfigError, match=r"^model classic needs 12 MB, memory_limit_mb is 10; raise it, or leave"):
        Shelf(places(settings), settings, Metrics())


def replace(folder, decoder: str, seed: int) -> None:
    """Other weights in the same folder, as a training leaves them."""
    config = checkpoint.read_config(folder)
    sides = checkpoint.read_tokenizers(folder, config)
    torch.manual_seed(seed)
    model = tiny.build_model(config.model, source_vocab=len(sides[0]), target_vocab=len(sides[1]))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.uniform_(-1, 1)
    note = {"metrics": tiny.METRICS, "updates": 4, "best": True}
    checkpoint.write_archive(folder / checkpoint.WEIGHTS, checkpoint.Archive(checkpoint.weights_of(model), note))


def test_a_changed_folder_is_loaded_again_and_a_damaged_one_is_not(folders, tmp_path):
    folder = tmp_path / "luong"
    shutil.copytree(folders["luong"], folder)
    app, shelf = build(settings_for({"luong": folder}))

    def ask(client) -> list[str]:
        found = client.post("/v1/translate", json={"text": tiny.SOURCES}).json()["translations"]
        return [one["text"] for one in found]

    with TestClient(app) as client:
        before, old = ask(client), shelf.engine("luong")
        shelf.refresh()
        assert shelf.engine("luong") is old
        (folder / checkpoint.WEIGHTS).write_bytes(b"damaged")
        shelf.refresh()
        assert ask(client) == before
        replace(folder, "luong", 9)
        shelf.refresh()
        assert ask(client) == load(folder, device="cpu").translate(tiny.SOURCES) != before
        fresh = shelf.engine("luong")
        assert fresh is not old
        shelf.refresh(every=True)  # what SIGHUP asks for
        assert shelf.engine("luong") is not fresh


def test_a_request_that_meets_a_retired_engine_goes_to_the_next(folders):
    app, shelf = build(settings_for({"luong": folders["luong"]}))
    with TestClient(app) as client:
        old = shelf.engine("luong")
        at_hand, first = shelf.at_hand, [old]
        shelf.at_hand = lambda name: first.pop() if first else at_hand(name)
        shelf.refresh(every=True)
        assert client.post("/v1/translate", json={"text": "a"}).status_code == 200


def test_probabilities_that_are_no_numbers_fail_the_check(folders, tmp_path):
    translator = load(folders["luong"], device="cpu")
    with torch.no_grad():
        translator.model.output.bias.fill_(float("nan"))
    settings = settings_for(folders)
    with pytest.raises(MiradaError, match="the model's probabilities are no numbers; train it again, or go back"):
        check(translator, places(settings)["luong"])
