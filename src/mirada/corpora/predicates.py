"""Predicates and full noun phrases of the embedded corpus, which call each other through relative clauses.

A predicate maker takes the random source, the form of the finite verb, and about how many English words it may use; it
returns the clause's slots without the subject.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random

from mirada.corpora import lexicon, phrases
from mirada.corpora.clauses import (
    ESTAR,
    SER,
    Form,
    Slots,
    adjuncts,
    apart,
    finite,
    have,
    object_pronoun,
    place,
    someone,
    statement,
    surface,
    verbal,
    when,
    with_a,
)
from mirada.corpora.lexicon import Adjective, Verb
from mirada.corpora.morphology import agree
from mirada.corpora.phrases import NOTHING, Nominal, Phrase, chain, word

Maker = Callable[[Random, Form, int], Slots]

TRANSITIVE = [verb for verb in lexicon.VERBS if set(verb.objects) & lexicon.NOUN_KINDS]
_INTRANSITIVE = [verb for verb in lexicon.VERBS if not verb.objects]
_MOTION = [verb for verb in lexicon.VERBS if verb.objects == ("to",)]
_GIVING = [verb for verb in lexicon.VERBS if verb.objects == ("gift",)]
_ACTING = ("live", "work", "sleep", "play", "study", "dance")  # what one does somewhere: the house where …


def predicate(rng: Random, form: Form, room: int) -> Slots:
    """Everything of a clause but the subject."""
    return rng.choice(_makers(form.subject))(rng, form, room)


def _makers(subject: Nominal) -> Sequence[Maker]:
    if subject.kind == "animal":
        return (transitive, transitive, intransitive, motion, quality, located)
    if not subject.human:
        return (quality, quality, quality, located, compared)
    states = (quality, quality, located, needing, aged, compared)
    return (*ACTIONS, *states)


def transitive(rng: Random, form: Form, room: int) -> Slots:
    """A verb and its object: a noun phrase, or a pronoun that goes before the Spanish verb."""
    verb = rng.choice([verb for verb in TRANSITIVE if form.subject.kind in verb.subjects and suits(verb, form.tense)])
    slots = verbal(rng, verb, form)
    if rng.random() < (0.4 if room <= 3 else 0.15):
        slots["direct"] = object_pronoun(rng, verb, form.subject)
        return slots if verb.aspect == "imperfect" else slots | when(rng, form, room - 2)
    stative = verb.aspect == "imperfect"
    spare = rng.randrange(room // 2) if room > 6 and not stative else 0
    slots["object"] = object_phrase(rng, verb, room - 1 - spare, form.subject)
    return slots | adjuncts(rng, verb, form, spare)


def suits(verb: Verb, tense: str) -> bool:
    """Whether English shows the tense ("read" is its own past) and the tense makes sense (to love is not planned)."""
    return (verb.english, tense) not in {("read", "past"), ("know", "future"), ("love", "future")}


def object_phrase(rng: Random, verb: Verb, room: int, subject: Nominal) -> Phrase:
    """One object or two joined by and, each person with its a: nobody sees himself."""
    definite = verb.english in ("need", "look", "wait")
    if room >= 5 and rng.random() < 0.25:
        first = _another(rng, verb.objects, room // 2, subject, definite=definite)
        kinds = [kind for kind in verb.objects if (kind in lexicon.PEOPLE) == first.human]
        second = _another(rng, kinds, room - 1 - len(first.phrase.source), subject, definite=definite)
        if phrases.can_join(first, second):
            return chain(with_a(first), word("and", "y"), with_a(second))
    return with_a(_another(rng, verb.objects, room, subject, definite=definite))


def _another(rng: Random, kinds: Sequence[str], room: int, subject: Nominal, *, definite: bool) -> Nominal:
    """A noun phrase that shares no noun with the subject."""
    found = noun_phrase(rng, kinds, room, definite=definite)
    return _another(rng, kinds, room, subject, definite=definite) if phrases.overlap(found, subject) else found


def intransitive(rng: Random, form: Form, room: int) -> Slots:
    """A verb without an object; live always has a place."""
    verbs = [verb for verb in _INTRANSITIVE if form.subject.kind in verb.subjects]
    verb = rng.choice([verb for verb in verbs if room > 2 or verb.english != "live"])
    slots = verbal(rng, verb, form)
    if verb.english == "live":
        return slots | {"place": place(rng, room - 1)}
    return slots | adjuncts(rng, verb, form, room - 1)


def motion(rng: Random, form: Form, room: int) -> Slots:
    """A verb of motion and its goal: va a la escuela. Spanish has no *va a ir* where *va* will do."""
    verb = rng.choice([verb for verb in _MOTION if verb.english != "go" or form.tense != "future"])
    goal = phrases.common(rng, ("place",), room=min(room - 2, 4), definite=True)
    slots = adjuncts(rng, verb, form, room - 2 - len(goal.phrase.source))
    to = "at" if verb.english == "arrive" else "to"
    return slots | verbal(rng, verb, form) | {"place": phrases.preposition(to, "a", goal)}


def giving(rng: Random, form: Form, room: int) -> Slots:
    """Give and its like: Le da el libro. Se lo da. Da el libro al profesor."""
    verb = rng.choice(_GIVING)
    slots = verbal(rng, verb, form)
    receiver = rng.choice([other for other in lexicon.PRONOUNS if apart(other.person, form.subject.person)])
    if rng.random() < (0.6 if room < 5 else 0.2):
        spanish = "se" if receiver.person in (2, 4) else receiver.indirect
        thing = rng.choice((lexicon.IT, lexicon.IT, lexicon.PRONOUNS[-1]))
        clitics = {"direct": word(thing.object, thing.direct), "indirect": word(f"to {receiver.object}", spanish)}
        return slots | clitics | when(rng, form, room - 4)
    if rng.random() < 0.5:
        slots["object"] = noun_phrase(rng, ("thing", "text"), room - 2).phrase
        slots["indirect"] = word(receiver.object, receiver.indirect)
        return slots | when(rng, form, room - 2 - len(slots["object"].source))
    slots["object"] = noun_phrase(rng, ("thing", "text"), min(room - 4, 4)).phrase  # short: the recipient comes after
    return slots | {"recipient": phrases.preposition("to", "a", someone(rng, 3, form.subject))}


def quality(rng: Random, form: Form, room: int) -> Slots:
    """Be and an adjective: ser for what one is, estar for how one is."""
    if form.tense == "future" and form.subject.kind != "food":
        return feeling(rng, form, room)
    return _be(rng, form, room, lexicon.adjectives(form.subject.kind))


def feeling(rng: Random, form: Form, room: int) -> Slots:
    """Be and an adjective of a state that passes, as all living beings have: estar."""
    items = [item for item in lexicon.adjectives(form.subject.kind) if item.copula == "estar"]
    return _be(rng, form, room, items or lexicon.adjectives(form.subject.kind))


def _be(rng: Random, form: Form, room: int, items: Sequence[Adjective]) -> Slots:
    subject = form.subject
    item = rng.choice([item for item in items if item.english not in subject.phrase.source])
    phrase = phrases.adjective(item, subject.gender, subject.number)
    if room >= 3 and item.group not in lexicon.NO_DEGREES and rng.random() < 0.35:
        phrase = chain(word("very", "muy"), phrase)
    if item.copula == "ser":
        return finite(SER, form) | {"complement": phrase}
    return finite(ESTAR, form) | {"complement": phrase} | when(rng, form, room - 2)


def located(rng: Random, form: Form, room: int) -> Slots:
    """Be somewhere: estar."""
    if form.subject.kind in ("place", "opening", "song", "dish", "drink"):
        return quality(rng, form, room)
    lies = form.subject.kind in ("text", "food") and room >= 4 and rng.random() < 0.6
    return finite(ESTAR, form) | {"place": surface(rng) if lies else place(rng, room - 1)} | when(rng, form, room - 4)


def needing(rng: Random, form: Form, room: int) -> Slots:
    """Be hungry ↔ tener hambre."""
    if form.tense == "future":
        return quality(rng, form, room)
    return have(form) | {"complement": phrases.gloss(rng.choice(lexicon.NEEDS))}


def aged(rng: Random, form: Form, room: int) -> Slots:
    """Be ten years old ↔ tener diez años."""
    if form.tense == "future" or room < 4:
        return needing(rng, form, room)
    years = chain(phrases.determiner(rng.choice(lexicon.AGES), "m", 2), word("years old", "años"))
    return have(form) | {"complement": years}


def compared(rng: Random, form: Form, room: int) -> Slots:
    """Be taller than ↔ ser más alto que."""
    subject = form.subject
    items = [
        item
        for item in lexicon.adjectives(subject.kind)
        if item.english in lexicon.COMPARATIVES.keys() - {*subject.phrase.source}
    ]
    if not items or room < 4 or form.tense == "future" or subject.kind == "food":
        return quality(rng, form, room)
    item = rng.choice(items)
    more = word(lexicon.COMPARATIVES[item.english], f"más {agree(item.spanish, subject.gender, subject.number)}")
    if subject.human:
        other = someone(rng, room - 3, subject)
    else:
        other = phrases.common(rng, (subject.kind,), definite=True)
        if phrases.overlap(other, subject):
            return quality(rng, form, room)
    return finite(SER, form) | {"complement": chain(more, word("than", "que"), other.phrase)}


ACTIONS: tuple[Maker, ...] = (*(transitive,) * 6, intransitive, intransitive, motion, giving, giving)

# Noun phrases with what follows the noun -----------------------------------------------------------------------------


def noun_phrase(rng: Random, kinds: Sequence[str], room: int, *, definite: bool = False) -> Nominal:
    """A name, or a noun with what fits before and after it."""
    if "person" in kinds and rng.random() < (1 if room < 2 else 0.25):
        return phrases.named(rng)
    short = 2 if room <= 2 else rng.choice((2, 2, 3, 3, 4, 5))
    head = phrases.common(rng, kinds, room=min(room, short), definite=definite)
    tail = _tail(rng, head, room - len(head.phrase.source))
    return head._replace(phrase=chain(head.phrase, tail))


def _tail(rng: Random, head: Nominal, room: int) -> Phrase:
    """A phrase or a relative clause after the noun, or nothing."""
    if head.phrase.source[0] in lexicon.POSSESSIVES or head.kind == "kin":
        return NOTHING  # whose it is says which one
    if room >= 4 and rng.random() < 0.6:
        return relative(rng, head, room)
    if room >= 2 and rng.random() < 0.4:
        return _phrase_after(rng, head)
    return NOTHING


def _phrase_after(rng: Random, head: Nominal) -> Phrase:
    if head.kind in ("person", "worker"):
        return chain(word("from", "de"), phrases.gloss(rng.choice(lexicon.CITIES)))
    if head.kind == "opening":
        return phrases.preposition("of", "de", phrases.common(rng, ("place",), definite=True, qualified=False))
    if head.kind == "text":
        return phrases.preposition("from", "de", someone(rng, 2, head))
    return NOTHING


def relative(rng: Random, head: Nominal, room: int) -> Phrase:
    """A relative clause: who sleeps, that Ana bought, where Ana works."""
    tense = rng.choice(("present", "past"))
    draw = rng.random()
    if head.kind == "place" and draw < 0.7:
        return _where(rng, tense, room)
    if draw < 0.55 and head.kind not in lexicon.MASS:
        who = word("who" if head.human else "that", "que")
        gap = head._replace(phrase=who, pronoun=None)
        return statement(predicate(rng, Form(tense, _sometimes(rng), False, gap), room - 1), gap)
    return _that(rng, head, tense)


def _sometimes(rng: Random) -> bool:
    return rng.random() < 0.12


def _where(rng: Random, tense: str, room: int) -> Phrase:
    agent = agent_phrase(rng, room - 3)
    verb = rng.choice(lexicon.verbs(*_ACTING))
    form = Form(tense, False, False, agent)
    return chain(word("where", "donde"), statement(finite(verb, form), agent))


def _that(rng: Random, head: Nominal, tense: str) -> Phrase:
    """The book that Ana bought; a person gets al que, a la que."""
    agent = agent_phrase(rng, 2)
    form = Form(tense, _sometimes(rng), False, agent)
    verb = rng.choice([verb for verb in TRANSITIVE if head.kind in verb.objects and suits(verb, form.tense)])
    that = word("that", "que")
    if head.human:
        article = phrases.determiner("the", head.gender, head.number).target[0]
        that = Phrase(("that",), ("a", article, "que"), ((0, 1), (0, 2)))
    return chain(that, statement(finite(verb, form), agent))


def agent_phrase(rng: Random, room: int) -> Nominal:
    """A subject that acts: a pronoun, a name or a person."""
    if rng.random() < 0.35:
        return phrases.pronoun_subject(rng.choice(lexicon.PRONOUNS))
    if room < 2 or rng.random() < 0.3:
        return phrases.named(rng)
    return noun_phrase(rng, lexicon.PEOPLE, room, definite=rng.random() < 0.7)
