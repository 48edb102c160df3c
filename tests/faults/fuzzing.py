"""Fuzzing for as long as is wanted: every property in turn, on new examples each time."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

from .outcome import Outcome
from .properties import PROPERTIES, Bench, Property, attempt

AT_ONCE = 100  # examples of a property before the clock is looked at


def all_for(seconds: float, place: Path, *, seed: int) -> Iterator[Outcome]:
    """Try each property for its share of the time."""
    bench = Bench(place)
    for tested in PROPERTIES:
        yield _one_for(seconds / len(PROPERTIES), tested, bench, seed)


def _one_for(seconds: float, tested: Property, bench: Bench, seed: int) -> Outcome:
    end, examples, number = time.monotonic() + seconds, 0, seed * 1_000_000
    while time.monotonic() < end:
        try:
            examples += attempt(tested, bench, examples=AT_ONCE, number=number)
        except Exception as error:  # whatever it is, it is what was looked for
            notes = " ".join(getattr(error, "__notes__", []))
            problem = f"{tested.name}: {type(error).__name__}: {error} {notes}"
            return Outcome(f"fuzz: {tested.says}", examples + 1, examples, "", (problem,))
        number += 1
    return Outcome(f"fuzz: {tested.says}", examples, examples, f"{seconds:.0f} s")
