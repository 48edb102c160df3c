"""The script of docs/jobs.md: files of the data sets, a whole run of a tiny recipe, and the page made of rows."""

from __future__ import annotations

import gzip
import json
import lzma
import shlex
from pathlib import Path

import pytest
from benchmarks import job_files, job_report, jobs

from cli_tools import in_folder, refusal

RECIPES = sorted(path.stem for path in jobs.RECIPES.glob("*.yaml"))
TINY = """
order: 1
title: Tiny
about: A verb or two.
make: --kind inflection --pairs 30
figure: exact
shown: [exact]
baseline: none
aim: {plain: "≥ 1"}
plain: --tsv train.tsv --dev-tsv dev.tsv --target-column 3 --max-updates 1 --hidden-size 8 --embedding-dim 8
tuned: --tsv more.tsv --dev-tsv dev.tsv --target-column 3 --max-updates 2 --hidden-size 8 --embedding-dim 8
invent: data invent --tsv train.tsv --target-column 3 --pairs 9 --out more.tsv --force
evaluate: --tsv {part}.tsv --target-column 3 --group-column 2 --metrics exact,cer --beam-size 1
"""


@pytest.fixture
def tiny(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "recipes").mkdir()
    (tmp_path / "recipes" / "tiny.yaml").write_text(TINY)
    monkeypatch.setattr(jobs, "RECIPES", tmp_path / "recipes")
    monkeypatch.setattr(jobs, "mirada", in_folder)
    return tmp_path


def test_a_job_from_files_to_the_page(tiny, capsys):
    """Both columns run; the test set is read once; the page shows what the rows say, and nothing else."""
    line = ["--work", str(tiny / "work"), "--rows", str(tiny / "rows.jsonl")]
    assert jobs.main(["run", *line]) == 0
    assert jobs.main(["test", *line, "--column", "tuned"]) == 1
    assert jobs.main(["run", *line, "--column", "tuned"]) == 0
    assert jobs.main(["test", *line, "--column", "tuned"]) == 0
    plain, tuned = jobs.read_rows(tiny / "rows.jsonl")
    assert (plain["column"], "test" in plain, tuned["column"], "test" in tuned) == ("plain", False, "tuned", True)
    assert len((tiny / "work" / "tiny" / "more.tsv").read_text().splitlines()) == 39
    assert [one["metric"] for one in tuned["test"]["metrics"]] == ["exact", "cer"]
    assert tuned["test"]["items"] == 150
    assert jobs.main(["test", *line, "--column", "tuned"]) == 1
    refused = capsys.readouterr().err
    assert "tiny tuned: not run yet\n" in refused
    assert "tiny tuned: the test set has been read already; dev chooses" in refused
    page = tiny / "jobs.md"
    assert jobs.main(["report", "--rows", str(tiny / "rows.jsonl"), "--into", str(page)]) == 0
    text = page.read_text(encoding="utf-8")
    shown = [f"{row[part]['metrics'][0]['value']:.1f}" for row, part in ((plain, "dev"), (tuned, "test"))]
    minutes = [f"{row['minutes']:.0f} min" for row in (plain, tuned)]
    cells = f"dev {shown[0]}, {minutes[0]} (aim ≥ 1) | test {shown[1]}, {minutes[1]} |"
    assert f"| [Tiny](#tiny) | exact | none | {cells}" in text
    assert "mirada data make --out . --kind inflection --pairs 30\n" in text
    assert "mirada data invent --tsv train.tsv" in text
    assert "| test, 150 items | cer | " in text


def test_a_recipe_that_is_not_there(tiny):
    with pytest.raises(SystemExit, match=r"^tinny: no such recipe \(there are tiny\)$"):
        jobs.load("tinny")


@pytest.mark.parametrize("name", RECIPES)
def test_recipes_are_whole(name):
    recipe = jobs.load(name)
    assert {"order", "title", "about", "figure", "shown", "baseline", "plain", "tuned", "evaluate"} <= recipe.keys()
    assert "make" in recipe or recipe["files"].split()[0] in job_files.MAKERS
    assert "{part}.tsv" in recipe["evaluate"]


def test_the_page_is_made_of_the_rows():
    """docs/jobs.md is what the script makes of docs/jobs.jsonl and the recipes: nobody has written into it."""
    recipes = [jobs.load(name) for name in RECIPES]
    page = job_report.to_page(recipes, jobs.read_rows(jobs.ROWS))
    assert jobs.PAGE.read_text(encoding="utf-8") == page
    assert "| test" in page or not any("test" in row for row in jobs.read_rows(jobs.ROWS))


def test_files_are_read_however_they_are_packed(tmp_path):
    raw = b"a\tb\nc\td\n"
    (tmp_path / "plain.tsv").write_bytes(raw)
    (tmp_path / "zipped.tsv.gz").write_bytes(gzip.compress(raw))
    (tmp_path / "packed.tsv.xz").write_bytes(lzma.compress(raw))
    for name in ("plain", "zipped", "packed"):
        assert job_files.table(tmp_path / f"{name}.tsv") == [["a", "b"], ["c", "d"]]
    with pytest.raises(SystemExit, match=r"not there, nor as \.gz or \.xz"):
        job_files.table(tmp_path / "absent.tsv")


def test_values_of_acts():
    acts = "confirm ( time = 11:30 am ) ; inform ( free = True ) ; confirm ( date = dontcare ) ; offer ( x = A ( B ) )"
    assert job_files.act_values(["", "", "", "", "", acts, ""]) == ["11:30 am", "A ( B )"]
    assert job_files.act_values(["", "", "", "", "", "request ( location ) ; notify_success", ""]) == []


def test_files_are_made_once(tmp_path, monkeypatch):
    def never(data: Path) -> dict[str, list[list[str]]]:
        raise AssertionError

    rows = [["a", "", "", "", "", "inform ( x = 5 )", "It is 5."]]
    monkeypatch.setitem(job_files.MAKERS, "acts", lambda data: dict.fromkeys(job_files.SPLITS, rows))
    job_files.prepare("acts", tmp_path, tmp_path / "out")
    assert (tmp_path / "out" / "dev.values.tsv").read_text() == "5\n"
    monkeypatch.setitem(job_files.MAKERS, "acts", never)
    job_files.prepare("acts", tmp_path, tmp_path / "out")


def test_rows_are_read_in_order(tmp_path):
    path = tmp_path / "rows.jsonl"
    assert jobs.read_rows(path) == []
    path.write_text("".join(json.dumps({"job": name}) + "\n" for name in "ab"))
    assert [row["job"] for row in jobs.read_rows(path)] == ["a", "b"]


@pytest.mark.parametrize("name", RECIPES)
@pytest.mark.parametrize("column", jobs.COLUMNS)
def test_commands_of_recipes_are_ones_that_mirada_knows(name, column, tmp_path, monkeypatch):
    """Every option is known and agrees with the others: the only thing that is missing are the files."""
    monkeypatch.chdir(tmp_path)
    recipe = jobs.load(name)
    table = "more.tsv" if column == "tuned" and "invent" in recipe else "train.tsv"
    said = f"{table}: no such file (from the working directory {tmp_path})"
    assert refusal("train", *shlex.split(recipe[column]), "--model-dir", "m") == said
