"""docs/results.md from the rows of benchmarks/figures.yaml and the lines of docs/results.jsonl."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from statistics import mean
from typing import Any

Figure = Mapping[str, Any]
Row = Mapping[str, Any]
BUSY = 0.1  # cores of others above which a speed says so
STARRED = 3  # seeds that are wanted where a row has a star
HEAD = """# Results, each with its command

Made by `python -m benchmarks.figures report` from [results.jsonl](results.jsonl), the rows in `benchmarks/figures.yaml`
and the recipes in `recipes/`. One command, which fetches nothing, repeats a row:

```
python -m benchmarks.figures run NAME --seeds 1,2,3 --ensemble --data FOLDER --rows mine.jsonl
python -m benchmarks.figures test NAME --rows mine.jsonl
```

Dev chooses recipe and model; a test set is read once. Figures are means over the seeds; an interval is 95 % bootstrap
over test items, that of a mean the mean of the seeds' bounds. Minutes are of training; the processor's own are fewer
where other work ran beside, and are missing where a training was stopped and went on. `classic` with a `like` in
`benchmarks/figures.yaml` has as many weights, updates, pairs and tokens as the system that it is held against. Most
published figures are quoted from elsewhere than their papers. Real jobs with no options: [jobs.md](jobs.md).
"""


def to_page(figures: Sequence[Figure], rows: Sequence[Row], tried: str) -> str:
    """Write the page: a table of all rows, a section for each data set with lines, what is missing, what was tried."""
    table = heading(["data, system", "figure", "published", "aim", "mean", "seeds", "ensemble", "dev"])
    table += [summary(figure, rows) for figure in figures if lines_of(figure, rows)]
    sets = [list(several) for _, several in groupby(figures, key=lambda figure: figure["data"])]
    sections = [section(several, rows) for several in sets if any(lines_of(figure, rows) for figure in several)]
    return "\n".join([HEAD, *table, "", *sections, *missing(figures, rows), "", tried.strip(), ""])


def heading(names: Sequence[str]) -> list[str]:
    """The first two lines of a table."""
    return [f"| {' | '.join(names)} |", "|---" * len(names) + "|"]


def lines_of(figure: Figure, rows: Sequence[Row]) -> list[Row]:
    """The lines of a row: one a seed, and one for each ensemble of seeds."""
    return [row for row in rows if row["figure"] == figure["name"]]


def single(rows: Sequence[Row]) -> list[Row]:
    """The lines of single models, by seed."""
    return sorted((row for row in rows if isinstance(row["seed"], int)), key=lambda row: row["seed"])


def summary(figure: Figure, rows: Sequence[Row]) -> str:
    """A row's line in the table of all."""
    own = lines_of(figure, rows)
    alone, together = single(own), [row for row in own if isinstance(row["seed"], list)][-1:]
    seeds = ", ".join(str(row["seed"]) for row in alone)
    cells = [f"[{figure['title']}](#{figure['data']}), {figure['system']}", figure["figure"], figure["published"]]
    cells += [figure["aim"], f"**{tests(figure, alone)}**", seeds, tests(figure, together), dev(figure, alone)]
    return f"| {' | '.join(cells)} |"


def tests(figure: Figure, rows: Sequence[Row]) -> str:
    """The means over models on each test set, of the models that have read them."""
    read = [row for row in rows if row.get("test")]
    if not read:
        return "not read" if rows else "–"
    return " / ".join(f"{mean(value(figure, row['test'][part]) for row in read):.2f}" for part in figure["tests"])


def dev(figure: Figure, rows: Sequence[Row]) -> str:
    """The mean on dev, by which the recipe was chosen."""
    measured = [value(figure, row["dev"]) for row in rows if row.get("dev")]
    return f"{mean(measured):.2f}" if measured else "–"


def value(figure: Figure, measured: Mapping[str, Any]) -> float:
    """The figure itself: a metric, or the mean of groups."""
    if figure["shown"] == "group_mean":
        return float(measured["group_mean"]["value"])
    return float(next(one["value"] for one in measured["metrics"] if one["metric"] == figure["shown"]))


def section(figures: Sequence[Figure], rows: Sequence[Row]) -> str:
    """All there is to say of a data set."""
    first = figures[0]
    made = [(figure, lines_of(figure, rows)) for figure in figures]
    made = [(figure, own) for figure, own in made if own]
    parts = [f'<a id="{first["data"]}"></a>', f"## {first['title']}", "", first["about"].strip(), "", "```"]
    if any("invent" in figure for figure, _ in made):
        parts.append(f"mirada {first['invent']}")
    parts += [commands(figure, own) for figure, own in made]
    parts += ["```", "", *trainings(made), "", *metrics(made), "", *by_length(made)]
    return "\n".join(parts)


def commands(figure: Figure, rows: Sequence[Row]) -> str:
    """How the first model was made, and how it is measured."""
    row = (single(rows) or list(rows))[0]
    folder = f"{figure['system']}-{row['seed']}"
    return f"{row['command']}\nmirada evaluate {folder} {figure['evaluate'].format(part=figure['tests'][0])}"


def trainings(made: Sequence[tuple[Figure, Sequence[Row]]]) -> list[str]:
    """A line for each model: its size, what it took, and on what."""
    lines = heading(["system", "seed", "weights", "updates", "minutes", "the processor's", "sentences/s", "made"])
    for figure, rows in made:
        for row in [*single(rows), *(row for row in rows if isinstance(row["seed"], list))]:
            seed = row["seed"] if isinstance(row["seed"], int) else "+".join(map(str, row["seed"]))
            cells = [figure["system"], str(seed), count(row, "weights"), count(row, "updates")]
            cells += [number(row, "minutes"), number(row, "cpu_minutes"), speed(row)]
            lines.append(f"| {' | '.join(cells)} | {row['machine']}; commit {row['commit']}, {row['when'][:10]} |")
    return lines


def count(row: Row, name: str) -> str:
    """A whole number of a line, if it has one."""
    return f"{row[name]:,}" if row.get(name) is not None else "–"


def number(row: Row, name: str) -> str:
    """Minutes of a line, if it has them."""
    return f"{row[name]:.1f}" if row.get(name) is not None else "–"


def speed(row: Row) -> str:
    """Sentences decoded in a second, with the beam, and who else was at work."""
    if not (found := row.get("decoding")):
        return "–"
    beside = f", {found['others']:.1f} cores at other work" if (found["others"] or 0) > BUSY else ""
    return f"{found['sentences_per_second']:,.0f} (beam {found['beam']}{beside})"


def metrics(made: Sequence[tuple[Figure, Sequence[Row]]]) -> list[str]:
    """Every metric on every part: mean, seeds' values, interval, signature."""
    lines = heading(["system", "set", "metric", "value", "seeds' values", "interval", "signature"])
    for figure, rows in made:
        ensembles = [[row] for row in rows if isinstance(row["seed"], list)]
        for models in [single(rows), *ensembles]:
            name = figure["system"] + (f", {len(models[0]['seed'])} as one" if models and models in ensembles else "")
            for part in ("dev", *figure["tests"]):
                lines += measured_lines(name, part, measured(models, part))
    return lines


def measured(rows: Sequence[Row], part: str) -> list[Mapping[str, Any]]:
    """What was measured on dev or on a test set, model by model."""
    found = [row.get("dev") if part == "dev" else row.get("test", {}).get(part) for row in rows]
    return [one for one in found if one]


def measured_lines(name: str, part: str, found: Sequence[Mapping[str, Any]]) -> list[str]:
    """A line for each metric of a part, and one for the mean of groups."""
    lines = []
    for place, one in enumerate(found[0]["metrics"] if found else []):
        several = [model["metrics"][place] for model in found]
        values, low, high = ([other[key] for other in several] for key in ("value", "low", "high"))
        signature = one["made"].replace("|", "\\|")
        what = f"{part}, {found[0]['items']} items | {one['metric']} | {averaged(values)}"
        lines.append(f"| {name} | {what} | {mean(low):.2f}–{mean(high):.2f} | {signature} |")
    if found and found[0].get("group_mean"):
        means = [model["group_mean"]["value"] for model in found]
        metric = f"{found[0]['group_mean']['metric']}, mean of groups"
        lines.append(f"| {name} | {part} | {metric} | {averaged(means)} | | |")
    return lines


def averaged(values: Sequence[float]) -> str:
    """The mean, and where there are several of them the values themselves, as two cells."""
    several = ", ".join(f"{value:.2f}" for value in values) if len(values) > 1 else ""
    return f"{mean(values):.2f} | {several}"


def by_length(made: Sequence[tuple[Figure, Sequence[Row]]]) -> list[str]:
    """With and without attention by source length, where both were measured; means over seeds, first test set."""
    systems = [figure["system"] for figure, _ in made]
    derived = [(figure, rows) for figure, rows in made if figure.get("like") in systems]
    lines: list[str] = []
    for figure, rows in derived:
        other = next(found for one, found in made if one["system"] == figure["like"])
        sides = [single(rows), single(other)]
        part = figure["tests"][0] if all(measured(side, figure["tests"][0]) for side in sides) else "dev"
        columns = [lengths(measured(side, part)) for side in sides]
        lines += [f"What attention buys, {figure['shown']} by source length, {part}:", ""]
        lines += heading(["source", "items", figure["system"], figure["like"]])
        for length, (items, without) in columns[0].items():
            lines.append(f"| {length} | {items} | {without:.1f} | {columns[1][length][1]:.1f} |")
        lines.append("")
    return lines


def lengths(found: Sequence[Mapping[str, Any]]) -> dict[str, tuple[int, float]]:
    """How many items of each length, and the mean over the models of the leading metric."""
    rows = zip(*(one.get("by_length", []) for one in found), strict=True)
    return {several[0]["length"]: (several[0]["count"], mean(one["value"] for one in several)) for several in rows}


def missing(figures: Sequence[Figure], rows: Sequence[Row]) -> list[str]:
    """What has no figure yet, and what it would take."""
    hours = "Hours are of one core, guessed from the sizes; `python -m benchmarks.figures try NAME` times an update."
    lines = ["## What is missing", "", hours, ""]
    lines += heading(["row", "wanted", "takes", "published", "aim"])
    for figure in figures:
        wanted = STARRED if figure.get("star") else 1
        done = len([row for row in single(lines_of(figure, rows)) if row.get("test")])
        if done < wanted:
            seeds = f"{wanted - done} seed{'s' if wanted - done > 1 else ''}"
            cells = [figure["name"], seeds, f"{(wanted - done) * figure['hours']:.3g} h", figure["published"]]
            lines.append(f"| {' | '.join([*cells, figure['aim']])} |")
    return lines
