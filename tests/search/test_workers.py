"""Threads of torch: each of our threads has its share, and nobody else's number changes."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier, current_thread

import pytest
import torch

from mirada.search.workers import apart, default_workers, own_threads, use_threads


def seen_by_a_new_thread() -> int:
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(torch.get_num_threads).result()


def test_a_thread_sets_its_own_number_and_no_other() -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(4)
    try:
        meet = Barrier(3, timeout=30)

        def work(count: int) -> tuple[int, int, int]:
            first = own_threads()
            use_threads(count)
            meet.wait()  # all have set theirs
            found = first, torch.get_num_threads(), seen_by_a_new_thread()
            meet.wait()
            return found

        with ThreadPoolExecutor(3) as pool:
            found = list(pool.map(work, (1, 2, 3)))
        assert found == [(4, 1, 4), (4, 2, 4), (4, 3, 4)]
        assert torch.get_num_threads() == seen_by_a_new_thread() == 4
    finally:
        torch.set_num_threads(before)


def test_work_apart_gives_its_result_or_its_error() -> None:
    here = current_thread()
    assert apart(current_thread) is not here
    with pytest.raises(ValueError, match="invalid literal"):
        apart(lambda: int("no"))


def test_as_many_workers_as_cores_on_a_cpu_and_one_on_a_gpu() -> None:
    assert default_workers(torch.device("cuda")) == 1
    assert 1 <= default_workers(torch.device("cpu")) <= torch.get_num_threads()
