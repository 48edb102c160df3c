"""Items by workers: in order, once each, whatever dies; errors as if there were no workers."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from pickle import PicklingError

import pytest

from mirada.errors import DataError
from mirada.scaling import engine
from mirada.scaling.engine import LOCAL, EngineChoice, workplace
from mirada.scaling.pool import Here, LostWorkError, in_order
from scaling_tools import Item, make, refuses

TWO = EngineChoice("processes", 2, gpus=False)


def test_items_come_back_in_order_though_a_worker_dies(tmp_path: Path) -> None:
    said: list[str] = []
    items = [Item(n, "die once" if n == 5 else "double") for n in range(12)]
    with workplace(TWO, partial(make, tmp_path / "notes"), said.append) as place:
        found = [(item, done.result()) for item, done in in_order(place, items)]
    assert found == [(item, 2 * item.number) for item in items]
    assert said == ["item 5: the worker was ended by signal 9; a new one does this again (try 2 of 3)"]
    threads = os.environ.get("OMP_NUM_THREADS") or str(max(1, len(os.sched_getaffinity(0)) // 2))
    notes = (tmp_path / "notes").read_text().split("\n")[:-1]
    assert set(notes) == {f"made {threads} {os.environ.get('CUDA_VISIBLE_DEVICES', '')}"}
    assert 2 <= len(notes) <= 3  # once a worker that had something to do


def test_an_item_that_kills_every_worker_is_given_up(tmp_path: Path) -> None:
    """Its error is one line, the others are done, and there is a worker for those after it."""
    said: list[str] = []
    items = [Item(1), Item(2, "die"), Item(3), Item(4)]
    with workplace(TWO, partial(make, tmp_path / "notes"), said.append) as place:
        done = dict(in_order(place, items))
        assert [done[item].result() for item in items if item.do != "die"] == [2, 6, 8]
        with pytest.raises(LostWorkError) as error:
            done[items[1]].result()
    assert str(error.value) == (
        "item 2: 3 workers died of this, the last was ended by signal 9; with too little memory, fewer --workers or a "
        "smaller --batch-size help"
    )
    assert len(said) == 2


def test_errors_are_those_of_the_work(tmp_path: Path) -> None:
    """A user's mistake as it is; another error with where it came from; one that cannot travel by its text."""
    items = [Item(1, "refuse"), Item(2, "break"), Item(3)]
    with workplace(TWO, partial(make, tmp_path / "notes"), print) as place:
        refused, broken, fine = [done for _, done in in_order(place, items)]
        with pytest.raises((AttributeError, PicklingError)):
            place.submit(lambda: "cannot be sent").result()
    assert fine.result() == 6
    assert (type(refused.exception()), str(refused.exception())) == (DataError, "line 1: no number")
    assert (type(broken.exception()), str(broken.exception())) == (RuntimeError, "Unportable: 2 broke")
    with workplace(TWO, refuses, print) as place, pytest.raises(DataError, match=r"^no such model$"):
        next(in_order(place, items))[1].result()


def test_what_runs_is_ended_with_the_pool(tmp_path: Path) -> None:
    with workplace(TWO, partial(make, tmp_path / "notes"), print) as place:
        waiting = place.submit(Item(1, "wait"))
        assert place.submit(Item(2)).result() == 4
    assert not waiting.done()


def drawn(numbers: list[int], fails: bool) -> Iterator[Item]:
    for number in range(8):
        numbers.append(number)
        yield Item(number)
    if fails:
        raise DataError("line 9: unreadable")


def test_few_items_are_under_way_and_what_came_before_an_error_is_given(tmp_path: Path) -> None:
    """Here is one at a time: an item is read when those before it have been given."""
    numbers: list[int] = []
    place = Here(partial(make, tmp_path / "notes"))
    given = in_order(place, drawn(numbers, fails=True))
    for number in range(8):
        assert next(given)[1].result() == 2 * number
        assert numbers == list(range(number + 1))
    with pytest.raises(DataError, match="line 9: unreadable"):
        next(given)
    with workplace(EngineChoice("processes", 1, gpus=False), partial(make, tmp_path / "notes"), print) as pool:
        numbers.clear()
        assert next(in_order(pool, drawn(numbers, fails=False)))[1].result() == 0
        assert len(numbers) <= pool.most == 3


def test_no_more_workers_than_items_and_none_for_none(tmp_path: Path) -> None:
    for items, kind in ((0, "Here"), (1, "Pool")):
        with workplace(TWO, partial(make, tmp_path / "notes"), print, items=items) as place:
            assert type(place).__name__ == kind
            assert place.most == (3 if items else 1)
    with workplace(LOCAL, partial(make, tmp_path / "notes"), print) as place:
        assert type(place).__name__ == "Here"


def test_workers_take_the_gpus_in_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torch.cuda.device_count", lambda: 2)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "5,7")
    assert engine.visible_gpus() == ["5", "7"]
    workers = engine._processes(EngineChoice("processes", 3), refuses, None)
    assert [worker._environment["CUDA_VISIBLE_DEVICES"] for worker in workers] == ["5", "7", "5"]
    assert len(engine._processes(EngineChoice("processes"), refuses, None)) == 2
    (worker,) = engine._processes(EngineChoice("processes", 1, gpus=False), refuses, None)
    assert "CUDA_VISIBLE_DEVICES" not in worker._environment
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES")
    assert engine.visible_gpus() == ["0", "1"]
