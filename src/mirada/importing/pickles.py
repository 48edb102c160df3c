"""What pickles of other toolkits may hold besides tensors and plain values: each name here, and nothing else.

Options are an argparse.Namespace. Numbers of NumPy, which trainings keep as scores, become nothing at all: what stands
in their place here takes anything and does nothing.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from mirada.importing.files import unpickled


class Ignored:
    """What stands for an object whose value nobody asks for."""

    def __init__(self, *values: object):
        pass

    def __setstate__(self, state: object) -> None:
        """Forget it."""


ALLOWED: list[Any] = [
    argparse.Namespace,
    (Ignored, "numpy.dtype"),
    (Ignored, "numpy.core.multiarray.scalar"),
    (Ignored, "numpy._core.multiarray.scalar"),
]
HINTS = {
    "torchtext": "it is of OpenNMT-py 2: convert it with OpenNMT-py's tools/convertv2_v3.py",
    "omegaconf": "load it with fairseq and save it again with 0.12, which writes plain values",
}


def read_pickle(path: Path) -> Any:
    """A toolkit's file of torch.save; raises ModelFolderError for anything that is not allowed, naming it."""
    return unpickled(path, ALLOWED, HINTS)
