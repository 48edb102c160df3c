"""A report as one HTML file: figures inside, no script, nothing fetched, light and dark by the reader's choice."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from mirada.escape import xml
from mirada.messages import language
from mirada.study.report.document import Block, Conclusion, Grid, Map, Section, StudyReport

STYLE = """
:root { color-scheme: light dark; --ink: #1b1c1f; --paper: #ffffff; --soft: #5d6068; --line: #d9dbe0; --mark: #eef3fb; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e7e8eb; --paper: #16171a; --soft: #a2a5ad; --line: #3a3d44; --mark: #1f2836; }
}
body { color: var(--ink); background: var(--paper); font: 16px/1.5 system-ui, sans-serif;
  margin: 0 auto; padding: 2rem 1rem; max-width: 72rem; }
h1 { line-height: 1.2; margin-bottom: .2rem; }
h2 { margin-top: 2.5rem; border-bottom: 1px solid var(--line); }
.subtitle, caption, figcaption { color: var(--soft); }
.finding { background: var(--mark); border-left: 4px solid #3d7fd0; padding: .6rem 1rem; font-weight: 600; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; margin: 1rem 0; font-variant-numeric: tabular-nums; }
caption { text-align: left; padding-bottom: .3rem; }
th, td { padding: .25rem .7rem; border-bottom: 1px solid var(--line); text-align: right; vertical-align: top; }
th:first-child, td:first-child { text-align: left; }
table.text td, table.text th { text-align: left; }
table:not(.text) td { white-space: nowrap; }
figure { margin: 1rem 0; overflow-x: auto; }
figure.plot svg { width: 100%; height: auto; max-width: 46rem; }
"""


def to_html(report: StudyReport, figures: Mapping[str, str]) -> str:
    """The whole page; `figures` holds the SVG of every plot and map by name."""
    sections = "\n".join(_section(section, figures) for section in report.sections)
    title = xml(report.title)
    return (
        f'<!DOCTYPE html>\n<html lang="{language()}">\n<head>\n<meta charset="utf-8">\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n<title>{title}</title>\n'
        f"<style>{STYLE}</style>\n</head>\n<body>\n<h1>{title}</h1>\n"
        f'<p class="subtitle">{xml(report.subtitle)}</p>\n{sections}\n</body>\n</html>\n'
    )


def _section(section: Section, figures: Mapping[str, str]) -> str:
    blocks = "\n".join(_block(block, figures) for block in section.blocks)
    return f"<section>\n<h2>{xml(section.title)}</h2>\n{blocks}\n</section>"


def _block(block: Block, figures: Mapping[str, str]) -> str:
    if isinstance(block, str):
        return f"<p>{xml(block)}</p>"
    if isinstance(block, Conclusion):
        return f'<p class="finding">{xml(block.text)}</p>'
    if isinstance(block, Grid):
        return _table(block)
    kind = "map" if isinstance(block, Map) else "plot"
    caption = f"<figcaption>{xml(block.caption)}</figcaption>"
    return f'<figure class="{kind}">{figures[block.name]}{caption}</figure>'


def _table(table: Grid) -> str:
    header = "".join(f'<th scope="col">{xml(cell)}</th>' for cell in table.header)
    rows = "".join(f"<tr>{_cells(row)}</tr>\n" for row in table.rows)
    body = f"<thead><tr>{header}</tr></thead>\n<tbody>\n{rows}</tbody>"
    kind = ' class="text"' if len(table.header) == 2 else ""
    return f'<div class="wide"><table{kind}><caption>{xml(table.caption)}</caption>{body}</table></div>'


def _cells(row: Iterable[str]) -> str:
    return "".join(f'<td dir="auto">{xml(cell)}</td>' for cell in row)
