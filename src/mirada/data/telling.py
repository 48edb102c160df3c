"""How far something is that takes long: who does it tells, who asked for it shows."""

from __future__ import annotations

from collections.abc import Callable

Tell = Callable[[str, int, int | None], None]  # what is done, how many pairs, and of how many where that is known


def silent(what: str, done: int, total: int | None) -> None:
    """Show nothing."""
