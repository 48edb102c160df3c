"""A training goes on exactly where it stood, or says in one line why it does not."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import pytest
import torch

import tiny
from mirada.config.configfile import parse
from mirada.config.options import Config, TrainingConfig
from mirada.errors import ModelFolderError, TrainingError
from mirada.store import checkpoint, resume
from mirada.store.checkpoint import Archive
from mirada.store.progress import Progress, judged_by, tells_nothing
from mirada.store.resume import BUDGET, PLACES, Saved, differences
from mirada.train import prepare

DATA = "fingerprint"


def config(**training: Any) -> Config:
    return parse({"training": training})


# Which options may change


@pytest.mark.parametrize(
    "training",
    [
        {"epochs": 99},
        {"max_updates": 7},
        {"max_minutes": 1.5},
        {"patience": 1},
        {"device": "cpu"},
        {"tensorboard": True},
        {"save_every": 10},
        {"keep_best": 3},
        {"epochs": 1, "max_updates": 2, "max_minutes": 3, "patience": 4},
    ],
)
def test_budgets_may_change(training):
    assert differences(config(), config(**training)) == []
    assert set(training) <= BUDGET


def test_where_to_search_and_where_to_write_may_change():
    other = parse({"model_dir": "elsewhere", "search": {"beam_size": 1}})
    assert differences(config(), other) == []


def test_where_the_pairs_stand_may_change():
    """Whether they are the same pairs is what their fingerprint says."""
    data = {name: 2 if isinstance(value, int) else "x" for name, value in Config().data if name in PLACES}
    training = {name: "x" for name, _ in Config().training if name in PLACES}
    assert {*data, *training} == PLACES
    assert differences(Config(), parse({"data": data, "training": training})) == []


@pytest.mark.parametrize("shape", ["cosine", "linear"])
def test_a_schedule_with_an_end_fixes_the_end(shape):
    stored = config(scheduling=shape, max_updates=100)
    assert differences(stored, config(scheduling=shape, max_updates=200, epochs=30)) == [
        "epochs was not given, now 30",
        "max_updates was 100, now 200",
    ]
    assert differences(stored, config(scheduling=shape, max_updates=100, patience=1)) == []


@pytest.mark.parametrize("shape", ["constant", "inverse_sqrt", "plateau"])
def test_a_schedule_without_an_end_does_not(shape):
    assert differences(config(scheduling=shape), config(scheduling=shape, epochs=1, max_updates=9)) == []


def test_what_is_learned_may_not_change():
    other = parse({"data": {"vocab_size": 100}, "model": {"hidden_size": 8}, "training": {"seed": 2}})
    assert differences(Config(), other) == [
        "vocab_size was not given, now 100",
        "hidden_size was 512, now 8",
        "seed was 1, now 2",
    ]
    assert differences(other, Config())[0] == "vocab_size was 100, now not given"


# Without these the options would do nothing.
BESIDE: dict[str, dict[str, Any]] = {
    "early_stopping_metric": {"valid_metrics": ["bleu"]},
    "decrease_factor": {"scheduling": "plateau"},
    "plateau_patience": {"scheduling": "plateau"},
    "init_vocab": {"init_from": "m"},
}


def test_every_other_option_of_a_training_is_fixed():
    fixed = set(TrainingConfig.model_fields) - BUDGET - PLACES
    unusual = {
        "batch_size": 3, "batch_type": "token", "optimizer": "adamw", "learning_rate": 0.5, "weight_decay": 0.1,
        "adam_betas": [0.5, 0.5], "scheduling": "constant", "warmup_steps": 3, "decrease_factor": 0.1,
        "plateau_patience": 7, "clip_grad_norm": 3.0, "label_smoothing": 0.3, "ema_decay": 0.9, "valid_every": 5,
        "accum_count": 2, "init_vocab": "map", "freeze": ["encoder"], "coverage_weight": 0.3,
        "valid_metrics": ["bleu"], "valid_sentences": 5, "early_stopping_metric": "bleu", "seed": 9,
        "precision": "bf16",
    }  # fmt: skip
    assert set(unusual) == fixed
    for name, value in unusual.items():
        beside = BESIDE.get(name, {})
        model = {"coverage": True, "score": "concat"} if name == "coverage_weight" else {}
        found = differences(
            *(parse({"model": model, "training": {**beside, **given}}) for given in ({}, {name: value}))
        )
        assert any(change.startswith(f"{name} was ") for change in found), name


# What is in a folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A training that has saved: options, tokenisers, and the state that `archive` makes."""
    tiny.write_folder(tmp_path, "luong")
    checkpoint.write_archive(tmp_path / checkpoint.RESUME, Archive({}, {"progress": vars(Progress(DATA))}))
    return tmp_path


def test_nothing_to_go_on_with(tmp_path, folder):
    assert resume.read(tmp_path / "none", tiny.options("luong"), DATA) is None
    (folder / checkpoint.RESUME).unlink()
    assert resume.read(folder, tiny.options("luong"), DATA) is None


def test_the_same_options_and_data_go_on(folder):
    archive = resume.read(folder, tiny.options("luong"), DATA)
    assert archive is not None
    assert archive.progress == Progress(DATA)


def test_other_options_are_refused(folder):
    stored = tiny.options("luong")
    other = parse(
        {**stored.model_dump(), "training": {"seed": 5, "batch_size": 2, "ema_decay": 0.5, "warmup_steps": 1}}
    )
    message = (
        f"{folder} holds a training with other options (batch_size was 64, now 2; ema_decay was 0.0, now 0.5; "
        "seed was 1, now 5); choose another model_dir (init_from begins there with these weights), or give the same "
        "options to go on"
    )
    with pytest.raises(TrainingError, match=f"^{re.escape(message)}$"):
        resume.read(folder, other, DATA)


def test_other_data_are_refused(folder):
    message = f"{folder} was trained on other pairs: the data files have changed; choose another model_dir"
    with pytest.raises(TrainingError, match=f"^{re.escape(message)}$"):
        resume.read(folder, tiny.options("luong"), "another fingerprint")


@pytest.mark.parametrize(
    "note", [{}, {"progress": 3}, {"progress": {"epoch": 1}}, {"progress": {**vars(Progress(DATA)), "more": 1}}]
)
def test_progress_of_another_version(folder, note):
    checkpoint.write_archive(folder / checkpoint.RESUME, Archive({}, note))
    message = f"{folder / checkpoint.RESUME}: its progress is damaged or from another version"
    with pytest.raises(ModelFolderError, match=f"^{re.escape(message)}$"):
        resume.read(folder, tiny.options("luong"), DATA)


# The state itself


def trained(updates: int) -> tuple[torch.nn.Module, torch.optim.Optimizer, dict[str, torch.Tensor]]:
    """A tiny model, its Adam and its average after some updates, all of which use torch's random state."""
    torch.manual_seed(3)
    options = tiny.options("luong")
    model = tiny.random_model(options, tuple(map(len, prepare.learn_tokenizers(options, tiny.CORPUS))))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    average = {name: weights.clone() for name, weights in checkpoint.weights_of(model).items()}
    for _ in range(updates):
        update(model, optimizer, average)
    return model, optimizer, average


def update(model: torch.nn.Module, optimizer: torch.optim.Optimizer, average: dict[str, torch.Tensor]) -> None:
    optimizer.zero_grad()
    sum((weights * torch.randn_like(weights)).sum() for weights in model.parameters()).backward()
    optimizer.step()
    for name, weights in checkpoint.weights_of(model).items():
        average[name].lerp_(weights, 0.1)


def test_what_is_collected_and_restored_goes_on_exactly(tmp_path):
    state = trained(3)
    progress = Progress(DATA, epoch=1, updates=3, best_metrics={"loss": 0.1}, validations=[{"epoch": 1, "loss": 0.1}])
    checkpoint.write_archive(tmp_path / "resume", resume.collect(progress, *state, tiny.options("luong")))
    update(*state)
    update(*state)
    fresh = trained(0)
    torch.manual_seed(99)
    archive = checkpoint.read_archive(tmp_path / "resume")
    saved = Saved(archive.tensors, Progress(**archive.metadata["progress"]))
    assert resume.restore(saved, *fresh) == progress
    update(*fresh)
    update(*fresh)
    expected, found = (checkpoint.weights_of(model) for model in (state[0], fresh[0]))
    assert all(torch.equal(found[name], weights) for name, weights in expected.items())
    assert all(torch.equal(fresh[2][name], weights) for name, weights in state[2].items())


# Better, worse, and plateaus


def test_the_best_validation_is_remembered():
    progress, options = Progress(DATA), TrainingConfig()
    improved = []
    for updates, loss in [(10, 3.0), (20, 2.0), (30, 2.0), (40, 2.5), (50, 1.9)]:
        progress.updates = updates
        improved.append(progress.record_validation({"loss": loss}, options, "loss"))
        if updates == 40:
            assert progress.without_improvement == 2
    assert improved == [True, True, False, False, True]
    assert (progress.best_update, progress.best_metrics, progress.without_improvement) == (50, {"loss": 1.9}, 0)
    assert progress.validated == 50
    assert progress.validations[1] == {"epoch": 1, "update": 20, "loss": 2.0}


@pytest.mark.parametrize(("metric", "values"), [("bleu", [1.0, 2.0, 2.0, 1.5]), ("wer", [9.0, 8.0, 8.0, 8.5])])
def test_better_is_what_the_metric_says(metric, values):
    options = TrainingConfig(early_stopping_metric=metric, valid_metrics=(metric,))
    progress = Progress(DATA)
    found = [progress.record_validation({"loss": 1.0, metric: value}, options, metric) for value in values]
    assert found == [True, True, False, False]


def test_a_metric_that_never_changes_leaves_the_choice_to_the_loss():
    """0, 0, 0: the loss decides; then 5 is better than 0, and from there on the metric decides."""
    options, progress = TrainingConfig(early_stopping_metric="exact", valid_metrics=("exact",)), Progress(DATA)
    rows = [(0.0, 3.0), (0.0, 2.0), (0.0, 2.5), (5.0, 2.6), (4.0, 1.0), (5.0, 0.9), (6.0, 9.0)]
    found = [progress.record_validation({"exact": exact, "loss": loss}, options, "exact") for exact, loss in rows]
    assert found == [True, True, False, True, False, False, True]
    nothing = [{"exact": value} for value in (0.0, math.nan, 0.0)]
    assert [tells_nothing(nothing[:count], "exact") for count in (1, 2, 3)] == [False, True, True]
    assert not tells_nothing([{"loss": 1.0}] * 3, "loss")
    assert [judged_by([*nothing, {"exact": value}], "exact") for value in (0.0, 1.0)] == ["loss", "exact"]


def test_the_rate_falls_on_a_plateau():
    options = TrainingConfig(scheduling="plateau", plateau_patience=1, decrease_factor=0.25)
    progress = Progress(DATA)
    factors = []
    for loss in [3, 3, 3, 3, 3, 2, 2, 2]:
        progress.record_validation({"loss": loss}, options, "loss")
        factors.append(progress.rate_factor)
    assert factors == [1, 1, 0.25, 0.25, 0.0625, 0.0625, 0.0625, 0.015625]
    constant = Progress(DATA)
    for _ in range(9):
        constant.record_validation({"loss": 3}, TrainingConfig(), "loss")
    assert constant.rate_factor == 1
