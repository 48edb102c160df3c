"""The same command on the same machine makes the same model, bit for bit, with one thread and with two."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from faults import again

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="starts processes as Linux does")


@pytest.mark.parametrize("threads", [1, 2])
def test_the_same_command_makes_the_same_files(threads: int, tmp_path: Path) -> None:
    """Every system trains twice in processes of its own, with dropout on inputs, words and outputs."""
    outcome = again.same(tmp_path, 2, threads)
    assert outcome.problems == ()
    assert outcome.survived == outcome.tries == len(again.SYSTEMS)
