"""Statements of the embedded corpus, single clauses and clauses joined together, to about a length in words."""

from __future__ import annotations

from random import Random

from mirada.corpora import lexicon, phrases
from mirada.corpora.clauses import SER, Form, Slots, finite, place, statement, surface
from mirada.corpora.morphology import english_past, english_present
from mirada.corpora.phrases import NOTHING, Nominal, Phrase, chain, word
from mirada.corpora.predicates import ACTIONS, agent_phrase, feeling, located, needing, noun_phrase, predicate

TENSES = ("present",) * 4 + ("past",) * 3 + ("future",) * 2
COMMA = word(",", ",")
# Joints with their Spanish words; in the second row those that bring a subordinate clause.
COORDINATING = {"and": "y", "but": "pero", "so": "así que"}
SUBORDINATING = {"because": "porque", "when": "cuando", "if": "si", "while": "mientras", "although": "aunque"}
JOINTS = ("and", "and", "but", "so", "because", "when", "if", "while", "although", "that", "that", "verbs", "verbs")
_MAIN = (*COORDINATING, "verbs")
_TENSES_OF = {  # the joints that keep the Spanish indicative, by the tense of the main clause
    "present": ("because", "when", "if", "while", "although"),
    "past": ("because", "when", "although"),
    "future": ("because", "if", "although"),
}
_THAT_VERBS = [verb for verb in lexicon.VERBS if verb.objects == ("that",)]
_LIKED = ("thing", "text", "song", "place", *lexicon.FOODS, "drink", "animal")
_ARTICLED = frozenset(form for name in lexicon.DEFINITE for form in lexicon.DETERMINERS[name].split())


def story(rng: Random, room: int, tense: str, joints: tuple[str, ...] = JOINTS) -> Phrase:
    """A statement: one clause, or two halves joined, of which the second may be joined again by `joints`."""
    if room < 8 or (room < 18 and rng.random() < 0.45):
        return simple(rng, room, tense)
    unfit = set(SUBORDINATING) - set(_TENSES_OF[tense]) | ({"verbs"} if room > 20 else set())
    joint = rng.choice([joint for joint in joints if joint not in unfit])
    if joint == "that":
        return reported(rng, room, tuple(other for other in joints if other != "that"))
    if joint == "verbs":
        return two_verbs(rng, room, tense)
    first = min(max(3, room // 2 + rng.randint(-2, 2)), 22)
    if joint in COORDINATING:
        comma = NOTHING if joint == "and" else COMMA
        left = tuple(other for other in joints if other != joint or joint == "and")
        pair = (story(rng, first - 1, tense, left), story(rng, room - first, tense, left))
        return chain(pair[0], comma, word(joint, COORDINATING[joint]), pair[1])
    return _subordinate(rng, joint, room, tense, tuple(other for other in joints if other in _MAIN))


def _subordinate(rng: Random, joint: str, room: int, tense: str, joints: tuple[str, ...]) -> Phrase:
    """If she comes, we are going to eat ↔ Si viene, vamos a comer. The main clause takes no second subordinate."""
    first = rng.randint(3, min(12, room - 4))
    condition = "present" if tense == "future" else tense
    if joint == "because" and tense == "present" and rng.random() < 0.4:
        condition = "past"
    clause = event(rng, first, condition)
    main = story(rng, room - first - 1, tense, joints)
    link = word(joint, SUBORDINATING[joint])
    if joint != "because" and rng.random() < 0.6:
        return chain(link, clause, COMMA, main)
    return chain(main, link, clause)


def simple(rng: Random, room: int, tense: str) -> Phrase:
    """One clause."""
    draw = rng.random()
    if draw < 0.07 and room >= 5 and tense != "future":
        return there_is(rng, room, tense)
    if draw < 0.13 and room >= 3 and tense == "present":
        return liking(rng, room)
    if draw < 0.16 and room >= 4 and tense == "present":
        return kinship(rng)
    subject = subject_phrase(rng, rng.randint(1, max(1, min(room // 2, 8))))
    form = Form(tense, rng.random() < 0.15, False, subject)
    return statement(predicate(rng, form, max(1, room - len(subject.phrase.source))), subject)


def event(rng: Random, room: int, tense: str) -> Phrase:
    """One clause in which somebody acts, or is in a state that passes: what can be a time, a reason, a condition."""
    subject = agent_phrase(rng, rng.randint(1, max(1, min(room // 2, 5))))
    form = Form(tense, rng.random() < 0.15, False, subject)
    maker = rng.choice((*ACTIONS, located, needing, feeling))
    return statement(maker(rng, form, max(2, room - len(subject.phrase.source))), subject)


def subject_phrase(rng: Random, room: int) -> Nominal:
    """A subject of any kind."""
    draw = rng.random()
    if draw < 0.25:
        return phrases.pronoun_subject(lexicon.IT if draw < 0.02 else rng.choice(lexicon.PRONOUNS))
    if draw < 0.4 or room < 2:
        return phrases.named(rng)
    if draw < 0.52 and room >= 3:
        return _two_people(rng, room)
    if draw < 0.78:
        return noun_phrase(rng, lexicon.PEOPLE, room)
    if draw < 0.88:
        return noun_phrase(rng, ("animal",), room)
    return noun_phrase(rng, (*lexicon.THINGS, *lexicon.FOODS, "place", "song", "drink"), room, definite=True)


def _two_people(rng: Random, room: int) -> Nominal:
    first = noun_phrase(rng, lexicon.PEOPLE, 1 if room < 5 else 2)
    second = noun_phrase(rng, lexicon.PEOPLE, max(1, room - 1 - len(first.phrase.source)))
    return phrases.both(first, second) if phrases.can_join(first, second) else first


def two_verbs(rng: Random, room: int, tense: str) -> Phrase:
    """One subject, two verbs: Ana ate the bread and drank the milk."""
    subject = agent_phrase(rng, 3)
    form = Form(tense, False, False, subject, modals=False)  # "can eat and drink" would be two infinitives
    half = (room - len(subject.phrase.source)) // 2
    first = statement(rng.choice(ACTIONS)(rng, form, half), subject)
    silent = subject._replace(phrase=NOTHING)
    return chain(first, word("and", "y"), statement(rng.choice(ACTIONS)(rng, form, half), silent))


def reported(rng: Random, room: int, joints: tuple[str, ...]) -> Phrase:
    """Say, think, believe or know that …; in the present and not denied, so that Spanish has the indicative."""
    subject = agent_phrase(rng, 2)
    slots = finite(rng.choice(_THAT_VERBS), Form("present", False, False, subject))
    rest = story(rng, room - len(subject.phrase.source) - 2, rng.choice(TENSES), joints)
    return statement(slots | {"object": chain(word("that", "que"), rest)}, subject)


def there_is(rng: Random, room: int, tense: str) -> Phrase:
    """There is a dog in the garden ↔ Hay un perro en el jardín."""
    thing, where = something_somewhere(rng, room)
    be = (english_past if tense == "past" else english_present)("be", thing.person)
    return chain(word(f"there {be}", "había" if tense == "past" else "hay"), thing.phrase, where)


def something_somewhere(rng: Random, room: int) -> tuple[Nominal, Phrase]:
    """An indefinite noun phrase and a place."""
    kinds = rng.choice((("thing",), ("text", "food"), ("animal",), ("person", "worker")))
    thing = phrases.common(rng, kinds, room=room - 4, indefinite=True)
    if thing.kind in ("text", "food") and rng.random() < 0.6:
        return thing, surface(rng)
    return thing, place(rng, room - 2 - len(thing.phrase.source))


def liking(rng: Random, room: int) -> Phrase:
    """Ana likes the song ↔ A Ana le gusta la canción: whoever likes is the dative, and "likes" covers le gusta."""
    person = agent_phrase(rng, 2)
    thing, spanish = _liked(rng, room - len(person.phrase.source) - 1)
    clitic = "" if person.pronoun else ("le " if person.number == 1 else "les ")
    slots: Slots = {"object": thing, "verb": word(english_present("like", person.person), clitic + spanish)}
    if rng.random() < 0.2:
        do = Phrase((english_present("do", person.person),), (), ())
        slots |= {"aux": do, "not": word("not", "no"), "verb": word("like", clitic + spanish)}
    return statement(slots, _dative(person))


def _dative(person: Nominal) -> Nominal:
    """She ↔ le, where the silent subject would stand; Ana ↔ a Ana."""
    if person.pronoun:
        return person._replace(phrase=word(person.pronoun.subject, person.pronoun.indirect))
    return person._replace(phrase=chain(Phrase((), ("a",), ()), person.phrase))


def _liked(rng: Random, room: int) -> tuple[Phrase, str]:
    """What is liked, with gusta or gustan: an infinitive, or a noun phrase that Spanish lets stand as a subject."""
    if room >= 2 and rng.random() < 0.35:
        verb = rng.choice(lexicon.verbs("dance", "sing", "sleep", "work", "study", "run", "read"))
        return word(f"to {verb.english}", verb.spanish), "gusta"
    thing = noun_phrase(rng, _LIKED, max(2, room), definite=True)
    if thing.phrase.target[0] not in _ARTICLED:
        return _liked(rng, room)
    return thing.phrase, "gusta" if thing.number == 1 else "gustan"


def kinship(rng: Random) -> Phrase:
    """Ana is my sister ↔ Ana es mi hermana: the noun's gender is the subject's."""
    he_or_she = phrases.pronoun_subject(rng.choice(lexicon.PRONOUNS[2:4]))
    subject = phrases.named(rng) if rng.random() < 0.6 else he_or_she
    kin = phrases.common(rng, ("kin",))
    while kin.gender != subject.gender or kin.person != 2 or set(kin.phrase.source) & {f"{subject.phrase.source[0]}'s"}:
        kin = phrases.common(rng, ("kin",))
    return statement(
        finite(SER, Form("present", rng.random() < 0.1, False, subject)) | {"complement": kin.phrase}, subject
    )
