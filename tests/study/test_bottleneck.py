"""The four experiments: their arithmetic on paper, what they say of hand-made numbers, and a whole run in small."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from benchmarks import bottleneck_page

from cli_tools import refusal
from compare_tools import TINY, in_this_process
from mirada.cli import main
from mirada.data.corpus import Corpus
from mirada.errors import ConfigError, DataError
from mirada.evaluation.compare import Measured
from mirada.study.bottleneck import cost, findings, forgetting, pairs, settings, translation
from mirada.study.bottleneck.experiment import bottleneck
from mirada.study.bottleneck.settings import BottleneckRequest
from mirada.study.bottleneck.translation import Fall

# --- experiment 1: lengths -------------------------------------------------------------------------------------------


def measured(*drawn: float) -> Measured:
    """A system whose value is the mean of its resamples."""
    return Measured((float(np.mean(drawn)),), np.array(drawn), "by hand")


def test_falls_by_hand():
    classic, attention = Fall(measured(60, 60), measured(20, 22)), Fall(measured(80, 80), measured(70, 74))
    numbers = translation.fall_numbers(classic)
    assert (numbers["short"]["value"], numbers["long"]["value"], numbers["change"]["value"]) == (60, 21, -39)
    found = translation.compare_falls(classic, attention, metric="bleu")
    # Lost: 39 against 8. Resample by resample: 40 − 10 and 38 − 6, between which the quantiles lie.
    assert found["more_lost"]["value"] == 31
    assert (found["more_lost"]["low"], found["more_lost"]["high"]) == pytest.approx((30.05, 31.95))
    assert found["kept"] == [21 / 60, 72 / 80]
    assert found["less_kept"]["value"] == pytest.approx(0.55)


def test_falls_of_error_rates_are_rises():
    classic, attention = Fall(measured(30), measured(70)), Fall(measured(20), measured(30))
    found = translation.compare_falls(classic, attention, metric="wer")
    assert found["more_lost"]["value"] == 30
    assert "kept" not in found


def span(value: float, low: float, high: float) -> dict[str, float]:
    return {"value": value, "low": low, "high": high}


def lengths_of(more_lost, less_kept=None, short=(60.0, 80.0)):
    systems = [
        {"name": name, "short": span(value, value - 1, value + 1), "long": span(9, 8, 10)}
        for name, value in zip(("classic-lstm-64", "luong-dot-64"), short, strict=True)
    ]
    sides = {"near": 8, "far": 25, "limit": 30}
    found = {"metric": "bleu", **sides, "unit": "words", "systems": systems, "more_lost": span(*more_lost)}
    return found | ({"less_kept": span(*less_kept), "kept": [0.2, 0.6]} if less_kept else {})


def test_the_sentence_about_lengths():
    falls = findings.lengths_finding(lengths_of((31.0, 28.5, 33.5)))
    assert falls == (
        "From sources of up to 8 words to those of 25 to 30, bleu goes with classic-lstm-64 from 60.0 [59.0, 61.0] to "
        "9.0 [8.0, 10.0] and luong-dot-64 from 80.0 [79.0, 81.0] to 9.0 [8.0, 10.0]: the classic system loses "
        "31.0 [28.5, 33.5] points more, as Bahdanau et al. (2015, figure 2) found."
    )
    flat = findings.lengths_finding(lengths_of((1.0, -0.5, 2.5)))
    assert flat.endswith(": no difference in what they lose was found (+1.0 [-0.5, 2.5] points).")
    contradicts = findings.lengths_finding(lengths_of((-5.0, -7.0, -3.0), (-0.1, -0.2, 0.1)))
    assert contradicts.endswith(
        ": attention loses 5.0 [3.0, 7.0] points more, which contradicts Bahdanau et al. (2015, figure 2)."
    )
    more_to_lose = findings.lengths_finding(lengths_of((-5.0, -7.0, -3.0), (0.4, 0.3, 0.5)))
    assert more_to_lose.endswith("of its quality the classic system keeps less (20 % against 60 %).")


def test_nothing_is_said_of_systems_that_have_learned_nothing_or_were_not_trained():
    weak = findings.lengths_finding(lengths_of((5.0, 4.0, 6.0), short=(3.0, 7.0)))
    assert weak == "Nothing can be said: no system has learned enough (bleu 7.0 at best); train longer (--updates)."
    floor = findings.lengths_finding(lengths_of((-20.0, -25.0, -16.0), (-0.1, -0.2, 0.1), short=(9.1, 75.5)))
    assert floor.endswith(
        ": classic-lstm-64 has learned too little to fall, so nothing can be said of which loses more."
    )
    assert findings.lengths_finding({"metric": "bleu", "systems": []}) == findings.UNFINISHED
    assert findings.capacity_finding({"metric": "bleu", "systems": []}) == findings.UNFINISHED
    assert findings.forgetting_finding({"systems": []}) == findings.UNFINISHED


# --- experiment 2: capacity ------------------------------------------------------------------------------------------


def capacity_of(attention, widening, metric="bleu"):
    rows = [("classic", 64, 40.0, 1000), ("classic", 512, 60.0, 3_000_000), ("luong", 64, 70.0, 2000)]
    systems = [
        {"system": kind, "width": width, "parameters": weights, **span(value, value - 2, value + 2)}
        for kind, width, value, weights in rows
    ]
    return {
        "metric": metric,
        "systems": systems,
        "widest": "classic-512",
        "narrowest": "classic-64",
        "attention": "luong-64",
        "attention_minus_widest": span(*attention),
        "widest_minus_narrowest": span(*widening),
    }


def test_the_sentence_about_capacity():
    better = findings.capacity_finding(capacity_of((10, 8, 12), (20, 18, 22)))
    assert better == (
        "Widening the classic system from 64 to 512 makes it better (bleu 40.0 [38.0, 42.0] to 60.0 [58.0, 62.0], "
        "3,000,000 weights); luong at width 64 (70.0 [68.0, 72.0], 2,000 weights) is still better, so width does not "
        "make up for attention (difference +10.0 [8.0, 12.0])."
    )
    worse = findings.capacity_finding(capacity_of((-10, -12, -8), (1, -1, 3)))
    assert "from 64 to 512 changes nothing found" in worse
    assert "is worse, so width did make up for attention here (difference -10.0 [-12.0, -8.0])" in worse
    assert "is as good as far as was found" in findings.capacity_finding(capacity_of((1, -1, 3), (1, -1, 3)))
    # Of an error rate less is better.
    assert "is still better" in findings.capacity_finding(capacity_of((-10, -12, -8), (1, -1, 3), metric="wer"))


# --- experiment 3: forgetting ----------------------------------------------------------------------------------------


def test_accuracy_by_position_by_hand():
    # Positions 1–6: two sequences right everywhere, two right in the last third alone.
    hits = np.array([[1, 1, 1, 1, 1, 1], [0, 0, 0, 0, 1, 1]] * 2, dtype=np.float64)
    found = forgetting.position_numbers(hits[None], samples=200)
    assert [position["value"] for position in found["positions"]] == [50, 50, 50, 50, 100, 100]
    assert (found["early"]["value"], found["late"]["value"], found["late_minus_early"]["value"]) == (50, 100, 50)
    assert found["late"] == span(100, 100, 100)
    assert 0 <= found["late_minus_early"]["low"] < 50 < found["late_minus_early"]["high"] <= 100


def test_seeds_that_differ_widen_the_interval_though_all_sequences_are_alike():
    right, wrong = np.ones((1, 4, 6)), np.zeros((1, 4, 6))
    found = forgetting.position_numbers(np.concatenate([right, wrong]), samples=200)
    assert found["early"] == span(50, 0, 100)


def test_sequences_are_the_task_and_tests_are_new():
    for task in ("copy", "reverse"):
        made = forgetting.sequences(TINY, task, seed=3)
        for corpus in made[:3]:
            for source, target in zip(corpus.sources, corpus.targets, strict=True):
                words = source.split()
                assert target.split() == (words if task == "copy" else words[::-1])
        assert {len(source.split()) for source in made.test.sources} == {TINY.sequence}
        assert {len(source.split()) for source in made.train.sources} == set(range(1, TINY.sequence + 1))
        assert not set(made.test.sources) & set(made.train.sources)


def forgetting_of(*ends: str) -> dict[str, object]:
    """Results whose four classic conditions lose these ends of the source, and an attention that loses nothing."""
    apart = {
        "early": span(30, 20, 40),
        "late": span(-30, -40, -20),
        "neither": span(0, -5, 5),
        "none": span(-1, -1.9, -0.1),  # late words are behind, but by less than anyone would mind
    }
    conditions = [("copy", False), ("copy", True), ("reverse", False), ("reverse", True)]
    rows = [
        {
            "task": task,
            "system": "classic-lstm",
            "reversed_source": backwards,
            "early": span(60, 58, 62),
            "late": span(60 + apart[end]["value"], 0, 0),
            "late_minus_early": apart[end],
        }
        for (task, backwards), end in zip(conditions, ends, strict=True)
    ]
    even = {"early": span(100, 100, 100), "late": span(100, 100, 100), "late_minus_early": span(0, 0, 0)}
    return {"systems": [*rows, {"task": "copy", "system": "luong-dot", "reversed_source": False, **even}]}


def test_the_sentence_about_forgetting():
    opening = {
        (
            "early",
            "early",
            "early",
            "early",
        ): "The early words are the ones that the fixed vector loses, in every condition",
        (
            "late",
            "late",
            "early",
            "early",
        ): "The fixed vector loses what is written last, be it early or late in the source",
        (
            "early",
            "late",
            "early",
            "late",
        ): "The fixed vector loses what was read first, be it early or late in the source",
        (
            "late",
            "late",
            "neither",
            "late",
        ): "The early words are not what the fixed vector loses, against what is often said",
        (
            "none",
            "neither",
            "none",
            "none",
        ): "What the fixed vector loses does not depend on the position, as far as was found",
        ("early", "late", "late", "none"): "Which words the fixed vector loses differs between the conditions",
        ("early", "late", "late", "neither"): "Which words the fixed vector loses differs between the conditions",
    }
    for ends, text in opening.items():
        assert findings.forgetting_finding(forgetting_of(*ends)).startswith(
            f"{text}: copy 60 % of the first third right"
        )
    whole = findings.forgetting_finding(forgetting_of("neither", "early", "early", "early"))
    assert (
        "copy 60 % of the first third right, 60 % of the last (no difference found); copy, source reversed, 60 %"
        in whole
    )
    assert whole.endswith("With attention: copy 100 % of the first third right, 100 % of the last (no word is lost).")


@pytest.mark.parametrize(
    ("low", "high", "level", "verdict"),
    [
        (-0.7, -0.2, 99, "no word is lost"),  # found, yet nothing
        (-1.9, 1.9, 98.1, "no word is lost"),
        (-1.9, 1.9, 97.9, "none is lost by its position"),
        (-1.9, 1.9, 5, "none is lost by its position"),
        (-2.1, 1.9, 99, "no difference found"),  # the interval leaves room for one
        (-2.1, -0.1, 99, "late words lost"),
        (0.1, 2.1, 99, "early words lost"),
    ],
)
def test_a_difference_that_would_not_matter_is_none(low, high, level, verdict):
    results = forgetting_of("early", "early", "early", "early")
    results["systems"][-1] |= {
        "early": span(level, level, level),
        "late": span(level, level, level),
        "late_minus_early": span((low + high) / 2, low, high),
    }
    assert findings.forgetting_finding(results).endswith(f"% of the last ({verdict}).")


# --- experiment 4: cost ----------------------------------------------------------------------------------------------


def test_ratios_are_medians_within_a_turn():
    found = cost.ratio(np.array([2.0, 30.0, 8.0]), np.array([1.0, 10.0, 1.0]), samples=100)
    assert found["ratio"] == 3.0  # of 2, 3 and 8; the ratio of the medians would be 8
    assert 2.0 <= found["low"] <= 3.0 <= found["high"] <= 8.0


def test_every_call_is_timed_once_a_turn():
    called: list[str] = []
    calls = {name: lambda name=name: called.append(name) for name in ("dot", "additive")}
    found = cost.interleaved(calls, 5, torch.device("cpu"))
    assert called.count("dot") == called.count("additive") == 6  # and once before the clock
    assert found["dot"]["ratio"] == 1.0


def test_bytes_made_by_hand():
    x = torch.zeros(10, 100)  # 4,000 bytes
    with torch.inference_mode():
        assert cost.bytes_made(lambda: x + 1) == 4000
        assert cost.bytes_made(lambda: (x + 1) + 1) == 8000  # the first sum lives until the second is made
        assert cost.bytes_made(lambda: (x + 1) @ x[0]) == 4000 + 40
        assert cost.bytes_made(lambda: x.view(100, 10)) == 0
        assert cost.bytes_made(lambda: [None for _ in range(3) if (x + 1) is None]) == 4000  # freed each time


def test_additive_attention_holds_batch_times_length_times_width_numbers():
    settings = replace(TINY, cost_batch=2, cost_width=8)
    with torch.inference_mode():
        rows = {row["name"]: row for row in cost._attention_costs(settings, 50, torch.device("cpu"))}
    # tanh(query + key) [2, 50, 8], the query [2, 8] and the scores [2, 50], four bytes each.
    assert rows["additive"]["bytes"] == 4 * (2 * 50 * 8 + 2 * 8 + 2 * 50)
    assert rows["additive"]["key_bytes"] == rows["general"]["key_bytes"] == 4 * 2 * 50 * 8
    assert rows["dot"]["key_bytes"] == 0


def cost_of(*additive: tuple[float, float, float]) -> dict[str, object]:
    costs = []
    for i, (ratio, low, high) in enumerate(additive):
        rows = {"dot": (1, 1, 1), "general": (1.1, 1, 1.2), "additive": (ratio, low, high)}
        scores = [
            {"name": name, "ratio": r, "low": a, "high": b, "bytes": 640 if name == "additive" else 10}
            for name, (r, a, b) in rows.items()
        ]
        costs.append({"length": 10 * (i + 1), "scores": scores})
    step = {"length": 10, "systems": [{"name": "additive", "ratio": 1.5, "low": 1.4, "high": 1.6}]}
    return {"attention": costs, "steps": [step]}


def test_the_sentence_about_cost():
    slower = findings.cost_finding(cost_of((3, 2.9, 3.1), (4, 3.5, 4.5)))
    assert slower == (
        "The additive score is slower than the dot product at every length, as Vaswani et al. (2017, section 3.2.1) "
        "say; at 20 words attention takes 4.00 [3.50, 4.50] times as long (general: 1.10 [1.00, 1.20]) and makes 64.0 "
        "times as many bytes; a whole decoder step with it takes 1.50 [1.40, 1.60] times as long as one of the classic "
        "system."
    )
    assert findings.cost_finding(cost_of((1, 0.9, 1.1), (1.1, 0.9, 1.3))).startswith(
        "No difference in time between the additive score and the dot product was found; at 20 words"
    )
    assert findings.cost_finding(cost_of((0.5, 0.4, 0.6), (1, 0.9, 1.1))).startswith(
        "The additive score is not slower than the dot product, which contradicts Vaswani et al."
    )
    assert findings.cost_finding(cost_of((1, 0.9, 1.1), (2, 1.5, 2.5))).startswith(
        "The additive score is slower than the dot product at 20 source words only; "
    )


# --- the pairs -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("limit", range(2, 61))
def test_short_and_long_sources_are_apart_and_both_seen_in_training(limit):
    near, far, most = settings.bounds(limit)
    assert 1 <= near < far <= most == limit


def test_short_and_long_are_those_of_the_papers_figure():
    assert settings.bounds(30) == (8, 25, 30)


def test_a_small_worlds_test_pairs_are_short_long_and_any():
    made = pairs.small_world(TINY, 12)
    sizes = [[len(source.split()) for source in corpus.sources] for corpus in made[:3]]
    assert max(sizes[0]) <= 12
    assert (len(sizes[0]), len(sizes[2])) == (TINY.pairs, 3 * TINY.tested)
    near, far, rest = (sizes[2][i * TINY.tested :][: TINY.tested] for i in range(3))
    assert all(size <= 4 for size in near)
    assert all(10 <= size <= 12 for size in far)
    assert all(4 < size < 10 or 12 < size <= 24 for size in rest)
    assert max(rest) > 12
    assert not set(made.train.sources) & {*made.dev.sources, *made.test.sources}


def test_held_out_pairs_leave_the_training_pairs():
    words = ["a " * n for n in range(1, 41)]
    corpus = Corpus([word.strip() for word in words], words, list(range(1, 41)), [], "words")
    rest, taken = pairs.hold_out(corpus, list(range(1, 41)), 20, 5)
    assert sorted([*rest.sources, *taken.sources]) == sorted(corpus.sources)
    sizes = [len(source.split()) for source in taken.sources]
    assert sum(size <= 20 for size in sizes) == 2  # a tenth of the short ones
    assert sum(size > 20 for size in sizes) == 5


def test_pairs_that_are_all_short_are_refused(tmp_path):
    (tmp_path / "a.tsv").write_text("".join(f"a b {i}\tc {i}\n" for i in range(40)), encoding="utf-8")
    asked = BottleneckRequest(out=tmp_path / "out", settings=TINY, data={"tsv": str(tmp_path / "a.tsv")}, length=20)
    with pytest.raises(
        DataError, match=r"^no long test pairs with the lengths wanted \(up to 20, and to 40 words\); change"
    ):
        bottleneck(asked, print)


# --- the whole -------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    """All four experiments in small."""
    out = tmp_path_factory.mktemp("bottleneck") / "out"
    lines: list[str] = []
    request = BottleneckRequest(out=out, settings=TINY, quiet=True, device="cpu")
    return request, bottleneck(request, lines.append, launch=in_this_process), lines


def test_every_part_has_its_numbers_and_its_sentence(done):
    request, results, lines = done
    parts = results["parts"]
    assert list(parts) == ["lengths", "capacity", "forgetting", "cost"]
    assert all(part["finding"] in lines for part in parts.values())
    assert [row["name"] for row in parts["lengths"]["systems"]] == ["classic-lstm-6", "luong-general-6"]
    assert [(row["system"], row["width"]) for row in parts["capacity"]["systems"]] == [
        ("classic-lstm", 6),
        ("classic-lstm", 10),
        ("luong-general", 6),
    ]
    assert len(parts["forgetting"]["systems"]) == 6
    assert all(len(row["positions"]) == TINY.sequence for row in parts["forgetting"]["systems"])
    assert [at_length["length"] for at_length in parts["cost"]["attention"]] == [3, 5]
    assert results["failed"] == {}
    assert results == json.loads((request.out / "results.json").read_text(encoding="utf-8"))


def test_the_report_says_the_numbers_of_the_results(done):
    request, results, _ = done
    page, markdown = ((request.out / name).read_text(encoding="utf-8") for name in ("report.html", "report.md"))
    shown = [row["change"] for row in results["parts"]["lengths"]["systems"]]
    shown += results["parts"]["capacity"]["systems"]
    shown += [row["late_minus_early"] for row in results["parts"]["forgetting"]["systems"]]
    for found in shown:
        text = f"{found['value']:.1f} [{found['low']:.1f}, {found['high']:.1f}]"
        assert text in page
        assert text in markdown
    for at_length in results["parts"]["cost"]["attention"]:
        for row in at_length["scores"]:
            assert f"{row['ratio']:.2f} [{row['low']:.2f}, {row['high']:.2f}]" in page
    assert not re.search(r"https?://|<script|<link|@import|\bsrc=", page)
    table = (request.out / "results.csv").read_text(encoding="utf-8")
    value = results["parts"]["forgetting"]["systems"][0]["early"]["value"]
    assert f"forgetting,copy: classic-lstm,early,accuracy,{value}," in table


def test_the_page_has_a_row_and_a_curve_of_each_run(done, tmp_path):
    request, results, _ = done
    bottleneck_page.main([f"one={request.out}", f"A – B={request.out}", "--into", str(tmp_path / "page.md")])
    page = (tmp_path / "page.md").read_text(encoding="utf-8")
    lost = results["parts"]["lengths"]["more_lost"]
    row = f"| {lost['value']:.1f} [{lost['low']:.1f}, {lost['high']:.1f}] | 1 |"
    assert [line.split(" | ")[0] for line in page.splitlines() if line.endswith(row)] == ["| one", "| A – B"]
    figures = set(re.findall(r"\((figures/bottleneck-[\w-]+\.svg)\)", page))
    assert {"figures/bottleneck-lengths.svg", "figures/bottleneck-lengths-ab.svg"} <= figures
    assert all((tmp_path / figure).exists() for figure in figures)


def test_figures_are_there(done):
    out = done[0].out
    for name in ("lengths", "capacity", "forgetting-copy", "forgetting-reverse", "cost-time", "cost-memory"):
        assert (out / f"figures/{name}.png").read_bytes().startswith(b"\x89PNG")
        assert (out / f"figures/{name}.svg").exists()


def test_it_goes_on_where_it_was(done):
    request, results, _ = done

    def never(folder: Path) -> int:
        raise AssertionError(f"{folder} is done")

    with pytest.raises(ConfigError, match=r"holds experiments already; add --resume to go on, or choose another"):
        bottleneck(request, print)
    assert bottleneck(request, lambda line: None, resume=True, launch=never) == results
    other = replace(request, settings=replace(TINY, cost_repeats=4), parts=("cost",))
    with pytest.raises(ConfigError, match=r"cost.json was measured with other settings; remove it, or choose another"):
        bottleneck(other, print, resume=True)


def test_a_failed_run_leaves_the_other_parts_standing(tmp_path):
    def launch(folder: Path) -> int:
        return 7 if folder.name.startswith("luong") else in_this_process(folder)

    asked = BottleneckRequest(out=tmp_path / "out", settings=TINY, parts=("lengths",), quiet=True, device="cpu")
    results = bottleneck(asked, lambda line: None, launch=launch)
    assert results["parts"]["lengths"]["finding"] == findings.UNFINISHED
    assert results["failed"] == {"translation/luong-general-6-1": "its process ended with exit code 7"}
    assert "exit code 7" in (tmp_path / "out/report.md").read_text(encoding="utf-8")


def test_the_users_pairs(tmp_path):
    lines = [f"{' '.join(f'w{(i + j) % 7}' for j in range(n))}\t{n} {i % 3}\n" for n in range(1, 13) for i in range(12)]
    (tmp_path / "a.tsv").write_text("".join(lines), encoding="utf-8")
    data = {"tsv": str(tmp_path / "a.tsv"), "tokenizer": "word"}
    asked = BottleneckRequest(
        out=tmp_path / "out", settings=TINY, parts=("capacity",), data=data, quiet=True, device="cpu"
    )
    results = bottleneck(asked, lambda line: None, launch=in_this_process)
    # The 98th percentile of 1 … 12 is 12: half of it is the limit.
    assert results["parts"]["capacity"]["limit"] == 6
    assert results["parts"]["capacity"]["metric"] == "exact"


def test_one_part_trains_what_it_needs_and_given_test_pairs_are_all_taken(tmp_path):
    lines = [f"{' '.join(f'w{(i + j) % 7}' for j in range(n))}\t{n} {i % 3}\n" for n in range(1, 13) for i in range(12)]
    for name in ("a.tsv", "b.tsv"):
        (tmp_path / name).write_text("".join(lines), encoding="utf-8")
    asked = BottleneckRequest(
        out=tmp_path / "out",
        settings=replace(TINY, tested=5),
        parts=("lengths",),
        data={"tsv": str(tmp_path / "a.tsv"), "tokenizer": "word"},
        test={"tsv": str(tmp_path / "b.tsv")},
    )
    found = translation.plan_translation(asked)
    assert [system.name for system in found.systems] == ["classic-lstm-6", "luong-general-6"]
    assert len(found.shared.items) == len(lines)


def test_mistakes_are_told_before_any_work(tmp_path):
    out = ("--out", tmp_path / "out")
    assert refusal("bottleneck", *out, "--parts", "length").startswith("unknown part 'length'; did you mean 'lengths'?")
    wrong = "attention 'transformer': expected a system with attention and recurrence, such as luong-general"
    assert refusal("bottleneck", *out, "--attention", "transformer") == wrong
    assert refusal("bottleneck", *out, "--seeds", "0") == "seeds 0: expected 1 or more"
    assert refusal("bottleneck", *out, "--length", "1") == "length 1: expected 2 or more"
    assert not (tmp_path / "out").exists()


def test_the_command(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("mirada.study.bottleneck.settings.QUICK", TINY)
    assert main(["bottleneck", "--quick", "--parts", "cost", "--device", "cpu", "--out", str(tmp_path / "out")]) == 0
    assert capsys.readouterr().out == f"{tmp_path}/out/report.html\n"
