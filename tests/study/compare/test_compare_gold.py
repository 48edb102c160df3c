"""Attention against gold links in a comparison: the numbers of `mirada align`, and what goes wrong with gold."""

from __future__ import annotations

import csv
import json
import shutil
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest

import tiny
from cli_tools import refusal, works, write
from compare_tools import SEARCH, in_this_process, request, write_pairs
from mirada.corpora.grammar import make_splits, write_splits
from mirada.data.corpus import Corpus
from mirada.errors import ConfigError, DataError, TrainingError
from mirada.study.compare import items
from mirada.study.compare.comparison import compare
from mirada.study.compare.items import NO_GOLD, GoldLines, Item, read_gold, read_items, to_items
from mirada.study.compare.report import make_report, make_rows
from mirada.study.compare.stored import read_json, write_json
from mirada.study.report.document import Grid

LINKS = ["0-0 1-1 2-2", "0-0 1p1", "", "0-0", "1-1", "0p1"]
SIZES = {"embedding_dim": 8, "hidden_size": 8, "num_heads": 2, "ff_size": 8}


def aligned(model: Path, *arguments: object) -> dict[str, Any]:
    """The scores that `mirada align` gives."""
    ran = works("align", model, *arguments, "--device", "cpu", "--json")
    return json.loads(ran.output)["gold"]


def main_table(out: Path) -> dict[str, dict[str, str]]:
    """The first table of the report, by system."""
    section = (out / "report.md").read_text(encoding="utf-8").split("## ")[1]
    header, _, *rows = [line.strip("| ").split(" | ") for line in section.split("\n") if line.startswith("|")]
    return {row[0]: dict(zip(header, row, strict=True)) for row in rows if len(row) == len(header)}


def csv_rows(out: Path) -> dict[tuple[str, str], float]:
    with (out / "results.csv").open(encoding="utf-8", newline="") as stream:
        rows = [row for row in csv.DictReader(stream) if row["part"] == "attention"]
    return {(row["system"], row["measure"]): float(row["value"]) for row in rows}


# Models that exist, with the user's gold


@pytest.fixture(scope="module")
def tested(tmp_path_factory):
    """Four models, one of them without attention, tested on six pairs with gold, through the command line."""
    folder = tmp_path_factory.mktemp("gold")
    models = [tiny.write_folder(folder / name, name) for name in ("classic", "luong", "bahdanau", "transformer")]
    pairs, gold = write_pairs(folder), write(folder / "gold.align", LINKS)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("mirada.study.compare.jobs.in_a_process", in_this_process)
        test = ["--test-src", pairs["src"], "--test-tgt", pairs["tgt"], "--gold", gold]
        works("compare", "--models", *models, *test, "--out", folder / "out", "--device", "cpu", "--beam-size", "2")
    return folder, read_json(folder / "out/results.json")


@pytest.mark.parametrize("name", ["luong", "bahdanau", "transformer"])
def test_the_numbers_are_those_of_align(tested, name):
    folder, results = tested
    expected = aligned(
        folder / name, "--src", folder / "pairs.src", "--tgt", folder / "pairs.tgt", "--gold", folder / "gold.align"
    )
    (system,) = [system for system in results["systems"] if system["name"] == name]
    assert system["alignment"] == {key: pytest.approx(expected[key]) for key in ("aer", "precision", "recall")}
    row = main_table(folder / "out")[name]
    shown = [row[column] for column in ("AER", "link precision", "link recall")]
    assert shown == [f"{expected[key]:.3f}" for key in ("aer", "precision", "recall")]
    rows = csv_rows(folder / "out")
    assert [rows[name, key] for key in ("aer", "precision", "recall")] == list(system["alignment"].values())


def test_a_system_without_attention_has_no_number_and_not_zero(tested):
    folder, results = tested
    assert results["systems"][0]["alignment"] is None
    row = main_table(folder / "out")["classic"]
    assert {row[column] for column in ("attention entropy", "AER", "link precision", "link recall")} == {"–"}
    assert not any(name == "classic" for name, _ in csv_rows(folder / "out"))


def test_the_report_says_what_the_gold_is(tested):
    folder, results = tested
    # By hand: three sure, one sure, one, one; and a possible one in two lines.
    assert results["gold"] == {"units": "words", "sentences": 6, "sure": 6, "possible": 8}
    for name in ("report.md", "report.html"):
        text = (folder / "out" / name).read_text(encoding="utf-8")
        assert "6 sentences (6 sure, 8 with the possible; units words: words between blanks)" in text


@pytest.mark.parametrize(("moved", "expected"), [(0, (0, 1, 1)), (1, (1, 0, 0))])
def test_the_alignment_error_by_hand(tmp_path, moved, expected):
    """With the model's own links as gold nothing is wrong; with each link on the next source word everything is."""
    model, pairs = tiny.write_folder(tmp_path / "luong", "luong"), write_pairs(tmp_path)
    ran = works("align", model, "--src", pairs["src"], "--tgt", pairs["tgt"], "--device", "cpu")
    rows = [[(int(i), j) for i, j in (link.split("-") for link in line.split())] for line in ran.lines]
    sizes = [len(source.split()) for source in tiny.SOURCES]
    lines = [" ".join(f"{(i + moved) % size}-{j}" for i, j in row) for row, size in zip(rows, sizes, strict=True)]
    gold = str(write(tmp_path / "own.align", lines))
    options = {"search": SEARCH, "training": {"device": "cpu"}}
    asked = request(tmp_path, systems=(), models=(str(model),), options=options, test=pairs, gold=gold)
    found = compare(asked, print, launch=in_this_process)["systems"][0]["alignment"]
    assert found == dict(zip(("aer", "precision", "recall"), expected, strict=True))


# Trained systems, with the embedded corpus and its own gold


@pytest.fixture(scope="module")
def embedded(tmp_path_factory):
    """Two seeds of a system with attention and two of one without, each trained for one update."""
    folder = tmp_path_factory.mktemp("embedded")
    return small(folder), compare(small(folder), lambda line: None, launch=in_this_process)


def small(folder: Path):
    options = {
        "data": {"vocab_size": 200},
        "model": SIZES,
        "training": {"batch_size": 8, "device": "cpu"},
        "search": {"beam_size": 1, "max_output_length": 4},
    }
    changes = {"options": options, "test": {}, "embedded": 60, "seeds": 2, "budget": "1updates"}
    return request(folder, **changes)


@pytest.mark.slow
def test_the_embedded_corpus_brings_its_gold(embedded, tmp_path):
    asked, results = embedded
    write_splits(make_splits(60), tmp_path)
    given = ["--src", tmp_path / "test.en", "--tgt", tmp_path / "test.es", "--gold", tmp_path / "test.align"]
    scores = [aligned(asked.out / f"runs/luong-dot-{seed}/model", *given, "--units", "punctuation") for seed in (1, 2)]
    classic, luong = results["systems"]
    assert classic["alignment"] is None
    for name, value in luong["alignment"].items():
        assert value == pytest.approx(fmean(score[name] for score in scores))
    links = len((tmp_path / "test.align").read_text(encoding="utf-8").split())
    assert results["gold"] == {"units": "punctuation", "sentences": 200, "sure": links, "possible": links}
    assert NO_GOLD not in results["notes"]


def test_a_comparison_from_before_goes_on_without(embedded, tmp_path):
    """As an earlier version left it: no links with the items, no units in the jobs, no alignment in the tests."""
    asked, _ = embedded
    out = tmp_path / "out"
    shutil.copytree(asked.out, out)
    path = out / "data/test.jsonl"
    bare = [item._replace(links=None) for item in read_items(path)]
    path.write_text(items.item_lines(bare), encoding="utf-8")
    for folder in (out / "runs").iterdir():
        for file, key in (("job.json", "units"), ("test.json", "alignment")):
            content = read_json(folder / file)
            del content[key]
            text = json.dumps(content).replace(str(asked.out), str(out))
            write_json(folder / file, json.loads(text))

    def never(folder: Path) -> int:
        raise AssertionError(f"{folder} is done")

    results = compare(small(tmp_path), lambda line: None, resume=True, launch=never)
    assert results["gold"] is None
    assert all(system["alignment"] is None for system in results["systems"])
    assert NO_GOLD in results["notes"]
    assert NO_GOLD in (out / "report.md").read_text(encoding="utf-8")
    assert "AER" not in main_table(out)["luong-dot"]


def test_results_from_before_make_a_report(embedded):
    """results.json as it was: no gold, no alignment."""
    results = json.loads(json.dumps(embedded[1]))
    del results["gold"]
    for system in results["systems"]:
        del system["alignment"]
    (table,) = [block for block in make_report(results).sections[0].blocks if isinstance(block, Grid)][:1]
    assert table.header[-1] == "attention entropy"
    assert {len(row) for row in table.rows} == {len(table.header)}
    assert not any(row.measure == "aer" for row in make_rows(results))


# Items


def test_items_keep_their_links(tmp_path):
    found = [Item("a b", ["c"], "0-0 1p0"), Item("d", ["e", "f"])]
    path = tmp_path / "test.jsonl"
    path.write_text(items.item_lines(found), encoding="utf-8")
    assert read_items(path) == found
    assert path.read_text(encoding="utf-8").split("\n")[1] == '{"source": "d", "references": ["e", "f"]}'


def test_references_taken_together_keep_the_links_of_the_first():
    corpus = Corpus(["a", "b", "a"], ["x", "y", "z"], [1, 2, 3], [], "pairs")
    found = to_items(corpus, multi_reference=True, gold=GoldLines(["0-0", "", "0p0"], "words"))
    assert found == [Item("a", ["x", "z"], "0-0"), Item("b", ["y"], "")]


def test_lines_of_gold_stay_with_their_pairs(tmp_path):
    """Line 2 has a blank side: its pair is left out, and its empty line of links with it."""
    corpus = Corpus(["a b", "c"], ["d", "e f"], [1, 3], [2], "pairs")
    path = write(tmp_path / "gold", ["1-0", "", "0-1"])
    assert read_gold(str(path), "words", corpus) == GoldLines(["1-0", "0-1"], "words", str(path))


# Mistakes


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["0-0"] * 5, ": 5 lines of links, but there are 6 pairs; line n is for pair n"),
        (["0-0", "0-0", "0:0", "", "", ""], ":3: bad link '0:0'; expected source-target from 0, such as 0-1 (sure)"),
        (["0-0", "0-12", "", "", "", ""], ":2: link 0-12 is outside the pair, which has "),
        (["0p0", "", "", "", "", ""], ": no sure link (i-j) in 6 lines; AER and recall need some"),
    ],
)
def test_gold_that_does_not_fit_is_refused_before_any_training(tmp_path, lines, message):
    gold = write(tmp_path / "bad.align", lines)
    with pytest.raises(DataError) as error:
        compare(request(tmp_path, gold=str(gold)), print, launch=in_this_process)
    assert str(error.value).startswith(f"{gold}{message}")
    assert not (tmp_path / "out/runs").exists()


def test_flags_that_do_not_go_with_gold_are_refused(tmp_path):
    out, test = ("--out", tmp_path / "out"), ("--test-tsv", "t")
    several = "--gold has links for one target a source, --multi-reference takes several; leave one out"
    assert refusal("compare", *out, *test, "--gold", "g", "--multi-reference") == several
    own = refusal("compare", *out, "--gold", "g")
    assert own.startswith("--gold goes line by line with test pairs of your own: give --test-src and --test-tgt, or")
    columns = refusal("compare", *out, "--gold", "g", "--source-column", "2")
    assert columns == own
    idle = "--units says what the links of --gold count; give --gold, or leave --units out"
    assert refusal("compare", *out, "--units", "words") == idle
    assert refusal("compare", *out, "--gold", "g", "--units", "tokens").startswith("argument --units: invalid choice")


def test_gold_is_not_given_to_what_was_begun_without(tmp_path):
    asked = request(tmp_path, budget="1updates", systems=("luong-dot",))
    compare(asked, print, launch=in_this_process)
    gold = write(tmp_path / "gold.align", LINKS)
    later = request(tmp_path, budget="1updates", systems=("luong-dot",), gold=str(gold))
    with pytest.raises(
        TrainingError,
        match=r"test.jsonl was written without gold links; leave --gold out, or choose another --out$",
    ):
        compare(later, print, resume=True, launch=in_this_process)


def test_other_gold_is_not_mixed_in(tmp_path):
    gold = write(tmp_path / "gold.align", LINKS)
    asked = request(tmp_path, budget="1updates", systems=("luong-dot",), gold=str(gold))
    compare(asked, print, launch=in_this_process)
    write(gold, ["0-0", *LINKS[1:]])
    with pytest.raises(TrainingError, match=r"test.jsonl holds other pairs or gold links than those given now"):
        compare(asked, print, resume=True, launch=in_this_process)
    write(gold, LINKS)
    marked = request(tmp_path, budget="1updates", systems=("luong-dot",), gold=str(gold), units="punctuation")
    with pytest.raises(ConfigError, match=r"begun with other options \(units was words, now punctuation\)"):
        compare(marked, print, resume=True, launch=in_this_process)
