"""The log of a training is written whole each time."""

from __future__ import annotations

import json
import os

import pytest

from mirada.train.log import History

FIRST = {"epoch": 1, "update": 999_999, "loss": 2.3456789, "bleu": 0.0}
SECOND = {"epoch": 2, "update": 12_345_678, "loss": 1e-07, "bleu": 31.25}


def test_every_validation_is_a_line(tmp_path):
    History(tmp_path).write([FIRST])
    assert (tmp_path / "validations.tsv").read_text() == "epoch\tupdate\tloss\tbleu\n1\t999999\t2.34568\t0\n"
    History(tmp_path).write([FIRST, SECOND])
    assert (tmp_path / "validations.tsv").read_bytes() == (
        b"epoch\tupdate\tloss\tbleu\n1\t999999\t2.34568\t0\n2\t12345678\t1e-07\t31.25\n"
    )


def test_the_log_is_rewritten_and_not_continued(tmp_path):
    """A training that went back to its last save has neither a gap nor a double."""
    (tmp_path / "validations.tsv").write_text("what a later run had written\n" * 10)
    History(tmp_path).write([FIRST])
    assert len((tmp_path / "validations.tsv").read_text().splitlines()) == 2


def test_the_last_metrics_as_json(tmp_path):
    History(tmp_path).write([FIRST, SECOND])
    assert json.loads((tmp_path / "metrics.json").read_text()) == SECOND
    assert sorted(os.listdir(tmp_path)) == ["metrics.json", "validations.tsv"]


def test_tensorboard_events(tmp_path):
    reader = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator", reason="an extra")
    history = History(tmp_path, tensorboard=True)
    history.write([FIRST])
    history.write([FIRST, SECOND])
    events = reader.EventAccumulator(str(tmp_path / "tensorboard")).Reload()
    assert events.Tags()["scalars"] == ["dev/loss", "dev/bleu"]
    found = [(event.step, event.value) for event in events.Scalars("dev/bleu")]
    assert found == [(999_999, 0.0), (12_345_678, 31.25)]
