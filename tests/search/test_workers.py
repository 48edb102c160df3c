"""Several jobs at once: order, errors, and giving up."""

from __future__ import annotations

import os
import signal
from threading import Barrier, Event, get_ident

import pytest
import torch

from mirada.search.workers import StoppedError, default_workers, spread


@pytest.mark.parametrize("workers", [1, 2, 5])
def test_results_come_in_the_order_of_the_jobs(workers: int) -> None:
    assert spread(range(20), lambda job, stop: job * job, workers) == [job * job for job in range(20)]
    assert spread([], lambda job, stop: job, workers) == []


def test_two_work_at_the_same_time_each_with_its_share_of_threads() -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(4)
    try:
        meet = Barrier(2, timeout=30)

        def work(job: int, stop: Event) -> tuple[int, int]:
            meet.wait()  # alone nobody would get beyond this
            return get_ident(), torch.get_num_threads()

        threads, shares = zip(*spread([1, 2], work, 2), strict=True)
        assert len(set(threads)) == 2
        assert shares == (2, 2)
        assert torch.get_num_threads() == 4
        assert spread([1], lambda job, stop: torch.get_num_threads(), 2) == [4], "one job has all"
    finally:
        torch.set_num_threads(before)


def test_an_error_stops_the_others() -> None:
    begun = Event()

    def work(job: str, stop: Event) -> None:
        if job == "bad":
            begun.wait(30)
            raise ValueError("bad job")
        begun.set()
        assert stop.wait(30), "told to give up"
        raise StoppedError

    with pytest.raises(ValueError, match="bad job"):
        spread(["bad", "long", "never", "begun"], work, 2)


def test_ctrl_c_stops_all() -> None:
    meet, ended = Barrier(2, timeout=30), []

    def work(job: int, stop: Event) -> None:
        meet.wait()
        if job == 0:
            os.kill(os.getpid(), signal.SIGINT)
        stop.wait(30)
        ended.append(job)
        raise StoppedError

    with pytest.raises(KeyboardInterrupt):
        spread([0, 1], work, 2)
    assert sorted(ended) == [0, 1], "nobody works on in the background"


def test_as_many_workers_as_cores_on_a_cpu_and_one_on_a_gpu() -> None:
    assert default_workers(torch.device("cuda")) == 1
    assert 1 <= default_workers(torch.device("cpu")) <= torch.get_num_threads()
