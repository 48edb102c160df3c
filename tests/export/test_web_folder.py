"""`mirada export --to web`: the folder, and where ONNX Runtime for the Web comes from."""

from __future__ import annotations

import hashlib
import io
import json
import re
import tarfile
from pathlib import Path
from urllib.error import URLError

import pytest

from cli_tools import refusal, works
from mirada.export import web, web_runtime
from mirada.export.web import OWN, SHARED
from mirada.export.web_runtime import ADVICE, FILES, NAME

ONE = pytest.mark.parametrize("model_folder", ["luong"], indirect=True)
CONTENTS = {name: name.encode() for name in FILES}  # in the place of 14 MB


@pytest.fixture
def fetched(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    """A small package on npm, an empty cache, and what was asked of npm."""
    asked: list[str] = []

    def fetch(address: str, timeout: int) -> io.BytesIO:
        asked.append(address)
        return io.BytesIO(package(CONTENTS))

    digests = {name: hashlib.sha256(content).hexdigest() for name, content in CONTENTS.items()}
    monkeypatch.setattr(web_runtime, "FILES", digests)
    monkeypatch.setattr(web_runtime.urllib.request, "urlopen", fetch)
    monkeypatch.setenv("MIRADA_CACHE", str(tmp_path / "cache"))
    return asked


def package(contents: dict[str, bytes]) -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w:gz") as archive:
        for name, content in {"../../evil": b"no", **contents}.items():
            member = tarfile.TarInfo(f"package/dist/{name}")
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return made.getvalue()


@ONE
def test_a_folder_is_whole_and_tells_nothing_of_where_it_comes_from(
    model_folder: Path, tmp_path: Path, fetched: list[str]
) -> None:
    ran = works("export", model_folder, "--to", "web", "--precision", "int8", "--out", tmp_path / "page")
    assert re.search(r"page: 0\.\d MB of model in int8, checked: .* look at it: python -m http\.server -d ", ran.errors)
    page = tmp_path / "page"
    graphs = {f"model/{name}" for name in ("encode.onnx", "start.onnx", "step.onnx", "source.json", "target.json")}
    runtime = {f"runtime/{name}" for name in (*FILES, "LICENSE", "ThirdPartyNotices.txt")}
    files = {str(path.relative_to(page)) for path in page.rglob("*") if path.is_file()}
    assert files == {"about.json", *OWN, *SHARED, *graphs, *runtime}
    assert b"MIT License" in (page / "runtime/LICENSE").read_bytes()
    about = json.loads((page / "about.json").read_text())
    assert (about["system"], about["parts"], about["search"]["beam_size"]) == ("luong · general · lstm · int8", 1, 3)
    assert about["tokenizers"] == {"source": "bpe", "target": "bpe"}
    assert not any(str(model_folder.parent).encode() in (page / name).read_bytes() for name in files)


@ONE
def test_the_runtime_is_fetched_once_and_may_be_given(model_folder: Path, tmp_path: Path, fetched: list[str]) -> None:
    ran = works("export", model_folder, "--to", "web", "--out", tmp_path / "one")
    assert (
        f"fetched onnxruntime-web 1.30.0 from registry.npmjs.org, kept in {tmp_path / 'cache' / NAME}\n" in ran.errors
    )
    works("export", model_folder, "--to", "web", "--out", tmp_path / "two")
    (tmp_path / "given.tgz").write_bytes(package(CONTENTS))
    for number, given in enumerate(("given.tgz", f"cache/{NAME}")):
        works("export", model_folder, "--to", "web", "--runtime", tmp_path / given, "--out", tmp_path / f"by-{number}")
    assert fetched == [web_runtime.ADDRESS]


@ONE
def test_what_is_not_the_runtime_is_refused(
    model_folder: Path, tmp_path: Path, fetched: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    ask = ("export", model_folder, "--to", "web", "--out", tmp_path / "page", "--runtime")
    (tmp_path / "text").write_text("no package")
    (tmp_path / "other.tgz").write_bytes(package(CONTENTS | {"ort.wasm.min.mjs": b"other"}))
    (tmp_path / "empty").mkdir()
    told = {
        "gone": f"--runtime {tmp_path / 'gone'}: no such file or folder; {ADVICE}",
        "text": f"{tmp_path / 'text'}: no package of npm's (not a gzip file); {ADVICE}",
        "other.tgz": f"{tmp_path / 'other.tgz'}: its ort.wasm.min.mjs is not that of onnxruntime-web 1.30.0 on npm; "
        f"{ADVICE}",
        "empty": f"{tmp_path / 'empty'}: has no ort.wasm.min.mjs; {ADVICE}",
    }
    for name, line in told.items():
        assert refusal(*ask, tmp_path / name) == line
    monkeypatch.setattr(web_runtime.urllib.request, "urlopen", no_network)
    line = refusal(*ask[:-1])
    assert line == f"onnxruntime-web 1.30.0 cannot be fetched (<urlopen error no network>); {ADVICE}"
    assert not (tmp_path / "page").exists()
    assert not (tmp_path / "cache").exists()
    line = refusal("export", model_folder, "--to", "onnx", "--out", tmp_path / "page", "--runtime", tmp_path / "text")
    assert line == "--runtime does nothing with --to onnx; it is for --to web"


def no_network(address: str, timeout: int) -> io.BytesIO:
    raise URLError("no network")


@ONE
def test_large_models_are_spoken_of_or_refused(
    model_folder: Path, tmp_path: Path, fetched: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beside what a page can hold, and beside what a phone can."""
    ask = ("export", model_folder, "--to", "web", "--out", tmp_path / "page")
    assert "slow" not in works(*ask[:-1], tmp_path / "small").errors
    monkeypatch.setattr(web, "HEAVY_BYTES", 10)
    smaller = "--precision int8 makes it smaller"
    said = works(*ask[:-1], tmp_path / "large").errors.splitlines()[-1]
    assert said == f"mirada: 0 MB of model are slow to fetch, and much for a phone's memory; {smaller}"
    monkeypatch.setattr(web, "MOST_BYTES", 20)
    assert refusal(*ask) == f"0 MB of model, a page can hold 0 MB; {smaller}, or use --to onnx"
    line = refusal(*ask, "--precision", "int8")
    assert line == "0 MB of model, a page can hold 0 MB; train a smaller one for a page, or use --to onnx"
    assert {path.name for path in tmp_path.iterdir()} == {"cache", "small", "large"}
