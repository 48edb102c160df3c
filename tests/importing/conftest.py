"""Models of other toolkits, imported once a session."""

from __future__ import annotations

from pathlib import Path

import pytest

from cli_tools import works

HERE = Path(__file__).parent


def source_of(folder: Path) -> Path:
    """What `import` is given: OpenNMT-py's models are one file."""
    return folder / "model.pt" if folder.name.startswith("onmt") else folder


@pytest.fixture(scope="session", params=sorted(path.parent.name for path in HERE.glob("*/expected.json")))
def toolkit(request: pytest.FixtureRequest) -> str:
    """A folder of this one: the toolkit's model, and what the toolkit says about it."""
    return str(request.param)


@pytest.fixture(scope="session")
def model(toolkit: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The imported model folder."""
    folder = tmp_path_factory.mktemp(toolkit) / "model"
    works("import", source_of(HERE / toolkit), "--out", folder)
    return folder
