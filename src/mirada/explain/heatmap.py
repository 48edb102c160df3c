"""Attention as a picture: weights and labels in, lines of text out. Knows no model."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

import numpy as np

from mirada.escape import terminal

SHADES = " ░▒▓█"  # 0, and up to 25, 50, 75, 100 % of the attention
NARROWEST = 3  # cells a column takes when only its number fits


def terminal_map(weights: np.ndarray, rows: Sequence[str], columns: Sequence[str], *, width: int = 80) -> str:
    """Draw weights `[rows, columns]` with shades that need no colour, within `width` cells.

    Columns carry their labels where these fit, else numbers with a key below; too many columns continue in a second
    block. Wide characters (CJK) count as two cells, combining marks as none; a label is cut at half the width.
    Raises ValueError if the weights do not fit the labels.
    """
    if weights.shape != (len(rows), len(columns)):
        raise ValueError(f"weights are {weights.shape}, labels are for {(len(rows), len(columns))}")
    rows, columns = ([_shown(label, width // 2) for label in labels] for labels in (rows, columns))
    left = max((cells(row) for row in rows), default=0) + 1
    widths = [max(NARROWEST, cells(column) + 1) for column in columns]
    if left + sum(widths) <= width:
        return "\n".join(_block(weights, rows, columns, widths, left))
    numbers = [str(j + 1) for j in range(len(columns))]
    narrow = max(NARROWEST, len(str(len(columns))) + 1)
    each = max(1, (width - left) // narrow)
    lines: list[str] = []
    for start in range(0, len(columns), each):
        part = slice(start, start + each)
        lines += _block(weights[:, part], rows, numbers[part], [narrow] * len(numbers[part]), left)
    return "\n".join([*lines, *_key(columns, width)])


def cells(text: str) -> int:
    """Terminal cells that a text takes."""
    total = 0
    for char in text:
        if unicodedata.combining(char) or unicodedata.category(char) in ("Cf", "Mn", "Me"):
            continue
        total += 2 if unicodedata.east_asian_width(char) in "WF" else 1
    return total


def margin(token: str) -> str:
    """A token as a map's label: without the mark of a word's beginning, and nothing in it that would be obeyed."""
    return terminal(token.lstrip("▁") or token)


def _shown(label: str, most: int) -> str:
    """A label of at most so many cells."""
    label = margin(label)
    if cells(label) <= most:
        return label
    while label and cells(label) >= most:
        label = label[:-1]
    return label + "…"


def _block(
    weights: np.ndarray, rows: Sequence[str], columns: Sequence[str], widths: Sequence[int], left: int
) -> list[str]:
    lines = [" " * left + "".join(_padded(column, size) for column, size in zip(columns, widths, strict=True)).rstrip()]
    for label, row in zip(rows, weights, strict=True):
        shades = "".join(_padded(_shade(weight) * (size - 1), size) for weight, size in zip(row, widths, strict=True))
        lines.append((" " * (left - 1 - cells(label)) + label + " " + shades).rstrip())
    return lines


def _shade(weight: float) -> str:
    return SHADES[min(len(SHADES) - 1, int(np.ceil(float(weight) * (len(SHADES) - 1) - 0.2)))] if weight > 0 else " "


def _padded(text: str, size: int) -> str:
    return text + " " * (size - cells(text))


def _key(columns: Sequence[str], width: int) -> list[str]:
    lines, line = [], ""
    for number, column in enumerate(columns, 1):
        entry = f"{number} {column}  "
        if line and cells(line + entry) > width:
            lines.append(line.rstrip())
            line = ""
        line += entry
    return [*lines, line.rstrip()]
