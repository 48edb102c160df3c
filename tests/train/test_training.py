"""Training through the command line: it goes on exactly, is the same for the same seed, and ends when it should."""

from __future__ import annotations

import gzip
import io
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace

import pytest

from cli_tools import flags, mirada, one_line, refusal, works, write, write_pairs
from mirada.config.configfile import load
from mirada.store import checkpoint
from mirada.store.checkpoint import read_archive
from mirada.train import loop, setup
from mirada.train.interrupts import InterruptedTrainingError
from mirada.train.loop import train
from training_tools import PAIRS, SMALL, assert_same, best, different, losses_rise, progress, trains, write_data

RANDOM = {"dropout": 0.2, "word-dropout": 0.1, "ema-decay": 0.9, "optimizer": "adamw", "weight-decay": 0.01}
PLATEAU = {"scheduling": "plateau", "plateau-patience": 0}
DECODERS: dict[str, dict[str, object]] = {
    "classic": {"rnn-type": "lstm", "enc-layers": 2, "dec-layers": 2, "recurrent-dropout": 0.2},
    "bahdanau": {"rnn-type": "gru", "readout": "deep", "recurrent-dropout": 0.2},
    "luong": {"rnn-type": "lstm", "score": "concat", "recurrent-dropout": 0.2},
    "transformer": {"num-heads": 2, "ff-size": 16, "dec-layers": 2},
}
each_decoder = pytest.mark.parametrize("decoder", DECODERS)


@pytest.fixture
def data(tmp_path: Path) -> dict[str, object]:
    return write_data(tmp_path)


class Asking:
    """A monitor that asks for a stop during one update, as Ctrl-C or a batch system would."""

    def __init__(self, at: int, number: signal.Signals):
        self.at, self.number, self.notes = at, number, list[str]()

    def note(self, line: str) -> None:
        self.notes.append(line)

    def start(self, name: str, total: int | None, done: int) -> None:
        pass

    def update(self, done: int, tokens: int, loss: float) -> None:
        if done == self.at:
            signal.raise_signal(self.number)

    def stop(self) -> None:
        pass


# Going on


@each_decoder
def test_in_the_middle_of_an_epoch(decoder, data, tmp_path, monkeypatch):
    """Eight updates, then eight more, are sixteen; so are seven, asked to stop there, and nine more.

    The rate falls after every validation but the first, for no loss is better than that.
    """
    losses_rise(monkeypatch)
    options = data | RANDOM | PLATEAU | DECODERS[decoder] | {"decoder": decoder, "valid-every": 4}
    whole, halves, asked = (tmp_path / name for name in ("whole", "halves", "asked"))
    trains(whole, options, {"max-updates": 16})
    trains(halves, options, {"max-updates": 8})
    assert (progress(halves)["epoch"], progress(halves)["position"]) == (1, 3)
    assert "going on after update 8\n" in trains(halves, options, {"max-updates": 16})
    assert_same(whole, halves)

    config = load(halves / checkpoint.CONFIG).model_copy(update={"model_dir": str(asked)})
    with pytest.raises(InterruptedTrainingError, match=r"^stopped after update 7, saved in .*asked; the same command"):
        train(config, monitor=Asking(7, signal.SIGINT))
    assert progress(asked)["validated"] == 4
    trains(asked, options, {"max-updates": 16})
    assert_same(whole, asked)
    assert progress(whole)["rate_factor"] == 0.5**3


@each_decoder
def test_at_the_end_of_an_epoch(decoder, data, tmp_path):
    options = data | RANDOM | DECODERS[decoder] | {"decoder": decoder}
    trains(tmp_path / "whole", options, {"epochs": 4})
    trains(tmp_path / "halves", options, {"epochs": 2})
    kept = best(tmp_path / "halves")
    trains(tmp_path / "halves", options, {"epochs": 4})
    assert_same(tmp_path / "whole", tmp_path / "halves")
    assert different(kept, best(tmp_path / "whole")) == list(kept)  # the second half made a better model
    losses = [row["loss"] for row in progress(tmp_path / "whole")["validations"]]
    assert losses[-1] < losses[0]


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_asked_to_stop(number, code, data, tmp_path):
    trains(tmp_path / "a", data, {"max-updates": 1})
    config = load(tmp_path / "a" / checkpoint.CONFIG).model_copy(update={"model_dir": str(tmp_path / "b")})
    before, monitor = signal.getsignal(number), Asking(1, number)
    with pytest.raises(InterruptedTrainingError) as caught:
        train(config, monitor=monitor)
    assert caught.value.exit_code == code
    assert monitor.notes[-1] == "stopping after this update …"
    assert signal.getsignal(number) is before


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_asked_to_stop_twice(number, code, data, tmp_path, monkeypatch):
    """At once, with the code of the second signal; what was saved stays."""
    folder, real, calls = tmp_path / "m", loop.collate, list[int]()

    def asking(*arguments: object) -> object:
        calls.append(1)
        for _ in range(2 * (len(calls) == 3)):
            signal.raise_signal(number)
        return real(*arguments)

    monkeypatch.setattr(loop, "collate", asking)
    ran = mirada("train", *flags(SMALL | data | {"model-dir": folder, "max-updates": 9, "valid-every": 2}))
    assert ran.code == code
    said = "stopped at once, in the middle of an update; the same command goes on from the last save"
    assert one_line(ran.errors) == said
    assert progress(folder)["updates"] == 2


class Paper(io.RawIOBase):
    """What lines are written on, where Ctrl-C comes in the middle of the one about the first validation."""

    def __init__(self):
        self.written = b""

    def writable(self) -> bool:
        return True

    def write(self, data: memoryview) -> int:
        first = b"epoch 1 " not in self.written
        self.written += bytes(data)
        if first and b"epoch 1 " in self.written:
            signal.raise_signal(signal.SIGINT)
        return len(data)


def test_asked_to_stop_in_the_middle_of_a_line(data, tmp_path, monkeypatch):
    trains(tmp_path / "a", data, {"max-updates": 1})
    config = load(tmp_path / "a" / checkpoint.CONFIG)
    changes = {"model_dir": str(tmp_path / "b"), "training": config.training.model_copy(update={"max_updates": 99})}
    paper = Paper()
    monkeypatch.setattr(sys, "stderr", io.TextIOWrapper(io.BufferedWriter(paper), encoding="utf-8"))
    with pytest.raises(InterruptedTrainingError, match=r"^stopped after update 5, saved in "):
        train(config.model_copy(update=changes))
    assert paper.written.count(b"\n") == 5


def test_the_seed_decides(data, tmp_path):
    for name, seed in (("a", 5), ("b", 5), ("c", 6)):
        trains(tmp_path / name, data, RANDOM, {"max-updates": 6, "seed": seed})
    assert_same(tmp_path / "a", tmp_path / "b")
    assert different(best(tmp_path / "a"), best(tmp_path / "c")) == list(best(tmp_path / "a"))


def test_what_has_ended_is_left_as_it_is(data, tmp_path):
    first = trains(tmp_path / "m", data, {"max-updates": 6})
    kept = {path.name: path.read_bytes() for path in (tmp_path / "m").iterdir()}
    second = trains(tmp_path / "m", data, {"max-updates": 6})
    assert {path.name: path.read_bytes() for path in (tmp_path / "m").iterdir()} == kept
    assert "going on after update 6\n" in second
    assert first.splitlines()[-1] == second.splitlines()[-1]
    assert second.splitlines()[-1].startswith("stopped: 6 updates; best loss ")


def test_other_options_and_other_data_are_refused(data, tmp_path):
    folder, options = tmp_path / "m", SMALL | data | {"model-dir": tmp_path / "m", "max-updates": 3}
    trains(folder, data, {"max-updates": 3})
    end = "choose another model_dir (init_from begins there with these weights), or give the same options to go on"
    said = f"{folder} holds a training with other options (dropout was 0.3, now 0.0; hidden_size was 8, now 6); {end}"
    assert refusal("train", *flags(options | {"hidden-size": 6, "dropout": 0})) == said
    write_pairs(tmp_path / "tsv", PAIRS[:49])
    said = f"{folder} was trained on other pairs: the data files have changed; choose another model_dir"
    assert refusal("train", *flags(options)) == said
    write_pairs(tmp_path / "tsv", PAIRS[:50])
    trains(folder, data, {"max-updates": 4})


def test_the_same_pairs_by_another_name_go_on(data, tmp_path, monkeypatch):
    """A relative path, one with dots, and the same text packed."""
    trains(tmp_path / "m", data, {"max-updates": 2})
    monkeypatch.chdir(tmp_path)
    (tmp_path / "packed.gz").write_bytes(gzip.compress((tmp_path / "tsv").read_bytes()))
    for updates, name in enumerate(("tsv", "./tsv", tmp_path / "." / ".." / tmp_path.name / "tsv", "packed.gz"), 3):
        said = trains(tmp_path / "m", data, {"tsv": name, "max-updates": updates})
        assert f"going on after update {updates - 1}\n" in said


def test_the_stored_options_go_on(data, tmp_path):
    trains(tmp_path / "whole", data, {"max-updates": 9, "valid-every": 3})
    trains(tmp_path / "parts", data, {"max-updates": 3, "valid-every": 3})
    stored = tmp_path / "parts" / checkpoint.CONFIG
    works("train", stored, "--max-updates", 6)
    assert load(stored).training.max_updates == 6  # the options in force
    works("train", stored, "--training.max_updates", 9)
    assert_same(tmp_path / "whole", tmp_path / "parts")
    works("train", stored)
    assert progress(tmp_path / "parts")["updates"] == 9


def test_flags_lie_over_the_file(data, tmp_path):
    """Flags with dashes, underscores and blocks; what is stored is all options, with what was left to the data."""
    lines = ["model: {decoder: bahdanau, embedding_dim: 8, hidden_size: 8, dropout: 0.5}", "training: {max_updates: 9}"]
    given = write(tmp_path / "options.yaml", [*lines, f"data: {{tsv: {data['tsv']}}}", f"model_dir: {tmp_path / 'm'}"])
    ran = works("train", given, "--max_updates=1", "--model.dropout", 0.25, "--training.batch-size=7", "--device=cpu")
    assert ran.lines == [str(tmp_path / "m")]
    found = load(tmp_path / "m" / checkpoint.CONFIG)
    assert (found.model.decoder, found.model.hidden_size, found.model.dropout) == ("bahdanau", 8, 0.25)
    assert (found.training.max_updates, found.training.batch_size) == (1, 7)
    assert (found.data.tokenizer, found.data.source_tokenizer, found.data.target_tokenizer) == ("auto", "word", "word")


# Until when


def test_until_so_many_updates_or_epochs(data, tmp_path):
    assert "stopped: 7 updates; " in trains(tmp_path / "a", data, {"max-updates": 7})
    assert (progress(tmp_path / "a")["updates"], progress(tmp_path / "a")["validated"]) == (7, 7)
    assert "stopped: 2 epochs; " in trains(tmp_path / "b", data, {"epochs": 2})
    assert progress(tmp_path / "b")["updates"] == 10
    assert [row["update"] for row in progress(tmp_path / "b")["validations"]] == [5, 10]


def test_until_the_time_is_over(data, tmp_path):
    """Time counts from the first start on: another start does not give more."""
    for _ in range(2):
        assert "stopped: 1e-06 minutes; " in trains(tmp_path / "m", data, {"max-minutes": 1e-6})
        assert progress(tmp_path / "m")["updates"] == 1


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """A clock that training reads, on which an update takes a second and a validation three."""
    now, collate, dev_loss = [0.0], loop.collate, loop.dev_loss

    def later(seconds: float, work: Callable[..., object]) -> Callable[..., object]:
        def done(*arguments: object) -> object:
            now[0] += seconds
            return work(*arguments)

        return done

    for module in (loop, setup):
        monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: now[0]))
    monkeypatch.setattr(loop, "collate", later(1, collate))
    monkeypatch.setattr(loop, "dev_loss", later(3, dev_loss))
    return now


def test_a_minute_lasts_a_minute(data, tmp_path, clock):
    """The last validation included: a fifth of the time at most goes to validations, the first after a tenth."""
    assert "stopped: 1 minutes; " in trains(tmp_path / "m", data, {"max-minutes": 1})
    assert 55 < clock[0] <= 60
    found = progress(tmp_path / "m")
    assert found["validated"] == found["updates"]
    assert found["updates"] + 3 * len(found["validations"]) == clock[0]
    assert [row["update"] for row in found["validations"]][:3] == [6, 18, 30]  # 3 s each want 12 s between them
    stored = load(tmp_path / "m" / checkpoint.CONFIG).training
    assert (stored.scheduling, stored.epochs) == ("linear", None)


def test_a_training_by_the_clock_goes_on_exactly(data, tmp_path, clock):
    """What was measured is saved: the rates of the second part are those of a training that was never stopped."""
    options = data | RANDOM | {"max-minutes": 0.5}
    trains(tmp_path / "whole", options)
    config = load(tmp_path / "whole" / checkpoint.CONFIG).model_copy(update={"model_dir": str(tmp_path / "halves")})
    with pytest.raises(InterruptedTrainingError):
        train(config, monitor=Asking(9, signal.SIGINT))
    trains(tmp_path / "halves", options)
    assert_same(tmp_path / "whole", tmp_path / "halves")


def test_until_nothing_gets_better(data, tmp_path):
    """A rate so small that no weight changes: every loss is the first one."""
    still = {"learning-rate": 1e-30, "valid-every": 1, "patience": 3}
    assert "stopped: no better loss in 3 validations; " in trains(tmp_path / "a", data, still)
    assert (progress(tmp_path / "a")["updates"], progress(tmp_path / "a")["best_update"]) == (4, 1)


def values(monkeypatch: pytest.MonkeyPatch, given: Sequence[float]) -> None:
    """Let the metric of the next validations be what is given."""
    coming = iter(given)
    monkeypatch.setattr(loop, "dev_metrics", lambda *_: {"exact": next(coming)})


def test_until_a_metric_gets_no_better(data, tmp_path, monkeypatch):
    """The loss falls on, but fewer are right, and that is what was asked for."""
    metric = {"valid-every": 2, "valid-metrics": "exact", "early-stopping-metric": "exact", "patience": 2}
    values(monkeypatch, [3, 2, 1])
    assert "stopped: no better exact in 2 validations; " in trains(tmp_path / "m", data, metric)
    losses = [row["loss"] for row in progress(tmp_path / "m")["validations"]]
    assert losses == sorted(losses, reverse=True)
    assert len(set(losses)) == 3


def test_a_metric_that_never_changes_stops_nothing(data, tmp_path, monkeypatch):
    """The loss decides instead, which is said once; as soon as the metric changes, it decides again."""
    metric = {"valid-every": 2, "valid-metrics": "exact", "early-stopping-metric": "exact", "patience": 2}
    values(monkeypatch, [0, 0, 0, 0, 9, 8, 7])
    said = trains(tmp_path / "m", data, metric)
    once = "exact has been 0 in both validations, which says nothing: until it changes, the loss says what is best\n"
    assert said.count(once) == 1
    assert "stopped: no better exact in 2 validations; " in said
    assert progress(tmp_path / "m")["best_update"] == 10


def test_the_best_is_what_the_metric_says(data, tmp_path):
    metric = {"valid-every": 10, "max-updates": 150, "valid-metrics": "per,exact", "early-stopping-metric": "per"}
    trains(tmp_path / "m", data, metric, {"patience": 99, "scheduling": "constant", "dropout": 0})
    note = read_archive(tmp_path / "m" / checkpoint.WEIGHTS).metadata
    rows = progress(tmp_path / "m")["validations"]
    errors = [row["per"] for row in rows]
    assert note["metrics"]["per"] == min(errors) < errors[0]
    assert note["updates"] == rows[errors.index(min(errors))]["update"]


def test_two_ways_to_write_the_pairs(data, tmp_path):
    """Parallel files and JSON lines make the training that the table makes."""
    trains(tmp_path / "a", data, {"max-updates": 2})
    sides = [list(side) for side in zip(*PAIRS, strict=True)]
    parallel = {
        name: write(tmp_path / name, side[start:end])
        for part, start, end in (("", 0, 50), ("dev-", 50, 60))
        for name, side in ((f"{part}src", sides[0]), (f"{part}tgt", sides[1]))
    }
    trains(tmp_path / "b", parallel, {"max-updates": 2})
    rows = [f'{{"pair": {{"from": "{source}", "to": "{target}"}}}}' for source, target in PAIRS]
    lines = {"jsonl": write(tmp_path / "j", rows[:50]), "dev-jsonl": write(tmp_path / "k", rows[50:])}
    trains(tmp_path / "c", lines, {"source-key": "pair.from", "target-key": "pair.to", "max-updates": 2})
    assert_same(tmp_path / "a", tmp_path / "b")
    assert_same(tmp_path / "a", tmp_path / "c")
