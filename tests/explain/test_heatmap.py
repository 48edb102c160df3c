"""Attention in a terminal: every weight under its column and beside its row, in the width there is."""

from __future__ import annotations

import unicodedata

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirada.explain.heatmap import SHADES, cells, terminal_map

LABELS = st.text(st.one_of(st.sampled_from("ab▁漢ｃ\u0301\u200d\x1b\n"), st.characters(codec="utf-8")), max_size=30)


def draw(weights: list[list[float]], rows: list[str], columns: list[str], width: int = 80) -> list[str]:
    return terminal_map(np.array(weights), rows, columns, width=width).split("\n")


def terminal(line: str) -> list[str]:
    """What stands in each cell of a line, by the rules of a terminal: wide characters fill two cells."""
    shown: list[str] = []
    for char in line:
        if unicodedata.category(char) in ("Mn", "Me", "Cf"):
            continue
        shown += [char, ""] if unicodedata.east_asian_width(char) in "WF" else [char]
    return shown


# On paper


def test_a_small_map_on_paper():
    assert draw([[1.0, 0.0], [0.25, 0.75]], ["el", "gato"], ["the", "cat"]) == [
        "     the cat",
        "  el ███",
        "gato ░░░ ▓▓▓",
    ]


def test_shades_grow_with_the_weight():
    weights = np.linspace(0, 1, 101)
    line = terminal_map(weights[None], ["r"], ["c"] * 101, width=10_000).split("\n")[1]
    places = [SHADES.index(line.ljust(500)[2 + 3 * column]) for column in range(101)]
    assert places == sorted(places)
    assert [places[percent] for percent in (0, 25, 50, 75, 100)] == [0, 1, 2, 3, 4]
    assert places[1] == 0  # a hundredth of a look is none


def test_short_columns_are_wide_enough_to_be_seen():
    assert draw([[1.0, 1.0]], ["x"], ["a", "b"])[1] == "x ██ ██"


def test_the_first_row_names_columns_where_they_begin():
    header, *lines = draw(np.eye(3).tolist(), ["a", "b", "c"], ["one", "three", "xx"])
    for column, (label, line) in enumerate(zip(["one", "three", "xx"], lines, strict=True)):
        assert header.index(label) == line.index("█")
        assert line.count("█") == len(label), column


def test_wide_characters_and_combining_marks():
    assert cells("漢字") == 4
    assert cells("ｃ") == 2
    assert cells("e\u0301") == cells("é") == 1
    assert cells("a\u200db") == 2
    assert cells("") == 0
    lines = draw(np.eye(3).tolist(), ["猫", "n\u0303o", "xyz"], ["漢字", "e\u0301", "b"])
    assert [terminal(line).index("█") for line in lines[1:]] == [4, 9, 12]
    assert terminal(lines[0])[4] == "漢"
    assert terminal(lines[0])[9] == "e"
    assert terminal(lines[0])[12] == "b"


# Little room


def test_too_many_columns_continue_in_blocks_with_a_key():
    columns = ["alpha", "beta", "gamma", "delta", "epsilon"]
    weights = [[1.0, 0, 0, 0, 0], [0, 0, 0, 0, 1.0]]
    assert draw(weights, ["a", "b"], columns, width=13) == [
        "  1  2  3",
        "a ██",
        "b",
        "  4  5",
        "a",
        "b    ██",
        "1 alpha",
        "2 beta",
        "3 gamma",
        "4 delta",
        "5 epsil…",
    ]


def test_the_key_fills_its_lines():
    columns = [f"column{number}" for number in range(12)]
    lines = draw([[1.0] * 12], ["r"], columns, width=40)
    key = [line for line in lines if "column" in line]
    entries = [f"{number} {column}" for number, column in enumerate(columns, 1)]
    assert "  ".join(key) == "  ".join(entries)
    assert all(len(line) + 2 + len("10 column9") > 40 for line in key[:-1])


@given(rows=st.lists(LABELS, min_size=1, max_size=4), columns=st.lists(LABELS, min_size=1, max_size=30), data=st.data())
def test_no_line_is_longer_than_the_width(rows, columns, data):
    width = data.draw(st.integers(10, 60))
    weights = np.random.default_rng(1).random((len(rows), len(columns)))
    drawn = terminal_map(weights, rows, columns, width=width)
    assert all(len(terminal(line)) <= width for line in drawn.split("\n"))
    assert "\x1b" not in drawn
    assert not any(unicodedata.category(char) == "Cc" for char in drawn if char != "\n")


@given(columns=st.lists(st.text(st.sampled_from("ab漢"), min_size=1, max_size=5), min_size=1, max_size=30))
def test_every_column_is_drawn_once_a_row(columns):
    """A single full weight in each row leads back to its column, over the blocks."""
    count = len(columns)
    lines = draw(np.eye(count).tolist(), ["r"] * count, columns, width=30)
    blocks = [line for line in lines if line.startswith("r")]
    assert sum("█" in line for line in blocks) == count
    assert len(blocks) % count == 0


def test_a_label_that_fills_the_screen_is_cut():
    lines = draw([[1.0]], ["x" * 100], ["y" * 100], width=20)
    assert lines == ["           1", "xxxxxxxxx… ██", "1 yyyyyyyyy…"]


def test_a_terminal_obeys_no_label():
    assert draw([[1.0]], ["\x1b[2J"], ["a\tb"]) == ["        a\\tb", "\\x1b[2J ████"]


# Mistakes and edges


def test_labels_that_do_not_fit_the_weights():
    with pytest.raises(ValueError, match=r"^weights are \(2, 3\), labels are for \(3, 2\)$"):
        terminal_map(np.zeros((2, 3)), ["a"] * 3, ["b"] * 2)


def test_no_rows_or_no_columns():
    assert terminal_map(np.zeros((0, 2)), [], ["a", "b"]) == " a  b"
    assert terminal_map(np.zeros((1, 0)), ["a"], []).strip() == "a"
