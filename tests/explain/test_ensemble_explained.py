"""An ensemble explained: each member's numbers along the ensemble's own output, and the mean of what they say."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import tiny
from cli_tools import refusal, works
from mirada.config.options import SearchConfig
from mirada.explain.ensemble import mean, trace_ensemble
from mirada.explain.record import plain
from mirada.explain.verify import verify
from mirada.loading import load

TEXT = tiny.SOURCES[0]
SEARCH = SearchConfig(beam_size=3, n_best=2, max_output_length=3)
NAMES = ("bahdanau", "luong", "letters")


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    where = tmp_path_factory.mktemp("ensemble")
    letters = {"data": {"source_tokenizer": "char"}}
    kinds = (("bahdanau", {}), ("luong", {}), ("luong", letters))
    return [tiny.write_folder(where / name, *kind) for name, kind in zip(NAMES, kinds, strict=True)]


@pytest.mark.parametrize("mode", ["linear", "log_linear"])
def test_the_mean_is_that_of_the_members_and_what_translate_scores(folders: list[Path], mode: str) -> None:
    translator = load(folders, device="cpu", ensemble_mode=mode)
    outputs = translator.search([TEXT], options=SEARCH)[0]
    found = trace_ensemble(translator, TEXT, options=SEARCH)
    assert [one.text for one in found] == [output.text for output in outputs]
    for joint, output in zip(found, outputs, strict=True):
        own = [step.chosen.log_probability for step in joint.steps]
        assert own[: len(output.token_log_probabilities)] == pytest.approx(output.token_log_probabilities, abs=1e-4)
        for step in joint.steps:
            moments = [member.steps[step.step - 1] for member in joint.members]
            given = [moment.chosen.probability for moment in moments]
            assert list(step.chosen.members) == pytest.approx(given)
            if mode == "linear":
                assert step.chosen.probability == pytest.approx(np.mean(given))
            assert [one.probability for one in step.top] == sorted((one.probability for one in step.top), reverse=True)
        assert joint.log_probability == pytest.approx(sum(own))
    for name, model in zip(NAMES, range(len(folders)), strict=True):
        alone = load(folders[model], device="cpu")
        [verdict] = verify([json.loads(json.dumps(plain(found[0].members[model])))], alone)
        assert verdict.faults == [], name


def test_the_two_means_by_hand() -> None:
    parts = [np.log([0.8, 0.2]), np.log([0.5, 0.5])]
    assert np.exp(mean(parts, "linear")) == pytest.approx([0.65, 0.35])
    assert np.exp(mean(parts, "log_linear")) == pytest.approx([2 / 3, 1 / 3])


def test_the_command_tells_each_member_and_the_mean(folders: list[Path], tmp_path: Path) -> None:
    search = ("--beam-size", 2, "--max-output-length", 2, "--device", "cpu")
    text = works("explain", *folders, TEXT, *search, "--step", 1).output
    for place, folder in enumerate(folders, start=1):
        assert f"Member {place} of 3: {folder}"[:70] in text.replace("\n    ", " ")
    assert "The ensemble, output 1: p(y_t) = 1/M Σ_m p_m(y_t)" in text
    assert " from p_1 " in text
    file = tmp_path / "e.json"
    works("explain", *folders[:2], TEXT, *search, "--format", "json", "--ensemble-mode", "log_linear", "--output", file)
    [trace] = json.loads(file.read_text())["traces"]
    assert trace["mode"] == "log_linear"
    assert len(trace["members"]) == 2
    given = works("explain", *folders, TEXT, "--reference", "el gato", *search).output
    assert "Output el gato" in given
    [begun] = trace_ensemble(
        load(folders, device="cpu"), TEXT, options=SearchConfig(beam_size=1, max_output_length=6), prefix="el z"
    )
    assert begun.text.startswith("el z")


def test_what_an_ensemble_cannot_show_is_one_line(folders: list[Path]) -> None:
    assert refusal("explain", *folders, TEXT, "--format", "html") == (
        "--format html shows one model; an ensemble has text and json"
    )
    assert refusal("explain", *folders, TEXT, "--attention", "uniform") == (
        "--attention changes one model; explain it without the others of the ensemble"
    )
    assert refusal("explain", folders[0], TEXT, "--ensemble-mode", "linear") == (
        "--ensemble-mode goes with several models; one alone is its own mean"
    )
    assert refusal("explain", "--verify", "x.json", *folders[:2]) == (
        "--verify recomputes the numbers of one model; give the one that the file is of"
    )
