"""Decoding speed of a trained model: `python -m benchmarks.decode MODEL [--beam 5 1] [--tokenised DIR] [--out DIR]`.

The test lines through `Translator.search`, best output and its tokens; passes over all of them after one that warms up
and counts rows. With --single one sentence at a time: the median and the slowest tenth.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median, quantiles
from typing import Any, NamedTuple

import torch

from benchmarks import flops, machine, rows, workloads
from benchmarks.tokenised import Tokenised, prepare, text
from benchmarks.train import OUT, version
from mirada import Translation, Translator
from mirada.config.configfile import changed
from mirada.config.options import SearchConfig
from mirada.errors import ConfigError
from mirada.translator import load

LONGEST = 60  # tokens of an output, as for the peers
ALONE = 200  # sentences for --single


class Job(NamedTuple):
    """How to decode."""

    beam: int
    batch_size: int
    repeat: int


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure a model with each beam."""
    given = _read(arguments)
    if given.threads:
        torch.set_num_threads(given.threads)
    try:
        translator = load(given.model, device=given.device, precision=given.precision, workers=given.workers)
    except ConfigError as error:  # a processor without fast 8-bit products
        print(f"not measured: {error}", file=sys.stderr)
        return
    task = "spelling" if workloads.name_of(translator.config.model) == "T4" else "translation"
    with tempfile.TemporaryDirectory() as folder:
        tokenised = prepare(task, given.tokenised, Path(folder), **(workloads.FEW if given.quick else {}))
    lines = tokenised.test[: given.sentences]
    tokenised = tokenised._replace(test=lines[:20] if given.quick else lines)
    for beam in given.beam:
        job = Job(beam, given.batch_size, given.repeat)
        row = one_by_one(translator, tokenised, job) if given.single else measure(translator, tokenised, job)
        rows.write({**row, "quick": given.quick, "round": given.round}, given.out)


def _read(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path, help="folder of a model that reads these files (benchmarks.fit)")
    parser.add_argument("--tokenised", type=Path, metavar="DIR", help="tokenised files [made from the embedded corpus]")
    parser.add_argument("--out", type=Path, default=OUT, metavar="DIR", help="where the rows go [%(default)s]")
    parser.add_argument("--beam", type=int, nargs="+", default=[5, 1], help="[5 1]")
    parser.add_argument("--batch-size", type=int, default=64, help="sentences searched together [%(default)s]")
    parser.add_argument("--device", default="cpu", help="[%(default)s]")
    parser.add_argument("--single", action="store_true", help="one sentence at a time")
    parser.add_argument("--sentences", type=int, help="the first so many test lines [all]")
    parser.add_argument("--repeat", type=int, default=3, help="passes that are measured [%(default)s]")
    parser.add_argument("--threads", type=int, help="threads of torch [its own choice]")
    parser.add_argument("--workers", type=int, help="batches searched at once [the translator's choice]")
    parser.add_argument("--precision", choices=("float32", "int8"), default="float32", help="[%(default)s]")
    parser.add_argument("--round", type=int, help="number of the round, when systems are measured in turn")
    parser.add_argument("--quick", action="store_true", help="few lines, to see that it runs")
    return parser.parse_args(arguments)


def measure(translator: Translator, tokenised: Tokenised, job: Job) -> rows.Row:
    """Passes over all lines, batch by batch."""
    search = _searching(translator, job)
    with counting(translator) as counted:
        outputs = search(tokenised.test)
    device = translator.device.type
    windows, rates = [], [machine.measure_rates(device=device)]
    for _ in range(job.repeat):
        before = machine.reading()
        begun = time.perf_counter()
        outputs = search(tokenised.test)
        seconds = time.perf_counter() - begun
        windows.append((seconds, machine.load_between(before, machine.reading())))
        rates.append(machine.measure_rates(device=device))
    middle = median(seconds for seconds, _ in windows)
    return {
        **_head("decode", translator, tokenised, job, [load for _, load in windows]),
        "sentences_per_second": len(outputs) / middle,
        "windows": [len(outputs) / seconds for seconds, _ in windows],
        **_work(translator, outputs, job, middle, machine.middle(rates)),
        "rows_computed": sum(counted) or None,
        **_quality(outputs, tokenised),
        "peak_mb": machine.peak_megabytes(device),
    }


def one_by_one(translator: Translator, tokenised: Tokenised, job: Job) -> rows.Row:
    """How long one sentence takes, alone."""
    search, lines = _searching(translator, job), tokenised.test[:ALONE]
    search(lines[:5])
    before, spent = machine.reading(), []
    for line in lines:
        begun = time.perf_counter()
        search([line])
        spent.append(1000 * (time.perf_counter() - begun))
    load = machine.load_between(before, machine.reading())
    head = _head("latency", translator, tokenised._replace(test=lines), job, [load])
    return {**head, "median_ms": median(spent), "p90_ms": quantiles(spent, n=10)[-1]}


def _searching(translator: Translator, job: Job) -> Callable[[Sequence[str]], list[Translation]]:
    """The best output of each line: a beam without length penalty, of at most LONGEST tokens."""
    values = {"beam_size": job.beam, "n_best": 1, "alpha": 0.0, "max_output_length": LONGEST}
    options: SearchConfig = changed(translator.config.search, values)

    def search(lines: Sequence[str]) -> list[Translation]:
        found = translator.search(lines, options=options, batch_size=job.batch_size)
        return [outputs[0] for outputs in found]

    return search


@contextmanager
def counting(translator: Translator) -> Iterator[list[int]]:
    """Note the rows of every `step` of the model that searches; nothing comes where another way is gone."""
    counted: list[int] = []
    model: Any = translator.fast_model
    step = model.step

    def counts(token: torch.Tensor, *rest: Any, **named: Any) -> Any:
        counted.append(len(token))  # by several threads at once
        return step(token, *rest, **named)

    model.step = counts
    try:
        yield counted
    finally:
        del model.step


def _head(kind: str, translator: Translator, tokenised: Tokenised, job: Job, loads: Sequence[machine.Load]) -> rows.Row:
    return {
        "kind": kind,
        "system": "mirada",
        "version": version(),
        "work": workloads.name_of(translator.config.model),
        "data": tokenised.name,
        "beam": job.beam,
        "batch_size": job.batch_size if kind == "decode" else 1,
        "precision": translator.precision,
        "workers": translator.workers,
        "sentences": len(tokenised.test),
        "others": [load.others for load in loads],
        "machine": machine.facts(translator.device.type),
    }


def _work(
    translator: Translator, outputs: Sequence[Translation], job: Job, seconds: float, rate: machine.Rates
) -> rows.Row:
    """What had to be computed for these outputs, and its share of the matrix rate."""
    lengths = [(len(found.source_tokens), len(found.tokens)) for found in outputs]
    sizes = flops.of_search(lengths, job.beam)
    parts = flops.forward(translator.config.model, len(translator.target_tokenizer), sizes)
    speed, tokens = parts.total / seconds / 1e9, sum(length for _, length in lengths)
    best = rate.int8 if translator.precision == "int8" and rate.int8 else rate.best()
    return {
        "tokens_per_second": tokens / seconds,
        "rows": sizes.rows,
        "rows_per_second": sizes.rows / seconds,
        "mean_length": tokens / len(lengths),
        "rates": rate._asdict(),
        "gflop": {part: value / 1e9 for part, value in parts._asdict().items()},
        "gflops": speed,
        "fraction": speed / rate.linear,
        "fraction_of_best": speed / best,
    }


def _quality(outputs: Sequence[Translation], tokenised: Tokenised) -> rows.Row:
    from mirada.evaluation.metrics import evaluate

    texts = [text([token for token in found.tokens if token != "</s>"]) for found in outputs]
    metric = evaluate(texts, [[reference] for reference in tokenised.references[: len(texts)]], ["bleu"])[0]
    return {"bleu": metric.value, "signature": metric.signature}


if __name__ == "__main__":
    main()
