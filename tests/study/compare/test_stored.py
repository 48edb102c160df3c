"""A comparison's folder may be damaged in any file: one clear line, nothing that hangs, nothing half-read."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from compare_tools import in_this_process, request
from mirada.errors import MiradaError, ModelFolderError
from mirada.study.compare.comparison import compare
from mirada.study.compare.stored import failure, read_positions

FILES = ("job.json", "training.json", "test.json", "outputs.json")
DAMAGES: dict[str, Callable[[str], str]] = {
    "cut": lambda text: text[: len(text) // 2],
    "empty": lambda text: "",
    "null": lambda text: "null",
    "another kind": lambda text: "{}" if text.startswith("[") else "[]",
    "a field less": lambda text: json.dumps(dict(list(json.loads(text).items())[1:]) if text[0] == "{" else [1, 2]),
    "a field of another kind": lambda text: json.dumps(
        dict.fromkeys(json.loads(text), "x") if text[0] == "{" else ["x"]
    ),
    "deep": lambda text: "[" * 100_000 + "]" * 100_000,
}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished comparison of one system."""
    folder = tmp_path_factory.mktemp("stored")
    compare(request(folder, systems=("luong-dot",)), lambda line: None, launch=in_this_process)
    return folder


def refusal_of(whole: Path, harm: Callable[[Path], None]) -> str:
    """What is said of the same comparison with one thing harmed; the folder is whole again afterwards."""
    run, kept = whole / "out/runs/luong-dot-1", whole / "kept"
    shutil.copytree(run, kept)
    try:
        harm(run)
        with pytest.raises(MiradaError) as error:
            compare(request(whole, systems=("luong-dot",)), lambda line: None, resume=True, launch=in_this_process)
        return str(error.value)
    finally:
        shutil.rmtree(run)
        kept.rename(run)


@pytest.mark.parametrize("file", FILES)
@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_file_is_named_in_one_line(whole: Path, file: str, damage: str) -> None:
    def harm(run: Path) -> None:
        (run / file).write_text(DAMAGES[damage]((run / file).read_text(encoding="utf-8")), encoding="utf-8")

    said = refusal_of(whole, harm)
    assert said.startswith(f"{whole / 'out/runs/luong-dot-1' / file}: missing or damaged (")
    assert said.endswith("; remove its folder to do that part anew")
    assert "\n" not in said


@pytest.mark.parametrize("file", FILES)
def test_a_pipe_in_a_files_place_does_not_hang(whole: Path, file: str) -> None:
    def harm(run: Path) -> None:
        (run / file).unlink()
        os.mkfifo(run / file)

    assert f"{file}: missing or damaged (is no regular file); remove its folder" in refusal_of(whole, harm)


@pytest.mark.parametrize("name", ["train.jsonl", "dev.jsonl", "test.jsonl"])
def test_pairs_that_are_no_file_or_no_text_are_other_pairs(whole: Path, name: str) -> None:
    path = whole / "out/data" / name
    content = path.read_bytes()
    try:
        for make in (lambda: path.write_bytes(b"\xff"), lambda: (path.unlink(), os.mkfifo(path))):
            make()
            assert f"{name} holds other pairs" in refusal_of(whole, lambda run: None).replace(" or gold links", "")
    finally:
        path.unlink()
        path.write_bytes(content)


def test_what_reads_one_file_only(tmp_path: Path) -> None:
    (tmp_path / "failed.json").write_text('{"error": 3}')
    with pytest.raises(ModelFolderError, match=r"failed\.json: missing or damaged \(error: Input should be"):
        failure(tmp_path)
    (tmp_path / "test.json").write_text('{"hits": [[1], 0], "parameters": 1, "cost": {}}')
    with pytest.raises(ModelFolderError, match=r"test\.json: missing or damaged \(hits\.1: Input should be"):
        read_positions(tmp_path)
