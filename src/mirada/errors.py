"""The mistakes a user can mend. The command line prints one line and exits with the class's code.

MiradaError
├── ConfigError        an option, or two options together, cannot be used
├── DataError          a file of pairs or of text cannot be used: names file and line
├── ModelFolderError   a model folder is missing, damaged, or from another version
└── TrainingError      training cannot start or go on
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


class MiradaError(Exception):
    """Base of every error that mirada raises for a user's mistake."""

    exit_code = 2


class ConfigError(MiradaError):
    """An option is unknown, has a wrong value, or contradicts another."""


class DataError(MiradaError):
    """A data file cannot be used; the message names the file and, where there is one, the line."""


class ModelFolderError(MiradaError):
    """A model folder is missing, incomplete, damaged, or written by a newer version."""


class TrainingError(MiradaError):
    """Training cannot start or cannot go on."""


def suggestion(wrong: str, valid: Iterable[str]) -> str:
    """Return `; did you mean 'x'?` for the nearest valid name, or an empty string."""
    near = get_close_matches(wrong, list(valid), n=1, cutoff=0.5)
    return f"; did you mean {near[0]!r}?" if near else ""
