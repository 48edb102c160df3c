"""Heat maps by matplotlib: labels of every script, no state left behind, clear words where it is missing."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from mirada.errors import ConfigError
from mirada.explain.figure import heatmap_figure, image

ROWS, COLUMNS = ["la", "$a$ $", "قطة", "a\nb"], ["the", "cat", "</s>"]
WEIGHTS = np.array([[0.7, 0.2, 0.1], [0.0, 1.0, 0.0], [0.3, 0.3, 0.4], [0.5, 0.5, 0.0]])


def test_the_figure_has_the_weights_and_the_labels() -> None:
    pytest.importorskip("matplotlib")
    axes = heatmap_figure(WEIGHTS, ROWS, COLUMNS, title="5 $ & <b>").axes[0]
    assert np.array_equal(axes.collections[0].get_array(), WEIGHTS)
    assert axes.collections[0].get_clim() == (0, 1)
    assert [label.get_text() for label in axes.get_xticklabels()] == COLUMNS
    assert [label.get_text() for label in axes.get_yticklabels()] == [*ROWS[:3], r"a\nb"]
    assert [text.get_text() for text in axes.texts] == [f"{weight:.2f}" for weight in WEIGHTS.flatten() if weight]


def test_svg_keeps_text_as_text_and_is_the_same_each_time() -> None:
    pytest.importorskip("matplotlib")
    once, again = (image(heatmap_figure(WEIGHTS, ROWS, COLUMNS), "svg") for _ in range(2))
    assert once == again
    for label in ("$a$ $", "قطة", "&lt;/s&gt;"):
        assert label in once.decode()


def test_png_is_a_picture_and_missing_characters_are_told() -> None:
    pytest.importorskip("matplotlib")
    said: list[str] = []
    rows = ["\ue000", *ROWS[1:]]  # a private character, which no font has
    assert image(heatmap_figure(WEIGHTS, rows, COLUMNS), "png", warn=said.append).startswith(b"\x89PNG")
    assert ["no installed font has all characters" in line for line in said] == [True]
    assert image(heatmap_figure(WEIGHTS[:1], ["la"], COLUMNS), "png", warn=said.append)
    assert len(said) == 1


def test_nothing_of_matplotlibs_own_settings_changes() -> None:
    mpl = pytest.importorskip("matplotlib")
    before, pyplot = dict(mpl.rcParams), "matplotlib.pyplot" in sys.modules
    image(heatmap_figure(WEIGHTS, ROWS, COLUMNS), "png")
    assert dict(mpl.rcParams) == before
    assert ("matplotlib.pyplot" in sys.modules) is pyplot


def test_weights_that_do_not_fit_the_labels_are_refused() -> None:
    with pytest.raises(ValueError, match=r"weights are \(4, 3\), labels are for \(4, 2\)"):
        heatmap_figure(WEIGHTS, ROWS, COLUMNS[:2])


def test_without_matplotlib_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ConfigError, match=r"figures need matplotlib: pip install 'mirada\[figures\]'"):
        heatmap_figure(WEIGHTS, ROWS, COLUMNS)
