"""What the tests of imported models share: files of torch.save to be spoilt, and imports that must be refused."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from cli_tools import refusal, works
from mirada.translator import load

HERE = Path(__file__).parent / "importing"
Change = Callable[[dict[str, Any]], object]


def copy_of(name: str, tmp_path: Path) -> Path:
    """A copy of a model that may be spoilt."""
    return Path(shutil.copytree(HERE / name, tmp_path / name))


def outputs(source: Path, out: Path) -> list[float]:
    """Scores of a pair by an imported model."""
    works("import", source, "--out", out)
    return list(load(out, device="cpu").score(["Ana sees the cat ."], ["Ana ve la gato ."])[0].token_log_probabilities)


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
