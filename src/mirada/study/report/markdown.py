"""A report as Markdown, with its figures beside it in figures/."""

from __future__ import annotations

from collections.abc import Iterable

from mirada.escape import markdown
from mirada.study.report.document import Block, Conclusion, Grid, Map, StudyReport


def to_markdown(report: StudyReport) -> str:
    """The whole report."""
    parts = [f"# {markdown(report.title)}", markdown(report.subtitle)]
    for section in report.sections:
        parts += [f"## {markdown(section.title)}", *map(_block, section.blocks)]
    return "\n\n".join(filter(None, parts)) + "\n"


def _block(block: Block) -> str:
    if isinstance(block, str):
        return markdown(block)
    if isinstance(block, Conclusion):
        return f"**{markdown(block.text)}**"
    if isinstance(block, Grid):
        return _table(block)
    kind = "svg" if isinstance(block, Map) else "png"
    return f"![{markdown(block.caption)}](figures/{block.name}.{kind})\n\n*{markdown(block.caption)}*"


def _table(table: Grid) -> str:
    side = "---" if len(table.header) == 2 else "---:"
    lines = [_line(map(markdown, table.header)), _line(["---", *[side] * (len(table.header) - 1)])]
    lines += [_line(map(markdown, row)) for row in table.rows]
    return f"{markdown(table.caption)}\n\n" + "\n".join(lines)


def _line(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cells) + " |"
