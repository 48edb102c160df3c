"""A training that is a process of its own, stopped from outside in every way there is, ends as if nothing had been."""

from __future__ import annotations

import random
import re
import signal
import subprocess
import time
from pathlib import Path

import pytest

from cli_tools import ENVIRONMENT, command, flags, one_line, refusal
from mirada import checkpoint
from training_tools import SMALL, assert_same, progress, trains, write_data

UPDATES = 200
OPTIONS = {"max-updates": UPDATES, "epochs": 999, "patience": 999, "valid-every": 10, "ema-decay": 0.9, "dropout": 0.3}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, object], Path]:
    """The options of the training, and the folder of one that was never stopped."""
    folder = tmp_path_factory.mktemp("whole")
    options = OPTIONS | write_data(folder)
    trains(folder / "m", options)
    return options, folder / "m"


def started(folder: Path, options: dict[str, object]) -> subprocess.Popen[str]:
    """Start a training and wait until it has validated."""
    line = command("train", *flags(SMALL | options | {"model-dir": folder}))
    training = subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT)
    while not (said := training.stderr.readline()).startswith("epoch "):
        assert said, "the training ended before its first validation"
    return training


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_asked_to_stop(number, code, whole, tmp_path):
    """Meanwhile nobody else may write into the folder; afterwards the same command goes on."""
    options, expected = whole
    folder = tmp_path / "m"
    training = started(folder, options)
    said = f"{folder}: another training is writing into this folder; wait for it, or choose another --model-dir"
    assert refusal("train", *flags(SMALL | options | {"model-dir": folder})) == said
    training.send_signal(number)
    output, errors = training.communicate(timeout=60)
    assert (training.returncode, output) == (code, "")
    end = rf"stopped after update (\d+), saved in {re.escape(str(folder))}; the same command goes on from there"
    updates = int(re.fullmatch(end, one_line(errors))[1])
    assert 10 <= updates == progress(folder)["updates"] < UPDATES
    assert f"going on after update {updates}\n" in trains(folder, options)
    assert_same(expected, folder)


def test_killed_at_any_moment(whole, tmp_path):
    """A save after every update, so that many of the moments are in the middle of one."""
    options, expected = whole
    folder, draw, reached = tmp_path / "m", random.Random(7), [0]
    for _ in range(4):
        training = started(folder, options | {"save-every": 1})
        time.sleep(draw.uniform(0, 0.1))
        training.kill()
        training.communicate(timeout=60)
        assert training.returncode == -signal.SIGKILL
        reached.append(progress(folder)["updates"])
        rows = (folder / "validations.tsv").read_text().splitlines()[1:]
        assert [row.split("\t")[1] for row in rows] == [str(10 * (n + 1)) for n in range(len(rows))]
    assert reached == sorted(reached)
    assert 0 < reached[1] < reached[-1] < UPDATES
    trains(folder, options)
    assert_same(expected, folder)


def test_killed_before_anything_was_saved(whole, tmp_path):
    """Between its first files a training holds options and tokenisers, but no state: it begins again."""
    options, expected = whole
    folder = tmp_path / "m"
    trains(folder, options | {"max-updates": 1})
    for name in (checkpoint.RESUME, checkpoint.WEIGHTS, "validations.tsv", "metrics.json"):
        (folder / name).unlink()
    (folder / f".{checkpoint.RESUME}.new").write_bytes(b"half a fi")
    trains(folder, options)
    assert_same(expected, folder)
