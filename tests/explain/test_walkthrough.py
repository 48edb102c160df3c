"""The walkthrough: the flow's own order, numbers as they are, and never a line wider than the terminal."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from explain_tools import GIVEN, make, one, searching
from mirada.errors import ConfigError
from mirada.explain.edits import Edits
from mirada.explain.heatmap import cells, margin
from mirada.explain.lines import bar, component, equation, folded, number, shortened, vector, weighted_sum
from mirada.explain.record import Trace
from mirada.explain.walkthrough import compare, walkthrough

SYSTEMS: list[dict[str, Any]] = [
    {"decoder": "classic", "rnn_type": "gru"},
    {"decoder": "classic", "feed_context": True},
    {"decoder": "bahdanau", "readout": "deep", "dec_layers": 2},
    {"decoder": "luong"},
    {"decoder": "transformer", "enc_layers": 2, "norm": "post"},
]
# The beginnings of a step's lines, in the order of each system's flow.
FLOWS = {
    "classic": "y_1 s_1 s_2 cell_2 p(y_2)",
    "bahdanau": "y_1 s_1 e_2,j α_2,j c_2 s_2 cell_2 t_2 p(y_2)",
    "luong": "y_1 s_1 s̃_1 s_2 cell_2 e_2,j α_2,j c_2 s̃_2 p(y_2)",
    "transformer": "y_1 u_2,k β_2,k r_2 a_2 e_2,j α_2,j z_2 c_2 f_2 s_2 s_2 α_2,j p(y_2)",
}


def test_numbers_by_hand() -> None:
    assert [number(value) for value in (-0.484, 0.0, -0.0, -0.0031, 12.0, 2.2e-6)] == [
        "−0.48",
        "0.00",
        "0.00",
        "−0.0031",
        "12.00",
        "2.2e−06",
    ]
    assert [component(value) for value in (-0.004, 0.126, -0.126)] == ["0.00", "0.13", "−0.13"]
    assert vector(np.array([0.12, -0.48, 0.03]), 40) == "[0.12 −0.48 0.03] (3)"
    assert vector(np.arange(9.0), 30) == "[0.00 1.00 2.00 3.00 …] (9)"
    assert bar(0.5, 50) == "█" * 10
    assert bar(0.525, 50) == "█" * 10 + "▌"
    assert weighted_sum(np.array([0.2, 0.62, 0.18]), "h") == "0.62·h_2 + 0.20·h_1 + 0.18·h_3"
    assert weighted_sum(np.array([0.3, 0.2, 0.2, 0.15, 0.15]), "h").endswith(" + …")
    assert weighted_sum(np.full(500, 0.002), "h") == "…"
    assert equation("c", np.array([1.0, 2.0]), 80) == ["  c = [1.00 2.00] (2)"]
    assert shortened("abcdef", 4) == "abc…"


@given(st.lists(st.text("ab漢é", min_size=1, max_size=6), max_size=30), st.integers(20, 60), st.integers(0, 6))
def test_folding_keeps_every_word_and_the_width(words: list[str], width: int, indent: int) -> None:
    lines = folded(" ".join(words), width, indent=indent)
    assert " ".join(lines).split() == words
    assert all(cells(line) <= width for line in lines)


@pytest.mark.parametrize("decoder", FLOWS)
def test_a_step_follows_the_flow(decoder: str) -> None:
    found = one(make(decoder=decoder), reference=GIVEN)
    lines = walkthrough(found, step=2).split("\n")
    starts = [line.split()[0] for line in lines if line.startswith("  ") and not line.startswith("   ")]
    assert starts == FLOWS[decoder].split()


@pytest.mark.parametrize("options", SYSTEMS, ids=str)
@pytest.mark.parametrize("width", [40, 80, 150])
def test_no_line_is_wider_than_the_terminal(options: dict[str, Any], width: int) -> None:
    found = one(make(**options))
    assert max(cells(line) for line in walkthrough(found, width=width).split("\n")) <= width


def shown(found: Trace, start: str) -> str:
    """The first line that begins so."""
    return next(line.strip() for line in walkthrough(found, width=120).split("\n") if line.strip().startswith(start))


def test_the_numbers_are_the_traces() -> None:
    found = one(make(decoder="luong"), reference=GIVEN)
    first = found.steps[0]
    assert shown(found, "s_1 =") == f"s_1 = LSTM([y_0; s̃_0], s_0) = {vector(first.tensors['s.1'], 60)}"
    alpha = first.tensors["alpha"]
    assert shown(found, "c_1 =").startswith(f"c_1 = Σ_j α_1,j h_j = {number(alpha.max())}·h_{alpha.argmax() + 1} + ")
    row = shown(found, "1 ▁the")
    assert row.endswith("(6)"), "the encoder's states come first"
    table = [line for line in walkthrough(found, step=1).split("\n") if " α " in line]
    assert len(table) == len(found.source.tokens)
    for line, score, weight in zip(table, first.tensors["e"].tolist(), alpha.tolist(), strict=True):
        assert f" e {number(score):>6} α {number(weight):>6}" in line


def test_the_choices_are_listed_and_the_one_taken_is_marked() -> None:
    found = one(make(decoder="luong"), reference=GIVEN, top_k=3)
    lines = walkthrough(found, step=1).split("\n")
    listed = lines[lines.index("  p(y_1) = softmax(W_y s̃_1 + b_y)") + 1 :]
    chosen = found.steps[0].chosen
    (mark,) = [line for line in listed if line.startswith("   ▸")]
    assert chosen.token in mark
    assert mark.endswith(f"ln p = {number(chosen.log_probability)} (given)")
    assert len(listed) == 3 + (not any(choice.chosen for choice in found.steps[0].top))


def test_the_score_is_written_out() -> None:
    found = one(make(decoder="classic"), reference="a", options=searching(alpha=1.0))
    own = [number(step.chosen.log_probability) for step in found.steps]
    assert len(own) == 3
    total, score = number(found.output.log_probability), number(found.output.score)
    minus = [value.replace("−", "− ") for value in own[1:]]
    terms = f"ln p(y_1) + ln p(y_2) + … = {' '.join([own[0], *minus])}"
    assert shown(found, "ln p =") == f"ln p = {terms} = {total}"
    # ((5 + 3) / 6)^1 = 1.333…
    divided = f"{total} / ((5 + 3) / 6)^1.00 = {total} / 1.33 = {score}"
    assert shown(found, "score =") == f"score = ln p / ((5 + n) / 6)^α = {divided}"


def test_what_is_edited_is_said() -> None:
    translator = make(decoder="bahdanau")
    found = one(translator, reference=GIVEN, edits=Edits("uniform", from_step=2))
    text = walkthrough(found, width=120)
    assert "edited: attention uniform from step 2" in text
    assert "α_1,j = exp(e_1,j)" in text
    assert "α_2,j replaced (uniform)" in text
    sides = compare(one(translator, reference=GIVEN), found, width=60).split("\n")
    assert [line.index("│") for line in sides] == [sides[0].index("│")] * len(sides)
    assert sides[0].split("│") == [pytest.approx("unedited".ljust(29)), " attention uniform from step"]
    assert all(cells(line) <= 60 for line in sides)


def test_a_step_that_is_not_there_is_refused() -> None:
    found = one(make(decoder="classic"), reference="")
    with pytest.raises(ConfigError, match="--step 2: no such step; this output has steps 1 to 1"):
        walkthrough(found, step=2)


def test_a_terminal_is_not_obeyed_by_tokens() -> None:
    found = one(make(decoder="luong"))
    tokens = ("\x1b[31m", *found.output.tokens[1:])
    assert "\x1b" not in walkthrough(found._replace(output=found.output._replace(tokens=tokens, text="\x1b[2J")))


def test_labels_of_a_map_have_no_marks() -> None:
    assert [margin(token) for token in ("▁the", "x", "▁", "</s>", "▁\x1b")] == ["the", "x", "▁", "</s>", "\\x1b"]
