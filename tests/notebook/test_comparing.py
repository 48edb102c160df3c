"""`mirada.compare`: the comparison of the command, from pairs in memory."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import mirada
import tiny
from compare_tools import MODEL, SEARCH, TRAINING, in_this_process, timeless
from compare_tools import request as asked
from mirada.study.compare import comparison

PAIRS = list(zip(tiny.SOURCES, tiny.TARGETS, strict=True))
SYSTEMS = ["luong-dot", "classic-gru"]


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each run in this process."""
    monkeypatch.setattr(comparison, "compare", partial(comparison.compare, launch=in_this_process))


@pytest.mark.usefixtures("here")
def test_it_is_the_comparison_of_the_command_and_draws_itself(tmp_path: Path) -> None:
    options: dict[str, Any] = {"vocab_size": 60, **MODEL, **TRAINING, **SEARCH}
    table = {"en": tiny.SOURCES, "es": tiny.TARGETS}
    options |= {"source_column": "en", "target_column": "es", "budget": "3updates"}
    found = mirada.compare(table, dev=table, test=table, out=tmp_path / "mine", systems=SYSTEMS, **options)
    expected = comparison.compare(asked(tmp_path, systems=tuple(SYSTEMS)), lambda line: None)
    mine, theirs = (timeless(results) for results in (found.results, expected))
    assert mine["systems"] == theirs["systems"]
    assert json.loads((found.folder / "results.json").read_text()) == found.results
    assert repr(found) == f"<mirada.Comparison of luong-dot, classic-gru; the report is {tmp_path}/mine/report.html>"
    assert found._repr_html_().count("<tr>") == 3
    assert all(row[0] in found._repr_html_() for row in found.table.rows)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"systems": [3]}, "systems are trained, by names such as luong-dot, not int; models that exist are compared"),
        ({"decodr": 1}, "unknown option 'decodr'; did you mean 'decoder'?"),
        ({"data": None, "dev": PAIRS}, "dev or test pairs without pairs to train on; give those too"),
        ({"test": [("a", None)]}, "test pairs, row 1: key 'target' holds null, expected text"),
        ({"tsv": "a.tsv"}, "pairs are given twice, as tsv too; leave one of them out"),
    ],
)
def test_mistakes_are_told_in_a_line_and_leave_nothing(given: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(mirada.MiradaError) as caught:
        mirada.compare(**{"data": PAIRS, "systems": SYSTEMS, "out": tmp_path / "out", **given})
    assert str(caught.value).startswith(message)
    assert not (tmp_path / "out").exists()
