"""Losses and gradients that are no numbers, and memory that does not suffice: nothing is spoilt, advice is given."""

from __future__ import annotations

import json
import math
import signal
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

import tiny
from cli_tools import flags, mirada, one_line, refusal, works, write_pairs
from mirada import translator
from mirada.config.options import TrainingConfig
from mirada.data.batches import Encoded
from mirada.devices import halving, out_of_memory
from mirada.errors import DataError
from mirada.store.checkpoint import METRICS, RESUME, WEIGHTS, read_archive
from mirada.store.progress import Progress
from mirada.train import loop, loss
from mirada.train.batch_loss import batch_loss
from training_tools import SMALL, different, progress, trains, write_data


@pytest.fixture
def data(tmp_path: Path) -> dict[str, object]:
    return write_data(tmp_path)


def spoil(monkeypatch: pytest.MonkeyPatch, updates: set[int], how: str) -> SimpleNamespace:
    """Make loss or gradient no number in these calls of the training's loss."""
    calls = SimpleNamespace(count=0)

    def broken(*arguments: object, **options: object) -> loss.Loss:
        calls.count += 1
        found = batch_loss(*arguments, **options)
        if calls.count not in updates:
            return found
        if how == "gradient":  # the loss is as it was, its derivative 0 · ∞
            return found._replace(smoothed=found.smoothed + 0 * (0 * found.smoothed).sqrt())
        return loss.Loss(*(part * float(how) for part in found))

    monkeypatch.setattr("mirada.train.batch_loss.batch_loss", broken)
    return calls


@pytest.mark.parametrize("how", ["nan", "inf", "gradient"])
def test_a_bad_update_leaves_no_trace_but_its_count(how, data, tmp_path, monkeypatch):
    """Weights, their moving average and both of Adam's are as before; the count is shown at the next validation."""
    options = {"ema-decay": 0.9, "valid-every": 4}
    trains(tmp_path / "m", data, options, {"max-updates": 2})
    before = read_archive(tmp_path / "m" / RESUME).tensors
    spoil(monkeypatch, {1}, how)
    said = trains(tmp_path / "m", data, options, {"max-updates": 3})
    after = read_archive(tmp_path / "m" / RESUME).tensors
    assert "update 3: loss or gradient is not finite; skipped (1 so far)\n" in said
    # Dropout was drawn for the update, so torch's random state has gone on; nothing else has.
    assert [name for name in different(before, after) if name != "random"] == []
    assert any(name.startswith("optimizer.") for name in before)
    assert any(name.startswith("average.") for name in before)
    monkeypatch.undo()
    said = trains(tmp_path / "m", data, options, {"max-updates": 4})
    (line,) = (line for line in said.splitlines() if line.startswith("epoch "))
    assert line.endswith(" (skipped: 1)")
    assert all(bool(tensor.isfinite().all()) for tensor in read_archive(tmp_path / "m" / RESUME).tensors.values())


def test_after_twenty_in_a_row_the_last_good_model_is_kept(data, tmp_path, monkeypatch):
    options = {"valid-every": 5, "max-updates": 5}
    trains(tmp_path / "m", data, options)
    before = (tmp_path / "m" / WEIGHTS).read_bytes()
    spoil(monkeypatch, set(range(1, 3)) | set(range(4, 1000)), "nan")  # two, a good one, and then no good one
    given = SMALL | data | options | {"max-updates": 200, "model-dir": tmp_path / "m", "patience": 99}
    ran = mirada("train", *flags(given))
    assert (ran.code, ran.output) == (2, "")
    assert ran.errors.count("loss or gradient is not finite; skipped (") == 22
    assert one_line(ran.errors) == (
        "20 updates in a row had a loss or gradient that is not finite; the last good model in "
        f"{tmp_path / 'm'} is kept. In another model_dir, lower learning_rate or clip_grad_norm, or raise warmup_steps"
    )
    kept = read_archive(tmp_path / "m" / WEIGHTS)
    assert all(bool(tensor.isfinite().all()) for tensor in kept.tensors.values())
    assert works("translate", tmp_path / "m", given="a b\n").lines
    monkeypatch.undo()
    trains(tmp_path / "m", data, {"valid-every": 5, "patience": 99, "max-updates": 6})  # and it can go on
    assert before


def test_a_validation_that_is_no_number_is_never_the_best():
    options, state = TrainingConfig(), Progress("data")
    found = [
        state.record_validation({"loss": value}, options, "loss") for value in (math.nan, math.inf, 3.0, math.nan, 2.0)
    ]
    assert found == [False, False, True, False, True]
    assert state.best_metrics == {"loss": 2.0}


def test_measures_that_are_no_numbers_are_null_in_json(data, tmp_path, monkeypatch):
    """JSON has no NaN; the table says nan."""
    monkeypatch.setattr(loop, "dev_loss", lambda *_: {"loss": math.nan, "ppl": math.inf, "accuracy": 0.0})
    ran = mirada("train", *flags(SMALL | data | {"model-dir": tmp_path / "m", "max-updates": 2}))
    assert one_line(ran.errors).startswith("no validation gave a loss that is a number, so no model was kept. In")
    text = (tmp_path / "m" / METRICS).read_text(encoding="utf-8")
    found = json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))
    assert (found["loss"], found["ppl"], found["accuracy"]) == (None, None, 0.0)
    assert "\tnan\tinf\t0\n" in (tmp_path / "m" / "validations.tsv").read_text(encoding="utf-8")
    assert progress(tmp_path / "m")["best_metrics"] == {}


# Memory


def test_what_an_allocator_says_is_understood():
    with pytest.raises(RuntimeError) as caught:
        torch.empty(1 << 50)
    assert out_of_memory(caught.value)
    assert out_of_memory(torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB"))
    assert out_of_memory(MemoryError())
    assert out_of_memory(RuntimeError("[enforce fail] not enough memory: you tried to allocate 8 bytes."))
    assert not out_of_memory(RuntimeError("mat1 and mat2 shapes cannot be multiplied"))
    assert not out_of_memory(ValueError("out of memory"))


def test_halving_keeps_the_order_and_does_nothing_twice():
    done: list[list[int]] = []

    def work(batch: list[int]) -> list[int]:
        if sum(batch) > 10:
            raise MemoryError
        done.append(batch)
        return [-item for item in batch]

    assert halving(list(range(10)), work, str) == [-item for item in range(10)]
    assert sorted(item for batch in done for item in batch) == list(range(10))
    with pytest.raises(DataError, match=r"^11: too little memory even for this one alone$"):
        halving([1, 2, 11, 3], work, str)
    with pytest.raises(KeyError):
        halving([1], lambda batch: [{}["x"]], str)


def test_scoring_halves_too(tmp_path, monkeypatch):
    folder = tiny.write_folder(tmp_path / "m", "transformer")
    pairs = write_pairs(tmp_path / "pairs.tsv", list(zip(tiny.SOURCES, tiny.TARGETS, strict=True)))
    expected = [float(line) for line in works("score", folder, "--tsv", pairs).lines]
    real = translator.force

    def small(model: object, pairs: Encoded, *rest: object, **options: object) -> object:
        if len(pairs.sources) > most:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return real(model, pairs, *rest, **options)

    monkeypatch.setattr(translator, "force", small)
    most = 2
    found = [float(line) for line in works("score", folder, "--tsv", pairs).lines]
    assert found == pytest.approx(expected, abs=1e-4)
    most = 0
    assert refusal("score", folder, "--tsv", pairs).startswith("pair 2 (")


def test_a_training_without_memory_is_told_what_to_lower(data, tmp_path, monkeypatch):
    def full(*_: object) -> object:
        raise RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 99 bytes")

    trains(tmp_path / "m", data, {"max-updates": 1})
    monkeypatch.setattr(loop, "collate", full)
    ran = mirada("train", *flags(SMALL | data | {"model-dir": tmp_path / "m", "max-updates": 2}))
    advice = "lower batch_size, max_length or the sizes of the model"
    assert one_line(ran.errors) == f"the memory does not suffice for this model and batch; {advice}"

    def faulty(*_: object) -> object:
        raise RuntimeError("mat1 and mat2 shapes cannot be multiplied")

    monkeypatch.setattr(loop, "collate", faulty)
    with pytest.raises(RuntimeError, match="mat1"):  # any other error is a fault of mirada's, and stays one
        mirada("train", *flags(SMALL | data | {"model-dir": tmp_path / "m", "max-updates": 2}))


# Signals


@pytest.mark.parametrize("ignored", [False, True])
def test_a_closed_terminal(ignored, data, tmp_path, monkeypatch):
    """SIGHUP stops a training as Ctrl-C does, unless `nohup` has had it ignored."""
    real = loop.collate

    def closed(*arguments: object) -> object:
        signal.raise_signal(signal.SIGHUP)
        return real(*arguments)

    monkeypatch.setattr(loop, "collate", closed)
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN if ignored else signal.SIG_DFL)
    try:
        ran = mirada("train", *flags(SMALL | data | {"model-dir": tmp_path / "m", "max-updates": 3}))
    finally:
        assert signal.signal(signal.SIGHUP, before) == (signal.SIG_IGN if ignored else signal.SIG_DFL)
    assert ran.code == (0 if ignored else 129)
    assert progress(tmp_path / "m")["updates"] == (3 if ignored else 1)
    if not ignored:
        assert one_line(ran.errors).startswith("stopped after update 1, saved in ")
