"""`mirada sweep`: which trials there are, what becomes of them, what is done again, and every mistake's line."""

from __future__ import annotations

import csv
import json
import math
from pathlib import Path
from typing import Any

import pytest
import yaml

from cli_tools import mirada, refusal
from compare_tools import write_pairs
from mirada.config.sweep import SweepConfig, ValueRange, combinations, read_sweep
from mirada.scaling.engine import EngineChoice
from mirada.study import sweep as module
from mirada.study.sweep import SweepRequest, sweep, table
from mirada.translator import load

TRAINING = {"max_updates": 2, "valid_every": 2, "batch_size": 3, "device": "cpu", "warmup_steps": 1}


def options(folder: Path, **blocks: dict[str, Any]) -> dict[str, Any]:
    """The blocks that all trials share: six pairs, tiny sizes."""
    pairs = write_pairs(folder)
    data = {**pairs, **{f"dev_{name}": path for name, path in pairs.items()}, "vocab_size": 60}
    model = {"embedding_dim": 8, **blocks.pop("model", {})}
    return {"data": data, "model": model, "training": {**TRAINING, **blocks.pop("training", {})}, **blocks}


def file(folder: Path, content: dict[str, Any]) -> Path:
    path = folder / "sweep.yaml"
    path.write_text(yaml.safe_dump(content, sort_keys=False), encoding="utf-8")
    return path


def asked(folder: Path, vary: dict[str, Any], **changes: Any) -> SweepRequest:
    config, shared = read_sweep(file(folder, {**options(folder), "sweep": {"vary": vary, **changes}}))
    return SweepRequest(folder / "out", config, shared, quiet=True)


# --- which trials ----------------------------------------------------------------------------------------------------


def test_a_grid_is_every_combination() -> None:
    config = SweepConfig(vary={"model.hidden_size": [8, 16], "model.decoder": ["luong", "classic", "bahdanau"]})
    rows = [(one["model.hidden_size"], one["model.decoder"]) for one in combinations(config)]
    assert rows == [(size, kind) for size in (8, 16) for kind in ("luong", "classic", "bahdanau")]


def test_random_search_draws_within_bounds_evenly_and_more_trials_begin_alike() -> None:
    """Four draws in ten lie in the lower half of a logarithm's four tenths: by scale, not by number."""
    vary = {
        "training.learning_rate": ValueRange(low=1e-4, high=1e-2, log=True),
        "model.dropout": ValueRange(low=0.0, high=0.5),
        "model.hidden_size": ValueRange(low=8, high=512, log=True),
        "model.enc_layers": ValueRange(low=1, high=3),
    }
    drawn = list(combinations(SweepConfig(vary=vary, trials=400)))
    assert list(combinations(SweepConfig(vary=vary, trials=20))) == drawn[:20]
    assert list(combinations(SweepConfig(vary=vary, trials=20, seed=2))) != drawn[:20]
    columns = {name: [one[name] for one in drawn] for name in vary}
    for name, span in vary.items():
        assert all(span.low <= value <= span.high for value in columns[name])
    middles = {"training.learning_rate": 1e-3, "model.dropout": 0.25, "model.hidden_size": 64}
    for name, middle in middles.items():
        assert 150 < sum(value < middle for value in columns[name]) < 250  # of 400, five deviations
    assert {type(value) for value in columns["model.hidden_size"]} == {int}
    assert {columns["model.enc_layers"].count(n) > 90 for n in (1, 2, 3)} == {True}
    assert all(float(f"{value:.4g}") == value for value in columns["training.learning_rate"])


def test_no_combination_comes_twice() -> None:
    config = SweepConfig(vary={"model.enc_layers": [1, 2], "model.dec_layers": [1, 2]}, trials=9)
    drawn = [tuple(one.values()) for one in combinations(config)]
    assert sorted(drawn) == [(1, 1), (1, 2), (2, 1), (2, 2)]


# --- what becomes of them --------------------------------------------------------------------------------------------


def test_trials_are_sorted_written_and_not_done_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two that can be trained and one that cannot; then one more, and only that is trained."""
    vary: dict[str, Any] = {"model.hidden_size": [8, -3, 12]}
    shared = options(tmp_path, training={"early_stopping_metric": "loss"})
    path, out = file(tmp_path, {**shared, "sweep": {"vary": vary}}), tmp_path / "out"
    ran = mirada("sweep", path, "--out", out, "--quiet")
    assert ran.code == 1
    head, *rows, best = ran.lines
    assert head.split() == ["dev", "loss", "hidden_size", "updates", "seconds", "folder"]
    stored = json.loads((out / "results.json").read_text())
    assert stored["metric"] == "loss"
    *done, failed = stored["trials"]
    assert [row["loss"] for row in done] == sorted(row["loss"] for row in done)
    assert {row["model.hidden_size"] for row in done} == {8, 12}
    assert (failed["model.hidden_size"], failed["loss"], failed["trial"]) == (-3, None, 2)
    line = "options: model.hidden_size: input should be greater than or equal to 1 (got -3)"
    assert failed["error"] == line
    assert rows[-1].endswith(f"  failed: {line}")
    assert f"trial 2 (hidden_size -3): failed: {line}\n" in ran.errors
    assert best == done[0]["folder"]
    for row in done:
        model = load(row["folder"], device="cpu")
        assert model.config.model.hidden_size == row["model.hidden_size"]
        assert model.metrics["loss"] == pytest.approx(row["loss"])
    with (out / "results.csv").open(newline="") as stream:
        cells = list(csv.DictReader(stream))
    assert [cell["folder"] for cell in cells] == [row["folder"] for row in stored["trials"]]
    assert [cell["error"] for cell in cells] == ["", "", line]

    trained: list[str] = []
    train = module.train
    monkeypatch.setattr(module, "train", lambda config, monitor: trained.append(config) or train(config))
    file(tmp_path, {**shared, "sweep": {"vary": {"model.hidden_size": [10, 12, 8]}}})
    again = mirada("sweep", path, "--out", out, "--quiet")
    assert again.code == 0
    assert [config.model.hidden_size for config in trained] == [10]
    assert "2 of 3 trials are finished already\n" in again.errors
    assert len(again.lines) == 5
    assert {row["folder"] for row in done} < {row["folder"] for row in trials_of(out)}


def trials_of(out: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((out / "results.json").read_text())["trials"]
    return found


@pytest.mark.slow
def test_two_workers_find_what_one_process_finds(tmp_path: Path) -> None:
    said: list[str] = []
    request = asked(tmp_path, {"model.hidden_size": [8, 12]})
    alone = sweep(request, said.append)
    engine = EngineChoice("processes", 2, gpus=False)
    both = sweep(SweepRequest(tmp_path / "both", request.config, request.options, engine), said.append)
    assert [row.value for row in alone.rows] == [row.value for row in both.rows]
    assert [row.trial.folder.name for row in alone.rows] == [row.trial.folder.name for row in both.rows]
    assert said == [
        "trial 1 (hidden_size 8): training",
        "trial 2 (hidden_size 12): training",
        "trial 1 (hidden_size 8): queued",
        "trial 2 (hidden_size 12): queued",
        "trial 1 (hidden_size 8): done",
        "trial 2 (hidden_size 12): done",
    ]


def pretended(monkeypatch: pytest.MonkeyPatch, metrics: dict[int, dict[str, float]]) -> None:
    """Trials that are finished at once, with the metrics of their hidden sizes."""

    def make(_quiet: bool) -> Any:
        def run(trial: module.Trial) -> None:
            size = trial.values["model.hidden_size"]
            if size not in metrics:
                raise MemoryError("no room\nfor that")
            trial.folder.mkdir(exist_ok=True)
            content = {"metric": "loss", "metrics": metrics[size], "updates": 1, "seconds": 0.5}
            (trial.folder / "trial.json").write_text(json.dumps(content))

        return run

    monkeypatch.setattr(module, "make_training", make)


def test_what_best_means(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A low loss, a high BLEU; what has no number comes after all numbers, what failed after that."""
    metrics = {1: {"loss": 3.0, "bleu": 9.0}, 2: {"loss": 2.0, "bleu": 1.0}, 3: {"loss": math.nan, "bleu": 5.0}}
    pretended(monkeypatch, {**metrics, 4: {"loss": 9.0}})
    vary = {"model.hidden_size": [1, 2, 3, 4, 5]}
    for metric, order in ((None, [2, 1, 4, 3, 5]), ("bleu", [1, 3, 2, 4, 5])):
        found = sweep(asked(tmp_path, vary, metric=metric), lambda _: None)
        assert [row.trial.values["model.hidden_size"] for row in found.rows] == order
        assert found.rows[-1].error == "MemoryError: no room"
        assert table(*found)[0].split()[:2] == ["dev", metric or "loss"]


def test_fewer_combinations_than_trials(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pretended(monkeypatch, {1: {"loss": 1.0}, 2: {"loss": 2.0}})
    said: list[str] = []
    sweep(asked(tmp_path, {"model.hidden_size": [1, 2]}, trials=5), said.append)
    assert said[0] == "2 trials: there are no more combinations"


# --- every mistake's line --------------------------------------------------------------------------------------------

VARY = {"vary": {"model.hidden_size": [8]}}


@pytest.mark.parametrize(
    ("content", "line"),
    [
        ({}, "no block sweep, which says what varies; for one training there is `mirada train`"),
        ({"sweep": VARY, "model_dir": "x"}, "model_dir: each trial has a folder of its own below --out; leave it out"),
        ({"sweep": VARY, "modle": {}}, "unknown option 'modle'; did you mean 'model'?"),
        ({"sweep": VARY, "model": 3}, "model: expected a mapping of options, got 3"),
        ({"sweep": {}}, "sweep: vary: field required (got {})"),
        ({"sweep": {**VARY, "trails": 3}}, "sweep: unknown option 'trails'; did you mean 'trials'?"),
        ({"sweep": {**VARY, "trials": 0}}, "sweep: trials: input should be greater than or equal to 1 (got 0)"),
        ({"sweep": {"vary": {}}}, "vary is empty; name an option of train, such as model.hidden_size: [128, 256]"),
        (
            {"sweep": {"vary": {"model.hiden_size": [8]}}},
            "vary: model.hiden_size: no option of train; did you mean 'model.hidden_size'?",
        ),
        (
            {"sweep": {"vary": {"hidden_size": [8]}}},
            "vary: hidden_size: no option of train; did you mean 'model.hidden_size'?",
        ),
        (
            {"sweep": VARY, "model": {"hidden_size": 8}},
            "vary: model.hidden_size stands in the block model too; leave one of them out",
        ),
        (
            {"sweep": {"vary": {"model.hidden_size": 8}}},
            "vary: model.hidden_size: expected a list of values, or low and high, got 8",
        ),
        (
            {"sweep": {"vary": {"model.hidden_size": []}}},
            "vary: model.hidden_size: expected a list of values, or low and high, got []",
        ),
        (
            {"sweep": {"vary": {"model.dropout": {"low": 0.1, "hihg": 0.5}}}},
            "vary: model.dropout: high: field required (got {'low': 0.1, 'hihg': 0.5})",
        ),
        (
            {"sweep": {"vary": {"model.dropout": {"low": 0.1, "high": 0.5, "step": 1}}}},
            "vary: model.dropout: unknown option 'step'",
        ),
        (
            {"sweep": {"vary": {"model.dropout": {"low": 0.5, "high": 0.1}}}},
            "vary: model.dropout: low 0.5 must be below high 0.1",
        ),
        (
            {"sweep": {"vary": {"model.dropout": {"low": 0, "high": 0.1, "log": True}}}},
            "vary: model.dropout: low 0 must be above 0 with log true",
        ),
        (
            {"sweep": {"vary": {"model.dropout": {"low": 0.1, "high": 0.5}}}},
            "vary: model.dropout has low and high, which no grid ends with; give sweep.trials too",
        ),
        (
            {"sweep": {"vary": {"model.hidden_size": list(range(101)), "training.seed": list(range(100))}}},
            "vary: 10,100 combinations, more than 10,000; give sweep.trials for random search",
        ),
    ],
)
def test_mistakes_in_the_file(content: dict[str, Any], line: str, tmp_path: Path) -> None:
    path = file(tmp_path, content)
    assert refusal("sweep", path, "--out", tmp_path / "out") == f"{path}: {line}"
    assert not (tmp_path / "out").exists()


def test_other_mistakes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Wrong in every trial: told at once. No trial finished: the first one's reason."""
    out = ["--out", tmp_path / "out"]
    assert refusal("sweep", tmp_path / "no.yaml", *out) == f"{tmp_path / 'no.yaml'}: no such file"
    assert refusal("sweep", file(tmp_path, {"sweep": VARY})) == (
        "the following arguments are required: --out; see `mirada sweep --help`"
    )
    path = file(tmp_path, {"sweep": VARY, "model": {"decodr": "luong"}})
    assert refusal("sweep", path, *out) == "options: unknown option 'model.decodr'; did you mean 'decoder'?"
    path = file(tmp_path, {"sweep": {**VARY, "metric": "blue"}})
    assert refusal("sweep", path, *out).startswith("unknown metric 'blue'; did you mean 'bleu'?")
    pretended(monkeypatch, {})
    path = file(tmp_path, {"sweep": VARY})
    assert refusal("sweep", path, *out) == "every trial failed; the first: MemoryError: no room"
    pretended(monkeypatch, {8: {"loss": 1.0}})
    path = file(tmp_path, {"sweep": {**VARY, "metric": "bleu"}})
    assert refusal("sweep", path, *out) == ("sweep.metric bleu was not measured; add it to valid_metrics, or use loss")
