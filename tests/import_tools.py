"""What the tests of imported models share: files of torch.save to be spoilt, and imports that must be refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from cli_tools import refusal

Change = Callable[[dict[str, Any]], object]


def spoil(path: Path, change: Change) -> None:
    """Change what a file of torch.save holds, one of tests/importing: our own may be read with all that is in it."""
    content = torch.load(path, weights_only=False)
    change(content)
    torch.save(content, path)


def refused(source: Path, out: Path) -> str:
    """Import what cannot be imported: one line, and nothing is written."""
    before = sorted(source.parent.iterdir())
    line = refusal("import", source, "--out", out)
    assert sorted(source.parent.iterdir()) == before
    assert not out.exists()
    return line


class Hostile:
    """What a pickle does when it is read carelessly."""

    def __reduce__(self) -> tuple[Any, ...]:
        return (eval, ("open('/tmp/never', 'w')",))
