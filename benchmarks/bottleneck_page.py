"""docs/bottleneck.md from folders of `mirada bottleneck`: `python -m benchmarks.bottleneck_page TITLE=DIR …`.

The first is a run of all four parts: its report is the page, between the two marks. Of the others, runs of `--parts
lengths` on other lengths or other pairs, the page has a row in the first table, and a curve each.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.report import END, put
from mirada.study.bottleneck.report import make_report
from mirada.study.report.document import Block, Conclusion, Grid, Plot, Section, StudyReport
from mirada.study.report.numbers import estimate

PAGE = Path(__file__).parent.parent / "docs/bottleneck.md"
START = "<!-- measured: made by python -m benchmarks.bottleneck_page -->"
Results = dict[str, Any]
SIDES = ("short", "long")


def main(arguments: Sequence[str] | None = None) -> None:
    """Write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("whole", metavar="TITLE=DIR", type=_named, help="the run of all four parts")
    parser.add_argument("others", metavar="TITLE=DIR", type=_named, nargs="*", help="runs of --parts lengths")
    parser.add_argument("--into", type=Path, default=PAGE, help="the page [docs/bottleneck.md]")
    given = parser.parse_args(arguments)
    put(page([given.whole, *given.others]), given.into, (START, END))


def _named(text: str) -> tuple[str, Results]:
    title, _, folder = text.rpartition("=")
    return title, json.loads((Path(folder) / "results.json").read_text(encoding="utf-8"))


def page(runs: Sequence[tuple[str, Results]]) -> StudyReport:
    """The first run's report, and before it what all of them say of lengths."""
    whole = make_report(runs[0][1])
    falls = Section("Short sources and long ones", [_falls(runs)])
    first, *rest = whole.sections
    others = Section("Other lengths, other pairs", [block for name, found in runs[1:] for block in _curve(name, found)])
    renamed = [_named_figures(section) for section in (first, others, *rest)]
    return StudyReport(whole.title, whole.subtitle, [falls, *(section for section in renamed if section.blocks)])


def _falls(runs: Sequence[tuple[str, Results]]) -> Grid:
    """One row a run: both systems on short and long sources, and how much more the classic one loses."""
    rows = []
    for title, results in runs:
        part = results["parts"]["lengths"]
        sides = [estimate(system[side]) for system in part["systems"] for side in SIDES]
        bounds = f"≤ {part['near']}, {part['far']}–{part['limit']}"
        seeds = results["settings"]["seeds"]
        rows.append([title, part["metric"], bounds, *sides, estimate(part["more_lost"]), seeds])
    names = [system["name"].rpartition("-")[0] for system in runs[0][1]["parts"]["lengths"]["systems"]]
    header = ["pairs", "metric", "words of short and long", *(f"{name}, {side}" for name in names for side in SIDES)]
    caption = (
        "Quality on short sources and on long ones, both as training saw them; 95 % intervals over items and seeds"
    )
    return Grid(caption, [*header, "lost more by the classic system", "seeds"], [list(map(str, row)) for row in rows])


def _curve(title: str, results: Results) -> list[Block]:
    """A run's sentence, figure and table."""
    section = make_report({**results, "parts": {"lengths": results["parts"]["lengths"]}}).sections[0]
    short = "".join(letter for letter in title.lower() if letter.isalnum())
    blocks = [block._replace(name=f"lengths-{short}") if isinstance(block, Plot) else block for block in section.blocks]
    return [f"{title}:", *(block for block in blocks if isinstance(block, Conclusion | Plot | Grid))]


def _named_figures(section: Section) -> Section:
    """The page's figures stand beside those of other pages."""
    own = [one._replace(name=f"bottleneck-{one.name}") if isinstance(one, Plot) else one for one in section.blocks]
    return Section(section.title, own)


if __name__ == "__main__":
    main()
