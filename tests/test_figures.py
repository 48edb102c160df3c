"""The script of docs/results.md: a tiny row from files to the page, its classic, recipes, published token counts."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from benchmarks import equal, figure_page, figures, job_files, jobs, moses

from cli_tools import in_folder, refusal
from mirada.config.configfile import load
from mirada.store import checkpoint

TINY = """
tiny:
  title: Tiny
  about: A verb or two.
  make: --kind inflection --pairs 30
  evaluate: --tsv {part}.tsv --target-column 3 --metrics exact,cer --beam-size 1
  figure: exact
  shown: exact
  star: true
  systems:
    luong: {recipe: tiny, published: "12.3", aim: "> 12.3", hours: 0.5}
    classic: {like: luong, published: "–", aim: "–", hours: 2}
"""
OPTIONS = """
data: {tsv: train.tsv, dev_tsv: dev.tsv, target_column: 3}
model: {hidden_size: 40, embedding_dim: 16}
training: {max_updates: 2, batch_size: 8, valid_metrics: []}
"""
RECIPES = sorted(path.stem for path in figures.RECIPES.glob("*.yaml"))
EVERY = figures.load()
NAMES = [figure["name"] for figure in EVERY]
DATA = Path(os.environ.get("MIRADA_DATA", "shared/data"))
LETTERS = "\u1112\u1161\u11ab\u1100\u1173\u11af"  # of 한글
# Words of Multi30k's tokenised files, from the set's README. Those of train are equal too in English and German
# (377,534 and 360,706); sacremoses makes 14 fewer of French in train (409,845) and 1 fewer in dev.
WORDS = {
    "dev": {"en": 13_308, "de": 12_828},
    "test_2016": {"en": 12_968, "de": 12_103, "fr": 13_988},
    "test_2017": {"en": 11_376, "de": 10_758, "fr": 12_596},
    "test_coco": {"en": 5_239, "de": 5_158, "fr": 5_710},
}


@pytest.fixture
def tiny(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "recipes").mkdir()
    (tmp_path / "recipes" / "tiny.yaml").write_text(OPTIONS)
    (tmp_path / "figures.yaml").write_text(TINY)
    (tmp_path / "tried.md").write_text("## What was tried\n\nMuch.\n")
    monkeypatch.setattr(figures, "RECIPES", tmp_path / "recipes")
    monkeypatch.setattr(figures, "FIGURES", tmp_path / "figures.yaml")
    monkeypatch.setattr(figures, "TRIED", tmp_path / "tried.md")
    monkeypatch.setattr(jobs, "mirada", in_folder)
    return tmp_path


def test_a_row_from_files_to_the_page(tiny, capsys):
    """Two seeds of a system, the classic beside it, ensembles of both; test is read once; the page says it."""
    line = ["tiny", "--work", str(tiny / "work"), "--rows", str(tiny / "rows.jsonl")]
    with pytest.raises(SystemExit, match=r"^tiny/luong: not run yet$"):
        figures.main(["test", *line])
    assert figures.main(["run", *line, "--seeds", "1,2", "--ensemble"]) == 0
    rows = jobs.read_rows(tiny / "rows.jsonl")
    made = [("luong", 1), ("classic", 1), ("luong", 2), ("classic", 2), ("luong", [1, 2]), ("classic", [1, 2])]
    assert [(row["figure"].removeprefix("tiny/"), row["seed"]) for row in rows] == made
    assert all(row["decoding"]["sentences_per_second"] > 0 for row in rows)
    own, classic = rows[:2]
    assert own["updates"] == classic["updates"] == 2
    assert abs(classic["weights"] - own["weights"]) <= 0.05 * own["weights"]
    assert rows[4]["weights"] == rows[0]["weights"] + rows[2]["weights"]
    options = checkpoint.read_config(tiny / "work" / "tiny" / "classic-1")
    assert (options.model.decoder, options.training.seed, options.data.target_column) == ("classic", 1, "3")
    assert figures.main(["run", *line]) == 0
    assert jobs.read_rows(tiny / "rows.jsonl") == rows
    assert figures.main(["test", *line]) == 0
    read = jobs.read_rows(tiny / "rows.jsonl")
    assert all(row["test"]["test"]["items"] == 150 for row in read)
    with pytest.raises(SystemExit, match=r"^tiny/luong: the test sets have been read already; dev chooses"):
        figures.main(["test", *line])
    assert "tiny/luong seed 1: is there\n" in capsys.readouterr().out
    assert figures.main(["report", "--rows", str(tiny / "rows.jsonl"), "--into", str(tiny / "page.md")]) == 0
    page = (tiny / "page.md").read_text(encoding="utf-8")
    assert "mirada train recipes/tiny.yaml --seed 1 --model-dir luong-1\n" in page
    assert "| tiny/luong | 1 seed | 0.5 h | 12.3 | > 12.3 |\n" in page
    assert "| source | items | classic | luong |\n" in page
    assert page.endswith("## What was tried\n\nMuch.\n")


def test_a_trial_says_how_long_an_update_takes(tiny, capsys):
    assert figures.main(["try", "tiny/classic", "--work", str(tiny / "work"), "--rows", str(tiny / "rows.jsonl")]) == 0
    said = capsys.readouterr().out
    assert said.startswith("tiny/classic: ")
    assert " s an update, dev {'exact': " in said
    assert not (tiny / "rows.jsonl").exists()


def test_names_of_rows(tiny):
    every = figures.load()
    assert [figure["name"] for figure in figures.chosen(every, ["tiny/classic"])] == ["tiny/classic"]
    assert figures.chosen(every, []) == figures.chosen(every, ["tiny"]) == every
    with pytest.raises(SystemExit, match=r"^tinny: no such row or data set \(data sets: tiny\)$"):
        figures.chosen(every, ["tinny"])


def test_a_classic_needs_what_it_is_held_against(tmp_path):
    with pytest.raises(
        SystemExit, match=r"no training there, whose weights and updates the classic system gets; run it first"
    ):
        equal.write_classic(tmp_path, tmp_path / "classic.yaml")


def measured(*values: float) -> dict[str, Any]:
    metrics = [{"metric": "exact", "value": v, "low": v - 2, "high": v + 4, "made": "a|b"} for v in values]
    return {"items": 10, "metrics": metrics}


def test_means_over_seeds():
    """Values and bounds are means over the seeds; an ensemble is not among them."""
    figure = {"name": "a/b", "data": "a", "system": "b", "title": "A", "figure": "exact", "shown": "exact"}
    figure |= {"published": "1.0", "aim": "> 1", "tests": ["test"]}
    row = {"figure": "a/b", "dev": measured(30.0)}
    rows = [{**row, "seed": seed, "test": {"test": measured(value)}} for seed, value in ((2, 40.0), (1, 50.0))]
    rows.append({**row, "seed": [1, 2], "test": {"test": measured(60.0)}})
    line = "| [A](#a), b | exact | 1.0 | > 1 | **45.00** | 1, 2 | 60.00 | 30.00 |"
    assert figure_page.summary(figure, rows) == line
    found = figure_page.measured(figure_page.single(rows), "test")
    told = figure_page.measured_lines("b", "test", found)
    assert told == ["| b | test, 10 items | exact | 45.00 | 50.00, 40.00 | 43.00–49.00 | a\\|b |"]


@pytest.mark.parametrize("figure", EVERY, ids=NAMES)
def test_rows_are_whole(figure):
    assert {"title", "about", "evaluate", "figure", "shown", "published", "aim", "hours"} <= figure.keys()
    assert "make" in figure or figure["files"].split()[0] in job_files.MAKERS
    assert "{part}.tsv" in figure["evaluate"]
    systems = list(figure["systems"])
    if "like" in figure:
        assert systems.index(figure["like"]) < systems.index(figure["system"])
    else:
        assert figure["recipe"] in RECIPES


def test_every_recipe_has_a_row():
    assert {figure.get("recipe") for figure in EVERY} - {None} == set(RECIPES)


@pytest.mark.parametrize("name", RECIPES)
def test_recipes_are_ones_that_train_takes(name, tmp_path, monkeypatch):
    """Every option is known and agrees with the others: the only thing that is missing are the files."""
    monkeypatch.chdir(tmp_path)
    path = figures.RECIPES / f"{name}.yaml"
    said = f"{load(path).data.tsv}: no such file (from the working directory {tmp_path})"
    assert refusal("train", path, "--model-dir", "m") == said


def test_the_page_is_made_of_the_lines():
    """docs/results.md is what the script makes of docs/results.jsonl and the rows: nobody has written into it."""
    page = figure_page.to_page(EVERY, jobs.read_rows(figures.ROWS), figures.TRIED.read_text(encoding="utf-8"))
    assert figures.PAGE.read_text(encoding="utf-8") == page


def test_tokens_are_those_of_the_published_files():
    """Three lines of the set's own tokenised files."""
    lines = [
        "Ein rot-weißer Doppeldeckerbus fährt durch die Innenstadt.",
        "Ein langer Tisch, der mit verschiedenen Obst- und Gemüsesorten und Backwaren gedeckt ist",
        '"Ein Mann, der in einen Teller greift, um sich ein Stück Pizza zu nehmen"',
    ]
    assert moses.lower_tokenised(lines, "de") == [
        "ein rot-weißer doppeldeckerbus fährt durch die innenstadt .",
        "ein langer tisch , der mit verschiedenen obst- und gemüsesorten und backwaren gedeckt ist",
        "&quot; ein mann , der in einen teller greift , um sich ein stück pizza zu nehmen &quot;",
    ]


@pytest.mark.skipif(not (DATA / "multi30k").is_dir(), reason="no Multi30k in the folder that MIRADA_DATA names")
@pytest.mark.parametrize("part", WORDS)
def test_words_of_multi30k_are_as_many_as_published(part):
    names = job_files.MULTI30K
    for language, words in WORDS[part].items():
        lines = [" ".join(row) for row in job_files.table(DATA / "multi30k" / f"{names[part]}.{language}")]
        assert sum(len(line.split()) for line in moses.lower_tokenised(lines, language)) == words


def test_korean_comes_apart_into_letters(tmp_path):
    """Equal letters are equal syllables; other languages stay as they are."""
    folder = tmp_path / "sigmorphon2022_inflection"
    folder.mkdir()
    for language in ("kor", "pol"):
        for part in ("train_small", "dev", "test"):
            (folder / f"{language}.{part}.tsv").write_text("한글\ték\tN;NOM\n", encoding="utf-8")
    assert job_files.inflection_2022(tmp_path, "kor", "small")["train"] == [[LETTERS, "e\u0301k", "N;NOM"]]
    assert job_files.inflection_2022(tmp_path, "pol", "small")["test"] == [["한글", "ék", "N;NOM"]]
