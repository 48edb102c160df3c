"""Corpora of other jobs: SCAN by its paper's examples and counts, inflection by grammar, stories by following them."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from cli_tools import refusal, works
from mirada.corpora import scan
from mirada.corpora.inflection import FORMS, inflections
from mirada.corpora.jobs import KINDS
from mirada.corpora.stories import KINDS as QUESTIONS
from mirada.corpora.stories import PEOPLE, ROOMS, THINGS, stories
from mirada.errors import DataError

# Lake & Baroni 2018, figure 1, and two of its rules by hand; I_ and TURN as in the published files.
EXAMPLES = {
    "jump": "JUMP",
    "jump left": "LTURN JUMP",
    "jump around right": "RTURN JUMP RTURN JUMP RTURN JUMP RTURN JUMP",
    "turn left twice": "LTURN LTURN",
    "jump thrice": "JUMP JUMP JUMP",
    "jump opposite left and walk thrice": "LTURN LTURN JUMP WALK WALK WALK",
    "jump opposite left after walk around left": "LTURN WALK LTURN WALK LTURN WALK LTURN WALK LTURN LTURN JUMP",
    "turn around right": "RTURN RTURN RTURN RTURN",
    "turn opposite left": "LTURN LTURN",
}
TURNED = ("left", "right", "opposite", "around")


def test_scan_says_what_its_paper_says():
    found = dict(scan.commands())
    short = {"I_TURN_LEFT": "LTURN", "I_TURN_RIGHT": "RTURN"}
    for command, actions in EXAMPLES.items():
        assert " ".join(short.get(a, a.removeprefix("I_")) for a in found[command].split()) == actions


def test_scan_is_whole():
    # 34 verbs, three times as many clauses, and two ways to join two of them: 102 + 2 · 102² = 20,910. The longest
    # output is "around … thrice" twice: 2 · 3 · 8 = 48 actions.
    rows = scan.commands()
    assert len(rows) == len({command for command, _ in rows}) == 20910
    lengths = [len(actions.split()) for _, actions in rows]
    assert (min(lengths), max(lengths)) == (1, 48)
    words = {word for command, _ in rows for word in command.split()}
    assert words == {*TURNED, *"walk look run jump turn twice thrice and after".split()}  # noqa: SIM905


def test_splits_of_scan_are_the_papers():
    split = scan.simple(1)
    assert [len(part) for part in split] == [16728 - 1673, 1673, 4182]
    assert len({row for part in split for row in part}) == 20910
    split = scan.by_length(1)
    assert (len(split.train) + len(split.dev), len(split.test)) == (16990, 3920)
    assert max(len(actions.split()) for _, actions in split.train) == 22
    assert min(len(actions.split()) for _, actions in split.test) == 24
    split = scan.jump(1)
    assert len(split.test) == 7706
    assert {command for command, _ in split.train + split.dev if "jump" in command} == {"jump"}
    alone = Counter(split.train)["jump", "I_JUMP"] / len(split.train)
    assert alone == pytest.approx(0.1, abs=1e-3)
    assert scan.simple(1) != scan.simple(2)


def test_inflections_are_of_verbs_never_seen():
    split = inflections(600, 1)
    assert len(split.train) == 600
    lemmas = [{lemma for lemma, _, _ in part} for part in split]
    assert not lemmas[0] & lemmas[1] | lemmas[0] & lemmas[2] | lemmas[1] & lemmas[2]
    assert len(split.test) == FORMS * len(lemmas[2])
    endings = {"ar": ("o", "é", "aba"), "er": ("o", "í", "ía"), "ir": ("o", "í", "ía")}
    for lemma, features, form in split.test:
        if features.endswith("1;SG"):
            place = ("V;IND;PRS;1;SG", "V;IND;PST;PFV;1;SG", "V;IND;PST;IPFV;1;SG").index(features)
            stem = lemma[:-2]
            spelt = re.sub("c$", "qu", re.sub("g$", "gu", stem)) if place == 1 and lemma.endswith("ar") else stem
            assert form == spelt + endings[lemma[-2:]][place]


def answer(story: str, question: str) -> str:
    """Follow a story to its end, and answer."""
    places, carried = {}, {}
    for sentence in story.rstrip(".").split(". "):
        name, verb, *_, last = sentence.split()
        if last in ROOMS:
            places[name] = last
        elif verb == "took":
            carried[last], places[last] = name, places[name]
        else:
            assert verb == "left"
            assert carried.pop(last) == name
        places.update({thing: places[holder] for thing, holder in carried.items()})
    words = question.rstrip("?").split()
    if words[0] == "Where":
        return places[words[-1]]
    return "yes" if places[words[1]] == words[-1] else "no"


def test_every_answer_follows_from_its_story():
    split = stories(600, 1)
    rows = [row for part in split for row in part]
    assert [len(part) for part in split] == [600, 90, 90]
    assert len(set(rows)) == len(rows)
    for kind, story, question, expected in rows:
        assert answer(story, question) == expected
        assert (expected in ("yes", "no")) == (kind == "yes-no")
        assert question.split()[-1].rstrip("?") in {"person": PEOPLE, "thing": THINGS, "yes-no": ROOMS}[kind]
    assert set(Counter(row[0] for row in split.train)) == set(QUESTIONS)
    yes = Counter(row[3] for row in split.train if row[0] == "yes-no")
    assert 0.4 < yes["yes"] / yes.total() < 0.7


@pytest.mark.parametrize("make", [inflections, stories])
def test_a_seed_makes_the_same_again(make):
    assert make(300, 1) == make(300, 1)
    assert make(300, 1) != make(300, 2)


@pytest.mark.parametrize("kind", KINDS)
def test_the_command_writes_three_tables(kind, tmp_path):
    out = tmp_path / "corpus"
    fewer = [] if kind.startswith("scan") else ["--pairs", 60]
    made = works("data", "make", "--kind", kind, "--out", out, *fewer).lines
    assert made == [str(out / f"{name}.tsv") for name in ("train", "dev", "test")]
    columns = {line.count("\t") + 1 for path in out.iterdir() for line in path.read_text().splitlines()}
    assert columns == {{"inflection": 3, "stories": 4}.get(kind, 2)}
    said = f"{made[0]}: exists; choose another folder, or force (--force) to overwrite it"
    assert refusal("data", "make", "--kind", kind, "--out", out, *fewer) == said
    works("data", "make", "--kind", kind, "--out", out, *fewer, "--force")


def test_what_cannot_be_made_is_refused(tmp_path):
    out = ("--out", tmp_path / "x")
    assert refusal("data", "make", *out, "--kind", "scan", "--pairs", 5) == (
        "--pairs does nothing with --kind scan: its grammar has 20,910 commands, all are made"
    )
    assert refusal("data", "make", *out, "--kind", "stories", "--max-words", 5) == (
        "--max-words goes with --kind translation; with stories it would change nothing"
    )
    assert refusal("data", "make", *out, "--kind", "inflection", "--pairs", 5) == (
        "the inflections are 15 to 30000 training pairs, got 5"
    )
    (tmp_path / "file").write_text("")
    said = refusal("data", "make", "--kind", "scan", "--out", tmp_path / "file")
    assert said == f"{tmp_path / 'file'}: cannot be made a folder (File exists); choose another one"
    with pytest.raises(DataError, match=r"^the stories are 1 to 100,000 training pairs, got 0$"):
        stories(0, 1)
    assert not (tmp_path / "x").exists()
