"""Markdown from rows: `python -m benchmarks.report FOLDER … [--into docs/speed.md]`.

Reads every .jsonl of the folders, mirada's own and the peers'. With --into, what stands between the two marks of that
file is replaced and figures are drawn beside it; else the Markdown is printed.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks import gpu_tables, tables
from benchmarks import rows as stored
from benchmarks.grouping import newest, work_name
from benchmarks.machine import BUSY
from benchmarks.rows import Row
from mirada.study.report.document import Block, Grid, Plot, Section, Series, StudyReport
from mirada.study.report.markdown import to_markdown
from mirada.study.report.numbers import NONE, count

START, END = "<!-- measured: made by python -m benchmarks.report -->", "<!-- end of measured -->"
TASKS = {"train": "ms an update", "decode": "ms a batch, beam 5"}


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the report, or put it into a file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="+", type=Path)
    parser.add_argument("--into", type=Path, metavar="FILE", help="a file with the two marks, or a new one")
    parser.add_argument("--quick", action="store_true", help="also rows of tiny sizes, which say nothing")
    given = parser.parse_args(arguments)
    found = [row for folder in given.folder for row in stored.read(folder) if given.quick or not row.get("quick")]
    if not found:
        sys.exit(f"no rows in {', '.join(map(str, given.folder))}; measure first: make bench")
    report = build(sorted(found, key=lambda row: str(row["when"])))
    if given.into:
        put(report, given.into)
    else:
        print(to_markdown(report), end="")


def build(found: Sequence[Row]) -> StudyReport:
    """All sections that there are rows for."""
    everywhere, found = found, [row for row in found if not gpu_tables.on_gpu(row)]
    signs = f"(!): other processes kept {BUSY} cores or more busy meanwhile; (?): nobody could tell."
    sections = [
        Section("Training", [*tables.training(found), signs]),
        Section("Training beside the machine's limit", tables.share(found)),
        Section("Where the time goes", tables.parts(found)),
        Section("Decoding", tables.decoding(found)),
        Section("One sentence at a time", tables.latency(found)),
        Section("Start-up", tables.startup(found)),
        Section("How cost grows", scaling(found)),
        Section("Whether a device computes the same", gpu_tables.checks(everywhere)),
        Section("On a GPU", [*gpu_tables.training(everywhere), *gpu_tables.decoding(everywhere)]),
        Section("Surroundings", [tables.surroundings(everywhere)]),
    ]
    return StudyReport(
        "Speed", "", [section for section in sections if any(isinstance(b, Grid) for b in section.blocks)]
    )


def scaling(found: Sequence[Row]) -> list[Block]:
    """A plot and a table for each task and axis."""
    groups = newest(row for row in found if row["kind"] == "scaling")
    latest = [group[-1] for group in groups]
    blocks: list[Block] = []
    for task, unit in TASKS.items():
        for axis in dict.fromkeys(row["axis"] for row in latest if row["task"] == task):
            chosen = [row for row in latest if (row["task"], row["axis"]) == (task, axis)]
            blocks += _axis(chosen, f"{task} by {axis}", axis, unit)
    return blocks


def _axis(chosen: Sequence[Row], title: str, axis: str, unit: str) -> list[Block]:
    lines: dict[str, dict[float, Row]] = {}
    for row in chosen:
        lines.setdefault(work_name(row), {})[row["value"]] = row
    values = sorted({value for line in lines.values() for value in line})
    ticks = [count(value) for value in values]
    series = [
        Series(name, [values.index(value) for value in sorted(line)], [line[value]["ms"] for value in sorted(line)])
        for name, line in lines.items()
    ]
    body = [[name, *(_cell(line.get(value)) for value in values)] for name, line in lines.items()]
    name = f"speed-{title.replace(' ', '-')}"
    caption = f"{title}: {unit} (tokens/s)"
    return [
        Plot(name, f"{title}: {unit}", axis, unit, series, ticks),
        Grid(caption, [axis, *ticks], body),
    ]


def _cell(row: Row | None) -> str:
    return NONE if row is None else f"{row['ms']:,.0f} ({count(row['tokens_per_second'])})"


def put(report: StudyReport, path: Path, marks: tuple[str, str] = (START, END)) -> None:
    """Replace what stands between the marks, or make the file; draw the figures into figures/ beside it."""
    from mirada.study.report.figures import draw

    body = to_markdown(report).removeprefix(f"# {report.title}\n").strip().replace(".png)", ".svg)")
    before, after = f"# {report.title}\n\n", "\n"
    if path.exists():
        text = path.read_text(encoding="utf-8")
        if any(text.count(mark) != 1 for mark in marks):
            sys.exit(f"{path}: expected the marks {' and '.join(marks)}, once each")
        before, after = text.split(marks[0])[0], text.split(marks[1])[1]
    (path.parent / "figures").mkdir(parents=True, exist_ok=True)
    for block in (block for section in report.sections for block in section.blocks):
        if isinstance(block, Plot):
            (path.parent / "figures" / f"{block.name}.svg").write_bytes(draw(block)["svg"])
    path.write_text(f"{before}{marks[0]}\n\n{body}\n\n{marks[1]}{after}", encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()
