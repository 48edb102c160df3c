"""Tables of text as a notebook shows them: HTML that takes the page's own colours."""

from __future__ import annotations

from collections.abc import Sequence

from mirada.escape import xml

LEFT, RIGHT = "text-align:left", "text-align:right"


def html(caption: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Rows under a header, the first column a label."""
    return shaded(caption, header, rows, [])


def shaded(
    caption: str, header: Sequence[str], rows: Sequence[Sequence[str]], shades: Sequence[Sequence[float]]
) -> str:
    """The same with the last cells of each row shaded, by numbers from 0 to 1, as many as there are of it."""
    head = "".join(f'<th scope="col" style="{_side(i)}">{xml(cell)}</th>' for i, cell in enumerate(header))
    body = "".join(_row(row, shades[n] if shades else ()) for n, row in enumerate(rows))
    return f"<table><caption>{xml(caption)}</caption><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _row(row: Sequence[str], shades: Sequence[float]) -> str:
    colours = ["" for _ in range(len(row) - len(shades))]
    colours += [f";background:rgba(61,127,208,{shade:.2f})" for shade in shades]
    cells = zip(row, colours, strict=True)
    return (
        "<tr>"
        + "".join(
            f'<td dir="auto" style="{_side(i)}{colour}">{xml(cell)}</td>' for i, (cell, colour) in enumerate(cells)
        )
        + "</tr>"
    )


def _side(column: int) -> str:
    return RIGHT if column else LEFT
