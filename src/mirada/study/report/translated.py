"""A report in the language that the command speaks: its own words, no names or sentences."""

from __future__ import annotations

from mirada.messages import spoken
from mirada.study.report.document import Block, Conclusion, Grid, Plot, Section, StudyReport


def translated(report: StudyReport) -> StudyReport:
    """The report with its titles, captions, labels and paragraphs translated."""
    sections = [Section(spoken(part.title), [_block(block) for block in part.blocks]) for part in report.sections]
    return StudyReport(spoken(report.title), spoken(report.subtitle), sections)


def _block(block: Block) -> Block:
    if isinstance(block, str):
        return spoken(block)
    if isinstance(block, Conclusion):
        return Conclusion(spoken(block.text))
    if isinstance(block, Grid):
        return _grid(block)
    if isinstance(block, Plot):
        series = [one._replace(name=spoken(one.name)) for one in block.series]
        x_label, y_label = spoken(block.x_label), spoken(block.y_label)
        return block._replace(series=series, caption=spoken(block.caption), x_label=x_label, y_label=y_label)
    return block._replace(caption=spoken(block.caption))


def _grid(table: Grid) -> Grid:
    """A table; where its cells are sentences, only their labels are ours."""
    labels = 1 if "text" in table.header else None
    rows = [[*map(spoken, row[:labels]), *(row[labels:] if labels else ())] for row in table.rows]
    return Grid(spoken(table.caption), [spoken(cell) for cell in table.header], rows)
