"""Training pairs invented from a few real ones, for jobs that copy most letters, such as inflection.

What both sides of a pair share, in runs of three characters or more, is taken for a stem; half of its characters are
drawn anew, the same on both sides, and the rest of the row stays (Anastasopoulos & Neubig 2019, section 3.2). So a
model sees the endings of its few words on stems without number.
"""

from __future__ import annotations

from collections.abc import Sequence
from difflib import SequenceMatcher
from random import Random

from mirada.errors import DataError

Row = list[str]
SHORTEST_STEM = 3
LONG_STEM = 5  # of a longer one the first and the last character stay: they meet prefix and ending
CHANGED = 0.5  # of a stem's characters
PATIENCE = 100  # rounds over all rows that bring nothing new


def invent(rows: Sequence[Row], count: int, *, source: int, target: int, seed: int) -> list[Row]:
    """Return `count` rows made from `rows` by new stems in columns `source` and `target` (from 0), none of them real.

    Raises DataError where source and target share too little for so many.
    """
    draw = Random(seed)
    shared = [(row, _stems(row[source], row[target])) for row in rows]
    usable = [(row, stems) for row, stems in shared if stems]
    letters = {char for row, stems in usable for i, _, size in stems for char in row[source][i : i + size]}
    alphabet = sorted(char for char in letters if not char.isspace())
    real, found = {tuple(row) for row in rows}, dict[tuple[str, ...], None]()
    fruitless = 0
    while len(found) < count and fruitless < PATIENCE * len(rows):
        if not usable:
            break
        row, stems = draw.choice(usable)
        sides = _redrawn(row[source], row[target], stems, alphabet, draw)
        made = [sides[0] if i == source else sides[1] if i == target else text for i, text in enumerate(row)]
        new = tuple(made) not in real and tuple(made) not in found
        fruitless = 0 if new else fruitless + 1
        if new:
            found[tuple(made)] = None
    if len(found) < count:
        raise DataError(
            f"{len(found)} of {count} rows could be invented: source and target must share {SHORTEST_STEM} characters "
            "in a row, as a lemma and its forms do; ask for fewer, or train on the rows as they are"
        )
    return [list(row) for row in found]


def _stems(source: str, target: str) -> list[tuple[int, int, int]]:
    """Where both sides are the same: place in the source, place in the target, length."""
    blocks = SequenceMatcher(None, source, target, autojunk=False).get_matching_blocks()
    return [(i, j, size) for i, j, size in blocks if size >= SHORTEST_STEM]


def _redrawn(
    source: str, target: str, stems: Sequence[tuple[int, int, int]], alphabet: Sequence[str], draw: Random
) -> tuple[str, str]:
    sides = (list(source), list(target))
    for i, j, size in stems:
        edge = 1 if size > LONG_STEM else 0
        for place in range(edge, size - edge):
            if not source[i + place].isspace() and draw.random() < CHANGED:
                sides[0][i + place] = sides[1][j + place] = draw.choice(alphabet)
    return "".join(sides[0]), "".join(sides[1])
