"""Two files of unequal length: where to look first."""

from __future__ import annotations

import pytest

from mirada.data.checks.misalignment import describe_counts, parting_line


def test_unequal_counts_and_a_blank_side():
    message = describe_counts("a", "b", ["s", "", "s", "s"], ["t", "", " ", "t", "t"])
    assert (
        message == "a has 4 lines but b has 5; line 5 is the first that only b has; first line with one blank side: 3"
    )


LENGTHS = [1, 100, 10] * 20  # any line against its neighbour costs at least ln(11 / 2) = 1.7


@pytest.mark.parametrize("lost", [0, 1, 17, 40])
def test_a_lost_line_is_found_by_lengths(lost):
    sources = ["s" * n for n in LENGTHS]
    targets = ["t" * n for place, n in enumerate(LENGTHS) if place != lost]
    assert parting_line(sources, targets) == lost + 1
    assert parting_line(targets, sources) == lost + 1
    message = f"a has 60 lines but b has 59; by their lengths the files part at about line {lost + 1}"
    assert describe_counts("a", "b", sources, targets) == message


def test_translations_may_be_longer_throughout():
    sources = ["s" * n for n in LENGTHS]
    targets = ["t" * (9 * n) for place, n in enumerate(LENGTHS) if place != 17]
    assert parting_line(sources, targets) == 18


def test_of_several_lost_lines_the_first_is_found():
    sources = ["s" * n for n in LENGTHS]
    targets = ["t" * n for place, n in enumerate(LENGTHS) if place not in (11, 25, 39)]
    assert parting_line(sources, targets) == 12


@pytest.mark.parametrize("kept", [0, 1, 30, 59, 60])
def test_a_lost_end_is_no_parting(kept):
    lines = ["s" * n for n in LENGTHS]
    assert parting_line(lines, lines[:kept]) is None
