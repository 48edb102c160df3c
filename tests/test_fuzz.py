"""Whatever bytes come, what is promised holds. `MIRADA_FUZZ=5000` tries more examples, `make faults` for minutes.

What such runs have found stands below as tests with names.
"""

from __future__ import annotations

import os

import pytest

from faults.properties import PROPERTIES, Bench, Property, attempt

EXAMPLES = int(os.environ.get("MIRADA_FUZZ", "30"))


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    return Bench(tmp_path_factory.mktemp("bench"))


@pytest.mark.parametrize("tested", PROPERTIES, ids=lambda tested: tested.name)
def test_property(tested: Property, bench: Bench) -> None:
    assert attempt(tested, bench, examples=EXAMPLES) >= min(EXAMPLES, 20)
