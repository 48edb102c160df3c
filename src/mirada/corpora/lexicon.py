"""The words of the embedded English–Spanish corpus: tables only; morphology.py inflects them, phrases.py combines them.

Rows are `english spanish …`, separated by commas. Every English form has one Spanish lemma in a given frame, so that
the Spanish sentence is a function of the English one (friend = amigo, boy = chico, child = niño).
"""

from __future__ import annotations

from functools import cache
from typing import Literal, NamedTuple

Gender = Literal["m", "f"]
Aspect = Literal["preterite", "imperfect"]


class Noun(NamedTuple):
    """A common noun; its kind says which verbs and adjectives it goes with."""

    english: str
    spanish: str
    gender: Gender
    kind: str


class Name(NamedTuple):
    """A person's name, the same in both languages."""

    text: str
    gender: Gender


class Adjective(NamedTuple):
    """An adjective in the masculine singular, its copula, and the kinds of noun that it fits."""

    english: str
    spanish: str
    copula: str
    kinds: tuple[str, ...]
    group: str


class Verb(NamedTuple):
    """A verb: dictionary forms, the Spanish tense of its English past, and what may follow it.

    `objects` are kinds of noun (empty: intransitive); `particle` is the English preposition that Spanish lacks.
    """

    english: str
    spanish: str
    aspect: Aspect
    subjects: tuple[str, ...]
    objects: tuple[str, ...]
    particle: str


class Pronoun(NamedTuple):
    """A personal pronoun: English subject and object forms, Spanish person 0–4, clitics, form after a preposition.

    Persons: 0 yo, 1 tú, 2 él or ella, 3 nosotros, 4 ellos. Where English shows no gender, Spanish is masculine.
    """

    subject: str
    object: str
    person: int
    gender: Gender
    direct: str
    indirect: str
    strong: str


PEOPLE = ("person", "kin", "worker")
THINGS = ("thing", "opening", "text")
FOODS = ("food", "dish")
MASS = ("dish", "drink")

_NOUNS: dict[str, str] = {
    "person": "man hombre m, woman mujer f, boy chico m, girl chica f, child niño m, friend amigo m, neighbor vecino m",
    "kin": "brother hermano m, sister hermana f, mother madre f, father padre m, son hijo m, daughter hija f, "
    "grandmother abuela f, grandfather abuelo m, uncle tío m, aunt tía f",
    "worker": "teacher profesor m, doctor médico m, student estudiante m, artist artista m",
    "animal": "dog perro m, cat gato m, horse caballo m, bird pájaro m, cow vaca f, mouse ratón m, wolf lobo m",
    "place": "house casa f, school escuela f, city ciudad f, garden jardín m, park parque m, market mercado m, "
    "library biblioteca f, hospital hospital m, square plaza f, kitchen cocina f, office oficina f, station estación f",
    "thing": "table mesa f, chair silla f, car coche m, bicycle bicicleta f, box caja f, key llave f, "
    "knife cuchillo m, cup taza f, hat sombrero m, shirt camisa f, shoe zapato m, bed cama f, flower flor f, "
    "tree árbol m, map mapa m, gift regalo m, clock reloj m, umbrella paraguas m, photo foto f",
    "opening": "door puerta f, window ventana f",
    "text": "book libro m, letter carta f, newspaper periódico m, poem poema m, message mensaje m",
    "song": "song canción f",
    "food": "apple manzana f, orange naranja f, egg huevo m, potato patata f, tomato tomate m",
    "dish": "bread pan m, cheese queso m, soup sopa f, rice arroz m",
    "drink": "water agua f, milk leche f, coffee café m, tea té m",
}
_NAMES = "Ana f, Clara f, Elena f, Laura f, Marta f, Inés f, Carlos m, Daniel m, David m, Diego m, Hugo m, Pablo m"

# copula, kinds, group → rows. Two adjectives on one noun come from the groups size and colour.
_ADJECTIVES: tuple[tuple[str, tuple[str, ...], str, str], ...] = (
    ("ser", PEOPLE, "trait", "tall alto, short bajo, young joven, intelligent inteligente, kind amable, famous famoso"),
    ("ser", PEOPLE, "trait", "rich rico, serious serio"),
    ("ser", (*PEOPLE, "animal"), "trait", "strong fuerte"),
    ("ser", (*PEOPLE, *THINGS, "song"), "origin", "Spanish español, French francés"),
    ("ser", ("animal", "place", "thing", "opening", "food"), "size", "big grande, small pequeño"),
    ("ser", ("thing", "place", "text"), "age", "new nuevo"),
    ("ser", ("animal", "thing", "opening"), "colour", "white blanco, black negro"),
    ("ser", ("thing", "opening", "food"), "colour", "red rojo, green verde"),
    ("ser", ("thing", "opening"), "colour", "blue azul"),
    ("ser", ("thing", "text", *FOODS), "price", "expensive caro, cheap barato"),
    ("ser", ("place", "thing", "song"), "trait", "beautiful bonito"),
    ("ser", ("text", "song"), "trait", "long largo, interesting interesante, difficult difícil"),
    ("estar", (*PEOPLE, "animal"), "state", "tired cansado, sick enfermo, sad triste, calm tranquilo"),
    ("estar", PEOPLE, "state", "happy contento, angry enfadado, busy ocupado, nervous nervioso"),
    ("estar", ("opening",), "open", "open abierto, closed cerrado"),
    ("estar", ("place", "thing", "opening"), "state", "clean limpio, dirty sucio"),
    ("estar", MASS, "state", "cold frío, hot caliente"),
)
NO_DEGREES = ("origin", "colour", "open")  # groups that very does not go with
OPPOSITES = ("tall", "short")
COMPARATIVES: dict[str, str] = {
    "tall": "taller", "short": "shorter", "young": "younger", "kind": "kinder", "rich": "richer", "strong": "stronger",
    "big": "bigger", "small": "smaller", "famous": "more famous", "intelligent": "more intelligent",
    "expensive": "more expensive", "cheap": "cheaper",
}  # fmt: skip

_VERBS: tuple[tuple[str, str, Aspect, tuple[str, ...], tuple[str, ...]], ...] = (
    ("eat", "comer", "preterite", (*PEOPLE, "animal"), FOODS),
    ("drink", "beber", "preterite", (*PEOPLE, "animal"), ("drink",)),
    ("cook", "cocinar", "preterite", PEOPLE, ("food", "dish")),
    ("buy", "comprar", "preterite", PEOPLE, ("thing", "text", "animal", *FOODS, "drink")),
    ("sell", "vender", "preterite", PEOPLE, ("thing", "text", "animal", *FOODS)),
    ("see", "ver", "preterite", (*PEOPLE, "animal"), (*PEOPLE, "animal", "thing", "opening", "place")),
    ("look_for", "buscar", "preterite", (*PEOPLE, "animal"), (*PEOPLE, "animal", "thing", "text", "food")),
    ("find", "encontrar", "preterite", (*PEOPLE, "animal"), (*PEOPLE, "animal", "thing", "text", "food")),
    ("read", "leer", "preterite", PEOPLE, ("text",)),
    ("write", "escribir", "preterite", PEOPLE, ("text", "song")),
    ("open", "abrir", "preterite", PEOPLE, ("opening",)),
    ("close", "cerrar", "preterite", PEOPLE, ("opening",)),
    ("wash", "lavar", "preterite", PEOPLE, ("thing", "opening", "food")),
    ("need", "necesitar", "imperfect", PEOPLE, (*PEOPLE, "thing", "text", "dish", "drink")),
    ("want", "querer", "imperfect", PEOPLE, ("thing", "text", "animal", *FOODS, "drink")),
    ("love", "querer", "imperfect", PEOPLE, PEOPLE),
    ("have", "tener", "imperfect", PEOPLE, ("thing", "text", "animal")),
    ("know", "conocer", "imperfect", PEOPLE, (*PEOPLE, "place", "song")),
    ("help", "ayudar", "preterite", PEOPLE, PEOPLE),
    ("call", "llamar", "preterite", PEOPLE, PEOPLE),
    ("visit", "visitar", "preterite", PEOPLE, (*PEOPLE, "place")),
    ("wait_for", "esperar", "preterite", PEOPLE, PEOPLE),
    ("listen_to", "escuchar", "preterite", PEOPLE, (*PEOPLE, "song")),
    ("sing", "cantar", "preterite", PEOPLE, ("song",)),
    ("break", "romper", "preterite", PEOPLE, ("opening", "thing")),
    ("lose", "perder", "preterite", PEOPLE, ("thing", "text")),
    ("paint", "pintar", "preterite", PEOPLE, ("opening", "thing", "animal")),
    ("sleep", "dormir", "preterite", (*PEOPLE, "animal"), ()),
    ("work", "trabajar", "preterite", PEOPLE, ()),
    ("live", "vivir", "imperfect", (*PEOPLE, "animal"), ()),
    ("run", "correr", "preterite", (*PEOPLE, "animal"), ()),
    ("play", "jugar", "preterite", (*PEOPLE, "animal"), ()),
    ("cry", "llorar", "preterite", PEOPLE, ()),
    ("study", "estudiar", "preterite", PEOPLE, ()),
    ("dance", "bailar", "preterite", PEOPLE, ()),
    ("go", "ir", "preterite", (*PEOPLE, "animal"), ("to",)),
    ("come", "venir", "preterite", (*PEOPLE, "animal"), ("to",)),
    ("return", "volver", "preterite", (*PEOPLE, "animal"), ("to",)),
    ("arrive", "llegar", "preterite", (*PEOPLE, "animal"), ("to",)),
    ("give", "dar", "preterite", PEOPLE, ("gift",)),
    ("send", "enviar", "preterite", PEOPLE, ("gift",)),
    ("show", "mostrar", "preterite", PEOPLE, ("gift",)),
    ("bring", "traer", "preterite", PEOPLE, ("gift",)),
    ("say", "decir", "preterite", PEOPLE, ("that",)),
    ("think", "pensar", "imperfect", PEOPLE, ("that",)),
    ("believe", "creer", "imperfect", PEOPLE, ("that",)),
    ("know", "saber", "imperfect", PEOPLE, ("that",)),
    ("can", "poder", "imperfect", PEOPLE, ("infinitive",)),
    ("be", "ser", "imperfect", PEOPLE, ("be",)),
    ("be", "estar", "imperfect", PEOPLE, ("be",)),
)  # fmt: skip

PRONOUNS: tuple[Pronoun, ...] = (
    Pronoun("I", "me", 0, "m", "me", "me", "mí"),
    Pronoun("you", "you", 1, "m", "te", "te", "ti"),
    Pronoun("he", "him", 2, "m", "lo", "le", "él"),
    Pronoun("she", "her", 2, "f", "la", "le", "ella"),
    Pronoun("we", "us", 3, "m", "nos", "nos", "nosotros"),
    Pronoun("they", "them", 4, "m", "los", "les", "ellos"),
)
IT = Pronoun("it", "it", 2, "m", "lo", "le", "él")

# English, then Spanish: masculine and feminine singular, masculine and feminine plural; `-` where there is none.
DETERMINERS: dict[str, str] = {
    "the": "el la los las", "a": "un una - -", "this": "este esta - -", "these": "- - estos estas",
    "that": "ese esa - -", "those": "- - esos esas", "my": "mi mi mis mis", "your": "tu tu tus tus",
    "his": "su su sus sus", "her": "su su sus sus", "our": "nuestro nuestra nuestros nuestras",
    "their": "su su sus sus", "many": "- - muchos muchas", "some": "- - algunos algunas", "every": "cada cada - -",
    "another": "otro otra - -", "two": "- - dos dos", "three": "- - tres tres", "four": "- - cuatro cuatro",
    "five": "- - cinco cinco", "six": "- - seis seis", "seven": "- - siete siete", "eight": "- - ocho ocho",
    "nine": "- - nueve nueve", "ten": "- - diez diez", "twenty": "- - veinte veinte",
    "thirty": "- - treinta treinta", "forty": "- - cuarenta cuarenta",
}  # fmt: skip
# Nobody's own: "my man", "her station" would be odd.
UNOWNED = ("man", "woman", "boy", "girl", "child", "artist", "city", "park", "market", "library", "hospital", "square",
           "station")  # fmt: skip
ONE_EACH = ("mother", "father")
DEFINITE = ("the", "this", "these", "that", "those", "my", "your", "his", "her", "our", "their")
POSSESSIVES = ("my", "your", "his", "her", "our", "their")
AGES = ("six", "eight", "nine", "ten", "twenty", "thirty", "forty")
NUMBERS = ("two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "twenty")

CITIES = ("Madrid=Madrid", "Lima=Lima", "Seville=Sevilla", "London=Londres")
# English=Spanish=links; `_` joins the words of one unit.
PLACES = ("in=en", "near=cerca de", "behind=detrás de", "in_front_of=delante de=0-0 1-0 2-1")
SURFACES = ("on=sobre", "under=debajo de")
FURNITURE = ("table", "chair", "bed")
NEEDS = ("hungry=hambre", "thirsty=sed", "sleepy=sueño", "afraid=miedo")


class TimeAdverb(NamedTuple):
    """An adverbial of time, the links of its words, and the tenses that it goes with."""

    english: str
    spanish: str
    links: str
    tenses: tuple[str, ...]


TIMES: tuple[TimeAdverb, ...] = (
    TimeAdverb("today", "hoy", "0-0", ("present", "past", "future")),
    TimeAdverb("now", "ahora", "0-0", ("present",)),
    TimeAdverb("every day", "todos los días", "0-0 0-1 1-2", ("present",)),
    TimeAdverb("at night", "por la noche", "0-0 1-1 1-2", ("present", "past")),
    TimeAdverb("in the morning", "por la mañana", "0-0 1-1 2-2", ("present", "past")),
    TimeAdverb("on Sundays", "los domingos", "0-0 1-1", ("present",)),
    TimeAdverb("on Monday", "el lunes", "0-0 1-1", ("past", "future")),
    TimeAdverb("on Friday", "el viernes", "0-0 1-1", ("past", "future")),
    TimeAdverb("yesterday", "ayer", "0-0", ("past",)),
    TimeAdverb("last night", "anoche", "0-0 1-0", ("past",)),
    TimeAdverb("last week", "la semana pasada", "0-2 1-0 1-1", ("past",)),
    TimeAdverb("tomorrow", "mañana", "0-0", ("future",)),
    TimeAdverb("next week", "la semana próxima", "0-2 1-0 1-1", ("future",)),
    TimeAdverb("at five o'clock", "a las cinco", "0-0 1-2 2-1", ("present", "past", "future")),
    TimeAdverb("at nine o'clock", "a las nueve", "0-0 1-2 2-1", ("present", "past", "future")),
)


def _gender(text: str) -> Gender:
    return "m" if text == "m" else "f"


def _rows(text: str) -> list[list[str]]:
    return [row.split() for row in text.split(", ")]


NOUNS: tuple[Noun, ...] = tuple(
    Noun(english, spanish, _gender(gender), kind)
    for kind, rows in _NOUNS.items()
    for english, spanish, gender in _rows(rows)
)
NOUN_KINDS = frozenset(_NOUNS)
NAMES: tuple[Name, ...] = tuple(Name(text, _gender(gender)) for text, gender in _rows(_NAMES))
ADJECTIVES: tuple[Adjective, ...] = tuple(
    Adjective(english, spanish, copula, kinds, group)
    for copula, kinds, group, rows in _ADJECTIVES
    for english, spanish in _rows(rows)
)
VERBS: tuple[Verb, ...] = tuple(
    Verb(base.partition("_")[0], spanish, aspect, subjects, objects, base.partition("_")[2])
    for base, spanish, aspect, subjects, objects in _VERBS
)


@cache
def nouns(kinds: tuple[str, ...]) -> tuple[Noun, ...]:
    """Return the nouns of these kinds."""
    return tuple(noun for noun in NOUNS if noun.kind in kinds)


@cache
def adjectives(kind: str) -> tuple[Adjective, ...]:
    """Return the adjectives that fit nouns of a kind."""
    return tuple(item for item in ADJECTIVES if kind in item.kinds)


@cache
def verb(spanish: str, english: str | None = None) -> Verb:
    """Return the verb with this infinitive; two share querer, so English may be needed too."""
    return next(item for item in VERBS if item.spanish == spanish and english in (None, item.english))


@cache
def verbs(*english: str) -> tuple[Verb, ...]:
    """Return the verbs with these English base forms, in the lexicon's order."""
    return tuple(item for item in VERBS if item.english in english)
