"""`mirada explain`, as its user has it."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import tiny
from cli_tools import mirada, refusal, works
from mirada.explain.heatmap import cells

TEXT, OTHER = tiny.SOURCES[0], tiny.SOURCES[3]


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    root = tmp_path_factory.mktemp("explain")
    return {decoder: tiny.write_folder(root / decoder, decoder) for decoder in tiny.MODELS}


@pytest.fixture(autouse=True)
def narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "70")


def traces_of(output: str) -> list[dict]:
    return json.loads(output)["traces"]


@pytest.mark.parametrize("decoder", tiny.MODELS)
def test_the_walkthrough_ends_with_the_output_of_translate(folders: dict[str, Path], decoder: str) -> None:
    ran = works("explain", folders[decoder], TEXT)
    (output,) = works("translate", folders[decoder], given=f"{TEXT}\n").lines
    assert " ".join(f"Output {output}".split()) in " ".join(ran.output.split())
    assert max(map(cells, ran.lines)) <= 70
    assert ("Attention" in ran.output) is (decoder != "classic")


def test_one_step_of_each_of_the_best(folders: dict[str, Path]) -> None:
    ran = works("explain", folders["luong"], TEXT, "--n-best", 2, "--step", 1)
    assert [line for line in ran.lines if line.startswith("Step")] == [
        line for line in ran.lines if line.startswith("Step 1: reads <s>, writes")
    ]
    assert sum("output 2" in line for line in ran.lines) == 1


@pytest.mark.parametrize("decoder", tiny.MODELS)
def test_a_file_of_json_verifies_and_an_altered_one_does_not(
    folders: dict[str, Path], decoder: str, tmp_path: Path
) -> None:
    file = tmp_path / "traces.json"
    works("explain", folders[decoder], TEXT, "--format", "json", "--n-best", 2, "--output", file)
    good = works("explain", "--verify", file, folders[decoder])
    assert good.lines[-1] == "every value agrees with the weights (tolerance 2e-08)"
    content = json.loads(file.read_text())
    right = content["traces"][1]["steps"][0]["logits"][7]
    content["traces"][1]["steps"][0]["logits"][7] = 99.5
    file.write_text(json.dumps(content))
    bad = mirada("explain", "--verify", file, folders[decoder])
    assert bad.code == 1
    assert bad.lines[0] == "the file's content was changed: it has not the fingerprint that it names"
    first, last = bad.lines[1], bad.lines[-1]
    assert first.startswith(f"trace 2, step 1, logits[8]: the file has 99.5, the weights give {right:.3f}"[:-1])
    assert last == "NOT what follows from the weights (tolerance 2e-08)"


def test_lines_of_a_file_and_its_blank_ones(folders: dict[str, Path], tmp_path: Path) -> None:
    file = tmp_path / "in.txt"
    file.write_text(f"{TEXT}\n\n{OTHER}\n")
    ran = works("explain", folders["bahdanau"], "--file", file, "--format", "json")
    assert [trace["source"]["text"] for trace in traces_of(ran.output)] == [TEXT, OTHER]
    assert f"{file}:2: blank, left out" in ran.errors


def test_a_given_output_and_a_given_beginning(folders: dict[str, Path]) -> None:
    whole = works("explain", folders["luong"], TEXT, "--reference", tiny.TARGETS[0], "--format", "json").output
    assert traces_of(whole)[0]["output"]["text"] == tiny.TARGETS[0]
    begun = works("explain", folders["luong"], TEXT, "--force", "el", "--format", "json").output
    assert traces_of(begun)[0]["output"]["text"].startswith("el")


def test_an_edit_shows_both_outputs_and_has_both_in_the_file(folders: dict[str, Path]) -> None:
    flags = ("--attention", "diagonal", "--from-step", 2)
    text = works("explain", folders["luong"], TEXT, *flags)
    assert text.lines[0].split("│")[0].strip() == "unedited"
    assert text.lines[0].split("│")[1].strip() == "attention diagonal from step 2"
    before, after = traces_of(works("explain", folders["luong"], TEXT, *flags, "--format", "json").output)
    assert before["asked"]["edits"] is None
    assert after["asked"]["edits"] == {
        "attention": "diagonal",
        "edge": None,
        "from_step": 2,
        "seed": None,
        "no_input_feeding": False,
        "drop_head": None,
        "weights": None,
    }
    assert np.array(after["attention"][1]).tolist() == [float(j == 1) for j in range(len(after["source"]["ids"]))]


@pytest.mark.parametrize(
    ("decoder", "flags", "said"),
    [
        ("transformer", ("--drop-head", "1.2"), "head 1.2 dropped"),
        ("luong", ("--no-input-feeding",), "no input feeding"),
        ("bahdanau", ("--attention", "edge:1-2"), "step 1 looks only at source token 2"),
    ],
)
def test_edits_are_named(folders: dict[str, Path], decoder: str, flags: tuple[str, ...], said: str) -> None:
    assert f"edited: {said}" in works("explain", folders[decoder], TEXT, *flags).output


@pytest.mark.parametrize("kind", ["svg", "png"])
def test_figures_are_numbered_where_there_are_several(folders: dict[str, Path], kind: str, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    file = tmp_path / f"map.{kind}"
    works("explain", folders["luong"], TEXT, "--format", kind, "--output", file)
    works("explain", folders["luong"], TEXT, "--format", kind, "--output", file, "--n-best", 2)
    starts = {"svg": b"<?xml", "png": b"\x89PNG"}
    assert sorted(path.name for path in tmp_path.iterdir()) == [f"map-1.{kind}", f"map-2.{kind}", f"map.{kind}"]
    assert all(path.read_bytes().startswith(starts[kind]) for path in tmp_path.iterdir())
    assert "2 figures need --output FILE" in refusal("explain", folders["luong"], TEXT, "--format", kind, "--n-best", 2)


@pytest.mark.parametrize(("name", "begins"), [("a.html", "<!doctype html>"), ("a.json", "{"), ("a.txt", "luong")])
def test_the_name_of_a_file_says_what_is_written(
    folders: dict[str, Path], tmp_path: Path, name: str, begins: str
) -> None:
    works("explain", folders["luong"], TEXT, "--output", tmp_path / name)
    assert (tmp_path / name).read_text(encoding="utf-8").startswith(begins)
    works("explain", folders["luong"], TEXT, "--output", tmp_path / name, "--format", "text")
    assert (tmp_path / name).read_text(encoding="utf-8").startswith("luong")


def test_html_is_a_page(folders: dict[str, Path]) -> None:
    assert works("explain", folders["luong"], TEXT, "--format", "html").output.lstrip().lower().startswith("<!doctype")


@pytest.mark.parametrize(
    ("decoder", "arguments", "message"),
    [
        ("luong", (), "give one text, or --file FILE with one a line"),
        ("luong", (TEXT, "--file", "x"), "give one text, or --file FILE with one a line"),
        ("luong", ("--file", "x", "--reference", "y"), "--reference is the output of one text"),
        ("luong", ("",), "the text is empty, so there is nothing to look into; give a sentence"),
        ("luong", ("\udcff",), "the text given on the command line is not valid UTF-8"),
        ("luong", (TEXT, "--step", "1", "--format", "json"), "--step shows one step as text; --format json always"),
        ("luong", (TEXT, "--step", "99"), "--step 99: no such step; this output has steps 1 to"),
        ("luong", (TEXT, "--top", "0"), "--top 0: expected 1 or more"),
        ("luong", (TEXT, "--attention", "edge:1-99"), "no such source token; they are 1 to"),
        (
            "luong",
            (TEXT, "--attention", "spread"),
            "--attention spread: expected uniform, diagonal, shuffled or edge:I-J",
        ),
        ("luong", (TEXT, "--reference", "a", "--force", "b"), "--reference and --force exclude each other"),
        ("classic", (TEXT, "--attention", "uniform"), "--attention: a classic model has no attention"),
        (
            "classic",
            (TEXT, "--format", "svg"),
            "--format svg: a classic model has no attention to draw; use text, json",
        ),
        ("transformer", (TEXT, "--drop-head", "1.3"), "--drop-head 1.3: no such head; the decoder has layers 1 to 1"),
        ("bahdanau", (TEXT, "--no-input-feeding"), "this model is bahdanau; it is for luong models with input feeding"),
    ],
)
def test_mistakes_are_one_clear_line(
    folders: dict[str, Path], decoder: str, arguments: tuple[str, ...], message: str
) -> None:
    assert message in refusal("explain", folders[decoder], *arguments)


def test_a_mistake_in_a_file_is_named_with_its_line(folders: dict[str, Path], tmp_path: Path) -> None:
    file = tmp_path / "in.txt"
    file.write_text(f"{TEXT}\na\n")
    message = refusal("explain", folders["luong"], "--file", file, "--attention", "edge:1-9")
    assert message.startswith(f"{file}:2: --attention edge:1-9: no such source token")


def test_a_file_without_text_is_refused(folders: dict[str, Path], tmp_path: Path) -> None:
    file = tmp_path / "in.txt"
    file.write_text("\n \n")
    ran = mirada("explain", folders["luong"], "--file", file)
    assert (ran.code, ran.errors.split("\n")[-2]) == (2, f"mirada: {file}: no text in it")
