"""Inflection: lemma and features to the form, of invented Spanish verbs (morphology.py conjugates them).

The verbs of train, dev and test are different ones, so a model must have learned endings and spelling, and copy stems
it has never seen. Features are UniMorph's (Sylak-Glassman 2016): V;IND;PRS;1;SG.
"""

from __future__ import annotations

from random import Random

from mirada.corpora.morphology import conjugate
from mirada.corpora.tables import Row, Tables
from mirada.errors import DataError

TENSES = {"present": "PRS", "preterite": "PST;PFV", "imperfect": "PST;IPFV"}
PERSONS = ("1;SG", "2;SG", "3;SG", "1;PL", "3;PL")
ONSETS = ("b", "c", "d", "f", "g", "l", "m", "n", "p", "r", "s", "t", "v", "br", "cl", "dr", "fl", "pl", "tr")
CODAS = ("", "", "", "n", "r", "s", "l")
LAST = ("b", "c", "d", "g", "l", "m", "n", "p", "r", "s", "t", "v", "nd", "rt", "lg", "nc")
ENDINGS = ("ar", "ar", "ar", "er", "ir")
FORMS = len(TENSES) * len(PERSONS)
MOST = 2000  # verbs in a corpus: enough for a model, and few enough to be all different


def inflections(pairs: int, seed: int) -> Tables:
    """Make `pairs` training rows (lemma, features, form), and a tenth of that, at least 150, for dev and for test.

    Raises DataError for fewer rows than one verb has, or more than there are.
    """
    if not FORMS <= pairs <= MOST * FORMS:
        raise DataError(f"the inflections are {FORMS} to {MOST * FORMS} training pairs, got {pairs}")
    held = max(10, round(pairs / FORMS / 10))
    verbs = invented(-(-pairs // FORMS) + 2 * held, Random(seed))
    test, dev, train = verbs[:held], verbs[held : 2 * held], verbs[2 * held :]
    rows = _rows(train)
    Random(seed).shuffle(rows)
    return Tables(rows[:pairs], _rows(dev), _rows(test))


def invented(count: int, draw: Random) -> list[str]:
    """Return infinitives that no dictionary holds, all different: merondar, tirpir."""
    found: dict[str, None] = {}
    while len(found) < count:
        first = draw.choice(ONSETS) + draw.choice("aeiou") + draw.choice(CODAS)
        middle = draw.choice(ONSETS) + draw.choice("aeiou") if draw.random() < 0.6 else ""
        ending = draw.choice(ENDINGS)
        # c and g before e or i would be another sound, and the conjugation another: those end in -ar only.
        last = draw.choice([one for one in LAST if ending == "ar" or one[-1] not in "cg"])
        found[first + middle + last + ending] = None
    return list(found)


def _rows(verbs: list[str]) -> list[Row]:
    return [
        (verb, f"V;IND;{mark};{person}", form)
        for verb in verbs
        for tense, mark in TENSES.items()
        for person, form in zip(PERSONS, conjugate(verb, tense), strict=True)
    ]
