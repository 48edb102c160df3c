"""A village: some sixty words in short clauses that are chained to any length, English and Spanish, with gold links.

A small world for experiments that a small budget must finish: nothing in it is hard but its length. Adjectives change
sides and agree, subjects of questions are dropped; all else stands word by word in the same order.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from mirada.corpora.grammar import DEMO, AlignedPair, Splits, realize
from mirada.corpora.phrases import NOTHING, Phrase, arrange, chain, word
from mirada.errors import DataError

PEOPLE = {
    "cat": "gato m", "dog": "perro m", "horse": "caballo m", "bird": "pájaro m", "boy": "chico m", "girl": "chica f",
    "doctor": "médico m", "teacher": "profesora f", "queen": "reina f", "aunt": "tía f",
}  # fmt: skip
THINGS = {
    "book": "libro m", "bread": "pan m", "boat": "barco m", "hat": "sombrero m", "house": "casa f",
    "table": "mesa f", "letter": "carta f", "chair": "silla f",
}  # fmt: skip
ADJECTIVES = {"red": "rojo", "old": "viejo", "small": "pequeño", "black": "negro", "new": "nuevo", "pretty": "bonito"}
DETERMINERS = {"the": ("el", "la"), "a": ("un", "una"), "this": ("este", "esta")}
ACTS = {"sleeps": "duerme", "sings": "canta", "works": "trabaja", "dances": "baila"}
ACTS_ON = {"sees": "ve", "buys": "compra", "wants": "quiere", "finds": "encuentra", "paints": "pinta", "sells": "vende"}
PLACES = {"in the garden": "en el jardín", "in the city": "en la ciudad", "at home": "en casa", "here": "aquí"}
JOINTS = {"and": "y", "but": "pero", "because": "porque", "while": "mientras"}
ASKING = {"how": "cómo", "where": "dónde"}
BEING = {"you are": "estás", "he is": "está", "we are": "estamos", "they are": "están"}
SHORTEST, LONGEST = 3, 200  # words
ASKED = 14  # words of questions at most
PATIENCE = 1000  # draws in a row that bring nothing new


def village(
    count: int,
    *,
    seed: int,
    max_words: int,
    even: bool = False,
    progress: Callable[[int], None] = lambda made: None,
) -> list[AlignedPair]:
    """Return `count` pairs, no two with the same source, of 3 to `max_words` English words.

    Short ones come more often, or with `even` all lengths as often. "How are you?" is none of them, but questions like
    it are. Raises DataError if there are not so many.
    """
    if not SHORTEST < max_words <= LONGEST:
        raise DataError(f"max_words must be {SHORTEST + 1} to {LONGEST}, got {max_words}")
    rng, found, fruitless = Random(seed), dict[str, AlignedPair](), 0
    while len(found) < count:
        pair = sentence(rng, rng.randint(SHORTEST, max_words if even else rng.randint(SHORTEST, max_words)))
        if pair is None or pair.source in found or pair.source == DEMO.source:
            fruitless += 1
            if fruitless == PATIENCE:
                raise DataError(f"found only {len(found)} different pairs of at most {max_words} words; ask for fewer")
            continue
        found[pair.source], fruitless = pair, 0
        progress(len(found))
    pairs = list(found.values())
    Random(seed).shuffle(pairs)  # the later a pair was drawn, the likelier it is long
    return pairs


def village_splits(pairs: int, *, seed: int, held_out: int, max_words: int) -> Splits:
    """Training pairs, and dev and test of `held_out` pairs each; "How are you?" is in test and nowhere else."""
    drawn = village(pairs + 2 * held_out, seed=seed, max_words=max_words)
    return Splits(drawn[2 * held_out :], drawn[:held_out], [DEMO, *drawn[held_out : 2 * held_out]])


def sentence(rng: Random, words: int) -> AlignedPair | None:
    """A question or a statement of about so many words, no more; nothing where the draw does not end in time."""
    asked = words <= ASKED and rng.random() < 0.25
    part, joints = (question, ["and"]) if asked else (clause, list(JOINTS))
    told = part(rng)
    while len(told.source) < words - 4:
        joint = rng.choice(joints)
        told = chain(told, word(joint, JOINTS[joint]), part(rng))
    if len(told.source) > words:
        return None
    marks = (Phrase((), ("¿",), ()), word("?", "?")) if asked else (NOTHING, word(".", "."))
    return realize(chain(marks[0], told, marks[1]))


def clause(rng: Random) -> Phrase:
    """Somebody does something, perhaps to a thing, perhaps somewhere; or just is somewhere."""
    if rng.random() < 0.1:
        return chain(_drawn(rng, BEING), _drawn(rng, PLACES))
    parts = [noun_phrase(rng, PEOPLE)]
    if rng.random() < 0.35:
        parts.append(_drawn(rng, ACTS))
    else:
        parts += [_drawn(rng, ACTS_ON), noun_phrase(rng, THINGS)]
    if rng.random() < 0.25:
        parts.append(_drawn(rng, PLACES))
    return chain(*parts)


def noun_phrase(rng: Random, nouns: dict[str, str]) -> Phrase:
    """A determiner, perhaps an adjective, which Spanish has after the noun, and the noun."""
    name = rng.choice(list(nouns))
    spanish, gender = nouns[name].split()
    determiner = rng.choice(list(DETERMINERS))
    parts = {"det": word(determiner, DETERMINERS[determiner][gender == "f"]), "noun": word(name, spanish)}
    if rng.random() < 0.4:
        english = rng.choice(list(ADJECTIVES))
        ending = "a" if gender == "f" else "o"
        parts["adj"] = word(english, ADJECTIVES[english][:-1] + ending)
    return arrange(parts, "det adj noun", "det noun adj")


def question(rng: Random) -> Phrase:
    """How or where somebody is, perhaps today: the verb before its subject, which Spanish drops if it is a pronoun."""
    asking = rng.choice(list(ASKING))
    if rng.random() < 0.5:
        who = chain(word("is", "está"), noun_phrase(rng, PEOPLE))
    else:
        pronoun, verb = rng.choice(list(BEING)).split()
        who = word(f"{verb} {pronoun}", BEING[f"{pronoun} {verb}"])
    when = word("today", "hoy") if rng.random() < 0.3 else NOTHING
    return chain(word(asking, ASKING[asking]), who, when)


def _drawn(rng: Random, rows: dict[str, str]) -> Phrase:
    english = rng.choice(list(rows))
    return word(english, rows[english])
