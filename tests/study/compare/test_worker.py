"""What a run measures of itself."""

from __future__ import annotations

import pytest

import tiny
from compare_tools import in_this_process, request
from mirada.errors import TrainingError
from mirada.files import locked
from mirada.store import checkpoint
from mirada.study.compare import worker
from mirada.study.compare.comparison import compare
from mirada.study.compare.stored import read_job, read_json, write_json
from mirada.translator import load


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """One run of two epochs and an update: 5 updates of 3 pairs out of 6."""
    asked = request(tmp_path_factory.mktemp("worker"), systems=("luong-dot",), budget="5updates")
    compare(asked, lambda line: None, launch=in_this_process)
    return asked.out / "runs/luong-dot-1"


def test_target_tokens_are_those_of_the_batches_read(trained):
    model = load(trained / "model", device="cpu")
    sizes = sorted(len(ids) + 1 for ids in model.target_tokenizer.encode(tiny.TARGETS))
    training = read_json(trained / "training.json")
    extra = training["tokens"] - 2 * sum(sizes)
    # Batches hold pairs of similar length: the last update read the three short ones or the three long ones.
    assert extra in (sum(sizes[:3]), sum(sizes[3:]))
    speed = training["tokens"] / training["cost"]["training_seconds"]
    assert training["cost"]["tokens_per_second"] == pytest.approx(speed)


def test_what_a_run_says_of_itself(trained):
    training, test = (read_json(trained / name) for name in ("training.json", "test.json"))
    weights = checkpoint.read_archive(trained / "model" / checkpoint.WEIGHTS)
    assert test["parameters"] == sum(tensor.numel() for tensor in weights.tensors.values())
    assert (training["updates"], training["best_update"]) == (5, weights.metadata["updates"])
    # Linux counts pages a few at a time, so a peak may seem to shrink a little.
    assert 50 < training["cost"]["memory_before_mib"] <= training["cost"]["peak_memory_mib"] + 1
    assert len(read_json(trained / "outputs.json")) == len(tiny.SOURCES)


def test_positions_are_judged_one_by_one(trained, tmp_path):
    model = load(trained / "model", device="cpu")
    job = read_job(trained)._replace(training=None, measure="positions")
    write_json(tmp_path / "job.json", job._asdict())
    assert worker.main(tmp_path) == 0
    hits = read_json(tmp_path / "test.json")["hits"]
    scored = model.score(tiny.SOURCES, tiny.TARGETS)
    assert [len(row) for row in hits] == [len(one.tokens) - 1 for one in scored]
    # A token with more than half of the probability is the likeliest; one that is right has the most: at least 1 / V.
    for row, one in zip(hits, scored, strict=True):
        for right, log_p in zip(row, one.token_log_probabilities, strict=False):
            assert right or log_p <= -0.69
            assert not right or log_p >= -4.1  # ln 60


def test_a_mistake_is_written_down(tmp_path):
    write_json(tmp_path / "job.json", {"training": None, "model": str(tmp_path / "none"), "test": str(tmp_path / "t")})
    assert worker.main(tmp_path) == 2
    assert "missing" in read_json(tmp_path / "failed.json")["error"]


def test_a_held_folder_is_waited_for_and_then_given_up(tmp_path, monkeypatch):
    waits: list[float] = []
    monkeypatch.setattr(worker.time, "sleep", waits.append)
    with (
        locked(tmp_path),
        pytest.raises(TrainingError, match=r"another process is writing"),
        worker.patiently_locked(tmp_path),
    ):
        pass
    assert len(waits) == 599
    with worker.patiently_locked(tmp_path):
        assert len(waits) == 599
