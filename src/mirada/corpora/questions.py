"""Questions of the embedded corpus. A maker takes the random source, about how many English words, and the tenses."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from mirada.corpora import lexicon, phrases
from mirada.corpora.clauses import ESTAR, Form, finite, have, question, statement, when
from mirada.corpora.lexicon import Verb
from mirada.corpora.morphology import english_present
from mirada.corpora.phrases import Nominal, Phrase, chain, word
from mirada.corpora.predicates import (
    TRANSITIVE,
    feeling,
    giving,
    intransitive,
    located,
    motion,
    needing,
    predicate,
    suits,
    transitive,
)
from mirada.corpora.sentences import COMMA, TENSES, something_somewhere, story

Tenses = tuple[str, ...]
Maker = Callable[[Random, int, Tenses], Phrase]

_REASONED = (transitive, transitive, intransitive, motion, giving, feeling, located, needing)
_ASKED = (lexicon.PRONOUNS[1], lexicon.PRONOUNS[1], *lexicon.PRONOUNS[1:])  # you more often than others
_TAILS = (word("when", "cuando"), word("if", "si"))


def ask(rng: Random, room: int) -> Phrase:
    """A question; where there is much room, a clause about the present follows it."""
    if room < 10 or rng.random() < 0.2:
        return rng.choice(_MAKERS)(rng, room, TENSES)
    first = rng.randint(5, 9)
    maker = rng.choice((whether, why, what))
    tail = rng.choice(_TAILS if maker is whether else _TAILS[:1])
    return chain(maker(rng, first, ("present",)), tail, story(rng, room - first - 1, "present", ("and", "verbs")))


def asked_subject(rng: Random, room: int) -> Nominal:
    """Somebody to ask about, in few words."""
    draw = rng.random()
    if draw < 0.3:
        return phrases.pronoun_subject(rng.choice(_ASKED))
    if draw < 0.5 or room < 2:
        return phrases.named(rng)
    return phrases.common(rng, lexicon.PEOPLE, room=room, definite=True, qualified=rng.random() < 0.4)


def _form(rng: Random, subject: Nominal, tenses: Tenses) -> Form:
    return Form(rng.choice(tenses), False, True, subject)


def _known(tenses: Tenses) -> Tenses:
    """The tenses without the future."""
    return tuple(tense for tense in tenses if tense != "future")


def how(rng: Random, room: int, tenses: Tenses) -> Phrase:
    """How are you? ↔ ¿Cómo estás? How are you, Ana? ↔ ¿Cómo estás, Ana?"""
    subject = asked_subject(rng, room - 2)
    form = _form(rng, subject, _known(tenses))
    slots = finite(ESTAR, form)
    if room > 3:
        slots |= when(rng, form, 1)
    asked = question(slots, subject, word("how", "cómo"))
    if subject.person == 1 and form.tense == "present" and room > 3 and rng.random() < 0.5:
        return chain(asked, COMMA, phrases.named(rng).phrase)
    return asked


def where(rng: Random, room: int, tenses: Tenses) -> Phrase:
    """Where is the key? ↔ ¿Dónde está la llave? Where does Ana work? ↔ ¿Dónde trabaja Ana?"""
    wh, draw = word("where", "dónde"), rng.random()
    subject = asked_subject(rng, room - 2)
    if draw < 0.3:
        subject = phrases.common(rng, ("thing", "text", "animal", "place"), room=room - 2, definite=True)
    if draw < 0.6:
        return question(finite(ESTAR, _form(rng, subject, _known(tenses))), subject, wh)
    if draw < 0.7:
        go = finite(lexicon.verb("ir"), _form(rng, subject, _known(tenses)))
        return question(go, subject, word("where", "adónde"))
    verb = rng.choice(lexicon.verbs("live", "work", "sleep", "play", "study"))
    return question(finite(verb, _form(rng, subject, tenses)), subject, wh)


def at_what_time(rng: Random, room: int, tenses: Tenses) -> Phrase:
    """When does she arrive? ↔ ¿Cuándo llega?"""
    subject = asked_subject(rng, room - 3)
    verb = rng.choice(lexicon.verbs("arrive", "return", "come", "work", "study"))
    return question(finite(verb, _form(rng, subject, tenses)), subject, word("when", "cuándo"))


def whether(rng: Random, room: int, tenses: Tenses) -> Phrase:
    """Does Ana eat the bread? ↔ ¿Come Ana el pan? Is the house big? ↔ ¿Es grande la casa?"""
    if rng.random() < 0.12 and room >= 5:
        thing, place = something_somewhere(rng, room)
        return chain(word(f"{english_present('be', thing.person)} there", "hay"), thing.phrase, place)
    subject = asked_subject(rng, min(3, room // 2))
    if rng.random() < 0.2 and room >= 4:
        subject = phrases.common(rng, ("thing", "opening", "place", "food"), definite=True)
    slots = predicate(rng, _form(rng, subject, tenses), max(1, room - 1 - len(subject.phrase.source)))
    return question(slots, subject)


def why(rng: Random, room: int, tenses: Tenses) -> Phrase:
    """Why are you sad? ↔ ¿Por qué estás triste?"""
    subject = asked_subject(rng, min(3, room - 3))
    spare = max(1, room - 2 - len(subject.phrase.source))
    slots = rng.choice(_REASONED)(rng, _form(rng, subject, tenses), spare)
    return question(slots, subject, word("why", "por qué"))


def what(rng: Random, room: int, tenses: Tenses) -> Phrase:
    """What does Ana eat? ↔ ¿Qué come Ana? Which book does she want? ↔ ¿Qué libro quiere?"""
    subject = asked_subject(rng, min(3, room - 3))
    form = _form(rng, subject, tenses)
    verb = rng.choice(_asking(form))
    if rng.random() < 0.65:
        return question(finite(verb, form), subject, word("what", "qué"))
    thing = phrases.bare(rng, _countable(verb))
    return question(finite(verb, form), subject, chain(word("which", "qué"), thing.phrase))


def _asking(form: Form) -> list[Verb]:
    """The verbs whose object can be asked for: things, of which one can count some."""
    return [
        verb for verb in TRANSITIVE if "person" not in verb.objects and _countable(verb) and suits(verb, form.tense)
    ]


def _countable(verb: Verb) -> list[str]:
    return [kind for kind in verb.objects if kind not in lexicon.MASS]


def whom(rng: Random, room: int, tenses: Tenses) -> Phrase:
    """Who does Ana see? ↔ ¿A quién ve Ana?"""
    subject = asked_subject(rng, min(3, room - 3))
    form = _form(rng, subject, tenses)
    verb = rng.choice([verb for verb in TRANSITIVE if "person" in verb.objects and suits(verb, form.tense)])
    return question(finite(verb, form), subject, Phrase(("who",), ("a", "quién"), ((0, 1),)))


def who(rng: Random, room: int, tenses: Tenses) -> Phrase:
    """Who eats the bread? ↔ ¿Quién come el pan?"""
    asked = Nominal(word("who", "quién"), 2, "m", "person")
    slots = predicate(rng, Form(rng.choice(tenses), False, False, asked), max(1, room - 1))
    return statement(slots, asked)


def how_old(rng: Random, room: int, tenses: Tenses) -> Phrase:
    """How old is Ana? ↔ ¿Cuántos años tiene Ana?"""
    subject = asked_subject(rng, room - 3)
    return question(have(_form(rng, subject, _known(tenses))), subject, word("how old", "cuántos años"))


def how_many(rng: Random, room: int, tenses: Tenses) -> Phrase:
    """How many books does Ana have? ↔ ¿Cuántos libros tiene Ana?"""
    subject = asked_subject(rng, min(3, room - 5))
    form = _form(rng, subject, tenses)
    verb = rng.choice(_asking(form))
    thing = phrases.bare(rng, _countable(verb), number=2)
    many = word("how many", "cuántas" if thing.gender == "f" else "cuántos")
    return question(finite(verb, form), subject, chain(many, thing.phrase))


_MAKERS: tuple[Maker, ...] = (
    *(how,) * 5, *(whether,) * 4, *(where,) * 3, at_what_time, why, what, whom, who, how_old, how_many,
)  # fmt: skip
