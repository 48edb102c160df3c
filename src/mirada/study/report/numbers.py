"""Numbers as a reader wants them: few digits, intervals in brackets, times in the unit that fits."""

from __future__ import annotations

from collections.abc import Mapping

NONE = "–"


def value(number: float | None, digits: int = 1) -> str:
    """A measure with its digits, a dash where there is none."""
    return NONE if number is None else f"{number:.{digits}f}"


def span(low: float, high: float, digits: int = 1) -> str:
    """An interval: [low, high]."""
    return f"[{low:.{digits}f}, {high:.{digits}f}]"


def with_span(number: float, low: float, high: float, digits: int = 1) -> str:
    """A measure and its interval."""
    return f"{number:.{digits}f} {span(low, high, digits)}"


def estimate(found: Mapping[str, float], digits: int = 1) -> str:
    """The same of what has its value, low and high by name."""
    return with_span(found["value"], found["low"], found["high"], digits)


def signed(number: float, digits: int = 1) -> str:
    """A difference with its sign."""
    return f"{number:+.{digits}f}"


def count(number: float | None) -> str:
    """A large number with groups of three digits."""
    return NONE if number is None else f"{number:,.0f}"


def probability(p: float) -> str:
    """A p-value, three digits."""
    return f"{p:.3f}"


def duration(seconds: float | None) -> str:
    """Seconds below two minutes, else minutes."""
    if seconds is None:
        return NONE
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.1f} min"
