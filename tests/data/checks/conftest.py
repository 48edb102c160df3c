"""Every test of the check is made twice: with texts in memory, and in files as those of large corpora are."""

from __future__ import annotations

import pytest

from mirada.data import spool


@pytest.fixture(autouse=True, params=["memory", "files"])
def place(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "files":
        monkeypatch.setattr(spool, "HELD", 40)
