"""Value recall: the share of given strings that the outputs hold, such as the slot values of a dialogue act."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from mirada.errors import DataError
from mirada.evaluation.metrics import Statistics, percentage
from mirada.evaluation.scripts import has_no_blanks

SIGNATURE = "case:fold|unit:value|match:whole words"


def recall(hypotheses: Sequence[str], values: Sequence[Sequence[str]]) -> Statistics:
    """Count in each output those of its values that it holds; a value is found where it stands as whole words.

    The share is taken over all values of the corpus; an output without values adds nothing. Blanks at the ends, empty
    values and case do not count. Raises DataError for other than one list of values an output, or for no value at all.
    """
    if len(hypotheses) != len(values):
        raise DataError(f"expected values for every output, got {len(hypotheses)} outputs and {len(values)} lists")
    wanted = [[value.strip() for value in several if value.strip()] for several in values]
    if not any(wanted):
        raise DataError("no value to look for: every list of values is empty")
    rows = [
        (sum(holds(output, value) for value in several), len(several))
        for output, several in zip(hypotheses, wanted, strict=True)
    ]
    return Statistics(np.array(rows, dtype=np.float64), percentage, SIGNATURE)


def holds(output: str, value: str) -> bool:
    """Tell whether a value stands in an output, not inside a longer word or number (scripts without blanks aside)."""
    text, sought = output.casefold(), re.escape(value.casefold())
    if has_no_blanks([value]):
        return re.search(sought, text) is not None
    return re.search(rf"(?<!\w)(?<!\d[.,:]){sought}(?!\w|[.,:]\d)", text) is not None  # 3 is neither in 13 nor in 3:30
