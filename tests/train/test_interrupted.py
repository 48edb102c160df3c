"""A training that is a process of its own, stopped from outside in every way there is, ends as if nothing had been."""

from __future__ import annotations

import random
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from cli_tools import ENVIRONMENT, command, flags, one_line, refusal
from mirada.store import checkpoint
from training_tools import SMALL, assert_same, progress, trains, write_data

UPDATES, EVERY = 150, 10
OPTIONS = {"epochs": 9999, "patience": 9999, "valid-every": EVERY, "ema-decay": 0.9, "dropout": 0.3}
ENOUGH = {"max-updates": UPDATES}
ENDLESS = {"max-updates": 30_000}  # so that on no machine the end comes before the signal


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, object], Path]:
    """The options of the training, and the folder of one that was never stopped."""
    folder = tmp_path_factory.mktemp("whole")
    options = OPTIONS | write_data(folder)
    trains(folder / "m", options, ENOUGH)
    return options, folder / "m"


@contextmanager
def running(folder: Path, options: dict[str, object]) -> Iterator[subprocess.Popen[str]]:
    """A training that has validated at least once since it was started."""
    line = command("train", *flags(SMALL | options | ENDLESS | {"model-dir": folder}))
    training = subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT)
    with training:
        try:
            while not (said := training.stderr.readline()).startswith("epoch "):
                assert said, "the training ended before its first validation"
            yield training
        finally:
            training.kill()


def assert_goes_on(folder: Path, whole: tuple[dict[str, object], Path]) -> None:
    """What was stopped goes on as what was not, for as many updates as that has, or some more if it came further."""
    options, expected = whole
    end = max(UPDATES, (progress(folder)["updates"] // EVERY + 2) * EVERY)
    assert "going on after update" in trains(folder, options, {"max-updates": end})
    if end > UPDATES:
        expected = Path(shutil.copytree(expected, folder.with_name("further")))
        trains(expected, options, {"max-updates": end})
    assert_same(expected, folder)


@pytest.mark.slow
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_asked_to_stop(number, code, whole, tmp_path):
    """Meanwhile nobody else may write into the folder; afterwards the same command goes on."""
    options, folder = whole[0], tmp_path / "m"
    with running(folder, options) as training:
        said = f"{folder}: another process is writing into this folder; wait for it, or choose another --model-dir"
        assert refusal("train", *flags(SMALL | options | ENOUGH | {"model-dir": folder})) == said
        training.send_signal(number)
        output, errors = training.communicate(timeout=60)
    assert (training.returncode, output) == (code, ""), errors
    end = rf"stopped after update (\d+), saved in {re.escape(str(folder))}; the same command goes on from there"
    stopped = re.fullmatch(end, one_line(errors))
    assert EVERY <= int(stopped[1]) == progress(folder)["updates"]
    assert_goes_on(folder, whole)


@pytest.mark.slow
def test_killed_at_any_moment(whole, tmp_path):
    """A save after every update, so that many of the moments are in the middle of one."""
    folder, draw, reached = tmp_path / "m", random.Random(7), [0]
    for _ in range(4):
        with running(folder, whole[0] | {"save-every": 1}) as training:
            time.sleep(draw.uniform(0, 0.1))
            training.kill()
        assert training.returncode == -signal.SIGKILL
        reached.append(progress(folder)["updates"])
        rows = (folder / "validations.tsv").read_text().splitlines()[1:]
        assert [row.split("\t")[1] for row in rows] == [str(EVERY * (n + 1)) for n in range(len(rows))]
    assert reached == sorted(reached)
    assert 0 < reached[1] < reached[-1]
    assert_goes_on(folder, whole)


def test_killed_before_anything_was_saved(whole, tmp_path):
    """Between its first files a training holds options and tokenisers, but no state: it begins again."""
    options, expected = whole
    folder = tmp_path / "m"
    trains(folder, options, {"max-updates": 1})
    for name in (checkpoint.RESUME, checkpoint.WEIGHTS, "validations.tsv", "metrics.json"):
        (folder / name).unlink()
    (folder / f".{checkpoint.RESUME}.new").write_bytes(b"half a fi")
    assert "going on" not in trains(folder, options, ENOUGH)
    assert_same(expected, folder)
