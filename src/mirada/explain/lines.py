"""Numbers, vectors and words as lines of a terminal of any width. Knows no model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import zip_longest

import numpy as np

from mirada.explain.heatmap import cells

SHOWN = 6  # components of a vector, at most
BAR = 20  # cells of a full bar
ROOM = 26  # cells below which a vector has a line of its own: some three components
MINUS = "−"


def number(value: float) -> str:
    """Two decimals, or two digits where those would all be 0: −0.48, 0.0031, 2e−06."""
    text = f"{value:.2f}" if abs(value) >= 0.01 or value == 0 else f"{value:.2g}"
    return _signed(text)


def component(value: float) -> str:
    """Two decimals, whatever they are."""
    return _signed(f"{value:.2f}")


def _signed(text: str) -> str:
    """With a true minus sign, and none before a zero."""
    return text.removeprefix("-") if text == "-0.00" else text.replace("-", MINUS)


def vector(values: np.ndarray, room: int) -> str:
    """The first components that fit into `room` cells, and how many there are: [0.12 −0.48 …] (512)."""
    parts = [component(float(value)) for value in values[:SHOWN]]
    for count in range(len(parts), 0, -1):
        more = " …" if count < len(values) else ""
        text = f"[{' '.join(parts[:count])}{more}] ({len(values)})"
        if count == 1 or cells(text) <= room:
            return text
    return "[] (0)"


def bar(share: float, room: int) -> str:
    """A bar for a number from 0 to 1, in half cells, within so many cells."""
    halves = round(2 * max(0, min(BAR, room)) * share)
    return "█" * (halves // 2) + "▌" * (halves % 2)


def weighted_sum(weights: np.ndarray, name: str, *, most: int = 4) -> str:
    """The largest terms of Σ_j α_j h_j: 0.62·h_3 + 0.20·h_1 + …"""
    order = np.argsort(-weights, kind="stable")[:most]
    order = order[weights[order] >= 0.005]
    terms = [f"{number(float(weights[j]))}·{name}_{j + 1}" for j in order]
    rest = float(weights.sum() - weights[order].sum())
    return " + ".join([*terms, *(["…"] if rest >= 0.005 else [])]) or "0"


def folded(text: str, width: int, *, indent: int = 0) -> list[str]:
    """Break a line at blanks so that it takes at most `width` cells where words allow; later lines start further in."""
    lines, line = [], " " * indent
    for word in text.split():
        grown = f"{line} {word}" if line.strip() else line + word
        if cells(grown) > width and line.strip():
            lines.append(line)
            grown = " " * (indent + 4) + word
        line = grown
    return [*lines, line]


def equation(left: str, values: np.ndarray, width: int, *, indent: int = 2) -> list[str]:
    """`left = [components] (n)` on one line, or with the vector on a line of its own where that does not fit."""
    room = width - indent - cells(left) - 3
    shown = vector(values, room)
    if cells(shown) <= room and (room >= ROOM or len(values) <= 3):
        return [f"{' ' * indent}{left} = {shown}"]
    return [*folded(left, width, indent=indent), f"{' ' * (indent + 4)}= {vector(values, width - indent - 6)}"]


def shortened(text: str, most: int) -> str:
    """The text, or its beginning with … where it takes more than `most` cells."""
    if cells(text) <= most:
        return text
    while text and cells(text) >= most:
        text = text[:-1]
    return text + "…"


def padded(text: str, size: int) -> str:
    """The text with blanks up to `size` cells."""
    return text + " " * max(0, size - cells(text))


def side_by_side(left: Sequence[str], right: Sequence[str], width: int) -> Iterator[str]:
    """Two columns of text, each half as wide as the terminal."""
    half = max(8, (width - 3) // 2)
    for pair in zip(left, right, strict=True):
        for one, other in zip_longest(*(folded(text, half) for text in pair), fillvalue=""):
            yield f"{padded(one, half)} │ {other}".rstrip()
