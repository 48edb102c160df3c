"""Several processes train the model that one would: shares, sums, a death among them, going on, and torchrun itself."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from cli_tools import ENVIRONMENT, flags, works
from mirada.config.configfile import parse
from mirada.data.batches import BatchSize, plan
from mirada.errors import ConfigError
from mirada.train.choices import for_processes
from mirada.train.processes import ALONE, Processes
from training_tools import SMALL, assert_same, different, distance, progress, weights, write_data

PROGRAM = """
import os, sys, torch
torch.set_default_dtype(getattr(torch, os.environ["NUMBERS"]))
from mirada.cli import main
sys.exit(main(sys.argv[1:]))
"""
Started = list[subprocess.Popen[str]]


def free_port() -> int:
    with socket.socket() as here:
        here.bind(("127.0.0.1", 0))
        return int(here.getsockname()[1])


def start(count: int, *words: str, numbers: str = "float32") -> Started:
    """The same command in several processes, which know of each other as torchrun lets them."""
    common = {"WORLD_SIZE": str(count), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
    line = [sys.executable, "-c", PROGRAM, *words]
    return [
        subprocess.Popen(
            line,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={
                **ENVIRONMENT,
                **(common if count > 1 else {}),
                "RANK": str(rank),
                "OMP_NUM_THREADS": "1",
                "NUMBERS": numbers,
            },
        )
        for rank in range(count)
    ]


def end(started: Started) -> list[tuple[int, str, str]]:
    found = []
    for process in started:
        output, errors = process.communicate(timeout=120)
        found.append((process.returncode, output, errors))
    return found


def trained(
    count: int, folder: Path, given: dict[str, object], *, numbers: str = "float32"
) -> list[tuple[int, str, str]]:
    return end(start(count, "train", *flags(given | {"model-dir": folder}), numbers=numbers))


@pytest.mark.parametrize(
    "system",
    [
        {"decoder": "luong", "ema-decay": 0.9},
        pytest.param({"decoder": "bahdanau", "rnn-type": "gru"}, marks=pytest.mark.slow),
        pytest.param({"decoder": "transformer", "hidden-size": None, "num-heads": 2}, marks=pytest.mark.slow),
    ],
    ids=lambda system: str(system["decoder"]),
)
def test_two_processes_are_one_with_twice_the_batches(system, tmp_path):
    """In float64, where the order of additions makes no visible difference. Only the first speaks."""
    given = SMALL | write_data(tmp_path) | {"dropout": 0, "max-updates": 4, "valid-every": 2, "valid-metrics": "cer"}
    given = {name: value for name, value in (given | system).items() if value is not None}
    together, alone = tmp_path / "together", tmp_path / "alone"
    (first, second), (one,) = (
        trained(2, together, given, numbers="float64"),
        trained(1, alone, given | {"accum-count": 2}, numbers="float64"),
    )
    assert (first[0], second[0], one[0]) == (0, 0, 0), first[2] + second[2] + one[2]
    assert first[1] == f"{together}\n"
    assert second[1:] == ("", "")
    assert distance(weights(together), weights(alone)) < 1e-9
    rows = [(folder / "validations.tsv").read_text().splitlines() for folder in (together, alone)]
    assert len(rows[0]) == 3
    for ours, theirs in zip(*(row[1:] for row in rows), strict=True):
        assert list(map(float, ours.split("\t"))) == pytest.approx(list(map(float, theirs.split("\t"))), rel=1e-4)


@pytest.mark.slow
def test_stopped_and_gone_on_is_never_stopped(tmp_path):
    """With dropout, each process's own; and one process alone goes on with what two began."""
    given = SMALL | write_data(tmp_path) | {"dropout": 0.3, "valid-every": 3}
    for name, ends in (("whole", (6,)), ("parts", (3, 6))):
        for updates in ends:
            ran = trained(2, tmp_path / name, given | {"max-updates": updates})
            assert [code for code, *_ in ran] == [0, 0], ran
    assert_same(tmp_path / "whole", tmp_path / "parts")
    alone = trained(1, tmp_path / "parts", given | {"max-updates": 7, "accum-count": 2})
    assert alone[0][0] == 0, alone[0][2]
    assert progress(tmp_path / "parts")["updates"] == 7
    (other,) = trained(1, tmp_path / "parts", given | {"max-updates": 8})
    assert other[0] == 2
    assert "accum_count" in other[2]


@pytest.mark.slow
@pytest.mark.parametrize("asked", [True, False], ids=["prepared", "unasked"])
def test_two_processes_read_one_prepared_corpus(asked, tmp_path):
    """What the first has prepared the second finds; both together are one with twice the batches."""
    given = SMALL | write_data(tmp_path) | {"dropout": 0, "max-updates": 4}
    alone, together = tmp_path / "alone", tmp_path / "together"
    ran = trained(1, alone, given | {"accum-count": 2}, numbers="float64")
    more: dict[str, object] = {"prepare-above": 1}
    if asked:
        out = tmp_path / "prepared"
        works("data", "prepare", *flags(write_data(tmp_path) | {"tokenizer": "word", "out": out}))
        given, more = {name: value for name, value in given.items() if "tsv" not in name}, {"prepared": out}
    ran += trained(2, together, given | more, numbers="float64")
    assert [code for code, *_ in ran] == [0, 0, 0], ran
    assert (together / "prepared").is_dir() is not asked
    assert distance(weights(together), weights(alone)) < 1e-9


@pytest.mark.slow
def test_where_one_dies_all_end_and_the_same_command_goes_on(tmp_path):
    given = SMALL | write_data(tmp_path) | {"max-updates": 100_000, "epochs": 100_000, "valid-every": 5}
    folder = tmp_path / "model"
    started = start(2, "train", *flags(given | {"model-dir": folder}))
    until = time.monotonic() + 100
    while not (folder / "validations.tsv").exists() and time.monotonic() < until:
        time.sleep(0.1)
    started[1].send_signal(signal.SIGKILL)
    (code, output, errors), _ = end(started)
    assert (code, output) == (2, "")
    said = "mirada: another of the 2 processes has ended; the same command goes on from the last save"
    assert errors.splitlines()[-1] == said
    assert "Traceback" not in errors
    before = progress(folder)["updates"]
    assert [code for code, *_ in trained(2, folder, given | {"max-updates": before + 2})] == [0, 0]
    assert progress(folder)["updates"] == before + 2


@pytest.mark.slow
def test_torchrun_starts_them(tmp_path):
    given = SMALL | write_data(tmp_path) | {"max-updates": 2}
    line = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "--master-port", str(free_port())]
    line += ["-m", "mirada", "train", *flags(given | {"model-dir": tmp_path / "model"})]
    done = subprocess.run(line, capture_output=True, text=True, env=ENVIRONMENT, timeout=120, check=False)
    assert (done.returncode, done.stdout) == (0, f"{tmp_path / 'model'}\n"), done.stderr
    assert works("translate", tmp_path / "model", given="the fox\n").lines != []


def test_batches_of_an_update_are_shared_out():
    assert for_processes(parse({}), 3).training.accum_count == 3
    assert for_processes(parse({"training": {"accum_count": 4}}), 2).training.accum_count == 4
    assert for_processes(parse({}), 1) == parse({})
    with pytest.raises(ConfigError) as refused:
        for_processes(parse({"training": {"accum_count": 1}}), 2)
    assert str(refused.value) == (
        "accum_count 1 with 2 processes: it counts the batches of an update, of all processes together; "
        "give a multiple of 2"
    )
    assert [Processes(rank, 2).share([1, 2, 3]) for rank in (0, 1)] == [[1, 3], [2]]
    assert (ALONE.most(2.5, 0), ALONE.gather([1, 2], 2), ALONE.first) == ([2.5, 0], [1, 2], True)


def test_batches_of_an_update_cost_the_same():
    """Neighbours in length stand together, the short rest at the end; the same batches as without."""
    lengths = np.random.default_rng(1).integers(1, 60, (1000, 2))
    one, three = (plan(lengths, BatchSize(16, False), seed=1, epoch=2, together=count) for count in (1, 3))
    assert sorted(map(tuple, one)) == sorted(map(tuple, three))

    def uneven(batches: list[np.ndarray]) -> float:
        longest = [int(lengths[batch, 1].max()) for batch in batches]
        return float(np.mean([np.ptp(longest[i : i + 3]) for i in range(0, len(batches) - 3, 3)]))

    assert uneven(three) < uneven(one) / 5


@pytest.mark.skipif("RANK" in os.environ, reason="these tests are themselves one of several processes")
def test_a_lone_place_is_no_crowd(tmp_path, monkeypatch):
    """WORLD_SIZE 1, as torchrun gives it for one process, trains as ever."""
    for name, value in (("RANK", "0"), ("WORLD_SIZE", "1"), ("MASTER_ADDR", "127.0.0.1"), ("MASTER_PORT", "1")):
        monkeypatch.setenv(name, value)
    given = SMALL | write_data(tmp_path) | {"max-updates": 1}
    works("train", *flags(given | {"model-dir": tmp_path / "a"}))
    for name in ("RANK", "WORLD_SIZE"):
        monkeypatch.delenv(name)
    works("train", *flags(given | {"model-dir": tmp_path / "b"}))
    assert different(weights(tmp_path / "a"), weights(tmp_path / "b")) == []
