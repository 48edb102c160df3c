"""Clauses of the embedded corpus: a verb in a tense, what it takes, and the orders of statements and questions."""

from __future__ import annotations

from random import Random
from typing import NamedTuple

from mirada.corpora import lexicon, phrases
from mirada.corpora.lexicon import Verb
from mirada.corpora.morphology import conjugate, english_past, english_present
from mirada.corpora.phrases import NOTHING, Nominal, Phrase, arrange, chain, word

Slots = dict[str, Phrase]

STATEMENT = "subject aux not adverb verb complement direct indirect object recipient place company time"
QUESTION = "wh aux subject not adverb verb complement direct indirect object recipient place company time"
SAID = "subject not adverb indirect direct aux verb complement object recipient place company time"
SAID_DROPPED = "not adverb indirect direct subject aux verb complement object recipient place company time"
ASKED = "wh not adverb indirect direct aux verb complement subject object recipient place company time"
ASKED_DROPPED = "wh not adverb indirect direct subject aux verb complement object recipient place company time"


class Form(NamedTuple):
    """What the finite verb must know: tense, whether English denies or inverts, who the subject is, if can may come."""

    tense: str
    negative: bool
    inverted: bool
    subject: Nominal
    modals: bool = True

    @property
    def auxiliary(self) -> bool:
        """Whether English needs do."""
        return self.negative or self.inverted


def statement(slots: Slots, subject: Nominal) -> Phrase:
    """Subject, verb, complements; a pronoun subject is silent and stands before the finite Spanish verb."""
    parts = slots | {"subject": subject.phrase}
    return arrange(parts, STATEMENT, SAID_DROPPED if subject.pronoun else SAID)


def question(slots: Slots, subject: Nominal, wh: Phrase = NOTHING) -> Phrase:
    """English inverts subject and auxiliary; Spanish puts the subject after the verb: ¿Come Ana el pan?"""
    parts = slots | {"subject": subject.phrase, "wh": wh}
    return arrange(parts, QUESTION, ASKED_DROPPED if subject.pronoun else ASKED)


def inflect(verb: Verb, form: Form) -> tuple[str, str]:
    """Return the finite English and Spanish forms of a verb in the present or the past."""
    person = form.subject.person
    if form.tense == "past":
        return english_past(verb.english, person), conjugate(verb.spanish, verb.aspect)[person]
    return english_present(verb.english, person), conjugate(verb.spanish, "present")[person]


def finite(verb: Verb, form: Form) -> Slots:
    """The slots aux, not and verb. Do has no Spanish word; is going to eat ↔ va a comer."""
    base = " ".join(filter(None, (verb.english, verb.particle)))
    slots = {"not": word("not", "no")} if form.negative else {}
    if form.tense == "future":
        goes = conjugate("ir", "present")[form.subject.person]
        be = word(english_present("be", form.subject.person), "")
        infinitive = chain(word("going", goes), word("to", "a"), word(base, verb.spanish))
        return slots | {"aux": be, "verb": infinitive}
    english, spanish = inflect(verb, form)
    if verb.english in ("be", "can"):
        return slots | {"aux": word(english, spanish)}
    if form.auxiliary:
        do = english_past("do", 0) if form.tense == "past" else english_present("do", form.subject.person)
        return slots | {"aux": Phrase((do,), (), ()), "verb": word(base, spanish)}
    return slots | {"verb": word(" ".join(filter(None, (english, verb.particle))), spanish)}


SER, ESTAR = lexicon.verb("ser"), lexicon.verb("estar")
_CAN, _HAVE = lexicon.verb("poder"), lexicon.verb("tener")
_WANT = lexicon.verb("querer", "want")


def modal(rng: Random, verb: Verb, form: Form) -> Slots:
    """Can, want to, have to with an infinitive; no "cannot", one word for two Spanish places."""
    base = word(" ".join(filter(None, (verb.english, verb.particle))), verb.spanish)
    helpers = [_WANT, _HAVE] + ([] if form.negative and form.tense == "present" else [_CAN, _CAN])
    helper = rng.choice(helpers)
    slots = finite(helper, form)
    if helper is _CAN:
        return slots | {"verb": base}
    to = word(f"to {' '.join(base.source)}", verb.spanish)
    if helper is _HAVE:
        to = chain(word("to", "que"), base)
    return slots | {"verb": chain(slots["verb"], to)}


def verbal(rng: Random, verb: Verb, form: Form) -> Slots:
    """The verb alone, or under a modal now and then."""
    acts = verb.aspect == "preterite" and form.subject.human and verb.english != "lose"
    if acts and form.modals and form.tense != "future" and rng.random() < 0.15:
        return modal(rng, verb, form)
    return finite(verb, form)


def with_a(nominal: Nominal) -> Phrase:
    """Put the personal a (no English word, no link) before a person."""
    return chain(Phrase((), ("a",), ()), nominal.phrase) if nominal.human else nominal.phrase


def object_pronoun(rng: Random, verb: Verb, subject: Nominal) -> Phrase:
    """A direct clitic that fits verb and subject: nobody sees himself here."""
    suitable = []
    if any(kind in lexicon.PEOPLE for kind in verb.objects):
        suitable = [other for other in lexicon.PRONOUNS if apart(other.person, subject.person)]
    if verb.english != "know" and any(kind not in lexicon.PEOPLE for kind in verb.objects):
        suitable += [lexicon.IT] * 3 + [lexicon.PRONOUNS[-1]]
    chosen = rng.choice(suitable)
    return word(chosen.object, chosen.direct)


def apart(person: int, other: int) -> bool:
    """Whether two persons can be subject and object: not I and us."""
    return {person, other} - {0, 3} != set() and (person != other or person in (2, 4))


def someone(rng: Random, room: int, unlike: Nominal) -> Nominal:
    """A person that the listener knows, a name or a definite noun phrase, other than `unlike`."""
    short = room < 2 or rng.random() < 0.4
    person = phrases.named(rng) if short else phrases.common(rng, lexicon.PEOPLE, room=room, definite=True)
    return someone(rng, room, unlike) if phrases.overlap(person, unlike) else person


def have(form: Form) -> Slots:
    """Be, where Spanish says tener: the slots not and aux."""
    person = form.subject.person
    english = english_past("be", person) if form.tense == "past" else english_present("be", person)
    aspect = "imperfect" if form.tense == "past" else "present"
    slots = {"not": word("not", "no")} if form.negative else {}
    return slots | {"aux": word(english, conjugate("tener", aspect)[person])}


def place(rng: Random, room: int) -> Phrase:
    """Where: en Madrid, en la casa, cerca de la plaza."""
    if room <= 2 or rng.random() < 0.2:
        return chain(word("in", "en"), phrases.gloss(rng.choice(lexicon.CITIES)))
    where = rng.choice((lexicon.PLACES[0],) * 3 + lexicon.PLACES)
    return chain(phrases.gloss(where), phrases.common(rng, ("place",), room=room - 1, definite=True).phrase)


def surface(rng: Random) -> Phrase:
    """Where a small thing is: sobre la mesa, debajo de la cama."""
    noun = rng.choice([noun for noun in lexicon.NOUNS if noun.english in lexicon.FURNITURE])
    the = phrases.determiner("the", noun.gender, 1)
    return chain(phrases.gloss(rng.choice(lexicon.SURFACES)), the, word(noun.english, noun.spanish))


def when(rng: Random, form: Form, room: int) -> Slots:
    """When or how often, if there is room: a time at the end, or never or always before the Spanish verb."""
    if room >= 1 and form.tense == "present" and not form.auxiliary and rng.random() < 0.1:
        return {"adverb": rng.choice((word("never", "nunca"), word("always", "siempre")))}
    suitable = [time for time in lexicon.TIMES if form.tense in time.tenses and len(time.english.split()) <= room]
    if not suitable or rng.random() < 0.4:
        return {}
    time = rng.choice(suitable)
    return {"time": word(time.english, time.spanish, time.links)}


def adjuncts(rng: Random, verb: Verb, form: Form, room: int) -> Slots:
    """Place, company and time that fit the room; verbs of state have none."""
    if verb.aspect == "imperfect":
        return {}
    slots: Slots = {}
    at_places = not {"place", "opening", "to"} & set(verb.objects)
    if room >= 3 and at_places and rng.random() < 0.5:
        slots["place"] = place(rng, min(room, 4))
        room -= len(slots["place"].source)
    if room >= 2 and verb.english != "sleep" and rng.random() < 0.3:
        slots["company"] = company(rng, form.subject, room - 1)
        room -= len(slots["company"].source)
    if form.tense == "past" and not form.auxiliary and rng.random() < 0.04:
        return slots | {"adverb": word("never", "nunca")}
    return slots | when(rng, form, room)


def company(rng: Random, subject: Nominal, room: int) -> Phrase:
    """With somebody: con Ana, conmigo, con él."""
    if rng.random() < 0.6:
        return phrases.preposition("with", "con", someone(rng, room, subject))
    other = rng.choice([other for other in lexicon.PRONOUNS if apart(other.person, subject.person)])
    one_word = {0: "conmigo", 1: "contigo"}.get(other.person)
    if one_word:
        return word(f"with {other.object}", one_word)
    return word(f"with {other.object}", f"con {other.strong}")
