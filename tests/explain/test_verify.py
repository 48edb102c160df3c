"""`--verify`: what the file says is what the weights give, and no number of it can be altered."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from explain_tools import GIVEN, SENTENCE, WORD, make, searching
from mirada.errors import DataError
from mirada.explain.edits import Edits
from mirada.explain.recompute import recompute, weights_of
from mirada.explain.record import document
from mirada.explain.trace import trace
from mirada.explain.verify import TOLERANCE, leaves, read_traces, summary, verify
from mirada.translator import Translator
from systems import FAMILIES, some_systems

Place = tuple[str | int, ...]
SHORT = {"max_output_length": 3, "n_best": 2}
EDITED = {
    "luong": [Edits(attention="uniform"), Edits(attention="shuffled", seed=4), Edits(no_input_feeding=True)],
    "bahdanau": [Edits(attention="diagonal", from_step=2), Edits(attention="edge", edge=(2, 1))],
    "transformer": [Edits(attention="shuffled", from_step=2), Edits(attention="uniform", drop_head=(1, 2))],
}


def made(translator: Translator, text: str = SENTENCE, **arguments: Any) -> list[dict[str, Any]]:
    """Traces as a file gives them back."""
    traces = trace(translator, text, options=searching(**SHORT), **arguments)
    found: list[dict[str, Any]] = json.loads(document(traces))["traces"]
    return found


def is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def numbers(value: object, place: Place = ()) -> list[Place]:
    """Where the numbers of a structure are."""
    if isinstance(value, dict):
        return [found for key, part in value.items() for found in numbers(part, (*place, key))]
    if isinstance(value, list):
        return [found for i, part in enumerate(value) for found in numbers(part, (*place, i))]
    return [place] if is_number(value) else []


def name_of(place: Place) -> str:
    return ".".join(part for part in place if isinstance(part, str))


def altered(traces: list[dict[str, Any]], place: Place) -> list[dict[str, Any]]:
    """A copy in which one number of the first trace is a little larger."""
    copied: list[dict[str, Any]] = json.loads(json.dumps(traces))
    inner: Any = copied[0]
    for part in place[:-1]:
        inner = inner[part]
    value = inner[place[-1]]
    inner[place[-1]] = value + 1 if isinstance(value, int) else value + 3 * TOLERANCE * max(1, abs(value))
    return copied


def is_refused(traces: list[dict[str, Any]], translator: Translator) -> bool:
    """Whether verification fails: with what differs, or because no such trace can be."""
    try:
        return any(verdict.faults for verdict in verify(traces, translator))
    except DataError:
        return True


@pytest.mark.parametrize(("decoder", "score"), FAMILIES)
def test_every_systems_traces_agree_with_its_weights(decoder: str, score: str | None) -> None:
    for values in some_systems(decoder, score):
        translator = make(**values)
        traces = made(translator, prefix=GIVEN) + made(translator, WORD, reference=GIVEN)
        for verdict in verify(traces, translator):
            assert verdict.faults == [], values
            assert max(leaf.difference for leaf in verdict.worst.values()) < TOLERANCE / 10


@pytest.mark.parametrize("decoder", EDITED)
def test_edited_traces_agree_with_the_edited_weights(decoder: str) -> None:
    translator = make(decoder=decoder, dec_layers=2, enc_layers=2)
    for edits in EDITED[decoder]:
        for verdict in verify(made(translator) + made(translator, edits=edits), translator):
            assert verdict.faults == []


@pytest.mark.parametrize(
    "options",
    [
        {"decoder": "classic", "feed_context": True},
        {"decoder": "bahdanau", "rnn_type": "gru", "readout": "deep"},
        {"decoder": "luong", "dec_layers": 2},
        {"decoder": "transformer"},
    ],
    ids=lambda options: options["decoder"],
)
def test_no_number_can_be_altered(options: dict[str, Any]) -> None:
    """One of each name is altered and the whole file verified; that every number is compared is the next test's."""
    translator = make(**options)
    edits = Edits(attention="uniform", from_step=2) if options["decoder"] != "classic" else None
    traces = made(translator, WORD, edits=edits)
    assert not is_refused(traces, translator)
    last_of_each_name = {name_of(place): place for place in numbers(traces[0])}
    for name, place in last_of_each_name.items():
        assert is_refused(altered(traces, place), translator), name


def test_every_number_is_compared(translator: Translator) -> None:
    options = translator.config.search
    (found, *_) = json.loads(document(trace(translator, SENTENCE, options=options)))["traces"]
    compared = leaves(found, recompute(found, 1, translator, weights_of(translator)))
    assert {leaf.path for leaf in compared if is_number(leaf.found)} == set(numbers(found))


def test_what_differs_is_named_with_step_and_values() -> None:
    translator = make(decoder="luong")
    traces = made(translator)
    right = traces[0]["steps"][1]["tensors"]["alpha"][2]
    traces[0]["steps"][1]["tensors"]["alpha"][2] = 0.75
    verdicts = verify(traces, translator)
    (fault,) = verdicts[0].faults
    assert (fault.name, fault.where, fault.found) == ("alpha", "step 2, alpha[3]", 0.75)
    assert fault.expected == pytest.approx(right, abs=1e-6)
    assert fault.difference == pytest.approx(0.75 - right, abs=1e-6)
    rows = {row.name: row for row in summary(verdicts)}
    assert rows["alpha"].difference == rows["all"].difference == fault.difference
    assert rows["all"].values == sum(row.values for name, row in rows.items() if name != "all")


@pytest.mark.parametrize("value", [float("nan"), float("inf"), None, "0.5", True, [0.5]])
def test_what_is_no_number_does_not_pass_for_one(value: object) -> None:
    translator = make(decoder="luong")
    traces = made(translator)
    traces[0]["output"]["score"] = value
    assert is_refused(traces, translator)


def test_words_and_steps_are_compared_too() -> None:
    translator = make(decoder="bahdanau")
    for change in (
        lambda found: found["output"].update(text="something else"),
        lambda found: found["source"].update(text=found["source"]["text"] + "s"),
        lambda found: found["steps"].pop(),
        lambda found: found["steps"][0]["tensors"].pop("e"),
        lambda found: found["steps"][0]["top"].reverse(),
        lambda found: found["legend"]["alpha"].update(symbol="β"),
        lambda found: found.update(edits={**Edits()._asdict(), "attention": "uniform", "from_step": 1}),
    ):
        traces = made(translator)
        change(traces[0])
        assert is_refused(traces, translator)


def test_another_models_trace_does_not_pass() -> None:
    assert is_refused(made(make(decoder="luong", seed=1)), make(decoder="luong", seed=2))
    assert is_refused(made(make(decoder="luong")), make(decoder="bahdanau"))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "not JSON"),
        ("[]", "no traces in it; expected a file of `mirada explain --format json`"),
        ('{"format": "mirada-trace", "version": 7}', "version 7, this mirada reads version 1"),
        ('{"format": "mirada-trace", "version": 1, "traces": []}', "it holds no traces"),
    ],
)
def test_a_file_without_traces_is_refused(tmp_path: Path, content: str, message: str) -> None:
    file = tmp_path / "traces.json"
    file.write_text(content)
    with pytest.raises(DataError, match=f"traces.json: {message}"):
        read_traces(file)


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"none\.json: cannot be read"):
        read_traces(tmp_path / "none.json")


@pytest.mark.parametrize("broken", [{}, {"source": 3}, [], None])
def test_what_has_not_the_shape_of_a_trace_is_refused(broken: Any) -> None:
    with pytest.raises(DataError, match="trace 1: not a trace of this model"):
        verify([broken], make(decoder="luong"))
