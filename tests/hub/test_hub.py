"""Sharing and fetching models, against a small hub on this machine that speaks the hub's HTTP interface."""

from __future__ import annotations

import base64
import hashlib
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from cli_tools import refusal, works, write
from mirada import loading
from mirada.card import model_card
from mirada.config.serving import ServeConfig
from mirada.errors import ModelFolderError
from mirada.serving.places import places

pytest.importorskip("huggingface_hub")
ONE = pytest.mark.parametrize("model_folder", ["luong"], indirect=True)
SHA = "1" * 40


class Hub:
    """Repositories in memory: one commit each."""

    def __init__(self) -> None:
        self.files: dict[str, dict[str, bytes]] = {}
        self.asked: list[str] = []
        hub = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *arguments: object) -> None:
                """Say nothing."""

            def reply(self, content: bytes, headers: dict[str, str], status: int = 200) -> None:
                self.send_response(status)
                for key, value in {"Content-Length": str(len(content)), **headers}.items():
                    self.send_header(key, value)
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(content)

            def json(self, value: Any, status: int = 200) -> None:
                self.reply(json.dumps(value).encode(), {"Content-Type": "application/json"}, status)

            def do_GET(self) -> None:
                hub.asked.append(self.path)
                path = self.path.split("?")[0]
                repository = "/".join(path.removeprefix("/api/models").split("/")[1:3])
                files = hub.files.get(repository)
                if files is None:
                    self.reply(b"", {"X-Error-Code": "RepoNotFound", "X-Error-Message": "Repository not found"}, 404)
                elif "/resolve/" in path:
                    content = files.get(path.split("/", 5)[5])
                    if content is None:
                        self.reply(b"", {"X-Error-Code": "EntryNotFound"}, 404)
                    else:
                        etag = f'"{hashlib.sha1(content).hexdigest()}"'
                        self.reply(content, {"ETag": etag, "X-Repo-Commit": SHA})
                elif "/tree/" in path:
                    rows = [
                        {"type": "file", "path": name, "size": len(text), "oid": "0"} for name, text in files.items()
                    ]
                    self.json(rows)
                else:
                    siblings = [{"rfilename": name} for name in files]
                    self.json({"id": repository, "modelId": repository, "sha": SHA, "siblings": siblings, "tags": []})

            do_HEAD = do_GET

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                hub.asked.append(self.path)
                if self.path == "/api/repos/create":
                    value = json.loads(body)
                    name = f"{value['organization']}/{value['name']}" if value.get("organization") else value["name"]
                    hub.files.setdefault(name, {})
                    self.json({"url": f"https://huggingface.co/{name}", "id": name})
                elif "/preupload/" in self.path:
                    files = [
                        {"path": one["path"], "uploadMode": "regular", "shouldIgnore": False}
                        for one in json.loads(body)["files"]
                    ]
                    self.json({"files": files})
                elif "/commit/" in self.path:
                    repository = "/".join(self.path.split("/")[3:5])
                    for line in body.decode().splitlines():
                        row = json.loads(line)
                        if row["key"] == "file":
                            hub.files[repository][row["value"]["path"]] = base64.b64decode(row["value"]["content"])
                    self.json({"commitUrl": f"https://huggingface.co/{repository}/commit/{SHA}", "commitOid": SHA})
                else:
                    self.json({})

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Hub]:
    made = Hub()
    monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{made.server.server_port}")
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("HF_TOKEN", "hf_of_the_test")
    yield made
    made.server.shutdown()
    made.server.server_close()


@ONE
def test_a_model_is_shared_and_fetched(hub: Hub, model_folder: Path, tmp_path: Path, monkeypatch) -> None:
    """What comes back translates the same; weights, options and tokenisers are the same bytes; no other file comes."""
    ran = works("push", model_folder, "ana/model", "--lang", "es")
    assert ran.lines == [f"https://huggingface.co/ana/model/commit/{SHA}"]
    shared = hub.files["ana/model"]
    assert {"config.yaml", "model.safetensors", "source.json", "target.json", "README.md"} <= set(shared)
    assert not {".lock", "resume.safetensors"} & set(shared)
    for name in ("config.yaml", "model.safetensors", "source.json"):
        assert shared[name] == (model_folder / name).read_bytes()
    hub.files["ana/model"]["evil.py"] = b"raise SystemExit"
    given = "the red fox\n"
    expected = works("translate", model_folder, given=given).output
    assert works("translate", "hf:ana/model", given=given).output == expected
    assert not list((tmp_path / "cache").rglob("evil.py"))
    assert not any("evil" in path for path in hub.asked)
    # From the cache alone, at the revision that was fetched.
    hub.asked.clear()
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    assert works("translate", f"hf:ana/model@{SHA}", given=given).output == expected
    assert hub.asked == []


@ONE
def test_every_command_takes_a_shared_model(hub: Hub, model_folder: Path, tmp_path: Path) -> None:
    works("push", model_folder, "ana/model")
    line = ["--src", write(tmp_path / "a", ["the red fox"]), "--tgt", write(tmp_path / "b", ["el zorro rojo"])]
    for command in (["score", *line], ["evaluate", *line, "--metrics", "exact"], ["explain", "the red fox"]):
        here, there = (works(command[0], model, *command[1:]) for model in (model_folder, "hf:ana/model"))
        assert here.output.replace(str(model_folder), "") == there.output.replace("hf:ana/model", "")
    (place,) = places(ServeConfig(models=("hf:ana/model",))).values()
    assert (place.name, (place.folder / "model.safetensors").exists()) == ("model", True)


@ONE
def test_python_takes_the_name_alone_but_a_path_is_a_path(hub: Hub, model_folder: Path, tmp_path, monkeypatch) -> None:
    works("push", model_folder, "ana/model")
    expected = loading.load(model_folder).translate(["the red fox"])
    assert loading.load("ana/model").translate(["the red fox"]) == expected
    hub.asked.clear()
    with pytest.raises(ModelFolderError, match="no such model folder"):
        loading.load(Path("ana/model"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ana").mkdir()
    with pytest.raises(ModelFolderError, match="no such model folder"):
        loading.load("ana/model")
    assert hub.asked == []
    with pytest.raises(ModelFolderError, match="the hub does not give it"):
        loading.load("nobody/model")


def test_what_the_hub_has_not_is_one_line(hub: Hub, tmp_path: Path) -> None:
    line = refusal("translate", "hf:nobody/nothing", given="a\n")
    assert line.startswith("nobody/nothing: the hub does not give it (")
    assert refusal("translate", "hf:../../etc", given="a\n") == (
        "'../../etc' is no name of a model on the hub; expected USER/NAME or USER/NAME@REVISION"
    )
    assert refusal("push", tmp_path, "ana/x") == f"{tmp_path}: not a model folder (config.yaml is missing)"


@ONE
def test_a_card_says_what_the_model_is(model_folder: Path) -> None:
    for language, word in (("en", "## Data"), ("es", "## Datos")):
        card = model_card(model_folder, "ana/model", language)
        assert card.startswith("---\nlibrary_name: mirada\n")
        assert word in card
        assert "luong, general, lstm, 1 + 1" in card
        assert 'mirada.load("hf:ana/model")' in card
