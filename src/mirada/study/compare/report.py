"""The report of a comparison, made from results.json's content and nothing else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mirada.evaluation.metrics import better
from mirada.study.compare.systems import equal_and_different
from mirada.study.report import numbers
from mirada.study.report.document import Block, Conclusion, Grid, Map, NumberRow, Plot, Section, Series, StudyReport

Results = Mapping[str, Any]
SURE = 0.05
ATTENTION_SHOWN = 3  # sentences with maps; the others have their outputs only
ALIGNMENT = {"aer": "AER", "precision": "link precision", "recall": "link recall"}
UNITS = {"words": "words between blanks", "punctuation": "words and, each by itself, the marks at their ends"}
GOLD = (
    "AER, precision and recall hold the attention against gold links of {sentences:,} sentences ({sure:,} sure, "
    "{possible:,} with the possible; units {units}: {meaning}), the mean over seeds: forced along the first "
    "references, each word is linked to the source word with the largest weight at the step that predicts it, as "
    "`mirada align` does with --shift 0. Lower AER is better; with sure links only it is 1 − F1. A system without "
    "attention has none."
)
HOW = (
    "Quality is the mean over seeds of the corpus metric. Intervals (95 %) draw test items again ({samples} bootstrap "
    "resamples, the same items for all systems and seeds); the spread is over seeds. p is the paired bootstrap's, two "
    "sides, against {baseline}; neither interval nor p knows of other seeds than those run.",
    "Each run was trained and tested in a process of its own, one after the other. Peak memory is the largest resident "
    "memory of that process up to the end of training (for models that were only tested: of testing), the largest "
    "over seeds; in parentheses what it was before any pair was read (Python, PyTorch; for tested models the weights "
    "too). Tokens/s counts the target tokens (</s> included) of all updates against the time of the training, "
    "validations and saving included. A run that was stopped and resumed counts the time up to the save it went on "
    "from, and the memory "
    "of its last process.",
    "Entropy of attention is in nats, the mean over the tokens of the first references under forced decoding; for the "
    "Transformer it is that of the mean over the last layer's heads.",
)


def make_report(results: Results) -> StudyReport:
    """All sections."""
    sections = [
        Section("Results", _results_blocks(results)),
        Section("Quality by source length", _length_blocks(results)),
        Section("What is equal, and what differs", _condition_blocks(results)),
        Section("Sentences on which systems differ most", _sentence_blocks(results)),
        Section("How the numbers were made", _method_blocks(results)),
    ]
    names = ", ".join(system["name"] for system in results["systems"])
    return StudyReport("Systems compared", names, [section for section in sections if section.blocks])


def finished(results: Results) -> list[dict[str, Any]]:
    """The systems that have numbers."""
    return [system for system in results["systems"] if "metrics" in system]


def conclusion(results: Results) -> str:
    """One sentence: which system is best by the first metric, and how each stands against the baseline."""
    systems, metric = finished(results), results["metrics"][0]
    if not systems:
        return "No run was finished."
    sign = -1 if better(metric) == "lower" else 1
    best = max(systems, key=lambda system: sign * system["metrics"][metric]["value"])
    found = best["metrics"][metric]
    if not has_learned(metric, found["value"]):
        more = ": raise --budget" if "budget" in results["conditions"] else ""
        return f"No system has learned anything yet ({metric} {numbers.value(found['value'])} at best){more}."
    level = numbers.with_span(found["value"], found["low"], found["high"])
    stands = [_standing(system, metric, sign) for system in systems if "difference" in system["metrics"][metric]]
    if not stands:
        return f"Best {metric}: {best['name']} with {level}."
    return f"Best {metric}: {best['name']} with {level}; against {results['baseline']}: {', '.join(stands)}."


def has_learned(metric: str, value: float) -> bool:
    """Whether a value, in percent, is more than that of a system that says nothing of the source."""
    return value < 99 if better(metric) == "lower" else value >= 1


def _standing(system: Mapping[str, Any], metric: str, sign: int) -> str:
    found = system["metrics"][metric]["difference"]
    verdict = "better" if sign * found["value"] > 0 else "worse"
    if found["p"] >= SURE or round(found["value"], 1) == 0:
        verdict = "no difference found"
    return f"{system['name']} {verdict} ({numbers.signed(found['value'])}, p {numbers.probability(found['p'])})"


def _results_blocks(results: Results) -> list[Block]:
    blocks: list[Block] = [Conclusion(conclusion(results))]
    systems, metrics = finished(results), results["metrics"]
    if systems:
        blocks += [_main_table(results, systems), _quality_plot(systems, metrics[0]), _spread_table(systems, metrics)]
    failed = [
        (system["name"], f"seed {seed}: {reason}")
        for system in results["systems"]
        for seed, reason in system["failed"].items()
    ]
    if failed:
        blocks.append(Grid("Runs that failed", ("system", "why"), failed))
    return blocks


def _main_table(results: Results, systems: Sequence[Mapping[str, Any]]) -> Grid:
    metrics = results["metrics"]
    header = ["system", "weights", *metrics, "p", "training tokens/s", "training", "decoding sentences/s"]
    header += ["peak memory MiB (before)", "attention entropy", *(ALIGNMENT.values() if results.get("gold") else ())]
    rows = []
    for system in systems:
        cost, first = system["cost"], system["metrics"][metrics[0]]
        p = numbers.probability(first["difference"]["p"]) if "difference" in first else numbers.NONE
        values = [_interval(system["metrics"][metric]) for metric in metrics]
        row = [system["name"], numbers.count(system["parameters"]), *values, p]
        row += [numbers.count(cost.get("tokens_per_second")), numbers.duration(cost.get("training_seconds"))]
        row += [numbers.value(cost.get("sentences_per_second")), _memory(cost)]
        rows.append([*row, numbers.value(system["entropy"], 2), *_alignment(results, system)])
    arrows = ", ".join(f"{metric} {'↓' if better(metric) == 'lower' else '↑'}" for metric in metrics)
    items = results["conditions"]["test items"]
    caption = (
        f"Quality on {items} test items ({arrows} is better) with 95 % intervals over items; p of {metrics[0]} "
        f"against {results['baseline']}"
    )
    return Grid(caption, header, rows)


def _alignment(results: Results, system: Mapping[str, Any]) -> list[str]:
    found = system.get("alignment") or {}
    return [numbers.value(found.get(name), 3) for name in ALIGNMENT] if results.get("gold") else []


def _memory(cost: Mapping[str, float]) -> str:
    host = f"{numbers.count(cost.get('peak_memory_mib'))} ({numbers.count(cost.get('memory_before_mib'))})"
    gpu = cost.get("peak_gpu_memory_mib")
    return host if gpu is None else f"{host}, GPU {numbers.count(gpu)}"


def _interval(found: Mapping[str, Any]) -> str:
    return numbers.with_span(found["value"], found["low"], found["high"])


def _spread_table(systems: Sequence[Mapping[str, Any]], metrics: Sequence[str]) -> Grid:
    header = ("system", "metric", "mean", "deviation", "least to most", "each seed", "difference", "p")
    rows = []
    for system in systems:
        for metric in metrics:
            found = system["metrics"][metric]
            apart = found.get("difference")
            against = (numbers.NONE, numbers.NONE)
            if apart:
                against = (
                    f"{numbers.signed(apart['value'])} {numbers.span(apart['low'], apart['high'])}",
                    numbers.probability(apart["p"]),
                )
            each = " ".join(numbers.value(one) for one in found["by_seed"])
            ends = f"{numbers.value(found['least'])}–{numbers.value(found['most'])}"
            mean, deviation = numbers.value(found["value"]), numbers.value(found["deviation"], 2)
            rows.append((system["name"], metric, mean, deviation, ends, each, *against))
    return Grid("Spread over seeds, and differences from the baseline with 95 % intervals over items", header, rows)


def _quality_plot(systems: Sequence[Mapping[str, Any]], metric: str) -> Plot:
    found = [system["metrics"][metric] for system in systems]
    ends = [one["low"] for one in found], [one["high"] for one in found]
    means = Series("mean, 95 % over items", range(len(found)), [one["value"] for one in found], *ends)
    series = [means]
    if len(found[0]["by_seed"]) > 1:
        seeds = [(i, value) for i, one in enumerate(found) for value in one["by_seed"]]
        series.append(Series("each seed", [i for i, _ in seeds], [value for _, value in seeds]))
    names = [system["name"] for system in systems]
    return Plot("quality", f"{metric} of each system", "", metric, series, names, joined=False)


def _length_blocks(results: Results) -> list[Block]:
    systems = finished(results)
    if not systems:
        return []
    metric, unit = results["metrics"][0], results["length_unit"]
    how = f"in {unit}"
    labels = [bucket["label"] for bucket in systems[0]["by_length"]]
    counts = [str(bucket["count"]) for bucket in systems[0]["by_length"]]
    rows = [["test items", *counts]]
    rows += [[system["name"], *(_bucket(bucket) for bucket in system["by_length"])] for system in systems]
    table = Grid(f"{metric} by source length {how}, with 95 % intervals", ["length", *labels], rows)
    return [length_plot(systems, metric, unit), table]


def length_plot(systems: Sequence[Mapping[str, Any]], metric: str, unit: str) -> Plot:
    """Quality by length with bands."""
    series = [
        Series(
            system["name"],
            range(len(system["by_length"])),
            *([bucket[key] for bucket in system["by_length"]] for key in ("value", "interval_low", "interval_high")),
        )
        for system in systems
    ]
    how = f"in {unit}"
    labels = [f"{bucket['label']}\nn = {bucket['count']}" for bucket in systems[0]["by_length"]]
    caption = f"{metric} by source length; bands are 95 % intervals over the items of a bucket"
    return Plot("by-length", caption, f"source length {how}", metric, series, labels)


def _bucket(bucket: Mapping[str, Any]) -> str:
    return numbers.with_span(bucket["value"], bucket["interval_low"], bucket["interval_high"])


def _condition_blocks(results: Results) -> list[Block]:
    systems = results["systems"]
    equal, different = equal_and_different([system["facts"] for system in systems])
    same = [*results["conditions"].items(), *equal.items()]
    blocks: list[Block] = list(results["notes"])
    blocks.append(Grid("The same for all systems", ("what", "value"), same))
    if different:
        rows = [
            [system["name"], *(system["facts"].get(name, numbers.NONE) for name in different)] for system in systems
        ]
        blocks.append(Grid("What differs", ["system", *different], rows))
    sizes = {tuple(system["vocabularies"]) for system in finished(results)}
    if len(sizes) > 1:
        blocks.append("The models have tokenisers of different sizes, so their speeds in tokens do not compare.")
    return blocks


def _sentence_blocks(results: Results) -> list[Block]:
    blocks: list[Block] = []
    for number, sentence in enumerate(results["sentences"], 1):
        rows = [("source", sentence["source"]), *(("reference", reference) for reference in sentence["references"])]
        rows += [
            (f"{name} ({numbers.value(sentence['scores'][name])})", output)
            for name, output in sentence["outputs"].items()
        ]
        blocks.append(Grid(f"{number}. Item {sentence['item'] + 1}", ("", "text"), rows))
        if number <= ATTENTION_SHOWN:
            maps = enumerate(sentence["attention"].items(), 1)  # numbers, for a name may be no file's
            blocks += [attention_map(f"attention-{number}-{place}", *found) for place, found in maps]
    if blocks:
        blocks.insert(
            0,
            f"Scores are each sentence's own {results['metrics'][0]}, the mean over seeds; outputs and attention are "
            "the first seed's.",
        )
    return blocks


def attention_map(file: str, name: str, found: Mapping[str, Any]) -> Map:
    """A system's attention for one sentence."""
    caption = f"{name}: attention, each row a token it wrote"
    return Map(file, caption, found["weights"], found["target"], found["source"])


def _method_blocks(results: Results) -> list[Block]:
    samples, baseline = results["bootstrap_samples"], results["baseline"]
    blocks: list[Block] = [text.format(samples=samples, baseline=baseline) for text in HOW]
    if gold := results.get("gold"):
        blocks.append(GOLD.format(**gold, meaning=UNITS[gold["units"]]))
    systems = finished(results)
    if systems:
        rows = [(metric, found["signature"]) for metric, found in systems[0]["metrics"].items()]
        blocks.append(Grid("Metrics", ("metric", "made"), rows))
    place = [(name, str(value)) for name, value in results["environment"].items() if value is not None]
    return [*blocks, Grid("Environment", ("what", "value"), place)]


def length_row(part: str, name: str, bucket: Mapping[str, Any], metric: str) -> NumberRow:
    """One bucket of lengths."""
    ends = bucket["interval_low"], bucket["interval_high"]
    return NumberRow(part, name, bucket["label"], metric, bucket["value"], *ends, bucket["count"])


def make_rows(results: Results) -> list[NumberRow]:
    """Every number of the report, one a row."""
    rows: list[NumberRow] = []
    for system in finished(results):
        name = system["name"]
        for metric, found in system["metrics"].items():
            rows.append(NumberRow("quality", name, "all", metric, found["value"], found["low"], found["high"]))
            if found["deviation"] is not None:
                rows.append(NumberRow("quality", name, "all", f"{metric} deviation", found["deviation"]))
            seeds = zip(system["seeds"], found["by_seed"], strict=True)
            rows += [NumberRow("quality", name, f"seed {seed}", metric, value) for seed, value in seeds]
            if apart := found.get("difference"):
                against = f"against {results['baseline']}"
                rows.append(NumberRow("difference", name, against, metric, apart["value"], apart["low"], apart["high"]))
                rows.append(NumberRow("difference", name, against, f"{metric} p", apart["p"]))
        rows += [length_row("length", name, bucket, results["metrics"][0]) for bucket in system["by_length"]]
        rows += [NumberRow("cost", name, "all", measure, value) for measure, value in system["cost"].items()]
        rows += [NumberRow("cost", name, "all", "parameters", system["parameters"])]
        if system["entropy"] is not None:
            rows.append(NumberRow("attention", name, "all", "entropy", system["entropy"]))
        rows += [NumberRow("attention", name, "all", *found) for found in (system.get("alignment") or {}).items()]
    return rows
