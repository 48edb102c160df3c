"""Word vectors as text, as word2vec and GloVe write them: a word and its numbers on a line."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mirada.data.corpus import open_text, stream_lines
from mirada.errors import DataError

Vector = NDArray[np.float32]


def read_vectors(path: Path, wanted: Collection[str], *, width: int) -> dict[str, Vector]:
    """The vectors `[width]` of the wanted words that the file has; of a word that stands twice the first.

    Raises DataError with file:line for another width and for what is no number; the first line may tell two counts.
    """
    found: dict[str, Vector] = {}
    with open_text(path) as stream:
        for number, line in enumerate(stream_lines(stream, str(path)), start=1):
            word, *numbers = line.rstrip(" ").split(" ")
            if number == 1 and len(numbers) == 1 and word.isdecimal() and numbers[0].isdecimal():
                continue
            if len(numbers) != width:
                raise DataError(
                    f"{path}:{number}: a vector of {len(numbers)} numbers, but embedding_dim is {width}; give "
                    "--embedding-dim the width of the file"
                )
            if word in wanted and word not in found:
                found[word] = _vector(numbers, f"{path}:{number}")
    return found


def _vector(numbers: list[str], where: str) -> Vector:
    try:
        vector = np.array(numbers, dtype=np.float32)
    except ValueError:
        raise DataError(f"{where}: not a word and its numbers, separated by blanks") from None
    if not np.isfinite(vector).all():
        raise DataError(f"{where}: a number that is none (NaN or infinite)")
    return vector
