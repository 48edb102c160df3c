"""Stories and questions about them, after the first three kinds of bAbI (Weston et al. 2015, section 3).

People walk through rooms, and take and leave things. A question asks where a person is (`person`), where a thing is
(`thing`), or whether somebody is somewhere (`yes-no`): the answer is one word, and stands in the story or is yes or no.
Rows are kind, story, question, answer.
"""

from __future__ import annotations

from random import Random

from mirada.corpora.tables import Row, Tables
from mirada.errors import DataError

PEOPLE = ("Mary", "John", "Sandra", "Daniel")
ROOMS = ("kitchen", "garden", "office", "bathroom", "hallway", "bedroom")
THINGS = ("football", "apple", "milk")
MOVES = ("went to", "moved to", "walked to", "journeyed to")
KINDS = ("person", "thing", "yes-no")
SENTENCES = (2, 8)
MOST = 100_000


def stories(pairs: int, seed: int) -> Tables:
    """Make `pairs` training rows, and a tenth of that, at least 90, for dev and for test; no row twice.

    Raises DataError for a number out of range.
    """
    if not 1 <= pairs <= MOST:
        raise DataError(f"the stories are 1 to {MOST:,} training pairs, got {pairs:,}")
    draw, held = Random(seed), max(90, pairs // 10)
    found: dict[Row, None] = {}
    while len(found) < pairs + 2 * held:
        found[_row(draw, KINDS[len(found) % len(KINDS)])] = None
    rows = list(found)
    return Tables(rows[2 * held :], rows[held : 2 * held], rows[:held])


def _row(draw: Random, kind: str) -> Row:
    """Tell one story, and ask about it."""
    places: dict[str, str] = {}  # of people, and of things that somebody took
    holders: dict[str, str] = {}
    told: list[str] = []
    for _ in range(draw.randint(*SENTENCES)):
        told.append(_event(draw, places, holders))
    if kind == "thing" and not any(thing in places for thing in THINGS):
        person = next(name for name in PEOPLE if name in places)
        told.append(_take(draw.choice(THINGS), person, places, holders))
    names = [name for name in places if (name in THINGS) == (kind == "thing")]
    name = draw.choice(names)
    story = " ".join(told)
    if kind != "yes-no":
        return kind, story, f"Where is {'the ' if kind == 'thing' else ''}{name}?", places[name]
    room = places[name] if draw.random() < 0.5 else draw.choice(ROOMS)
    return kind, story, f"Is {name} in the {room}?", "yes" if room == places[name] else "no"


def _event(draw: Random, places: dict[str, str], holders: dict[str, str]) -> str:
    """Let somebody take or leave a thing where that can be, or else move."""
    here = [name for name in PEOPLE if name in places]
    if here and draw.random() < 0.35:
        person = draw.choice(here)
        held = [thing for thing, holder in holders.items() if holder == person]
        if held:
            thing = draw.choice(held)
            del holders[thing]
            return f"{person} left the {thing}."
        free = [
            thing for thing in THINGS if thing not in holders and places.get(thing, places[person]) == places[person]
        ]
        if free:
            return _take(draw.choice(free), person, places, holders)
    person, room = draw.choice(PEOPLE), draw.choice(ROOMS)
    places[person] = room
    places.update({thing: room for thing, holder in holders.items() if holder == person})
    return f"{person} {draw.choice(MOVES)} the {room}."


def _take(thing: str, person: str, places: dict[str, str], holders: dict[str, str]) -> str:
    holders[thing] = person
    places[thing] = places[person]
    return f"{person} took the {thing}."
