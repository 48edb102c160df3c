"""SCAN: commands and the actions they stand for, all 20,910 of them (Lake & Baroni 2018, figures 6 and 7).

A command is one or two clauses ("walk left twice and jump"); its actions are a function of it, so every pair is right
by the paper's rules, and no file is needed. The splits are the paper's experiments 1, 2 and 3.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from random import Random

from mirada.corpora.tables import Row, Tables

ACTS = {"walk": "I_WALK", "look": "I_LOOK", "run": "I_RUN", "jump": "I_JUMP"}
TURNS = {"left": "I_TURN_LEFT", "right": "I_TURN_RIGHT"}
TEST_SHARE, DEV_SHARE = 0.2, 0.1  # of all commands, and of those for training (the paper has no dev set)
LONGEST_TRAINED = 22  # actions, in the split by length; the test's have 24 to 48
JUMP_SHARE = 0.1  # of the training pairs of the split "jump" are the bare primitive, as in the published files


def commands() -> list[Row]:
    """Return every command with its actions, in the order of the grammar."""
    clauses = _clauses()
    joined = {"and": lambda a, b: a + b, "after": lambda a, b: b + a}
    rows: list[Row] = [(command, " ".join(actions)) for command, actions in clauses.items()]
    for (first, a), word, (second, b) in product(clauses.items(), joined, clauses.items()):
        rows.append((f"{first} {word} {second}", " ".join(joined[word](a, b))))
    return rows


def _clauses() -> dict[str, list[str]]:
    """S → V, V twice, V thrice."""
    times = {"": 1, " twice": 2, " thrice": 3}
    return {verb + word: actions * count for verb, actions in _verbs().items() for word, count in times.items()}


def _verbs() -> dict[str, list[str]]:
    """V → U, U left, U opposite left, U around left: an act, a turn before it, two turns, or four with it."""
    found = {word: [act] for word, act in ACTS.items()}
    for (side, turn), (word, act) in product(TURNS.items(), {**ACTS, "turn": ""}.items()):
        done = [act] if act else []
        found[f"{word} {side}"] = [turn, *done]
        found[f"{word} opposite {side}"] = [turn, turn, *done]
        found[f"{word} around {side}"] = [turn, *done] * 4
    return found


def simple(seed: int) -> Tables:
    """Split at random, a fifth for the test (experiment 1)."""
    rows = commands()
    Random(seed).shuffle(rows)
    held = round(TEST_SHARE * len(rows))
    return _with_dev(rows[held:], rows[:held])


def by_length(seed: int) -> Tables:
    """Train on up to 22 actions, test on the longer ones (experiment 2)."""
    return _apart(lambda command, actions: actions.count(" ") + 1 > LONGEST_TRAINED, seed)


def jump(seed: int) -> Tables:
    """Train on "jump" alone and all without it, test on every other command with it (experiment 3)."""
    split = _apart(lambda command, actions: "jump" in command and command != "jump", seed)
    alone = ("jump", ACTS["jump"])
    others = [row for row in split.train if row != alone]
    train = others + [alone] * round(len(others) * JUMP_SHARE / (1 - JUMP_SHARE))
    Random(seed).shuffle(train)
    return split._replace(train=train, dev=[row for row in split.dev if row != alone])


def _apart(is_test: Callable[[str, str], bool], seed: int) -> Tables:
    rows = commands()
    Random(seed).shuffle(rows)
    return _with_dev([row for row in rows if not is_test(*row)], [row for row in rows if is_test(*row)])


def _with_dev(train: Sequence[Row], test: Sequence[Row]) -> Tables:
    held = round(DEV_SHARE * len(train))
    return Tables(list(train[held:]), list(train[:held]), list(test))
