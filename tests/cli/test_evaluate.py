"""`mirada evaluate` on files: references that are absent, groups, clusters, values, warnings, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import tiny
from cli_tools import mirada, one_line, refusal, works, write, write_pairs
from mirada.evaluation.bootstrap import by_cluster, percentiles, resample
from mirada.evaluation.metrics import statistics

ONE = pytest.mark.parametrize("model_folder", ["luong"], indirect=True)


def report(*arguments: object) -> dict:
    return json.loads(works("evaluate", *arguments, "--json").output)


def metric(found: dict, name: str) -> float:
    (row,) = [row for row in found["metrics"] if row["metric"] == name]
    return row["value"]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_metric_that_cannot_measure_the_text_says_what_can(here):
    """Chinese has BLEU of its own words; words that are not there, and answers of one word, are warned of."""
    write(here / "zh", ["我们明天去北京。"])
    ran = works("evaluate", "--hyp", "zh", "--ref", "zh", "--metrics", "bleu")
    assert "bleu        100.00" in ran.output
    assert "|tok:zh|" in ran.output
    assert ran.errors == ""
    ran = works("evaluate", "--hyp", "zh", "--ref", "zh", "--metrics", "bleu", "--bleu-tokenizer", "13a")
    assert ran.errors == (
        "mirada: warning: bleu cannot measure this text: 100 % of the references are a single token (tok:13a), and it "
        "counts runs of four tokens; use cer or chrf\n"
    )


def test_without_metrics_those_that_can_measure_are_taken(here):
    write(here / "words", ["garden", "office"])
    write(here / "text", ["the old man sees a red house", "he sleeps under the tree"])
    for name, expected in (("words", ["exact", "item_error", "cer"]), ("text", ["bleu", "chrf", "ter"])):
        assert [row["metric"] for row in report("--hyp", name, "--ref", name)["metrics"]] == expected


def test_tokenised_outputs_are_told_in_one_line(here):
    write(here / "out", ["they saw the house ."] * 100)
    write(here / "ref", ["they saw the house."] * 100)
    ran = works("evaluate", "--hyp", "out", "--ref", "ref")
    assert one_line(ran.errors).startswith("warning: 100 outputs end in a blank and a period: bleu (tok:13a)")
    assert works("evaluate", "--hyp", "out", "--ref", "ref", "--bleu-tokenizer", "none").errors == ""


def test_a_reference_that_is_absent_is_not_empty(here):
    """An empty output is no exact answer to a reference that is not there; an item without any is left out."""
    write(here / "out", ["", "b", "c", ""])
    write(here / "ref", ["a", "x", "c", ""])
    write(here / "more", ["", "b", "", ""])
    ran = works("evaluate", "--hyp", "out", "--ref", "ref", "--ref", "more", "--metrics", "exact,wer", "--json")
    found = json.loads(ran.output)
    assert (found["items"], metric(found, "exact")) == (3, pytest.approx(200 / 3))
    assert metric(found, "wer") == pytest.approx(100 / 3)
    assert found["metrics"][0]["made"].startswith("nrefs:var|")
    assert ran.errors == "mirada: left out for want of a reference: 1 of 4 items (lines 4)\n"
    write(here / "none", ["", " "])
    write(here / "two", ["a", "b"])
    assert refusal("evaluate", "--hyp", "two", "--ref", "none").endswith("none: no line has a reference")


def test_outputs_are_measured_against_pairs_by_line_or_by_item(here):
    """The outputs of all lines, or of the pairs without a blank side, as --save-outputs writes them."""
    write_pairs(here / "pairs", [("s t", "a"), ("", "b"), ("u v", "c")])
    for outputs in (["a", "b", "x"], ["a", "x"]):
        write(here / "out", outputs)
        ran = works("evaluate", "--hyp", "out", "--tsv", "pairs", "--metrics", "exact", "--json")
        assert ran.errors == "mirada: left out for a blank side: 1 of 3 items (lines 2)\n"
        found = json.loads(ran.output)
        assert (found["items"], metric(found, "exact")) == (2, 50)
    write(here / "out", ["a"])
    ran = mirada("evaluate", "--hyp", "out", "--tsv", "pairs")
    assert (ran.code, ran.output) == (2, "")
    assert ran.errors.endswith("mirada: out has 1 lines for 2 items in 3 lines; they must be equal\n")
    write_pairs(here / "many", [("s", "a"), ("t", "b"), ("s", "c")])
    write(here / "out", ["c", "x"])
    assert metric(report("--hyp", "out", "--tsv", "many", "--multi-reference", "--metrics", "exact"), "exact") == 50


def test_further_references_in_columns_ragged_or_not(here):
    """As many as a line has; a blank one is absent, so an empty output is right nowhere."""
    write(here / "refs", ["s\ta\tid\tb\tc", "t\tx\tid", "u\td\tid\t\te"])
    write(here / "out", ["c", "", "e"])
    line = ("--hyp", "out", "--tsv", "refs", "--metrics", "exact,wer")
    for columns, exact in (("4-", 200 / 3), ("4", 0), ("4,5", 200 / 3)):
        found = report(*line, "--reference-column", columns)
        assert (found["items"], metric(found, "exact")) == (3, pytest.approx(exact))
        assert found["metrics"][0]["made"].startswith("nrefs:var|")
    assert metric(report(*line), "exact") == 0
    assert refusal("evaluate", *line, "--reference-column", "7-") == (
        "refs: no line has a reference in the columns asked for (the most a line has are 5)"
    )
    for columns in ("-4", "4;5", "0"):
        said = f"expected columns such as 4, 4,6 or 4- (4 and all after it), got {columns!r}"
        assert refusal("evaluate", *line, "--reference-column", columns) == said
    # Pairs with the same source keep all their references.
    write(here / "refs", ["s\ta\tb", "s\tc\td"])
    write(here / "out", ["d"])
    found = report(*line, "--reference-column", 3, "--multi-reference")
    assert (metric(found, "exact"), found["metrics"][0]["made"][:8]) == (100, "nrefs:4|")


def test_further_references_under_a_key(here):
    """A text, a list of texts, null, or nothing: whatever a line has."""
    records = [{"more": ["b", " "]}, {"more": "c"}, {"more": None}, {}]
    write(here / "refs", [json.dumps({"source": "s", "target": "a", **record}) for record in records])
    write(here / "out", ["b", "c", "", "a"])
    line = ("--hyp", "out", "--jsonl", "refs", "--metrics", "exact")
    found = report(*line, "--reference-key", "more")
    assert (metric(found, "exact"), found["metrics"][0]["made"][:10]) == (75, "nrefs:var|")
    assert refusal("evaluate", *line, "--reference-key", "mor") == (
        "refs: no line has a reference under the key 'mor'; did you mean 'more'?"
    )
    write(here / "refs", [json.dumps({"source": "s", "target": "a", "more": [1]})])
    assert refusal("evaluate", *line, "--reference-key", "more") == (
        "refs:1: key 'more' holds neither a text nor a list of texts"
    )


TASKS = [("qa1", "s", "a", "l1"), ("qa2", "t", "b", "l1"), ("qa1", "u", "c", "l2"), ("qa1", "v", "d", "l2")]
COLUMNS = ("--tsv", "tasks", "--source-column", 2, "--target-column", 3, "--metrics", "exact")


def test_groups_have_their_own_figure_and_a_mean(here):
    """qa1 has 1 right of 3, qa2 1 of 1: their mean is 200 / 3, that of the items 50."""
    write(here / "tasks", ["\t".join(row) for row in TASKS])
    write(here / "groups", [row[0] for row in TASKS])
    write(here / "out", ["a", "b", "x", "x"])
    by_column = works("evaluate", "--hyp", "out", *COLUMNS, "--group-column", 1).output
    found = report("--hyp", "out", *COLUMNS, "--groups", "groups")
    rows = [(row["group"], row["count"], row["value"]) for row in found["by_group"]]
    assert rows == [("qa1", 3, pytest.approx(100 / 3)), ("qa2", 1, 100)]
    assert found["group_mean"] == {"metric": "exact", "value": pytest.approx(200 / 3)}
    assert metric(found, "exact") == 50
    assert "exact by group:\n  qa1                 33.33  [" in by_column
    assert by_column.endswith("  mean of 2 groups  66.67\n")


def test_intervals_draw_whole_clusters(here):
    """Forms of one lemma stand or fall together: two clusters, one right and one wrong, say less than four items."""
    write(here / "tasks", ["\t".join(row) for row in TASKS])
    write(here / "out", ["a", "b", "x", "x"])
    found = report("--hyp", "out", *COLUMNS, "--cluster-column", 4)
    assert found["clusters"] == 2
    assert (metric(found, "exact"), found["metrics"][0]["low"], found["metrics"][0]["high"]) == (50, 0, 100)
    rows = statistics(["a", "b", "x", "x"], [["a"], ["b"], ["c"], ["d"]], "exact")
    clustered = by_cluster(rows, ["l1", "l1", "l2", "l2"])
    assert clustered.rows.tolist() == [[2, 2], [0, 2]]
    assert percentiles(resample(clustered)) == (0, 100)
    # Clusters of one item each draw as items do.
    assert np.array_equal(resample(by_cluster(rows, list("abcd"))), resample(rows))
    text = works("evaluate", "--hyp", "out", *COLUMNS, "--cluster-column", 4).output
    assert text.startswith("4 items; 95 % intervals by bootstrap over 2 clusters\n")


def test_values_that_outputs_must_hold(here):
    """Three of four values are there: a whole word counts in any case, a part of one does not."""
    write(here / "out", ["your table for 2 at Delfina is booked", "it is at 12:30", "what else?"])
    write(here / "ref", ["a table for 2 at Delfina", "at 12:30", "anything else?"])
    write(here / "values", ["2\tdelfina", "12:30\t30", ""])
    found = report("--hyp", "out", "--ref", "ref", "--values", "values", "--metrics", "chrf")
    assert metric(found, "value_recall") == 75
    write(here / "short", ["2"])
    assert refusal("evaluate", "--hyp", "out", "--ref", "ref", "--values", "short") == (
        "short has 1 lines for 3 lines of pairs; they must be equal"
    )


@ONE
def test_the_best_of_several_outputs(model_folder, tmp_path):
    given = "".join(f"{source}\n" for source in tiny.SOURCES)
    rows = works("translate", model_folder, "--device", "cpu", "--n-best", 3, given=given).lines
    thirds = [row.split(" ||| ")[1] for row in rows[2::3]]
    # The third output of three sources is called right, and nothing for the other sources.
    targets = [*thirds[:3], *["nothing"] * 3]
    assert all(targets)
    pairs = write_pairs(tmp_path / "pairs", list(zip(tiny.SOURCES, targets, strict=True)))
    line = (model_folder, "--tsv", pairs, "--device", "cpu", "--metrics", "exact")
    found = report(*line, "--n-best", 3)
    assert metric(found, "exact@3") == 50
    assert found["metrics"][1]["made"].endswith("|outputs:best of 3")
    assert [row["metric"] for row in report(*line)["metrics"]] == ["exact"]


@ONE
def test_outputs_that_reached_the_limit_are_counted(model_folder, tmp_path):
    pairs = write_pairs(tmp_path / "pairs", list(zip(tiny.SOURCES, tiny.TARGETS, strict=True)))
    line = ("evaluate", model_folder, "--tsv", pairs, "--device", "cpu", "--max-output-length", 2, "--metrics", "chrf")
    ran = works(*line, "--min-output-length", 2)
    assert "warning: 6 of 6 outputs reached the limit of their length before they ended" in ran.errors


REFUSED = {
    "--hyp two --ref two --tsv two": "--tsv beside --ref: two ways to name the references; give one of them",
    "--hyp two --ref two --multi-reference": "--multi-reference beside --ref: two ways to name the references; give ",
    "--hyp two --ref two --reference-column 4": "--reference-column beside --ref: two ways to name the references; ",
    "--hyp two --src two --tgt two --reference-column 4": "--reference-column goes with --tsv, whose columns it names",
    "--hyp two --tsv tsv --reference-key a": "--reference-key goes with --jsonl, whose keys it names",
    "--hyp two --ref two --batch-size 3": "--batch-size goes with a model folder; with --hyp it would change nothing",
    "--hyp two --ref two --device cpu": "--device goes with a model folder; with --hyp it would change nothing",
    "--hyp two --ref two --group-column 1": "--group-column counts columns of --tsv; beside other files give --groups ",
    "--hyp two --tsv tsv --group-column 1 --groups two": "--group-column and --groups name the same thing; give one ",
    "--hyp two --tsv tsv --group-column 3": "tsv:1: 2 columns, and --group-column is 3",
    "--hyp two --ref two --clusters three": "three has 3 lines for 2 lines of pairs; they must be equal",
    "--hyp two --ref two --metrics rouge3": "unknown metric 'rouge3'; did you mean 'rouge'? (valid: bleu, ",
    "--hyp two --ref two --bleu-tokenizer zhh": "unknown BLEU tokenizer 'zhh'; did you mean 'zh'? (valid: auto, 13a, ",
    "--hyp two --ref two --metrics cer --bleu-tokenizer zh": "--bleu-tokenizer goes with the metric bleu; the metrics ",
    "--hyp two --src two --tgt two --source-column 2": "--source-column goes with --tsv, whose columns it names",
    "--hyp two --tsv tsv --target-key b": "--target-key goes with --jsonl or --dataset, whose keys it names",
}


@pytest.mark.parametrize("line", REFUSED)
def test_what_would_change_nothing_is_refused(line, here):
    write(here / "two", ["a", "b"])
    write(here / "three", ["a", "b", "c"])
    write(here / "tsv", ["a\tb", "c\td"])
    assert refusal("evaluate", *line.split()).startswith(REFUSED[line])


@ONE
@pytest.mark.parametrize("command", ["score", "align"])
def test_columns_without_a_table_are_refused_elsewhere_too(command, model_folder, here):
    write(here / "two", ["a", "b"])
    given = ("--src", "two", "--tgt", "two", "--source-column", 2)
    said = "--source-column goes with --tsv, whose columns it names"
    assert refusal(command, model_folder, *given) == said
    assert refusal("data", "check", *given) == said


def test_json_and_text_say_the_same(here):
    write(here / "a", ["the old man", "a red house"])
    line = ("evaluate", "--hyp", "a", "--ref", "a", "--metrics", "rouge-stem,edit_distance")
    text, found = mirada(*line).output.splitlines(), report(*line[1:])
    names = ["rouge1-stem", "rouge2-stem", "rougeL-stem", "edit_distance"]
    assert [row["metric"] for row in found["metrics"]] == names
    assert [row.split()[:2] for row in text[1:]] == [[name, f"{metric(found, name):.2f}"] for name in names]
