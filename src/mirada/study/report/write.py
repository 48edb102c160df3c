"""Write a report into a folder: report.html, report.md, results.csv, results.json, figures/."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mirada.escape import csv_cell
from mirada.files import write_atomic, write_text
from mirada.study.report.document import Map, NumberRow, Plot, StudyReport
from mirada.study.report.figures import draw, draw_map, inline
from mirada.study.report.html import to_html
from mirada.study.report.markdown import to_markdown
from mirada.study.report.translated import translated


def write_report(report: StudyReport, results: dict[str, Any], rows: Sequence[NumberRow], folder: Path) -> list[Path]:
    """Write all forms; returns the paths, report.html first."""
    report = translated(report)
    (folder / "figures").mkdir(parents=True, exist_ok=True)
    inlined: dict[str, str] = {}
    written: list[Path] = []
    for block in (block for section in report.sections for block in section.blocks):
        if isinstance(block, Plot):
            files = draw(block)
        elif isinstance(block, Map):
            files = {"svg": draw_map(block).encode("utf-8")}
        else:
            continue
        inlined[block.name] = inline(files["svg"].decode("utf-8"), block.name)
        for kind, content in files.items():
            written.append(folder / "figures" / f"{block.name}.{kind}")
            write_atomic(written[-1], content)
    texts = {
        "report.html": to_html(report, inlined),
        "report.md": to_markdown(report),
        "results.csv": to_csv(rows),
        "results.json": json.dumps(results, indent=1, ensure_ascii=False) + "\n",
    }
    for name, text in texts.items():
        write_text(folder / name, text)
    return [*(folder / name for name in texts), *written]


def to_csv(rows: Sequence[NumberRow]) -> str:
    """One number a line."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(NumberRow._fields)
    writer.writerows([csv_cell(value) if isinstance(value, str) else value for value in row] for row in rows)
    return stream.getvalue()
