"""The report of the four experiments, made from results.json's content and nothing else."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from mirada.study.compare.report import length_plot, length_row
from mirada.study.report import numbers
from mirada.study.report.document import Block, Conclusion, Grid, NumberRow, Plot, Section, Series, StudyReport
from mirada.study.report.numbers import estimate

Results = Mapping[str, Any]
MICRO = 1e6
KIB = 1024
TITLES = {
    "lengths": "1. Quality by source length",
    "capacity": "2. What a wider vector buys",
    "forgetting": "3. Which words are forgotten",
    "cost": "4. What looking back costs",
}


def make_report(results: Results) -> StudyReport:
    """A section for each part that was done, and the conditions."""
    blocks: dict[str, Callable[[Results], list[Block]]] = {
        "lengths": _lengths,
        "capacity": _capacity,
        "forgetting": _forgetting,
        "cost": _cost,
    }
    parts = results["parts"]
    sections = [
        Section(TITLES[name], [Conclusion(part["finding"]), *(blocks[name](part) if _has_numbers(part) else [])])
        for name, part in parts.items()
    ]
    if results["failed"]:
        rows = list(results["failed"].items())
        sections.append(Section("Runs that failed", [Grid("", ("run", "why"), rows)]))
    sections.append(Section("How the numbers were made", _method(results)))
    return StudyReport("The bottleneck, and attention", "four experiments on one fixed vector", sections)


def _has_numbers(part: Results) -> bool:
    return bool(part.get("systems") or part.get("attention"))


def _lengths(part: Results) -> list[Block]:
    systems, metric, unit = part["systems"], part["metric"], part["unit"]
    plot = length_plot(systems, metric, unit)
    most, how = f"{part['limit']} {unit}", f"in {unit}"
    caption = f"{metric} by source length; bands are 95 % intervals; training saw sources of at most {most}"
    labels = [bucket["label"] for bucket in systems[0]["by_length"]]
    counts = [str(bucket["count"]) for bucket in systems[0]["by_length"]]
    rows = [["test items", *counts]]
    rows += [
        [row["name"], *(_interval(b["value"], b["interval_low"], b["interval_high"]) for b in row["by_length"])]
        for row in systems
    ]
    sides = [
        [
            row["name"],
            *(estimate(row[side]) for side in ("short", "long", "change")),
            estimate(row["beyond"]) if row["beyond"] else "",
        ]
        for row in systems
    ]
    spans = f"{part['far']}–{part['limit']}", f"above {part['limit']}"
    header = ["system", f"up to {part['near']}", spans[0], "change", spans[1]]
    return [
        plot._replace(name="lengths", caption=caption),
        Grid(f"{metric} by source length {how}, with 95 % intervals", ["length", *labels], rows),
        Grid(
            f"{metric} on short sources and on long ones, both as training saw them, and on longer ones", header, sides
        ),
    ]


def _capacity(part: Results) -> list[Block]:
    kinds = list(dict.fromkeys(row["system"] for row in part["systems"]))
    series = []
    for kind in kinds:
        rows = [row for row in part["systems"] if row["system"] == kind]
        ends = [row["low"] for row in rows], [row["high"] for row in rows]
        series.append(Series(kind, [row["width"] for row in rows], [row["value"] for row in rows], *ends))
    caption = f"{part['metric']} by width on {part['items']} items of lengths that training saw, 95 % intervals"
    plot = Plot("capacity", caption, "width of the state", part["metric"], series, log_x=True)
    cells = [
        [
            f"{row['system']}-{row['width']}",
            numbers.count(row["parameters"]),
            estimate(row),
            _each(row["by_seed"]),
        ]
        for row in part["systems"]
    ]
    return [plot, Grid(caption, ("system and width", "weights", part["metric"], "each seed"), cells)]


def _forgetting(part: Results) -> list[Block]:
    blocks: list[Block] = [
        f"Random sequences of {part['symbols']} symbols, width {part['width']}; accuracy of the symbol that stands at "
        f"each source position, with the right output before it, on sequences of {part['length']} symbols."
    ]
    for task in dict.fromkeys(row["task"] for row in part["systems"]):
        rows = [row for row in part["systems"] if row["task"] == task]
        blocks += [_positions_plot(task, rows), _positions_table(task, rows)]
    return blocks


def _positions_plot(task: str, rows: Sequence[Results]) -> Plot:
    series = [
        Series(
            row["name"],
            range(1, len(row["positions"]) + 1),
            *([found[key] for found in row["positions"]] for key in ("value", "low", "high")),
        )
        for row in rows
    ]
    caption = f"{task}: accuracy by source position, 95 % bands"
    return Plot(f"forgetting-{task}", caption, "source position (1 is the first word)", "accuracy, %", series)


def _positions_table(task: str, rows: Sequence[Results]) -> Grid:
    header = ["system", "first third", "last third", "last − first", *map(str, range(1, len(rows[0]["positions"]) + 1))]
    cells = []
    for row in rows:
        each = [numbers.value(found["value"]) for found in row["positions"]]
        cells.append(
            [
                row["name"],
                estimate(row["early"]),
                estimate(row["late"]),
                estimate(row["late_minus_early"]),
                *each,
            ]
        )
    return Grid(f"{task}: accuracy in percent, by thirds with 95 % intervals and by source position", header, cells)


def _cost(part: Results) -> list[Block]:
    names = [row["name"] for row in part["attention"][0]["scores"]]
    where = f"width {part['width']}, {part['batch']} sentences together, {part['device']}, {part['threads']} threads"
    return [
        f"Medians of {part['repeats']} turns; {where}. Attention is scores, softmax and context; the keys are made "
        "once a sentence before it. A whole step has the output layer in it "
        f"({numbers.count(part['vocabulary'])} words) and Luong's flow.",
        _cost_plot("cost-time", "microseconds", part["attention"], names, "seconds", MICRO),
        _cost_plot("cost-memory", "KiB made", part["attention"], names, "bytes", 1 / KIB),
        _ratios("attention", f"Time of attention as a multiple of {part['reference']}'s", part["attention"], "scores"),
        _bytes(part["attention"], names),
        _ratios("step", "Time of a whole decoder step as a multiple of the classic system's", part["steps"], "systems"),
    ]


def _cost_plot(name: str, label: str, costs: Sequence[Results], names: Sequence[str], key: str, factor: float) -> Plot:
    lengths = [at_length["length"] for at_length in costs]
    found = {score: [_row(at_length, score)[key] * factor for at_length in costs] for score in names}
    series = [Series(score, lengths, values) for score, values in found.items()]
    what = "time" if key == "seconds" else "memory made"
    return Plot(name, f"Attention over the source: {what}", "source words", label, series, log_x=True, log_y=True)


def _row(at_length: Results, name: str) -> Results:
    found: Results = next(row for row in at_length["scores"] if row["name"] == name)
    return found


def _ratios(first: str, caption: str, costs: Sequence[Results], key: str) -> Grid:
    names = [row["name"] for row in costs[0][key]]
    rows = [[name, *(_ratio(at_length[key][i]) for at_length in costs)] for i, name in enumerate(names)]
    lengths = [str(at_length["length"]) for at_length in costs]
    caption = f"{caption}, 95 % intervals of the median (and its time), by source words"
    return Grid(caption, [first, *lengths], rows)


def _ratio(row: Results) -> str:
    return f"{_interval(row['ratio'], row['low'], row['high'], 2)} ({row['seconds'] * MICRO:.0f} µs)"


def _bytes(costs: Sequence[Results], names: Sequence[str]) -> Grid:
    rows = []
    for name in names:
        found = [_row(at_length, name) for at_length in costs]
        rows.append([name, *(f"{row['bytes'] / KIB:,.0f} + {row['key_bytes'] / KIB:,.0f}" for row in found)])
    lengths = [str(at_length["length"]) for at_length in costs]
    return Grid("KiB that attention makes at most + KiB of keys kept for the sentences", ["attention", *lengths], rows)


def _method(results: Results) -> list[Block]:
    blocks: list[Block] = [
        "Intervals (95 %) draw test items again, and where there are several seeds those as well; in the fourth "
        "experiment, turns. With one seed they say nothing of what another would change, with three or four too "
        "little. A difference is called found where its interval leaves out zero (for ratios: one).",
        *results["notes"],
    ]
    for caption, key in (
        ("Settings", "settings"),
        ("Pairs and training", "conditions"),
        ("Environment", "environment"),
    ):
        rows = [(name, str(value)) for name, value in results[key].items() if value is not None]
        blocks += [Grid(caption, ("what", "value"), rows)] if rows else []
    return blocks


def _interval(value: float, low: float, high: float, digits: int = 1) -> str:
    return numbers.with_span(value, low, high, digits)


def _each(values: Sequence[float]) -> str:
    return " ".join(map(numbers.value, values))


def make_rows(results: Results) -> list[NumberRow]:
    """Every number of the report, one a row."""
    parts, rows = results["parts"], []
    for row in parts.get("lengths", {}).get("systems", []):
        metric = parts["lengths"]["metric"]
        rows += [length_row("lengths", row["name"], bucket, metric) for bucket in row["by_length"]]
        rows += [
            NumberRow("lengths", row["name"], side, metric, *row[side].values()) for side in ("short", "long", "change")
        ]
    for row in parts.get("capacity", {}).get("systems", []):
        name, metric = f"{row['system']}-{row['width']}", parts["capacity"]["metric"]
        rows.append(NumberRow("capacity", name, "all", metric, row["value"], row["low"], row["high"]))
        rows.append(NumberRow("capacity", name, "all", "parameters", row["parameters"]))
    for row in parts.get("forgetting", {}).get("systems", []):
        name = f"{row['task']}: {row['name']}"
        spans = {f"position {i}": found for i, found in enumerate(row["positions"], 1)}
        spans |= {end: row[end] for end in ("early", "late", "late_minus_early")}
        rows += [NumberRow("forgetting", name, item, "accuracy", *found.values()) for item, found in spans.items()]
    return rows + _cost_rows(parts.get("cost", {}))


def _cost_rows(part: Results) -> list[NumberRow]:
    rows = []
    for key, what, inner in (("attention", "attention", "scores"), ("steps", "step", "systems")):
        for at_length in part.get(key, []):
            for row in at_length[inner]:
                item = f"{what} at {at_length['length']}"
                rows.append(NumberRow("cost", row["name"], item, "ratio", row["ratio"], row["low"], row["high"]))
                rows.append(NumberRow("cost", row["name"], item, "seconds", row["seconds"]))
                if "bytes" in row:
                    rows.append(NumberRow("cost", row["name"], item, "bytes", row["bytes"]))
    return rows
