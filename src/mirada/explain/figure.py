"""Attention as a figure by matplotlib (the extra `figures`): weights and labels in, figure out. Knows no model."""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mirada.errors import ConfigError
from mirada.explain.heatmap import margin

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# For scripts that matplotlib's own font lacks: whichever of these are installed, character by character.
FAMILIES = (
    "DejaVu Sans",
    "Noto Sans",
    "Noto Sans CJK JP",
    "Noto Sans CJK SC",
    "Noto Sans Arabic",
    "Noto Sans Hebrew",
    "Noto Sans Devanagari",
    "Droid Sans Fallback",
    "WenQuanYi Micro Hei",
    "Hiragino Sans",
    "Yu Gothic",
    "Microsoft YaHei",
    "Arial Unicode MS",
    "Segoe UI",
    "Arial",
)
INK, PAPER = "#1b1c1f", "#ffffff"
CELL, MARGIN, LETTER, LARGEST = 0.34, 0.5, 0.09, 90.0  # inches
WRITTEN = 16  # up to so many rows and columns the numbers stand in the cells


def heatmap_figure(weights: np.ndarray, rows: Sequence[str], columns: Sequence[str], *, title: str = "") -> Figure:
    """Draw weights `[rows, columns]` between 0 and 1 on white, darker for more.

    Raises ValueError if the weights do not fit the labels, ConfigError if matplotlib is missing.
    """
    if weights.shape != (len(rows), len(columns)):
        raise ValueError(f"weights are {weights.shape}, labels are for {(len(rows), len(columns))}")
    try:
        import matplotlib as mpl
    except ImportError:
        raise ConfigError("figures need matplotlib: pip install 'mirada[figures]'") from None

    with mpl.rc_context(_style()):
        return _initialised(weights, list(map(margin, rows)), list(map(margin, columns)), title)


def image(figure: Figure, kind: str, *, warn: Callable[[str], None] | None = None) -> bytes:
    """The figure as `svg` (whose text stays text) or `png`; `warn` is told where no installed font has a character."""
    import matplotlib as mpl

    stream = io.BytesIO()
    with warnings.catch_warnings(record=True) as caught, mpl.rc_context(_style()):
        warnings.simplefilter("always")
        figure.savefig(stream, format=kind, dpi=150, metadata={"Date": None} if kind == "svg" else None)
    if kind == "png" and warn and any("Glyph" in str(warning.message) for warning in caught):
        warn("no installed font has all characters of the labels, boxes stand for them; install Noto fonts, or use svg")
    return stream.getvalue()


def _style() -> dict[Any, Any]:
    from matplotlib.font_manager import fontManager

    installed = {font.name for font in fontManager.ttflist}
    return {
        "font.family": [family for family in FAMILIES if family in installed] or ["sans-serif"],
        "text.parse_math": False,  # a dollar is a dollar
        **dict.fromkeys(("text.color", "axes.edgecolor", "axes.labelcolor", "xtick.color", "ytick.color"), INK),
        "svg.fonttype": "none",
        "svg.hashsalt": "mirada",
    }


def _initialised(weights: np.ndarray, rows: Sequence[str], columns: Sequence[str], title: str) -> Figure:
    from matplotlib.figure import Figure

    cell = min(CELL, LARGEST / max(len(rows), len(columns)))
    left, top = (LETTER * max(map(len, labels), default=0) for labels in (rows, columns))
    size = (max(3.0, cell * len(columns) + left + MARGIN), max(2.0, cell * len(rows) + top + 2 * MARGIN))
    figure = Figure(figsize=size, layout="constrained")
    axes = figure.add_subplot()
    axes.pcolormesh(weights, cmap="Blues", vmin=0, vmax=1, edgecolors=PAPER, linewidth=0.5)
    axes.set_aspect("equal")
    axes.invert_yaxis()
    axes.set_xticks(np.arange(len(columns)) + 0.5, labels=columns, rotation=90)
    axes.set_yticks(np.arange(len(rows)) + 0.5, labels=rows)
    axes.xaxis.tick_top()
    axes.tick_params(length=0)
    if max(weights.shape) <= WRITTEN:
        for (i, j), weight in np.ndenumerate(weights):
            if weight >= 0.005:
                shade = "white" if weight > 0.6 else "black"
                axes.text(j + 0.5, i + 0.5, f"{weight:.2f}", ha="center", va="center", fontsize=6, color=shade)
    if title:
        figure.suptitle(title, fontsize=10, wrap=True)
    return figure
