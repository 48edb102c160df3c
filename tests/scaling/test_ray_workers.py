"""The same on a Ray cluster of two workers, which is started for it."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path

import pytest

from cli_tools import works
from mirada.errors import DataError
from mirada.scaling.engine import EngineChoice, workplace
from mirada.scaling.pool import LostWorkError, in_order
from scaling_tools import GIVEN, MANY, Item, dying_once, make

pytest.importorskip("ray", reason="pip install 'mirada[ray]'")
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("default")]
TWO = EngineChoice("ray", 2, gpus=False)


@pytest.fixture(autouse=True)
def importable(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let Ray's processes find the helpers of these tests."""
    folders = [str(Path(__file__).parent.parent), os.environ.get("PYTHONPATH", "")]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, folders)))
    monkeypatch.delenv("RAY_ADDRESS", raising=False)


@pytest.mark.parametrize("model_folder", ["luong"], indirect=True)
def test_an_actor_killed_midway_changes_no_output(
    model_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flags = ["translate", model_folder, "--device", "cpu", "--batch-size", 1, "--max-input-length", 20]
    one = works(*flags, given=GIVEN)
    dying_once(monkeypatch, tmp_path / "died")
    two = works(*flags, "--engine", "ray", "--workers", 2, given=GIVEN)
    assert (tmp_path / "died").exists()
    assert len(one.lines) == 1 + len(MANY)
    assert two.lines == one.lines
    (died,) = [line for line in two.errors.splitlines() if "try 2 of 3" in line]
    assert died.startswith("lines 9 to 12: the worker ended (")
    own = [line for line in two.errors.splitlines() if line != died and "(raylet)" not in line]  # Ray tells of it too
    assert own == one.errors.splitlines()


def test_items_and_their_errors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And a torch.py of the working directory is not taken for torch, though Ray lets its workers import from there."""
    (tmp_path / "torch.py").write_text("raise SystemExit(9)\n")
    monkeypatch.chdir(tmp_path)
    said: list[str] = []
    items = [Item(1, "torch"), Item(2, "refuse"), Item(3, "die"), *map(Item, range(4, 12))]
    with workplace(TWO, partial(make, tmp_path / "notes"), said.append) as place:
        where, refused, lost, *others = [done for _, done in in_order(place, items)]
    assert where.result() == (str(tmp_path), True)
    assert isinstance(refused.exception(), DataError)
    assert str(refused.exception()) == "line 2: no number"
    assert isinstance(lost.exception(), LostWorkError)
    assert str(lost.exception()).startswith("item 3: 3 workers died of this, the last ended (")
    assert [done.result() for done in others] == [2 * n for n in range(4, 12)]
    assert len(said) == 2
