"""A few tries of every fault that `make faults` does many times."""

from __future__ import annotations

import random
import signal
import sys
from pathlib import Path

import pytest

from faults import disks, kills, streams, trainings
from faults.outcome import HEADER, Outcome, judge, row

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks at processes as Linux shows them")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("faults")


@pytest.fixture(scope="module")
def known(place: Path) -> trainings.Reference:
    return trainings.reference(place, epochs=5)


@pytest.fixture(scope="module")
def have(place: Path) -> streams.Known:
    return streams.known(place)


@pytest.fixture
def rng(request: pytest.FixtureRequest) -> random.Random:
    return random.Random(request.node.name)


def survived(outcome: Outcome) -> None:
    if not outcome.tries:
        pytest.skip(outcome.remark)
    assert outcome.problems == ()
    assert outcome.survived == outcome.tries


def test_kill_9(place, known, rng):
    survived(kills.killed(place, known, 2, rng))


def test_crash_inside_a_save(place, known, rng):
    survived(kills.crashed(place, known, 3, rng))


@pytest.mark.parametrize("by", [signal.SIGTERM, signal.SIGINT])
def test_asked_to_stop(place, known, rng, by):
    survived(kills.stopped(place, known, 1, rng, by=by))


def test_disk_full(place, known, rng):
    survived(disks.full(place, known, 1, rng))


def test_file_size_limited(place, known, rng):
    survived(disks.limited(place, known, 1, rng))


def test_two_trainings_in_one_folder(place, known, rng):
    survived(kills.two_in_one(place, known, 1, rng))


def test_a_long_stream(place, have, rng):
    survived(streams.million(place, have, 20_000, rng))


def test_lines_one_by_one(place, have, rng):
    survived(streams.one_by_one(place, have, 5, rng))


def test_a_reader_that_leaves(place, have, rng):
    survived(streams.left(place, have, 2, rng))


def test_ctrl_c_while_translating(place, have, rng):
    survived(streams.interrupted(place, have, 2, rng))


# The judges themselves: what they would call survived


def test_a_difference_is_seen(place, known, tmp_path):
    """The comparison on which all tests above stand finds one changed bit of the weights, and one missing line."""
    copy = tmp_path / "copy"
    copy.mkdir()
    for file in known.folder.iterdir():
        content = file.read_bytes().replace(bytes(known.folder), bytes(copy))
        (copy / file.name).write_bytes(content)
    assert trainings.differences(copy, known) == []
    log = copy / "validations.tsv"
    log.write_bytes(log.read_bytes().split(b"\n", 1)[1])
    weights = copy / "model.safetensors"
    content = bytearray(weights.read_bytes())
    content[-1] ^= 1
    weights.write_bytes(content)
    assert trainings.differences(copy, known) == [
        "copy: model.safetensors differs",
        "copy: validations.tsv differs",
    ]


def test_the_table_counts_what_failed():
    outcome = judge("fault", [[], ["one", "two"], []], "seen")
    assert outcome == Outcome("fault", 3, 2, "seen", ("one", "two"))
    assert not outcome.good
    assert HEADER.count("|") == 2 * row(outcome).count("|")
    assert row(outcome) == "| fault | 3 | 2 | seen |"
    assert row(Outcome("fault", 0, 0, "why")) == "| fault | not tried here |  | why |"
    assert Outcome("fault", 0, 0).good
