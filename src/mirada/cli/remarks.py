"""What `mirada translate` says about its lines on standard error: words never seen, outputs at their limit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from mirada.cli import say

if TYPE_CHECKING:
    from mirada.translator import Translation

NAMED = 3  # lines with unknown words that are named one by one


class Remarks(NamedTuple):
    """What there is to say about the lines so far."""

    lines: int
    unknown: int  # with words that the model never saw
    limited: int  # whose best output reached the limit


def remark(remarks: Remarks, outputs: Sequence[Sequence[Translation]]) -> Remarks:
    """Count a block of lines, and say which are the first with unknown words."""
    unknown, limited = remarks.unknown, remarks.limited
    for number, (best, *_) in enumerate(outputs, start=remarks.lines + 1):
        limited += not best.finished
        if best.unknown_words:
            unknown += 1
            if unknown <= NAMED:
                words = len(set(best.source_words))
                say(f"line {number}: {best.unknown_words} of {words} words never seen in training")
    return Remarks(remarks.lines + len(outputs), unknown, limited)


def say_remarks(remarks: Remarks) -> None:
    """Say at the end how many lines there were like that."""
    if remarks.unknown > NAMED:
        say(f"{remarks.unknown} of {remarks.lines} lines hold words never seen in training")
    if remarks.limited:
        what = "reached the limit of their length before they ended (see --max-output-length, --max-length-ratio)"
        say(f"{remarks.limited} of {remarks.lines} outputs {what}")
