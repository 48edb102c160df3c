"""docs/jobs.md from recipes and rows: for each job its files, both commands, minutes, figures and baselines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

Recipe = Mapping[str, Any]
Row = Mapping[str, Any]
TITLES = {"plain": "no options", "tuned": "tuned"}
HEAD = """# Real jobs: files, commands, minutes, figures

Made by `python -m benchmarks.jobs report` from [jobs.jsonl](jobs.jsonl) and the recipes in `benchmarks/recipes`; run
one again with `python -m benchmarks.jobs run NAME --column plain --data FOLDER`. Dev chooses; a test set is read once.
Intervals are 95 % bootstrap. Minutes are of the whole `mirada train`; where other work ran beside, the processor's own
minutes are fewer.
"""


def to_page(recipes: Sequence[Recipe], rows: Sequence[Row]) -> str:
    """Write the page: one table of all jobs, then a section for each."""
    newest = {(row["job"], row["column"]): row for row in rows}
    ordered = sorted(recipes, key=lambda recipe: recipe["order"])
    table = ["| job | figure | baseline | no options | tuned |", "|---|---|---|---|---|"]
    table += [summary(recipe, newest) for recipe in ordered]
    sections = [section(recipe, newest) for recipe in ordered]
    return HEAD + "\n" + "\n".join(table) + "\n\n" + "\n".join(sections)


def summary(recipe: Recipe, newest: Mapping[tuple[str, str], Row]) -> str:
    """A job's row in the table of all jobs."""
    cells = [short(recipe, newest.get((recipe["name"], column)), column) for column in TITLES]
    return (
        f"| [{recipe['title']}](#{recipe['name']}) | {recipe['figure']} | {recipe['baseline']} | {' | '.join(cells)} |"
    )


def short(recipe: Recipe, row: Row | None, column: str) -> str:
    """The figures of one run, of test where that was read, and the aim."""
    aim = recipe.get("aim", {}).get(column, "")
    aims = f" (aim {aim})" if aim else ""
    if row is None:
        return f"not run{aims}"
    part = "test" if row.get("test") else "dev"
    return f"{part} {'/'.join(values(recipe, row[part]))}, {row['minutes']:.0f} min{aims}"


def values(recipe: Recipe, measured: Mapping[str, Any]) -> list[str]:
    """The recipe's figures, by name, as text; `group_mean` is the mean over groups."""
    found = {one["metric"]: f"{one['value']:.1f}" for one in measured["metrics"]}
    if measured.get("group_mean"):
        found["group_mean"] = f"{measured['group_mean']['value']:.1f}"
    return [found[name] for name in recipe["shown"]]


def section(recipe: Recipe, newest: Mapping[tuple[str, str], Row]) -> str:
    """All there is to say of one job."""
    made = f"mirada data make --out . {recipe['make']}" if "make" in recipe else ""
    lines = [f'<a id="{recipe["name"]}"></a>', f"## {recipe['title']}", "", recipe["about"].strip(), ""]
    for column, title in TITLES.items():
        commands = [made] if made else []
        if column == "tuned" and "invent" in recipe:
            commands.append(f"mirada {recipe['invent']}")
        row = newest.get((recipe["name"], column))
        commands += [f"mirada train {(row or {'command': recipe[column]})['command']} --model-dir {column}"]
        commands += [f"mirada evaluate {column} {recipe['evaluate'].format(part='test')}"]
        lines += [f"**{title}**", "", "```", *commands, "```", ""]
        lines += [*(figures(row) if row else ["Not run."]), ""]
    return "\n".join(lines)


def figures(row: Row) -> list[str]:
    """The figures of one run with intervals and signatures."""
    lines = ["| set | metric | value | interval | signature |", "|---|---|---|---|---|"]
    for part in ("dev", "test"):
        if not row.get(part):
            continue
        for one in row[part]["metrics"]:
            value, low, high = (f"{one[name]:.2f}" for name in ("value", "low", "high"))
            made = one["made"].replace("|", "\\|")
            lines.append(f"| {part}, {row[part]['items']} items | {one['metric']} | {value} | {low}–{high} | {made} |")
        if mean := row[part].get("group_mean"):
            lines.append(f"| {part} | {mean['metric']}, mean of groups | {mean['value']:.2f} | | |")
    minutes = f"{row['minutes']:.1f} minutes"
    if "cpu_minutes" in row:  # unknown where a training was stopped and went on
        minutes += f", {row['cpu_minutes']:.1f} of them the processor's"
    return [*lines, "", f"{minutes}; {row['machine']}; commit {row['commit']}, {row['when'][:10]}."]
