"""Invented pairs: stems change on both sides alike, endings and features stay."""

from __future__ import annotations

import re

import pytest

from cli_tools import refusal, works, write
from mirada.corpora.invented import invent
from mirada.errors import DataError

ROWS = [
    ["cantar", "V;1;SG", "canto"],
    ["mirar", "V;2;PL", "miráis"],
    ["ser", "V;1;SG", "soy"],
    ["hablar", "V;3;SG", "habla"],
]


def made(count: int = 60, seed: int = 1) -> list[list[str]]:
    return invent(ROWS, count, source=0, target=2, seed=seed)


def test_endings_and_features_stay_and_stems_change_alike():
    # cantar/canto share "cant", hablar/habla "habla", mirar/miráis "mir"; ser/soy share too little and bring nothing.
    endings = {"V;1;SG": ("ar", "o", 4), "V;2;PL": ("ar", "áis", 3), "V;3;SG": ("r", "", 5)}
    for lemma, features, form in made():
        left, right, size = endings[features]
        assert lemma[:size] == form[:size]
        assert (lemma[size:], form[size:]) == (left, right)
    assert {row[1] for row in made()} == set(endings)


def test_rows_are_new_all_different_and_the_same_for_a_seed():
    rows = made()
    assert len({tuple(row) for row in rows}) == len(rows) == 60
    assert not [row for row in rows if row in ROWS]
    assert rows == made() != made(seed=2)
    alphabet = set("cantmirhabla")
    assert {char for row in rows for char in row[0][:3]} <= alphabet


def test_a_long_stem_keeps_its_edges():
    # "merced" is a stem of six characters: the first and the last stay, because the ending's spelling hangs on them.
    rows = invent([["merced", "mercedes"]], 40, source=0, target=1, seed=1)
    assert all(re.fullmatch("m....d", lemma) and form == f"{lemma}es" for lemma, form in rows)


def test_blanks_stay_where_they_are():
    rows = invent([["dar la vuelta", "doy la vuelta"]], 40, source=0, target=1, seed=1)
    assert {tuple(i for i, char in enumerate(row[0]) if char == " ") for row in rows} == {(3, 6)}


def test_pairs_that_share_nothing_are_refused():
    with pytest.raises(DataError, match=r"^0 of 5 rows could be invented: source and target must share 3 characters "):
        invent([["one", "uno"]], 5, source=0, target=1, seed=1)
    with pytest.raises(DataError, match=r"^\d+ of 99 rows could be invented"):  # two letters on three places: too few
        invent([["aba", "aba"]], 99, source=0, target=1, seed=1)


def test_the_command_writes_the_rows_and_the_invented_ones(tmp_path):
    table, out = write(tmp_path / "t.tsv", ["\t".join(row) for row in ROWS]), tmp_path / "more.tsv"
    line = ("data", "invent", "--tsv", table, "--source-column", 1, "--target-column", 3, "--pairs", 20, "--out", out)
    assert works(*line).output == ""
    rows = [row.split("\t") for row in out.read_text(encoding="utf-8").splitlines()]
    assert rows[:4] == ROWS
    assert rows[4:] == made(20)
    assert refusal(*line) == f"{out}: exists; choose another file, or force (--force) to overwrite it"
    works(*line, "--force", "--seed", 2)
    said = refusal("data", "invent", "--tsv", table, "--target-column", 4, "--out", tmp_path / "x")
    assert said == f"{table}:1: 3 columns, expected at least 4"
