"""Attention as a drawing: each row a token written, darker where it looked more."""

from __future__ import annotations

from mirada.escape import terminal, xml
from mirada.study.report.document import Map
from mirada.study.report.figures import INK, PAPER

CELL, LETTER, GAP = 18, 7.2, 6
MOST = 24  # characters of a label


def draw_map(found: Map) -> str:
    """SVG text on white; tokens of any script, in the viewer's own fonts."""
    rows, columns = ([_label(token) for token in side] for side in (found.rows, found.columns))
    left = GAP + LETTER * max(map(len, rows), default=0)
    top = GAP + LETTER * max(map(len, columns), default=0)
    width, height = left + CELL * len(columns) + GAP, top + CELL * len(rows) + GAP
    body = [f'<rect width="{width:g}" height="{height:g}" fill="{PAPER}"/>']
    body += [_column(left + CELL * (j + 0.5), top, label) for j, label in enumerate(columns)]
    for i, (label, weights) in enumerate(zip(rows, found.weights, strict=True)):
        y = top + CELL * i
        body.append(f'<text x="{left - 4:g}" y="{y + 0.7 * CELL:g}" text-anchor="end">{xml(label)}</text>')
        body += [_cell(left + CELL * j, y, weight) for j, weight in enumerate(weights)]
    style = f'font-family="sans-serif" font-size="12" fill="{INK}"'
    size = f'width="{width:g}" height="{height:g}" viewBox="0 0 {width:g} {height:g}"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size} {style} role="img">{"".join(body)}</svg>'


def _column(x: float, top: float, label: str) -> str:
    return f'<text transform="translate({x + 4:g} {top - 4:g}) rotate(-90)">{xml(label)}</text>'


def _cell(x: float, y: float, weight: float) -> str:
    place = f'x="{x + 1:g}" y="{y + 1:g}" width="{CELL - 2}" height="{CELL - 2}"'
    return f'<rect {place} fill-opacity="{0.05 + 0.9 * weight:.3f}"><title>{weight:.3f}</title></rect>'


def _label(token: str) -> str:
    token = terminal(token.lstrip("▁") or token)
    return token if len(token) <= MOST else token[: MOST - 1] + "…"
