"""Pairs such as a child's book has them, for the tiny models of import_*.py."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

NAMES = ["Ana", "Tom", "Lucía", "Zoë"]
VERBS = {"sees": "ve", "reads": "lee", "likes": "quiere", "sold": "vendió", "doesn't find": "no encuentra"}
THINGS = {"house": "casa", "tree": "árbol", "red fox": "zorro rojo", "cat": "gato", "book": "libro", "river": "río"}
MORE = {"and": "y", "or": "o", "near": "cerca de"}

LIMIT = 8  # words of a greedy output, </s> not counted


def sentences(seed: int, count: int) -> list[tuple[str, str]]:
    """Tokenised pairs, all different; a few words are rare."""
    draw, found = random.Random(seed), dict[str, str]()
    while len(found) < count:
        name, verb, more = draw.choice(NAMES), draw.choice(list(VERBS)), draw.choice(list(MORE))
        one, other = draw.choice(list(THINGS)), draw.choice(list(THINGS))
        rest = (f" {more} {other}", f" {MORE[more]} {THINGS[other]}") if draw.random() < 0.6 else ("", "")
        last = draw.choice([" .", " !", f" {draw.randrange(40)} ."])
        found[f"{name} {verb} the {one}{rest[0]}{last}"] = f"{name} {VERBS[verb]} la {THINGS[one]}{rest[1]}{last}"
    return list(found.items())


def vocabulary(texts: Sequence[str]) -> list[str]:
    """The words that are there more than once, the most frequent ones first."""
    return [word for word, times in Counter(" ".join(texts).split()).most_common() if times > 1]


def greedy(logits: Callable[[str, list[int]], Any], source: str, *, start: int, end: int) -> list[int]:
    """The greedy output of a source, with </s> where it comes in time; `logits` are those after each word so far."""
    written = [start]
    while len(written) < LIMIT + 2 and (len(written) == 1 or written[-1] != end):
        written.append(int(logits(source, written)[-1].argmax()))
    return written[1:] if written[-1] == end else written[1 : LIMIT + 1]


def until_outputs_differ(folder: Path, shake: Callable[[int], None], rows: Callable[[str, str], Any]) -> None:
    """Write what a toolkit says of the first random weights with which outputs say something of the sources."""
    for seed in range(1, 100):
        shake(seed)
        if write_expected(folder, rows) > 14:
            return
    raise SystemExit(f"{folder}: no seed makes outputs that differ")


def write_expected(folder: Path, rows: Callable[[str, str], dict[str, Any]], *, most: int = 50) -> int:
    """What a toolkit says about some pairs: `rows` gives log-probabilities and the greedy output of one.

    Returns how many different outputs there are.
    """
    pairs = []
    for source, target in sentences(2, most):
        tokens = {"source_tokens": [*source.split(), "</s>"], "target_tokens": [*target.split(), "</s>"]}
        pairs.append({"source": source, "target": target, **tokens, **rows(source, target)})
    text = json.dumps({"limit": LIMIT, "pairs": pairs}, ensure_ascii=False, separators=(",", ":"))
    (folder / "expected.json").write_text(text.replace('},{"source"', '},\n{"source"') + "\n", encoding="utf-8")
    return len({tuple(pair["greedy"]) for pair in pairs})
