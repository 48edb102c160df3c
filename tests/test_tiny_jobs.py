"""One tiny job of each kind, solved by the command line with no options but the files, and the time that a test has.

Letters and features (inflection), answers to questions, commands to actions, and translation: tokens, sizes and the
rest are chosen from the data.
"""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from itertools import product
from pathlib import Path

import pytest

from cli_tools import works, write
from mirada.corpora import scan
from mirada.corpora.inflection import invented
from mirada.corpora.morphology import conjugate

# Sizes and length by the number of pairs: without them these jobs take minutes each.
pytest.importorskip("mirada.train.choices", reason="sizes are not chosen from the data")

Rows = list[tuple[str, ...]]
DEV, TEST = 20, 50


def inflection(draw: random.Random) -> Rows:
    """Four forms of 60 verbs: lemma, features, form."""
    verbs = [verb for verb in invented(120, draw) if verb.endswith("ar")][:60]
    features = [f"IND;{tense};{person}" for tense in ("PRS", "PST") for person in (1, 2)]
    return [
        (verb, feature, form)
        for verb in verbs
        for feature, form in zip(
            features, conjugate(verb, "present")[:2] + conjugate(verb, "preterite")[:2], strict=True
        )
    ]


def answers(draw: random.Random) -> Rows:
    """Somebody goes somewhere; where to: story, question, answer."""
    names, places = ("Mary", "John", "Sandra", "Daniel"), ("kitchen", "garden", "office", "hallway", "bedroom")
    words = (("went", "moved", "walked"), ("then", "later", "now"), names, places)
    return [
        (f"{name} {verb} to the {place} {when}.", f"Where is {name}?", place)
        for verb, when, name, place in product(*words)
    ]


def commands(draw: random.Random) -> Rows:
    """SCAN without turns: "walk twice after jump"."""
    clauses = {
        f"{verb}{word}": " ".join([act] * count)
        for verb, act in scan.ACTS.items()
        for word, count in (("", 1), (" twice", 2), (" thrice", 3))
    }
    pairs = list(product(clauses.items(), repeat=2))
    rows = [(f"{a} and {b}", f"{x} {y}") for (a, x), (b, y) in pairs]
    return rows + [(f"{a} after {b}", f"{y} {x}") for (a, x), (b, y) in pairs]


NOUNS = {"cat": ("el", "gato", 0), "house": ("la", "casa", 1), "dog": ("el", "perro", 0), "table": ("la", "mesa", 1)}
ADJECTIVES = {"red": ("rojo", "roja"), "old": ("viejo", "vieja"), "small": ("pequeño", "pequeña")}
VERBS = {"sees": "ve", "finds": "encuentra", "wants": "quiere"}


def translation(draw: random.Random) -> Rows:
    """Word order and agreement: The old cat sees the red house. El gato viejo ve la casa roja."""
    phrases = [
        (f"the {adjective} {noun}", f"{article} {word} {forms[gender]}")
        for (noun, (article, word, gender)), (adjective, forms) in product(NOUNS.items(), ADJECTIVES.items())
    ]
    return [
        (f"{a} {verb} {b}.".capitalize(), f"{x} {VERBS[verb]} {y}.".capitalize())
        for (a, x), verb, (b, y) in product(phrases, VERBS, phrases)
    ]


# What makes the rows, the columns, the updates that a test has, and how much of the test must be right.
JOBS = {
    "inflection": (inflection, ("1,2", "3"), 450, 80),
    "answers": (answers, ("1,2", "3"), 300, 90),
    "commands": (commands, ("1", "2"), 250, 90),
    "translation": (translation, ("1", "2"), 450, 80),
}


def files(rows: Sequence[tuple[str, ...]], folder: Path) -> list[Path]:
    """Write train, dev and test."""
    lines = ["\t".join(row) for row in rows]
    parts = {"test": lines[:TEST], "dev": lines[TEST : TEST + DEV], "train": lines[TEST + DEV :]}
    return [write(folder / f"{name}.tsv", parts[name]) for name in ("train", "dev", "test")]


@pytest.mark.parametrize(
    "job", [job if job == "answers" else pytest.param(job, marks=pytest.mark.slow) for job in JOBS]
)
def test_a_job_is_solved_with_no_options(job, tmp_path):
    make, (source, target), updates, least = JOBS[job]
    draw = random.Random(1)
    rows = make(draw)
    draw.shuffle(rows)
    train, dev, test = files(rows, tmp_path)
    columns = ("--source-column", source, "--target-column", target)
    model = tmp_path / "model"
    works("train", "--tsv", train, "--dev-tsv", dev, *columns, "--model-dir", model, "--max-updates", updates)
    ran = works("evaluate", model, "--tsv", test, *columns, "--metrics", "exact", "--json")
    (exact,) = json.loads(ran.output)["metrics"]
    assert exact["value"] >= least, ran.errors
