"""A report as Markdown, with its figures beside it in figures/."""

from __future__ import annotations

from collections.abc import Iterable

from mirada.study.report.document import Block, Finding, Map, Report, Table


def to_markdown(report: Report) -> str:
    """The whole report."""
    parts = [f"# {report.title}", report.subtitle]
    for section in report.sections:
        parts += [f"## {section.title}", *map(_block, section.blocks)]
    return "\n\n".join(filter(None, parts)) + "\n"


def _block(block: Block) -> str:
    if isinstance(block, str):
        return _plain(block)
    if isinstance(block, Finding):
        return f"**{_plain(block.text)}**"
    if isinstance(block, Table):
        return _table(block)
    kind = "svg" if isinstance(block, Map) else "png"
    return f"![{_plain(block.caption)}](figures/{block.name}.{kind})\n\n*{_plain(block.caption)}*"


def _table(table: Table) -> str:
    side = "---" if len(table.header) == 2 else "---:"
    lines = [_line(table.header), _line(["---", *[side] * (len(table.header) - 1)])]
    lines += [_line([_plain(cell) for cell in row]) for row in table.rows]
    return f"{_plain(table.caption)}\n\n" + "\n".join(lines)


def _line(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _plain(text: str) -> str:
    """Text of data, with what Markdown would read as its own marks made harmless."""
    for mark in "\\`*_|<>":
        text = text.replace(mark, f"\\{mark}")
    return " ".join(text.replace("](", "]\\(").split())
