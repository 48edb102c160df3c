"""Plots by matplotlib (the extra `figures`), as files and as SVG that takes a page's own colours."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mirada.errors import ConfigError
from mirada.escape import terminal
from mirada.explain.figure import INK, PAPER, heatmap_figure, image
from mirada.study.report.document import Map, Plot, Series

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

# Legible on white and on near black; the marks tell series apart without colour.
COLOURS = ("#3d7fd0", "#d9742b", "#2f9e6e", "#b05cc6", "#cf4a5b", "#2a9db0", "#93733f", "#7d7f86")
MARKS = "osD^vPX*"
STYLE = {
    "text.parse_math": False,  # a dollar is a dollar
    "svg.fonttype": "none",  # text stays text
    "svg.hashsalt": "mirada",
    "font.family": "sans-serif",
    "font.size": 10,
    "text.color": INK,
    "axes.edgecolor": INK,
    "axes.facecolor": PAPER,
    "axes.labelcolor": INK,
    "xtick.color": INK,
    "ytick.color": INK,
}


def require_matplotlib() -> None:
    """Raise ConfigError if the extra is missing, before any work that would end in a figure."""
    from importlib.util import find_spec

    if find_spec("matplotlib") is None:
        raise ConfigError("the report's figures need the extra: pip install 'mirada[figures]'")


def draw(plot: Plot) -> dict[str, bytes]:
    """Draw a plot: `svg` and `png`, on white."""
    import matplotlib as mpl

    with mpl.rc_context(STYLE):  # type: ignore[arg-type]
        figure = _figure(plot)
        files = {}
        for kind in ("svg", "png"):
            stream = io.BytesIO()
            metadata = {"Date": None} if kind == "svg" else None
            figure.savefig(stream, format=kind, dpi=150, facecolor=PAPER, metadata=metadata)
            files[kind] = stream.getvalue()
    return files


def draw_map(found: Map) -> str:
    """Draw attention as SVG, as `mirada explain` does."""
    return image(heatmap_figure(np.array(found.weights), found.rows, found.columns), "svg").decode("utf-8")


def _figure(plot: Plot) -> Figure:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.2, 4.0), layout="constrained")
    axes = figure.add_subplot()
    handles = []
    for number, series in enumerate(plot.series):
        shift = 0.0 if plot.joined else 0.12 * (number - (len(plot.series) - 1) / 2)
        handles.append(_add(axes, series, number, plot.joined, shift))
    axes.set_xlabel(terminal(plot.x_label))
    axes.set_ylabel(terminal(plot.y_label))
    if plot.log_x:
        axes.set_xscale("log")
        _label_logarithms(axes.xaxis, [value for series in plot.series for value in series.x])
    if plot.log_y:
        axes.set_yscale("log")
        _label_logarithms(axes.yaxis, [value for series in plot.series for value in series.y])
    if plot.ticks:
        axes.set_xticks(range(len(plot.ticks)), labels=[_tick(tick) for tick in plot.ticks])
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
    if len(plot.series) > 1:
        # Named here, for a label of its own that begins with _ would be left out.
        axes.legend(handles, [terminal(series.name) for series in plot.series], frameon=False)
    return figure


def _label_logarithms(axis: Axis, values: Sequence[float]) -> None:
    """Numbers as people write them (70, not 7×10¹): 1, 2 and 5 of each power of ten, or round ones in a short range."""
    from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter, NullLocator

    is_short = max(values, default=1) < 10 * min(values, default=1)
    axis.set_major_locator(MaxNLocator(6, steps=[1, 2, 5, 10]) if is_short else LogLocator(subs=(1, 2, 5)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}" if value < 1e6 else f"{value:,.0f}"))
    axis.set_minor_locator(NullLocator())
    axis.set_minor_formatter(NullFormatter())


def _tick(label: str) -> str:
    """A label, which may have a second line of ours."""
    return "\n".join(map(terminal, label.split("\n")))


def _add(axes: Axes, series: Series, number: int, joined: bool, shift: float) -> Line2D:
    colour = COLOURS[number % len(COLOURS)]
    style: dict[str, Any] = {"color": colour, "marker": MARKS[number % len(MARKS)], "markersize": 5}
    x = [place + shift for place in series.x]
    (line,) = axes.plot(x, series.y, linewidth=1.8 if joined else 0, **style)
    if series.low and joined:
        axes.fill_between(x, series.low, series.high, color=colour, alpha=0.18, linewidth=0)
    elif series.low:
        axes.vlines(x, series.low, series.high, color=colour, linewidth=1.5)
    return line


def inline(svg: str, prefix: str) -> str:
    """Make an SVG file part of an HTML page: no addresses, ids of its own, and the page's colours."""
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = re.sub(r'\sxmlns(:\w+)?="[^"]*"', "", svg).replace("xlink:href", "href")
    svg = re.sub(r'\bid="([^"]+)"', rf'id="{prefix}-\1"', svg)
    svg = re.sub(r'href="#([^"]+)"', rf'href="#{prefix}-\1"', svg)
    svg = re.sub(r"url\(#([^)]+)\)", rf"url(#{prefix}-\1)", svg)
    return svg.replace(INK, "currentColor").replace(PAPER, "none")
