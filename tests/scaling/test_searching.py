"""`translate` and `evaluate` by workers: what they print is what they print without."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import tiny
from cli_tools import mirada, one_line, refusal, works, write
from mirada.scaling import engine
from mirada.scaling.engine import EngineChoice
from mirada.scaling.pool import Here, Make
from scaling_tools import GIVEN, MANY, dying_once, refuses

one_model = pytest.mark.parametrize("model_folder", ["luong"], indirect=True)


@contextmanager
def here(choice: EngineChoice, make: Make, say: Callable[[str], None]) -> Iterator[Here]:
    """The same work without the seconds that a process takes to start."""
    assert choice.kind != "local"
    yield Here(make)


@one_model
def test_a_worker_killed_midway_changes_no_output(
    model_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Outputs, weights and warnings are those of one process, in order; one line tells of the worker."""
    flags = ["translate", model_folder, "--device", "cpu", "--batch-size", 1, "--n-best", 2, "--max-input-length", 20]
    one = works(*flags, "--save-attention", tmp_path / "one", given=GIVEN)
    dying_once(monkeypatch, tmp_path / "died")
    engine = ["--engine", "processes", "--workers", 2, "--save-attention", tmp_path / "two"]
    two = works(*flags, *engine, given=GIVEN)
    assert (tmp_path / "died").exists()
    assert len(one.lines) == 1 + 2 * len(MANY)
    assert two.lines == one.lines
    rows = [[json.loads(line) for line in (tmp_path / name).read_text().splitlines()] for name in ("one", "two")]
    assert rows[0] == rows[1]
    said = two.errors.splitlines()
    (died,) = [line for line in said if "try 2 of 3" in line]
    assert died == "lines 9 to 12: the worker was ended by signal 9; a new one does this again (try 2 of 3)"
    assert sum("cut to max_input_length 20" in line for line in said) > 3
    assert [line for line in said if line != died] == one.errors.splitlines()


@one_model
def test_mistakes_are_the_same_line(model_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And what stands before a bad line is written."""
    monkeypatch.setattr("mirada.cli.translate.workplace", here)
    prefixes = write(tmp_path / "few", ["el"] * 3)
    bad = b"".join(f"{line}\n".encode() for line in MANY[:6]) + b"\xff\n"
    flags = ["translate", model_folder, "--device", "cpu", "--batch-size", 1]
    cases: list[tuple[list[Any], bytes]] = [
        ([], bad),
        (["--strict", "--max-input-length", 3], GIVEN.encode()),
        (["--prefix-file", prefixes], GIVEN.encode()),
        (["--prefix-file", prefixes], b"the cat\n"),
        (["--device", "cuda:99"], b"the cat\n"),
    ]
    for more, given in cases:
        one = mirada(*flags, *more, given=given)
        two = mirada(*flags, *more, "--engine", "processes", given=given)
        assert (one.code, two.code) == (2, 2)
        assert one_line(one.errors) == one_line(two.errors)
    assert len(mirada(*flags, "--engine", "processes", given=bad).lines) == 6


@one_model
def test_evaluate_finds_the_same(model_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mirada.scaling.engine.workplace", here)
    pairs = ["--src", write(tmp_path / "src", MANY), "--tgt", write(tmp_path / "tgt", tiny.TARGETS * 4 + ["el"])]
    flags = ["evaluate", model_folder, *pairs, "--batch-size", 1, "--device", "cpu", "--n-best", 2]
    one = works(*flags, "--save-outputs", tmp_path / "one")
    two = works(*flags, "--save-outputs", tmp_path / "two", "--engine", "processes")
    assert one == two
    assert (tmp_path / "one").read_text() == (tmp_path / "two").read_text()


def test_flags_that_would_change_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = ["--out", tmp_path / "out"]
    address = "--ray-address goes with --engine ray; leave it out, or add that"
    assert refusal("translate", "m", "--ray-address", "auto") == address
    assert refusal("compare", *out, "--engine", "processes", "--ray-address", "auto") == address
    workers = "--workers goes with --engine processes or --engine ray; leave it out, or add one of them"
    assert refusal("evaluate", "m", "--workers", 2) == refusal("bottleneck", *out, "--workers", 2) == workers
    assert refusal("evaluate", "--hyp", "h", "--ref", "r", "--engine", "processes") == (
        "--engine goes with a model folder; with --hyp it would change nothing"
    )
    assert refusal("translate", "--server", "http://127.0.0.1:1", "--engine", "processes") == (
        "--engine: it needs the model in this process; leave out --server"
    )
    assert "invalid choice: 'spark'" in refusal("translate", "m", "--engine", "spark")


@one_model
def test_ray_that_is_not_installed(model_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    line = refusal("translate", model_folder, "--device", "cpu", "--engine", "ray", given="the cat\n")
    assert line == "--engine ray needs Ray: pip install 'mirada[ray]'"


@one_model
def test_a_cluster_that_is_not_there(model_folder: Path) -> None:
    pytest.importorskip("ray", reason="pip install 'mirada[ray]'")
    flags = ["--device", "cpu", "--engine", "ray", "--ray-address", "127.0.0.1:1"]
    line = refusal("translate", model_folder, *flags, given="the cat\n")
    assert line == "no Ray cluster at '127.0.0.1:1' ([Errno 111] Connection refused); see --ray-address"


def test_what_ray_prints_is_no_output(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """It tells of dead workers on standard output, which is for data."""
    monkeypatch.setattr(engine, "_actors", lambda choice, make, items: [])
    monkeypatch.setattr("mirada.scaling.ray_workers.disconnect", lambda: None)
    with engine.workplace(EngineChoice("ray"), refuses, print):
        print("a worker died")
    assert capsys.readouterr() == ("", "a worker died\n")


def test_actors_share_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    """One each, or equal parts of one; without any, as many actors as CPUs."""
    has = {"CPU": 6.0, "GPU": 2.0}
    monkeypatch.setattr("mirada.scaling.ray_workers.connect", lambda address, workers: has)

    def shares(choice: EngineChoice) -> list[float]:
        return [worker._gpus for worker in engine._actors(choice, refuses, None)]

    assert shares(EngineChoice("ray")) == [1, 1]
    assert shares(EngineChoice("ray", 3)) == [1 / 2] * 3
    assert shares(EngineChoice("ray", gpus=False)) == [0] * 6
