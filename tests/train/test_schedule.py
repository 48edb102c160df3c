"""The learning rate, update by update, by arithmetic."""

from __future__ import annotations

from itertools import pairwise
from math import sqrt

import pytest

from mirada.train.schedule import Schedule, learning_rate, paced

SHAPES = ("constant", "inverse_sqrt", "cosine", "linear", "plateau")
PEAK = 0.01


def rates(shape: str, updates: list[int], *, warmup: int = 100, last: int = 300) -> list[float]:
    return [learning_rate(update, Schedule(PEAK, warmup, shape, last)) for update in updates]


@pytest.mark.parametrize("shape", SHAPES)
def test_the_warm_up_is_a_line_from_zero_to_the_peak(shape):
    assert rates(shape, [1, 25, 50, 99, 100]) == pytest.approx([0.0001, 0.0025, 0.005, 0.0099, 0.01])


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        ("constant", [0.01, 0.01, 0.01, 0.01]),
        ("plateau", [0.01, 0.01, 0.01, 0.01]),
        ("inverse_sqrt", [0.01 / sqrt(1.5), 0.01 / sqrt(2), 0.01 / sqrt(3), 0.005]),
        ("linear", [0.0075, 0.005, 0.0001, 0.0001]),  # a quarter, half and all of the way; never below a hundredth
        ("cosine", [0.005 * (1 + sqrt(0.5)), 0.005, 0.0001, 0.0001]),  # cos 45° = √½
    ],
)
def test_after_the_warm_up(shape, expected):
    assert rates(shape, [150, 200, 300, 400]) == pytest.approx(expected)


@pytest.mark.parametrize("shape", SHAPES)
def test_no_jump_and_no_rise_after_the_peak(shape):
    after = rates(shape, list(range(100, 310)))
    assert after[0] == pytest.approx(PEAK)
    steps = [before - now for before, now in pairwise(after)]
    assert all(0 <= step <= PEAK * 0.01 for step in steps)


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        ("constant", [0.01, 0.01, 0.01]),
        ("plateau", [0.01, 0.01, 0.01]),
        ("inverse_sqrt", [0.01, 0.005, 0.0025]),
        ("linear", [0.0095, 0.008, 0.002]),
        ("cosine", [0.005 * (1 + 0.98768834), 0.005 * (1 + 0.80901699), 0.005 * (1 - 0.80901699)]),  # 9°, 36°, 144°
    ],
)
def test_without_warm_up(shape, expected):
    assert rates(shape, [1, 4, 16], warmup=0, last=20) == pytest.approx(expected)


@pytest.mark.parametrize("shape", SHAPES)
def test_a_training_that_ends_inside_its_warm_up(shape):
    assert rates(shape, [5, 10], warmup=100, last=10) == pytest.approx([0.0005, 0.001])


def test_the_rate_scales_with_the_peak():
    for shape in SHAPES:
        small, large = (learning_rate(170, Schedule(peak, 100, shape, 300)) for peak in (0.001, 1.0))
        assert large == pytest.approx(1000 * small)


def test_by_the_clock_the_rate_falls_over_the_time_that_is_left():
    """Ten updates a second for a minute are 600: a tenth of them to rise, the rest to fall, whatever was planned."""
    planned = Schedule(PEAK, 400, "linear", 1_000_000)
    assert paced(planned, 1, 0.0) == planned
    found = [learning_rate(update, paced(planned, update, update / 600)) for update in (30, 60, 330, 600)]
    assert found == pytest.approx([PEAK / 2, PEAK, PEAK / 2, PEAK / 100])
    slower = paced(planned, 330, 0.75)  # only 110 more will be made
    assert (slower.last, slower.warmup) == (440, 44)
    assert learning_rate(330, slower) == pytest.approx(PEAK * 110 / 396)


def test_by_the_clock_no_more_is_planned_than_was_asked_for():
    planned = Schedule(PEAK, 10, "linear", 500)
    assert paced(planned, 100, 0.01).last == 500
    assert paced(planned, 100, 0.01).warmup == 10
