"""The rules of the embedded corpus against pairs and links written by hand, a row a phenomenon."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pytest

from mirada.corpora import clauses, lexicon, phrases, predicates, questions, sentences
from mirada.corpora.clauses import Form
from mirada.corpora.grammar import AlignedPair, realize
from mirada.corpora.phrases import NOTHING, Nominal, Phrase, chain, word

ME, YOU, HE, SHE, WE, THEY = (phrases.pronoun_subject(pronoun) for pronoun in lexicon.PRONOUNS)
ANA = Nominal(word("Ana", "Ana"), 2, "f", "person")
DIEGO = Nominal(word("Diego", "Diego"), 2, "m", "person")
INES = Nominal(word("Inés", "Inés"), 2, "f", "person")
WH_TENSES = ("present",)


def links(text: str) -> tuple[tuple[int, int], ...]:
    """Read "0-1 1-1"."""
    return tuple((int(i), int(j)) for i, j in (link.split("-") for link in text.split()))


def drawn(maker: Callable[[Random], Phrase], english: str) -> AlignedPair:
    """Draw from a rule until it says what was asked for; its Spanish is then the rule's, not the test's."""
    rng = Random(1)
    wanted = [*english.split()]
    for _ in range(100_000):
        phrase = maker(rng)
        if [text for text in phrase.source if text] == wanted:
            return realize(phrase)
    raise AssertionError(f"never said: {english}")


def said(subject: Nominal, verb: str, tense: str, negative: bool = False, **slots: Phrase) -> AlignedPair:
    form = Form(tense, negative, False, subject)
    return realize(chain(clauses.statement(clauses.finite(lexicon.verb(verb), form) | slots, subject), word(".", ".")))


def asked(subject: Nominal, verb: str, tense: str, wh: Phrase = NOTHING, **slots: Phrase) -> AlignedPair:
    form = Form(tense, False, True, subject)
    inner = clauses.question(clauses.finite(lexicon.verb(verb), form) | slots, subject, wh)
    return realize(chain(Phrase((), ("¿",), ()), inner, word("?", "?")))


HIM = word("him", "lo")
TO_HER = {"direct": word("it", "lo"), "indirect": word("to her", "se")}
TIRED = next(item for item in lexicon.ADJECTIVES if item.english == "tired")


def tired(gender: str, number: int) -> Phrase:
    return phrases.adjective(TIRED, gender, number)


# One row a phenomenon: what the rules make, and the pair as a person writes it.
CLAUSES = [
    (said(SHE, "comer", "present"), "She eats.", "Come.", "0-0 1-0 2-1"),
    (said(SHE, "comer", "present", True), "She does not eat.", "No come.", "0-1 2-0 3-1 4-2"),
    (said(THEY, "venir", "past", True), "They did not come.", "No vinieron.", "0-1 2-0 3-1 4-2"),
    (said(WE, "comer", "future"), "We are going to eat.", "Vamos a comer.", "0-0 1-0 2-0 3-1 4-2 5-3"),
    (
        said(ANA, "comer", "future", True),
        "Ana is not going to eat.",
        "Ana no va a comer.",
        "0-0 1-2 2-1 3-2 4-3 5-4 6-5",
    ),
    (said(ME, "buscar", "past", direct=word("it", "lo")), "I looked for it.", "Lo busqué.", "0-1 1-1 2-1 3-0 4-2"),
    (said(SHE, "ver", "present", direct=HIM), "She sees him.", "Lo ve.", "0-1 1-1 2-0 3-2"),
    (said(SHE, "ver", "past", True, direct=HIM), "She did not see him.", "No lo vio.", "0-2 2-0 3-2 4-1 5-3"),
    (said(HE, "ver", "future", direct=HIM), "He is going to see him.", "Lo va a ver.", "0-1 1-1 2-1 3-2 4-3 5-0 6-4"),
    (said(HE, "dar", "present", **TO_HER), "He gives it to her.", "Se lo da.", "0-2 1-2 2-1 3-0 4-0 5-3"),
    (
        said(ANA, "ver", "present", object=clauses.with_a(DIEGO)),
        "Ana sees Diego.",
        "Ana ve a Diego.",
        "0-0 1-1 2-3 3-4",
    ),
    (said(ANA, "estar", "present", complement=tired("f", 1)), "Ana is tired.", "Ana está cansada.", "0-0 1-1 2-2 3-3"),
    (said(WE, "estar", "past", complement=tired("m", 2)), "We were tired.", "Estábamos cansados.", "0-0 1-0 2-1 3-2"),
    (
        said(phrases.both(ANA, INES), "estar", "present", complement=tired("f", 2)),
        "Ana and Inés are tired.",
        "Ana e Inés están cansadas.",
        "0-0 1-1 2-2 3-3 4-4 5-5",
    ),
    (asked(YOU, "comer", "present"), "Do you eat?", "¿Comes?", "1-1 2-1 3-2"),
    (asked(ANA, "dormir", "past"), "Did Ana sleep?", "¿Durmió Ana?", "1-2 2-1 3-3"),
    (asked(ANA, "venir", "future"), "Is Ana going to come?", "¿Va a venir Ana?", "0-1 1-4 2-1 3-2 4-3 5-5"),
    (
        asked(ANA, "estar", "present", complement=tired("f", 1)),
        "Is Ana tired?",
        "¿Está cansada Ana?",
        "0-1 1-3 2-2 3-4",
    ),
    (
        asked(SHE, "trabajar", "present", word("where", "dónde")),
        "Where does she work?",
        "¿Dónde trabaja?",
        "0-1 2-2 3-2 4-3",
    ),
]


@pytest.mark.parametrize(("made", "source", "target", "linked"), CLAUSES, ids=[row[1] for row in CLAUSES])
def test_clauses(made: AlignedPair, source: str, target: str, linked: str) -> None:
    assert made == AlignedPair(source, target, links(linked))


def nouns(kind: str, room: int) -> Callable[[Random], Phrase]:
    return lambda rng: phrases.common(rng, (kind,), room=room).phrase


def after(subject: Nominal, maker: predicates.Maker, tense: str = "present") -> Callable[[Random], Phrase]:
    return lambda rng: clauses.statement(maker(rng, Form(tense, False, False, subject), 4), subject)


def helped(subject: Nominal, verb: str) -> Callable[[Random], Phrase]:
    form = Form("present", False, False, subject)
    return lambda rng: clauses.statement(clauses.modal(rng, lexicon.verb(verb), form), subject)


def about(maker: questions.Maker, room: int = 4) -> Callable[[Random], Phrase]:
    return lambda rng: maker(rng, room, WH_TENSES)


def of(kind: str) -> Callable[[Random], Phrase]:
    return lambda rng: phrases.preposition("of", "de", phrases.common(rng, (kind,), definite=True))


MAN = Nominal(word("the man", "el hombre"), 2, "m", "person")
HOUSE = Nominal(word("the house", "la casa"), 2, "f", "place")
BOOKS = Nominal(word("the books", "los libros"), 4, "m", "text")
PHRASES = [
    (nouns("animal", 3), "the black dog", "El perro negro", "0-0 1-2 2-1"),
    (nouns("thing", 4), "the small red car", "El coche rojo pequeño", "0-0 1-3 2-2 3-1"),
    (nouns("opening", 3), "these French doors", "Estas puertas francesas", "0-0 1-2 2-1"),
    (nouns("person", 4), "a very tall man", "Un hombre muy alto", "0-0 1-2 2-3 3-1"),
    (nouns("drink", 3), "the cold water", "El agua fría", "0-0 1-2 2-1"),
    (nouns("drink", 2), "this water", "Esta agua", "0-0 1-1"),
    (nouns("place", 2), "these cities", "Estas ciudades", "0-0 1-1"),
    (nouns("kin", 2), "Ana's sisters", "Las hermanas de Ana", "0-0 0-2 0-3 1-1"),
    (nouns("food", 2), "three oranges", "Tres naranjas", "0-0 1-1"),
    (of("place"), "of the garden", "Del jardín", "0-0 1-0 2-1"),
    (of("drink"), "of the water", "Del agua", "0-0 1-0 2-1"),
    (lambda rng: predicates.relative(rng, MAN, 4), "who sleeps", "Que duerme", "0-0 1-1"),
    (lambda rng: predicates.relative(rng, MAN, 4), "that she sees", "Al que ve", "0-0 0-1 1-2 2-2"),
    (lambda rng: predicates.relative(rng, HOUSE, 4), "where Ana lives", "Donde Ana vive", "0-0 1-1 2-2"),
    (lambda rng: predicates.relative(rng, BOOKS, 4), "that we bought", "Que compramos", "0-0 1-1 2-1"),
    (after(ANA, predicates.compared), "Ana is taller than Diego", "Ana es más alta que Diego",
     "0-0 1-1 2-2 2-3 3-4 4-5"),
    (after(SHE, predicates.needing), "she is hungry", "Tiene hambre", "0-0 1-0 2-1"),
    (after(ANA, predicates.aged), "Ana is ten years old", "Ana tiene diez años", "0-0 1-1 2-2 3-3 4-3"),
    (after(SHE, predicates.quality), "she is tall", "Es alta", "0-0 1-0 2-1"),
    (after(THEY, predicates.quality), "they are sick", "Están enfermos", "0-0 1-0 2-1"),
    (after(ANA, predicates.motion), "Ana goes to the park", "Ana va al parque", "0-0 1-1 2-2 3-2 4-3"),
    (after(SHE, predicates.located), "she is in Seville", "Está en Sevilla", "0-0 1-0 2-1 3-2"),
    (helped(SHE, "comer"), "she wants to eat", "Quiere comer", "0-0 1-0 2-1 3-1"),
    (helped(SHE, "comer"), "she has to eat", "Tiene que comer", "0-0 1-0 2-1 3-2"),
    (helped(SHE, "comer"), "she can eat", "Puede comer", "0-0 1-0 2-1"),
    (lambda rng: sentences.liking(rng, 4), "Ana likes to dance", "A Ana le gusta bailar", "0-1 1-2 1-3 2-4 3-4"),
    (lambda rng: sentences.liking(rng, 4), "they like the dogs", "Les gustan los perros", "0-0 1-1 2-2 3-3"),
    (lambda rng: sentences.there_is(rng, 5, "present"), "there is a dog in Lima", "Hay un perro en Lima",
     "0-0 1-0 2-1 3-2 4-3 5-4"),
    (lambda rng: sentences.there_is(rng, 5, "past"), "there were some eggs under the bed",
     "Había algunos huevos debajo de la cama", "0-0 1-0 2-1 3-2 4-3 4-4 5-5 6-6"),
    (sentences.kinship, "Ana is my sister", "Ana es mi hermana", "0-0 1-1 2-2 3-3"),
    (about(questions.how, 4), "how is your brother", "Cómo está tu hermano", "0-0 1-1 2-2 3-3"),
    (about(questions.how, 3), "how are you", "Cómo estás", "0-0 1-1 2-1"),
    (about(questions.how, 4), "how are you , Ana", "Cómo estás, Ana", "0-0 1-1 2-1 3-2 4-3"),
    (after(ANA, predicates.giving), "Ana gives us a cup", "Ana nos da una taza", "0-0 1-2 2-1 3-3 4-4"),
    (about(questions.where), "where is the key", "Dónde está la llave", "0-0 1-1 2-2 3-3"),
    (about(questions.whom), "who does Ana see", "A quién ve Ana", "0-1 2-3 3-2"),
    (about(questions.what), "what does Ana read", "Qué lee Ana", "0-0 2-2 3-1"),
    (about(questions.why), "why are you sad", "Por qué estás triste", "0-0 0-1 1-2 2-2 3-3"),
    (about(questions.how_old), "how old is she", "Cuántos años tiene", "0-0 1-1 2-2 3-2"),
    (about(questions.how_many, 5), "how many keys do you have", "Cuántas llaves tienes", "0-0 1-0 2-1 4-2 5-2"),
    (about(questions.who, 2), "who sleeps", "Quién duerme", "0-0 1-1"),
    (about(questions.whether), "is he sick", "Está enfermo", "0-0 1-0 2-1"),
]  # fmt: skip


@pytest.mark.parametrize(("maker", "source", "target", "linked"), PHRASES, ids=[row[1] for row in PHRASES])
def test_phrases_and_rules(maker: Callable[[Random], Phrase], source: str, target: str, linked: str) -> None:
    made = drawn(maker, source)
    assert (made.target, made.links) == (target, links(linked))


def test_a_becomes_an_before_a_vowel() -> None:
    made = realize(chain(word("a", "una"), word("orange", "naranja"), word("and", "y"), word("a", "un")))
    assert made.source == "An orange and a"
