"""What came of one kind of fault, and the table of all of them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple


class Outcome(NamedTuple):
    """How often a fault was tried and survived; a remark says what was measured, a problem what went wrong."""

    fault: str
    tries: int
    survived: int
    remark: str = ""
    problems: tuple[str, ...] = ()

    @property
    def good(self) -> bool:
        """Whether all was survived; a fault that could not be tried here (no try) is none."""
        return self.survived == self.tries and not self.problems


def judge(fault: str, results: Iterable[list[str]], remark: str = "") -> Outcome:
    """One outcome of many tries: each gives its problems, none if it was survived."""
    tries = list(results)
    problems = tuple(problem for found in tries for problem in found)
    return Outcome(fault, len(tries), sum(not found for found in tries), remark, problems)


HEADER = "| fault | tries | survived | what was seen |\n|---|---|---|---|"


def row(outcome: Outcome) -> str:
    """One line of a Markdown table."""
    tries = outcome.tries if outcome.tries else "not tried here"
    survived = outcome.survived if outcome.tries else ""
    return f"| {outcome.fault} | {tries} | {survived} | {outcome.remark} |"
