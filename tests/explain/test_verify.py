"""`--verify`: what the file says is what the weights give, and no number of it can be altered."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from explain_tools import GIVEN, SENTENCE, WORD, make, searching
from mirada.errors import DataError
from mirada.explain.edits import Edits
from mirada.explain.record import document, plain
from mirada.explain.trace import trace
from mirada.explain.verify import SMALL, TOLERANCE, leaves, read_traces, summary, verify
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
    inner[place[-1]] = value + 1 if isinstance(value, int) else value + 3 * TOLERANCE * max(SMALL, abs(value))
    return copied


def is_refused(traces: list[dict[str, Any]], translator: Translator) -> bool:
    """Whether verification fails: with what differs, or because no such trace can be."""
    try:
        return any(verdict.faults for verdict in verify(traces, translator))
    except DataError:
        return True


@pytest.mark.slow
@pytest.mark.parametrize(("decoder", "score"), FAMILIES)
def test_every_systems_traces_agree_with_its_weights(decoder: str, score: str | None) -> None:
    for values in some_systems(decoder, score):
        translator = make(**values)
        traces = made(translator, prefix=GIVEN) + made(translator, WORD, reference=GIVEN)
        for verdict in verify(traces, translator):
            assert verdict.faults == [], values
            assert verdict.own.is_near
            assert verdict.own.logits < 1e-4


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
    (again, *_) = trace(translator, SENTENCE, options=options)
    compared = leaves(found, plain(again))
    assert {leaf.path for leaf in compared if is_number(leaf.found)} == set(numbers(found))


def test_what_differs_is_named_with_step_and_values() -> None:
    translator = make(decoder="luong")
    traces = made(translator)
    right = traces[0]["steps"][1]["tensors"]["alpha"][2]
    traces[0]["steps"][1]["tensors"]["alpha"][2] = 0.75
    verdicts = verify(traces, translator)
    (fault,) = verdicts[0].faults
    assert (fault.name, fault.where, fault.found) == ("alpha", "step 2, alpha[3]", 0.75)
    assert fault.expected == right
    assert fault.difference == pytest.approx((0.75 - right) / right)
    rows = {row.name: row for row in summary(verdicts)}
    assert rows["alpha"].difference == rows["all"].difference == fault.difference
    assert rows["all"].values == sum(row.values for name, row in rows.items() if name != "all")


@pytest.mark.parametrize("value", [float("nan"), float("inf"), None, "0.5", True, [0.5]])
def test_what_is_no_number_does_not_pass_for_one(value: object) -> None:
    translator = make(decoder="luong")
    traces = made(translator)
    traces[0]["output"]["score"] = value
    assert is_refused(traces, translator)


CHANGES: dict[str, Callable[[list[Any]], Any]] = {
    "another output": lambda traces: traces[0]["output"].update(text="something else"),
    "words after the text": lambda traces: traces[0]["source"].update(text=traces[0]["source"]["text"] + " and a cat"),
    "a shorter text": lambda traces: traces[0]["source"].update(text="the red fox"),
    "a step less": lambda traces: traces[0]["steps"].pop(),
    "no scores": lambda traces: traces[0]["steps"][0]["tensors"].pop("e"),
    "choices in another order": lambda traces: traces[0]["steps"][0]["top"].reverse(),
    "another symbol": lambda traces: traces[0]["legend"]["alpha"].update(symbol="β"),
    "another method": lambda traces: traces[0].update(method="greedy, alpha 0.6"),
    "another search": lambda traces: traces[0]["asked"]["search"].update(beam_size=1),
    "a token said to be given": lambda traces: traces[0]["steps"][0].update(given=True),
    "a token given": lambda traces: traces[0]["asked"].update(given=traces[0]["output"]["ids"][:1]),
    "a whole output": lambda traces: traces[0]["asked"].update(whole=True),
    "another rank": lambda traces: traces[0].update(rank=2),
    "the last trace is gone": lambda traces: traces.pop(),
    "the first trace is gone": lambda traces: traces.pop(0),
    "a trace twice": lambda traces: traces.append(traces[-1]),
    "traces in another order": lambda traces: traces.reverse(),
    "a number for a flag": lambda traces: traces[0]["output"].update(finished=int(traces[0]["output"]["finished"])),
    "a fraction for a count": lambda traces: traces[0].update(rank=1.0),
    "a count for a fraction": lambda traces: traces[0]["output"].update(penalty=1),
    "a text for a number": lambda traces: traces[0]["output"].update(score=str(traces[0]["output"]["score"])),
    "a number of 400 digits": lambda traces: traces[0].update(rank=10**400),
    "a fraction of 400 digits": lambda traces: traces[0]["output"].update(score=10**400),
    "one field more": lambda traces: traces[0].update(more=1),
    "one field less": lambda traces: traces[0].pop("legend"),
    "an intervention": lambda traces: traces[0]["asked"].update(edits=edited(attention="uniform", from_step=1)),
    "a small weight": lambda traces: traces[0]["steps"][0]["tensors"]["alpha"].__setitem__(0, 1e-5),
}


def edited(**values: Any) -> dict[str, Any]:
    return {**Edits()._asdict(), **values}


@pytest.mark.parametrize("change", CHANGES)
def test_whatever_else_is_changed_is_seen(change: str, tmp_path: Path) -> None:
    """By what follows from the weights, and by the fingerprint alone."""
    translator = make(decoder="bahdanau")
    traces = made(translator)
    assert len(traces) == 2
    text = document(trace(translator, SENTENCE, options=searching(**SHORT)))
    CHANGES[change](traces)
    assert is_refused(traces, translator)
    file = tmp_path / "traces.json"
    file.write_text(json.dumps({**json.loads(text), "traces": traces}))
    assert not traces or not read_traces(file).is_whole


IMPOSSIBLE: dict[str, tuple[dict[str, Any], str]] = {
    "no such kind": (edited(attention="sideways", from_step=1), "no edits: "),
    "no field": ({"attention": "uniform"}, "no edits: "),
    "an edge without ends": (edited(attention="edge"), "no edits: "),
    "ends of an edge that are none": (edited(attention="edge", edge=[1]), "no edits: "),
    "no such source token": (edited(attention="edge", edge=[1, 99]), "no such source token; they are 1 to"),
    "no such step": (edited(attention="uniform", from_step=99), "no such step; the unedited output has steps 1 to"),
    "a head of another system": (edited(drop_head=[1, 1]), "a bahdanau model has no heads"),
    "no flag": (edited(no_input_feeding=1), "no edits: "),
    "another field": ({**edited(), "magic": 1}, "unexpected keyword argument"),
}


@pytest.mark.parametrize("name", IMPOSSIBLE)
def test_an_intervention_that_cannot_be_is_one_clear_line(name: str) -> None:
    edits, message = IMPOSSIBLE[name]
    translator = make(decoder="bahdanau")
    traces = made(translator)
    traces[0]["asked"]["edits"] = edits
    with pytest.raises(DataError, match=f"^trace 1: not a trace of this model .*{message}") as error:
        verify(traces, translator)
    assert "\n" not in str(error.value)


def test_a_model_that_computes_something_else_is_seen() -> None:
    """The numbers of the file are the equations'; the model's own are held against them."""
    translator = make(decoder="luong")
    (right, *_) = verify(made(translator), translator)
    assert right.own.is_near
    step = translator.model.step

    def wrong(token: Any, state: Any, memory: Any) -> Any:
        made_step = step(token, state, memory)
        return made_step._replace(logits=made_step.logits + 0.01)  # no choice changes, no probability

    translator.model.step = wrong
    (found, *_) = verify(made(translator), translator)
    assert (found.faults, found.own.is_near) == ([], False)
    assert found.own.logits > 1e-3


def test_another_models_trace_does_not_pass() -> None:
    assert is_refused(made(make(decoder="luong", seed=1)), make(decoder="luong", seed=2))
    assert is_refused(made(make(decoder="luong")), make(decoder="bahdanau"))


WHOLE = '{"format": "mirada-trace", "version": 3, "fingerprint": "", "traces": [{}]}'


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "not JSON"),
        ("[]", "no traces in it; expected a file of `mirada explain --format json`"),
        ('{"format": "mirada-trace", "version": 1}', "version 1, this mirada reads version 3; make the file anew"),
        (WHOLE.replace("[{}]", "[]"), "it holds no traces"),
        (WHOLE.replace("[{}]", "3"), "it holds no traces"),
        (WHOLE.replace('"fingerprint": "", ', ""), r"its fields are not .* \(see fingerprint\)"),
        (WHOLE.replace("}]}", '}], "more": 1}'), r"its fields are not .* \(see more\)"),
        (WHOLE.replace("{}", "[" * 100_000 + "]" * 100_000), "not JSON"),
        (WHOLE.replace("{}", "9" * 5000), "not JSON"),
    ],
    ids=["begun", "a list", "old", "empty", "a number", "a field less", "a field more", "deep", "long"],
)
def test_a_file_without_traces_is_refused(tmp_path: Path, content: str, message: str) -> None:
    file = tmp_path / "traces.json"
    file.write_text(content)
    with pytest.raises(DataError, match=f"traces.json: {message}"):
        read_traces(file)


def test_a_pipe_and_a_folder_are_no_files_of_traces(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", tmp_path):
        with pytest.raises(DataError, match=r"cannot be read \((is no regular file|Is a directory)\)$"):
            read_traces(path)


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"none\.json: cannot be read"):
        read_traces(tmp_path / "none.json")


BROKEN = {"source": {"text": "a"}, "asked": {}, "rank": 1}
ASKED = {"search": {}, "given": [], "whole": False, "edits": None, "listed": 5}


@pytest.mark.parametrize(
    "broken",
    [
        {},
        [],
        None,
        {"source": 3},
        BROKEN,
        {**BROKEN, "source": 3, "asked": ASKED},
        {**BROKEN, "source": {"text": 3}, "asked": ASKED},
        {**BROKEN, "source": {"text": ""}, "asked": ASKED},
        {**BROKEN, "asked": [ASKED]},
        {**BROKEN, "asked": {**ASKED, "search": {"beam_size": 0}}},
        {**BROKEN, "asked": {**ASKED, "search": {"magic": 1}}},
        {**BROKEN, "asked": {**ASKED, "search": 3}},
        {**BROKEN, "asked": {**ASKED, "given": [10**400]}},
        {**BROKEN, "asked": {**ASKED, "given": ["a"]}},
        {**BROKEN, "asked": {**ASKED, "given": 3}},
        {**BROKEN, "asked": {**ASKED, "listed": "5"}},
        {**BROKEN, "asked": {**ASKED, "edits": [1]}},
    ],
    ids=str,
)
def test_what_has_not_the_shape_of_a_trace_is_refused(broken: Any) -> None:
    with pytest.raises(DataError, match=r"^trace 1: not a trace") as error:
        verify([broken], make(decoder="luong"))
    assert "\n" not in str(error.value)
