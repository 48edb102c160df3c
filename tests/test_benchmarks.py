"""The benchmarks say what they claim: operations, windows, loads and ratios by arithmetic. Never how fast it is."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from statistics import median

import numpy as np
import pytest
import torch
from benchmarks import __main__ as everything
from benchmarks import (
    clock,
    engines,
    engines_here,
    flops,
    grouping,
    machine,
    parts,
    report,
    rows,
    startup,
    tokenised,
    train,
    workloads,
)
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from mirada.config.options import ModelConfig
from mirada.models import build_model
from test_architecture import lines

ROOT = Path(__file__).parent.parent
VOCABULARY, BATCH, SOURCE, TARGET = 11, 3, 5, 7
RNN = {"embedding_dim": 6, "hidden_size": 8, "encoder_hidden_size": 10}
MODELS = {
    "bahdanau gru": {"decoder": "bahdanau", "rnn_type": "gru", "readout": "state", **RNN},
    "bahdanau lstm deep": {"decoder": "bahdanau", "rnn_type": "lstm", "readout": "deep", **RNN},
    "bahdanau one direction": {"decoder": "bahdanau", "bidirectional": False, "attention_size": 9, **RNN},
    "bahdanau general": {"decoder": "bahdanau", "score": "general", "rnn_type": "lstm", **RNN},
    "luong": {"decoder": "luong", **RNN},
    "luong without feeding": {"decoder": "luong", "input_feeding": False, **RNN},
    "luong one direction": {"decoder": "luong", "bidirectional": False, "embedding_dim": 6, "hidden_size": 8},
    "luong dot deep": {"decoder": "luong", "score": "dot", "enc_layers": 2, "dec_layers": 2, "hidden_size": 8},
    "transformer": {"decoder": "transformer", "embedding_dim": 8, "num_heads": 2, "ff_size": 12, "dec_layers": 2},
}


def counted(options: ModelConfig) -> int:
    """What torch counts in a forward pass of equal lengths with all logits, at double precision: the plain products."""
    torch.manual_seed(1)
    model = build_model(options, source_vocab=VOCABULARY, target_vocab=VOCABULARY).double().eval()
    source, target = (torch.randint(4, VOCABULARY, (BATCH, length)) for length in (SOURCE, TARGET))
    with FlopCounterMode(display=False) as counter, torch.no_grad(), sdpa_kernel(SDPBackend.MATH):
        model.logits(model(source, torch.full((BATCH,), SOURCE), target).hidden)
    return int(counter.get_total_flops())


@pytest.mark.parametrize("name", MODELS)
def test_operations_are_those_that_torch_counts(name: str) -> None:
    """Torch sees no product with a vector (v of an additive score), and counts the future half of self-attention."""
    options = ModelConfig(**{"dropout": 0.0, **MODELS[name]})
    expected = flops.forward(options, VOCABULARY, flops.of_pairs([(SOURCE, TARGET)] * BATCH)).total
    if options.score_name == "additive":
        expected -= 2 * BATCH * SOURCE * TARGET * (options.attention_size or options.hidden_size)
    if options.decoder == "transformer":
        future = TARGET * (TARGET - 1) // 2
        expected += options.dec_layers * 2 * 2 * BATCH * future * options.embedding_dim
    assert counted(options) == expected + padding_column(options)


def padding_column(options: ModelConfig) -> int:
    """What an LSTM without feedback multiplies besides: one input more, 1 on padding (kernels/recurrence.py)."""
    if options.decoder == "transformer" or options.rnn_type == "gru":
        return 0
    encoder = options.enc_layers * (2 if options.both_directions else 1) * SOURCE * options.direction_size
    decoder = 0 if options.decoder == "bahdanau" or options.feeds_input else TARGET * options.hidden_size
    return 2 * BATCH * 4 * (encoder + decoder)


def test_operations_by_hand() -> None:
    """T1's output layer for 1,024 tokens, forward and back; a search of 3 words with beam 5 from 4 words."""
    parts_of = flops.training(ModelConfig(**workloads.WORKLOADS["T1"].model), 8000, [(16, 16)] * 64)
    assert parts_of.output == 3 * 2 * 1024 * 512 * 8000
    assert parts_of.encoder == 3 * 2 * (1024 * 2 * 3 * 256 * (256 + 256) + 64 * 256 * 512)
    assert flops.of_search([(4, 3)], beam=5) == (1, 4, 16, 1 + 5 + 5, 4 * 11, 1 + 5 * 2 + 5 * 3)
    with pytest.raises(ValueError, match="counted for decoder bahdanau, luong and transformer"):
        flops.forward(ModelConfig(decoder="classic"), 8000, flops.of_pairs([(2, 2)]))


class Time:
    """A clock that goes on by hand."""

    def __init__(self) -> None:
        self.now = 0.0

    def perf_counter(self) -> float:
        return self.now


def test_windows_leave_out_warm_up_and_what_lies_between(monkeypatch: pytest.MonkeyPatch) -> None:
    hands = Time()

    def rates(*, precision: str) -> machine.Rates:
        assert precision == "float32"
        hands.now += 100  # would be seen
        return machine.Rates(200.0, None, 800.0)

    monkeypatch.setattr(clock, "time", hands)
    monkeypatch.setattr(clock, "measure_rates", rates)
    watched = clock.Clock(clock.Plan(warmup=2, windows=2, updates=3))
    for done in range(1, 11):
        hands.now += 1 if done <= 5 else 2
        watched.update(done, 10 * done, 0.5)
    assert [(window.seconds, window.tokens) for window in watched.windows] == [(3, 30 + 40 + 50), (6, 60 + 70 + 80)]
    assert len(watched.rates) == 3
    assert watched.rate() == (200.0, None, 800.0)


def test_load_is_what_others_did() -> None:
    before, after = machine.Reading(10.0, 100.0, 1.0, 50.0), machine.Reading(14.0, 106.0, 1.4, 53.0)
    assert machine.load_between(before, after) == pytest.approx((0.75, 0.1, 0.75))
    assert machine.load_between(None, after) == (None, None, None)


def test_own_seconds_hold_children_that_have_ended() -> None:
    if machine.reading() is None:
        pytest.skip("this system has no /proc")
    import subprocess

    before = machine.reading()
    subprocess.run([sys.executable, "-c", "sum(range(6_000_000))"], check=True)
    after = machine.reading()
    assert before is not None
    assert after is not None
    assert after.own > before.own
    assert after.own - before.own <= 4 * (after.clock - before.clock) + 0.1


def test_imports_are_summed_by_package() -> None:
    text = """import time: self [us] | cumulative | imported package
import time:       200 |        300 |   torch._C
import time:        50 |         50 | yaml
import time:      1000 |       1300 | torch
a warning | of | something
"""
    assert startup.imports(text) == [{"package": "torch", "ms": 1.2}, {"package": "yaml", "ms": 0.05}]


def row(system: str, speed: float, **more: object) -> rows.Row:
    common = {"kind": "train", "system": system, "work": "T1", "version": "1", "when": "2026-01-01T00:00:00+00:00"}
    return {**common, "tokens_per_second": speed, "windows": [speed - 1, speed + 1], "others": [0.0], **more}


def test_ratios_are_taken_round_by_round() -> None:
    ours = [row("mirada", speed, round=number) for number, speed in enumerate((300.0, 100.0, 80.0))]
    theirs = [row("Other", speed, round=number) for number, speed in enumerate((100.0, 50.0, 10.0))]
    assert grouping.ratio(ours, theirs, "tokens_per_second") == 3.0  # of 3, 2 and 8
    assert grouping.ratio(ours[:1], [row("Other", 60.0)], "tokens_per_second") == 5.0
    assert grouping.ratio(ours, [], "tokens_per_second") is None


def test_the_report_keeps_to_the_newest_version_and_marks_what_was_disturbed() -> None:
    found = [row("mirada", 9000.0, version="0"), row("mirada", 3000.0), row("mirada", 5000.0), row("Other", 2000.0)]
    found += [row("Other", 500.0, cell="LSTM", others=[0.5])]
    speeds, ratios = report.tables.training(found)
    assert speeds.header == ["work", "mirada", "Other", "Other (LSTM)"]
    assert speeds.rows == [["T1, None threads", "4,000 [2,999–5,001]", "2,000 [1,999–2,001]", "500 [499–501] (!)"]]
    assert ratios.rows == [["T1, None threads", "2.00", "8.00"]]


def test_a_report_is_put_between_the_marks(tmp_path: Path) -> None:
    page = tmp_path / "speed.md"
    page.write_text(f"# Speed\n\nOf old.\n\n{report.START}\nold\n{report.END}\n\nMore.\n", encoding="utf-8")
    rows.write(row("mirada", 3000.0), tmp_path)
    report.main([str(tmp_path), "--into", str(page)])
    text = page.read_text(encoding="utf-8")
    assert text.startswith("# Speed\n\nOf old.\n\n")
    assert text.endswith(f"{report.END}\n\nMore.\n")
    assert "3,000 [2,999–3,001]" in text
    assert "old\n<" not in text
    page.write_text("no marks", encoding="utf-8")
    with pytest.raises(SystemExit, match="expected the marks"):
        report.main([str(tmp_path), "--into", str(page)])


def test_a_line_that_is_no_row_is_named(tmp_path: Path) -> None:
    (tmp_path / "x.jsonl").write_text('{"kind": "train"}\n', encoding="utf-8")
    with pytest.raises(ValueError, match=r"x.jsonl:1: a row needs kind, system, work and when"):
        rows.read(tmp_path)


def test_other_batches_than_planned_are_noticed(tmp_path: Path) -> None:
    workload = workloads.smaller(workloads.WORKLOADS["T3"])
    lines = tokenised.Lines((["a b", "a"], ["c", "c d"]), [], [], ["a", "b", "c", "d"])
    laid = tokenised.lay(lines, tmp_path, "two")
    assert np.array_equal(laid.lengths, [[3, 2], [2, 3]])
    watched = clock.Clock(clock.Plan(warmup=0, windows=1, updates=1))
    watched.tokens = [6]
    with pytest.raises(RuntimeError, match="training read other batches"):
        train.batches(workloads.options(workload, laid, workloads.Place(tmp_path)), laid, watched)


def here(step: everything.Step) -> int:
    """A step in this process."""
    import_module(f"benchmarks.{step.module}").main(step.arguments)
    return 0


def test_all_works_are_measured() -> None:
    given = everything.read(["--out", "x", "--threads", "2", "--quick"])
    todo = list(everything.steps(given))
    assert {step.arguments[0] for step in todo if step.module == "train"} == set(workloads.WORKLOADS)
    assert [step.module for step in todo[len(workloads.WORKLOADS) :]] == [
        *("fit", "fit", *["decode"] * 10, "startup", "startup", "scaling")
    ]


@pytest.fixture(scope="module")
def quick(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """`make bench` with tiny sizes and some of the workloads, without starting processes."""
    out = tmp_path_factory.mktemp("bench")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(everything, "run", here)
        patch.setattr(everything, "WORKLOADS", ("T1", "T3", "T4"))
        patch.setattr(everything, "DECODED", ("T2",))
        patch.setattr(everything, "SEARCHES", {"decode": [[]], "latency": [["--single"]]})
        patch.setattr(machine, "SHAPES", ((8, 8, 8),))
        patch.setattr(machine, "SECONDS", 0.001)
        assert everything.main(["--quick", "--out", str(out), "--only", "train", "decode", "latency", "scaling"]) == 0
    yield out
    torch.set_num_threads(1)


@pytest.mark.slow
def test_every_part_leaves_its_rows(quick: Path) -> None:
    found = rows.read(quick)
    assert {one["work"] for one in found if one["kind"] == "train"} == {"T1", "T3", "T4"}
    assert [one["beam"] for one in found if one["kind"] == "decode"] == [5, 1]
    assert [one["beam"] for one in found if one["kind"] == "latency"] == [5, 1]
    assert [(one["work"], one["task"], one["value"]) for one in found if one["kind"] == "scaling"] == [
        (workload, task, layers) for workload in ("T2", "T3") for layers in (1, 2) for task in ("train", "decode")
    ]


@pytest.mark.slow
def test_a_row_of_training_says_what_it_should(quick: Path) -> None:
    for one in (one for one in rows.read(quick) if one["kind"] == "train"):
        assert len(one["windows"]) == len(one["others"]) == train.QUICK.windows
        assert min(one["windows"]) <= one["tokens_per_second"] <= max(one["windows"])
        assert list(one["parts"]) == list(parts.PARTS)
        assert one["padding"] >= 1
        assert sum(one["gflop"].values()) > 0
        assert one["operations"]


@pytest.mark.slow
def test_a_search_needs_no_more_rows_than_it_computes(quick: Path) -> None:
    for one in (one for one in rows.read(quick) if one["kind"] == "decode"):
        assert one["rows_computed"] is None or one["rows_computed"] >= one["sentences"] * one["mean_length"]


@pytest.mark.slow
def test_the_report_of_everything_has_every_part(quick: Path) -> None:
    text = (quick / "report.md").read_text(encoding="utf-8")
    for title in ("Training", "Where the time goes", "Decoding", "One sentence at a time", "How cost grows"):
        assert f"\n## {title}\n" in text
    assert (quick / "figures" / "speed-train-by-layers.svg").is_file()


def test_starting_is_measured() -> None:
    found = startup.measure("--help", ["--help"], "", 1)
    assert found["best_s"] == found["median_s"] == found["runs"][0] > 0
    times = [one["ms"] for one in found["imports"]]  # of the slowest packages: which they are is the machine's business
    assert len(times) > 1
    assert times == sorted(times, reverse=True)
    assert all(one["package"] and "." not in one["package"] for one in found["imports"])


def test_the_style_is_that_of_the_package() -> None:
    lengths, wide, private = {}, {}, []
    for path in sorted((ROOT / "benchmarks").glob("*.py")):
        text = path.read_text(encoding="utf-8")
        assert len(text.splitlines()) <= 300, path.name
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef):
                lengths[f"{path.name} {node.name}"] = lines(node)
                wide[f"{path.name} {node.name}"] = len([*node.args.args, *node.args.kwonlyargs])
            elif isinstance(node, ast.ImportFrom) and str(node.module).startswith("mirada"):
                private += [f"{path.name} {alias.name}" for alias in node.names if alias.name.startswith("_")]
    assert max(lengths.values()) <= 60
    assert median(lengths.values()) <= 12
    assert max(wide.values()) <= 8  # self included
    assert private == []


def test_threads_of_workers_with_several_each_are_counted() -> None:
    row = {"machine": {"threads": 2}}
    assert grouping.threads(row) == 2
    assert grouping.threads(row | {"workers": 1, "intra_threads": 1}) == 1
    assert grouping.threads(row | {"workers": 2, "intra_threads": 4}) == 8


def test_engines_take_turns() -> None:
    """Three rounds of two tasks, after one of each to warm up; what cannot be measured keeps its place."""
    turns: list[str] = []
    spent = {"a": iter([9.0, 1.0, 3.0, 2.0]), "b": iter([9.0, 5.0, 5.0, 8.0])}

    def task(name: str) -> engines_here.Task:
        def done() -> float:
            turns.append(name)
            return next(spent[name])

        return done

    assert engines_here.in_turn([task("a"), None, task("b")], 3) == [2.0, None, 5.0]
    assert "".join(turns) == "ab" * 4


def test_the_table_of_engines_is_arithmetic() -> None:
    found = [
        engines_here.Row("luong", "start-up", (0.9, None), (0.3, 0.5)),
        engines_here.Row("luong", "beam 5", (0.002, 0.001), (0.004, 0.001)),
    ]
    table, verdict = engines_here.report(found, machine.Load(0.0, 0.0, 1.0)).sections[0].blocks
    assert [list(row) for row in table.rows] == [
        ["luong", "start-up", "900.0", "300.0", "3.00", "–", "500.0", "–"],
        ["luong", "beam 5", "2.0", "4.0", "0.50", "1.0", "1.0", "1.00"],
    ]
    assert verdict.text == "The graphs are at least as fast in 2 of 3 comparisons"


def test_engines_are_measured_and_put_into_a_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page, (start, end) = tmp_path / "page.md", engines_here.MARKS
    page.write_text(f"before\n{start}\nold\n{end}\nafter\n")
    way = engines_here.SINGLE
    engines_here.main(["--quick", "--systems", "luong-general", "--ways", way, "--rounds", "1", "--into", str(page)])
    text = page.read_text()
    assert text.startswith(f"before\n{start}\n")
    assert text.endswith(f"{end}\nafter\n")
    assert f"| luong-general | {way} |" in text
    assert "old" not in text
    assert "luong-general" in capsys.readouterr().out


def test_engines_are_compared_with_one_worker_of_their_own_on_different_sentences() -> None:
    rows = [("local", 1, 0.5, 0.1, 200), ("ray", 1, 4.0, 2.0, 100), ("ray", 2, 4.0, 2.0, 150)]
    table = engines.table([engines.EngineRow(*row) for row in rows], 1000)
    assert [line.split("|")[-2].strip() for line in table[4:]] == ["1.00", "1.00", "1.50"]
    sentences = engines.sentences(300)
    assert len(sentences) == len(set(sentences)) > 200
