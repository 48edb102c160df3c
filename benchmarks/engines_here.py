"""Torch or graphs: which searches faster here? `python -m benchmarks.engines_here [--into docs/anywhere.md]`.

The seven systems in the sizes of T1 to T3, and T4's, untrained: outputs are as long as their sources, so both engines
make the same steps. All engines are measured in turn, round after round, each way the median of the rounds; start-up
is the wall time of whole processes, `mirada translate` of one sentence. With --into the tables go between the two marks
of that page.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from importlib.metadata import version
from pathlib import Path
from random import Random
from statistics import median
from typing import Any, NamedTuple, get_args

import torch

from benchmarks import machine
from benchmarks.report import put
from benchmarks.startup import start
from benchmarks.workloads import RNN, STACK, TINY, WORKLOADS
from mirada import loading
from mirada.config.configfile import changed, parse
from mirada.config.model import applicable
from mirada.data.tokenizer import TokenizerOptions, train_tokenizer
from mirada.data.vocabulary import SPECIAL_TOKENS
from mirada.devices import choose_device
from mirada.errors import ConfigError
from mirada.export.graph import Precision
from mirada.export.onnx_folder import export_onnx
from mirada.models import build_model
from mirada.store import checkpoint
from mirada.study.compare.systems import NAMES, system_options
from mirada.study.report.document import Conclusion, Grid, Section, StudyReport
from mirada.study.report.markdown import to_markdown
from mirada.study.report.numbers import value

MARKS = ("<!-- measured: made by python -m benchmarks.engines_here -->", "<!-- end of measured -->")
PRECISIONS: tuple[Precision, ...] = get_args(Precision)
WORDS, LETTERS = 8000, 44  # entries of the vocabularies
SHORTEST, LONGEST = 5, 22  # words of a sentence: 13 on average, as Multi30k's
LINES, ALONE = 128, 10  # sentences: two batches, for two workers; and one at a time
SINGLE, STARTUP = "one sentence at a time, beam 5", "start-up"
BEAMS = {"batches of 64, beam 1": 1, "batches of 64, beam 5": 5, SINGLE: 5}
WAYS = (*BEAMS, STARTUP)


class System(NamedTuple):
    """A model's options, and how many entries its vocabularies have."""

    model: dict[str, Any]
    entries: int


class Engine(NamedTuple):
    """A folder, and the precision with which it is loaded."""

    folder: Path
    precision: Precision


class Row(NamedTuple):
    """What one system takes one way: seconds (a sentence, or a start) of torch and of the graphs, by precision."""

    system: str
    way: str
    torch: tuple[float | None, ...]
    graphs: tuple[float | None, ...]


Task = Callable[[], float]  # does something once; seconds a sentence


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print the tables, and put them into a page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--systems", nargs="+", choices=systems(quick=False), help="[all]")
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=WAYS, help="[all]")
    parser.add_argument("--rounds", type=int, default=3, help="[%(default)s]")
    parser.add_argument("--threads", type=int, help="threads of torch, and batches searched at once [cores]")
    parser.add_argument("--into", type=Path, metavar="FILE", help="a page with the two marks")
    parser.add_argument("--quick", action="store_true", help="tiny sizes, to see that it runs")
    given = parser.parse_args(arguments)
    if given.threads:
        torch.set_num_threads(given.threads)
    before, found = machine.reading(), list[Row]()
    for name, system in systems(quick=given.quick).items():
        if name in (given.systems or [name]):
            found += measure(name, system, given)
    made = report(found, machine.load_between(before, machine.reading()))
    print(to_markdown(made), end="")
    if given.into:
        put(made, given.into, MARKS)


def systems(*, quick: bool) -> dict[str, System]:
    """The seven systems as translators, and the workload T4 with its small vocabulary."""
    made = {name: System(_options(name), WORDS) for name in NAMES}
    made["bahdanau, T4"] = System(dict(WORKLOADS["T4"].model), LETTERS)
    if not quick:
        return made
    return {name: System({key: TINY.get(key, one) for key, one in made[name].model.items()}, LETTERS) for name in made}


def _options(name: str) -> dict[str, Any]:
    sizes = STACK if name == "transformer" else RNN
    return applicable({**sizes, **system_options(name)})


def measure(name: str, system: System, given: argparse.Namespace) -> Iterator[Row]:
    """Every way that is wanted, by torch and by graphs in each precision."""
    with tempfile.TemporaryDirectory() as folder:
        engines, draw = write(Path(folder), system), Random(1)
        lines = [" ".join(draw.choices(_words(system), k=draw.randint(SHORTEST, LONGEST))) for _ in range(LINES)]
        for way in given.ways:
            tasks = [task(engine, way, lines, given.threads) for engine in engines]
            seconds = in_turn(tasks, given.rounds)
            row = Row(name, way, tuple(seconds[: len(PRECISIONS)]), tuple(seconds[len(PRECISIONS) :]))
            print(*_cells(row), sep="  ", file=sys.stderr, flush=True)
            yield row


def write(folder: Path, system: System) -> list[Engine]:
    """Write an untrained model and its graphs: by torch in each precision, then by graphs in each."""
    words = train_tokenizer([" ".join(_words(system))], TokenizerOptions("word", system.entries))
    data = {"source_tokenizer": "word", "target_tokenizer": "word", "vocab_size": system.entries}
    search = {"alpha": 0.0, "max_length_ratio": 1.0, "max_length_offset": 0}
    config = parse({"data": data, "model": system.model, "search": search})
    torch.manual_seed(1)
    model = build_model(config.model, source_vocab=len(words), target_vocab=len(words)).eval()
    (trained := folder / "model").mkdir()
    checkpoint.write_start(trained, config, words, words)
    note = {"metrics": {}, "updates": 1, "best": True}
    checkpoint.write_archive(trained / checkpoint.WEIGHTS, checkpoint.Archive(checkpoint.weights_of(model), note))
    loaded = checkpoint.load_model(trained, choose_device("cpu"))
    for precision in PRECISIONS:
        export_onnx(loaded, folder / precision, precision, say=lambda line: None)
    return [Engine(trained, one) for one in PRECISIONS] + [Engine(folder / one, one) for one in PRECISIONS]


def _words(system: System) -> list[str]:
    return [f"w{number}" for number in range(system.entries - len(SPECIAL_TOKENS))]


def task(engine: Engine, way: str, lines: Sequence[str], threads: int | None) -> Task | None:
    """What is measured of an engine; None where a processor has no fast 8-bit products."""
    try:
        translator = loading.load(engine.folder, device="cpu", precision=engine.precision, workers=threads)
    except ConfigError as error:
        print(f"not measured: {error}", file=sys.stderr)
        return None
    if way == STARTUP:
        command = [sys.executable, "-m", "mirada", "translate", str(engine.folder), "--precision", engine.precision]
        return lambda: start(command, lines[0])[0]
    options = changed(translator.config.search, {"beam_size": BEAMS[way]})
    lines = lines[:ALONE] if way == SINGLE else lines
    blocks = [[line] for line in lines] if way == SINGLE else [lines]

    def searched() -> float:
        begun = time.perf_counter()
        for block in blocks:
            translator.search(block, options=options, batch_size=64)
        return (time.perf_counter() - begun) / len(lines)

    return searched


def in_turn(tasks: Sequence[Task | None], rounds: int) -> list[float | None]:
    """Do each once to warm up, then all in turn, round after round: the median of each."""
    for one in filter(None, tasks):
        one()
    spent = [[one() for one in tasks if one is not None] for _ in range(rounds)]
    medians = iter([median(own) for own in zip(*spent, strict=True)])
    return [None if one is None else next(medians) for one in tasks]


def report(rows: Sequence[Row], load: machine.Load) -> StudyReport:
    """One table, and what follows from it."""
    facts, precisions = machine.facts(), [f"{who}, {one}" for one in PRECISIONS for who in ("torch", "graphs", "times")]
    caption = (
        f"Milliseconds a sentence, or a start, and how many times torch's speed the graphs' is. {facts['cpu']}, "
        f"{facts['cores']} cores, torch {facts['torch']}, ONNX Runtime {version('onnxruntime')}; others kept "
        f"{value(load.others, 2)} cores busy"
    )
    grid = Grid(caption, ["system", "what", *precisions], [_cells(row) for row in rows])
    ratios = [ratio for row in rows for ratio in _ratios(row) if ratio is not None]
    faster = sum(ratio >= 1 for ratio in ratios)
    verdict = f"The graphs are at least as fast in {faster} of {len(ratios)} comparisons"
    return StudyReport("Engines", "", [Section("Torch or graphs", [grid, Conclusion(verdict)])])


def _ratios(row: Row) -> list[float | None]:
    pairs = zip(row.torch, row.graphs, strict=True)
    return [None if own is None or other is None else own / other for own, other in pairs]


def _cells(row: Row) -> list[str]:
    cells = [row.system, row.way]
    for own, other, ratio in zip(row.torch, row.graphs, _ratios(row), strict=True):
        cells += [value(own and 1000 * own), value(other and 1000 * other), value(ratio, 2)]
    return cells


if __name__ == "__main__":
    main()
