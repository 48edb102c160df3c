"""A whole comparison in small: its numbers in every form, failures, going on after a kill, and what it refuses."""

from __future__ import annotations

import csv
import json
import os
import pickle
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import tiny
from cli_tools import ENVIRONMENT, command, refusal
from compare_tools import MODEL, SEARCH, TRAINING, in_this_process, request, timeless, write_pairs
from mirada.cli import main
from mirada.errors import ConfigError, TrainingError
from mirada.evaluation.metrics import evaluate
from mirada.files import locked
from mirada.scaling.engine import EngineChoice
from mirada.scaling.pool import Here, Make
from mirada.study.compare import worker
from mirada.study.compare.comparison import compare
from mirada.study.compare.jobs import StoppedError
from mirada.study.compare.stored import RunJob
from mirada.translator import load


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    """A finished comparison of two systems with two seeds each."""
    folder = tmp_path_factory.mktemp("compare")
    lines: list[str] = []
    results = compare(request(folder, seeds=2, match_parameters=True), lines.append, launch=in_this_process)
    return folder / "out", results, lines


def rows_of(out: Path) -> list[dict[str, str]]:
    with (out / "results.csv").open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


def test_values_are_the_metrics_of_the_models_outputs(done):
    out, results, _ = done
    for system in results["systems"]:
        values = []
        for seed in (1, 2):
            model = load(out / "runs" / f"{system['name']}-{seed}" / "model", device="cpu")
            outputs = model.translate(tiny.SOURCES)
            values.append(
                [metric.value for metric in evaluate(outputs, [[t] for t in tiny.TARGETS], results["metrics"])]
            )
        for name, by_seed in zip(results["metrics"], zip(*values, strict=True), strict=True):
            assert system["metrics"][name]["by_seed"] == list(by_seed)
            assert system["metrics"][name]["value"] == pytest.approx(sum(by_seed) / 2)


def test_conditions_are_equal_and_weights_match(done):
    out, results, _ = done
    files = [path.read_bytes() for path in out.glob("runs/*/model/source.json")]
    assert len(files) == 4
    assert len(set(files)) == 1
    first, second = (system["parameters"] for system in results["systems"])
    assert abs(second - first) <= 0.05 * first
    assert all(system["updates"] == [3, 3] for system in results["systems"])


def test_the_best_attention_entropy_lies_between_none_and_even(done):
    classic, luong = done[1]["systems"]
    assert classic["entropy"] is None
    assert 0 < luong["entropy"] < 4


def test_the_report_says_the_numbers_of_the_results(done):
    out, results, lines = done
    stored = json.loads((out / "results.json").read_text(encoding="utf-8"))
    assert stored == json.loads(json.dumps(results))
    texts = [(out / name).read_text(encoding="utf-8") for name in ("report.html", "report.md")]
    for system in stored["systems"]:
        for found in system["metrics"].values():
            shown = f"{found['value']:.1f} [{found['low']:.1f}, {found['high']:.1f}]"
            assert all(shown in text for text in texts)
        for bucket in system["by_length"]:
            shown = f"{bucket['value']:.1f} [{bucket['interval_low']:.1f}, {bucket['interval_high']:.1f}]"
            assert all(shown in text for text in texts)
        assert all(f"{system['parameters']:,}" in text for text in texts)
    assert lines[-1].startswith(("Best bleu: ", "No system has learned anything yet (bleu "))
    assert all(lines[-1] in text.replace("\\", "") for text in texts)


def test_the_table_of_numbers_is_complete(done):
    out, results, _ = done
    rows = rows_of(out)
    for system in results["systems"]:
        mine = [row for row in rows if row["system"] == system["name"]]
        whole = {row["measure"]: row for row in mine if (row["part"], row["item"]) == ("quality", "all")}
        for name, found in system["metrics"].items():
            assert [float(whole[name][key]) for key in ("value", "low", "high")] == [
                found[key] for key in ("value", "low", "high")
            ]
        lengths = [row for row in mine if row["part"] == "length"]
        assert [int(row["items"]) for row in lengths] == [bucket["count"] for bucket in system["by_length"]]
        assert sum(int(row["items"]) for row in lengths) == len(tiny.SOURCES)


def test_the_page_needs_no_network_and_its_figures_are_there(done):
    out = done[0]
    page = (out / "report.html").read_text(encoding="utf-8")
    assert not re.search(r"https?://|<script|<link|@import|\bsrc=", page)
    assert page.count("<svg") >= 3
    ids = re.findall(r'\bid="([^"]+)"', page)
    assert len(ids) == len(set(ids))
    for name in ("quality", "by-length"):
        assert (out / f"figures/{name}.png").read_bytes().startswith(b"\x89PNG")
        assert "<svg" in (out / f"figures/{name}.svg").read_text(encoding="utf-8")
    markdown = (out / "report.md").read_text(encoding="utf-8")
    for path in re.findall(r"\]\((figures/[^)]+)\)", markdown):
        assert (out / path).exists()


def test_sentences_that_differ_come_with_outputs_and_attention(done):
    out, results, _ = done
    sentence = results["sentences"][0]
    assert set(sentence["outputs"]) == {"classic-lstm", "luong-dot"}
    assert set(sentence["attention"]) == {"luong-dot"}
    found = sentence["attention"]["luong-dot"]
    assert [len(row) for row in found["weights"]] == [len(found["source"])] * len(found["target"])
    assert all(sum(row) == pytest.approx(1, abs=0.01) for row in found["weights"])
    assert sentence["source"] in (out / "report.md").read_text(encoding="utf-8")


def test_the_same_again_only_tells_what_is_there(done):
    out, results, _ = done
    lines: list[str] = []

    def never(folder: Path) -> int:
        raise AssertionError(f"{folder} is done")

    again = compare(request(out.parent, seeds=2, match_parameters=True), lines.append, resume=True, launch=never)
    assert again == json.loads(json.dumps(results))
    assert lines[0] == "[1/4] classic-lstm, seed 1: done before"


def test_other_options_and_other_pairs_are_not_mixed_in(done):
    out = done[0]
    with pytest.raises(
        ConfigError, match=r"holds runs already; add --resume to go on with them, or choose another --out$"
    ):
        compare(request(out.parent), print, launch=in_this_process)
    with pytest.raises(ConfigError, match=r"begun with other options \(training.training.max_updates was 3, now 4\)"):
        compare(request(out.parent, seeds=2, match_parameters=True, budget="4updates"), print, resume=True)
    changed = request(out.parent, seeds=2)
    target = Path(changed.options["data"]["tgt"])
    target.write_text(target.read_text(encoding="utf-8").replace("gato", "perro"), encoding="utf-8")
    with pytest.raises(
        TrainingError, match=r"train.jsonl holds other pairs than those given now; choose another --out$"
    ):
        compare(changed, print, resume=True)


def test_a_run_that_fails_is_reported_and_the_others_stand(tmp_path, monkeypatch):
    def fail(config, *, monitor):
        if config.model.decoder == "transformer":
            raise RuntimeError("out of memory\nlong story")
        return train(config, monitor=monitor)

    train = worker.train
    monkeypatch.setattr(worker, "train", fail)
    asked = request(tmp_path, systems=("classic-lstm", "transformer", "bahdanau"), budget="1updates")

    def launch(folder: Path) -> int:
        return -signal.SIGKILL if folder.name == "bahdanau-1" else in_this_process(folder)

    results = compare(asked, print, launch=launch)
    classic, transformer, bahdanau = results["systems"]
    assert classic["metrics"]["bleu"]["value"] >= 0
    assert transformer["failed"] == {"1": "RuntimeError: out of memory"}
    assert bahdanau["failed"]["1"].startswith("its process was killed (signal 9), as a machine without memory does")
    assert "metrics" not in transformer
    report = (asked.out / "report.md").read_text(encoding="utf-8")
    assert "seed 1: RuntimeError: out of memory" in report

    monkeypatch.setattr(worker, "train", train)
    results = compare(asked, print, resume=True, launch=in_this_process)
    assert all(system["failed"] == {} and "metrics" in system for system in results["systems"])


def test_when_every_run_fails_the_command_fails(tmp_path):
    with pytest.raises(TrainingError, match=r"^every run failed; the first: its process ended with exit code 9$"):
        compare(request(tmp_path), print, launch=lambda folder: 9)
    assert "No run was finished" in (tmp_path / "out/report.md").read_text(encoding="utf-8")


def test_a_run_that_is_asked_to_stop_stops_the_comparison(tmp_path):
    with pytest.raises(StoppedError, match=r"the same command with --resume goes on from there$"):
        compare(request(tmp_path), print, launch=lambda folder: 143)


def test_a_folder_that_another_comparison_writes_into(tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    message = f"{out}: another process is writing into this folder; wait for it, or choose another --out"
    with locked(out), pytest.raises(TrainingError, match=f"^{re.escape(message)}$"):
        compare(request(tmp_path), print)


def test_another_tokeniser_is_noticed(tmp_path):
    asked = request(tmp_path, systems=("classic-lstm",))

    def launch(folder: Path) -> int:
        path = asked.out / "tokenizers" / "target.json"
        path.write_text(path.read_text(encoding="utf-8").replace("gato", "pato"), encoding="utf-8")
        return in_this_process(folder)

    with pytest.raises(TrainingError, match=r"target.json is not the tokeniser of the other systems"):
        compare(asked, print, launch=launch)


def test_models_that_exist_are_only_tested(tmp_path):
    folders = [tiny.write_folder(tmp_path / name, name) for name in ("classic", "luong")]
    pairs = write_pairs(tmp_path)
    options = {"search": SEARCH, "training": {"device": "cpu"}}
    asked = request(tmp_path, systems=(), models=tuple(map(str, folders)), options=options, test=pairs)
    results = compare(asked, print, launch=in_this_process)
    outputs = load(folders[1], device="cpu").search(tiny.SOURCES[:1], options=None)
    assert outputs[0][0].text != ""
    assert [system["name"] for system in results["systems"]] == ["classic", "luong"]
    assert all("training_seconds" not in system["cost"] for system in results["systems"])
    assert results["systems"][1]["metrics"]["bleu"]["difference"]["p"] > 0


def test_flags_become_a_comparison(tmp_path, monkeypatch, capsys):
    pairs = write_pairs(tmp_path)
    monkeypatch.setattr("mirada.study.compare.jobs.in_a_process", in_this_process)
    flags = ["--systems", "luong-dot,transformer", "--budget", "1updates", "--out", tmp_path / "out", "--quiet"]
    for name, path in pairs.items():
        flags += [f"--{name}", path, f"--dev-{name}", path, f"--test-{name}", path]
    for options in (MODEL, TRAINING, SEARCH, {"metrics": "chrf", "baseline": "transformer", "vocab_size": 60}):
        flags += [part for name, value in options.items() for part in (f"--{name}", value)]
    assert main(["compare", *map(str, flags)]) == 0
    assert capsys.readouterr().out == f"{tmp_path}/out/report.html\n"
    results = json.loads((tmp_path / "out/results.json").read_text(encoding="utf-8"))
    assert (results["metrics"], results["baseline"]) == (["chrf"], "transformer")
    assert "difference" in results["systems"][0]["metrics"]["chrf"]


def test_mistakes_are_told_before_any_work(tmp_path):
    out = ("--out", tmp_path / "out")
    assert refusal("compare", *out, "--systems", "luong-dott").startswith("unknown system 'luong-dott'; did you mean")
    assert refusal("compare", *out, "--budget", "soon").startswith("budget 'soon': expected a number and a unit")
    assert refusal("compare", *out, "--seeds", "0") == "seeds 0: expected 1 or more"
    assert (
        refusal("compare", *out, "--systems", "bahdanau,bahdanau") == "bahdanau is named twice; name each system once"
    )
    assert refusal("compare", *out, "--epochs", "3") == "epochs and a budget both say when to stop; give only --budget"
    assert refusal("compare", *out, "--test-tsv", "x").startswith("there are test or dev pairs but no training pairs")
    assert refusal("compare", *out, "--models", tmp_path).startswith("--models needs test pairs: give --test-src")
    wrong = refusal("compare", *out, "--models", tmp_path, "--hidden-size", "9")
    assert wrong == "model.hidden_size does nothing with --models, which are only tested; leave it out"
    assert not (tmp_path / "out/runs").exists()


def test_unigram_and_a_wrong_baseline_are_refused(tmp_path):
    asked = request(tmp_path)
    asked.options["data"]["tokenizer"] = "unigram"
    with pytest.raises(ConfigError, match=r"^tokenizer unigram may be learned a little differently each time"):
        compare(asked, print)
    with pytest.raises(
        ConfigError, match=r"^baseline 'bahdanau' is none of the systems; choose one of classic-lstm, luong"
    ):
        compare(request(tmp_path, baseline="bahdanau"), print, resume=True)


@pytest.mark.slow
def test_a_killed_comparison_goes_on_to_the_same_results(tmp_path):
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    for folder in (whole, killed):
        folder.mkdir()
    expected = compare(request(whole, budget="60updates"), print, launch=in_this_process)
    flags = _flags(request(killed, budget="60updates"))
    process = subprocess.Popen(command(*flags), env=ENVIRONMENT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    saved = killed / "out/runs/luong-dot-1/model/resume.safetensors"
    deadline = time.monotonic() + 300
    while not saved.exists():
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.01)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert not (killed / "out/results.json").exists()
    again = subprocess.run([*command(*flags), "--resume"], env=ENVIRONMENT, capture_output=True, check=False)
    assert again.returncode == 0, again.stderr.decode()
    assert "classic-lstm, seed 1: done before" in again.stderr.decode()
    results = json.loads((killed / "out/results.json").read_text(encoding="utf-8"))
    assert timeless(results) == timeless(expected)


def _flags(asked) -> list[object]:
    """The command line of a request."""
    flags: list[object] = [
        "compare",
        "--out",
        asked.out,
        "--systems",
        ",".join(asked.systems),
        "--budget",
        asked.budget,
    ]
    flags.append("--quiet")
    for options in asked.options.values():
        flags += [part for name, value in options.items() for part in (f"--{name}", value)]
    return [*flags, *(part for name, path in asked.test.items() for part in (f"--test-{name}", path))]


def test_a_job_says_everything_in_plain_values():
    fields = RunJob(None, "m", "t", {}, 1, "cpu", "search", None, True)._asdict()
    assert RunJob(**json.loads(json.dumps(fields))) == RunJob(**fields)


@contextmanager
def two_at_once(choice: EngineChoice, make: Make, say: Any, *, items: int) -> Iterator[Here]:
    """Workers, without the seconds that they take to start; they are no more than there is to do."""
    assert choice.workers == 2
    place = Here(pickle.loads(pickle.dumps(make)))
    place.most = items
    yield place


def test_jobs_of_an_engine_find_the_same(done, tmp_path, monkeypatch):
    """The numbers of one process after the other; the report says that times are of shared machines."""
    monkeypatch.setattr("mirada.study.compare.jobs.workplace", two_at_once)
    lines: list[str] = []
    asked = request(tmp_path, seeds=2, match_parameters=True, engine=EngineChoice("processes", 2))
    results = compare(asked, lines.append, launch=in_this_process)
    said = results["conditions"].pop("runs")
    assert said == "several at once (engine processes): times and speeds are of shared machines"
    assert said in (tmp_path / "out/report.md").read_text(encoding="utf-8")
    assert timeless(results) == timeless(done[1])
    assert lines[:2] == ["[1/4] classic-lstm, seed 1: queued", "[1/4] classic-lstm, seed 1: done"]
    assert sum(line.endswith(": done") for line in lines) == 4
