"""Aligned fragments, how they are put together, and the noun phrases of the embedded corpus.

A `Phrase` holds English words, Spanish words and the links between them. Everything is built by `arrange`, which lays
named phrases out in one order on each side. An empty word is a silent one: `finish` melts it into the word after it, so
that a dropped subject ("she" ↔ "") ends up linked to the verb that carries its person.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from random import Random
from typing import NamedTuple, TypeVar

from mirada.corpora import lexicon
from mirada.corpora.lexicon import Adjective, Noun, Pronoun
from mirada.corpora.morphology import agree, english_plural, plural

Link = tuple[int, int]
Item = TypeVar("Item")


class Phrase(NamedTuple):
    """English words, Spanish words, and the links between their positions."""

    source: tuple[str, ...]
    target: tuple[str, ...]
    links: tuple[Link, ...]


class Nominal(NamedTuple):
    """A noun phrase with what its verb and its adjectives must know of it."""

    phrase: Phrase
    person: int
    gender: str
    kind: str
    pronoun: Pronoun | None = None

    @property
    def number(self) -> int:
        """1 or 2."""
        return 2 if self.person > 2 else 1

    @property
    def human(self) -> bool:
        """Whether it takes the personal a."""
        return self.kind in lexicon.PEOPLE


NOTHING = Phrase((), (), ())


@cache
def word(source: str, target: str, links: str | None = None) -> Phrase:
    """Make a phrase of words; "0-0 1-0" gives the links.

    Without links: place by place where both sides have as many words, else every word with every word.
    """
    left, right = tuple(source.split(" ")), tuple(target.split(" "))
    if links is not None:
        pairs = [(int(i), int(j)) for i, _, j in (link.partition("-") for link in links.split())]
    elif len(left) == len(right):
        pairs = [(i, i) for i in range(len(left))]
    else:
        pairs = [(i, j) for i in range(len(left)) for j in range(len(right))]
    return Phrase(left, right, tuple(pairs))


def arrange(parts: Mapping[str, Phrase], source: str, target: str) -> Phrase:
    """Lay named phrases out: the order of the names on the English side, and on the Spanish side.

    A name that `parts` lacks is skipped, so that one pair of orders serves every clause.
    """
    left, source_at = _lay([(name, parts[name].source) for name in source.split() if name in parts])
    right, target_at = _lay([(name, parts[name].target) for name in target.split() if name in parts])
    links = [
        (source_at[name] + i, target_at[name] + j)
        for name in source_at
        if name in target_at
        for i, j in parts[name].links
    ]
    return Phrase(left, right, tuple(links))


def _lay(rows: list[tuple[str, tuple[str, ...]]]) -> tuple[tuple[str, ...], dict[str, int]]:
    words: list[str] = []
    places = {}
    for name, row in rows:
        places[name] = len(words)
        words.extend(row)
    return tuple(words), places


def chain(*phrases: Phrase) -> Phrase:
    """Put phrases one after another, in the same order on both sides."""
    source: list[str] = []
    target: list[str] = []
    links = []
    for phrase in phrases:
        links += [(i + len(source), j + len(target)) for i, j in phrase.links]
        source += phrase.source
        target += phrase.target
    return Phrase(tuple(source), tuple(target), tuple(links))


def finish(phrase: Phrase) -> Phrase:
    """Melt silent words into the next, then apply a/an, al, del, el agua, and e for y."""
    source, source_at = _melt(_articles(phrase.source), {})
    target, target_at = _melt(phrase.target, {})
    target, contracted_at = _melt(_soften(target), {("a", "el"): "al", ("de", "el"): "del"})
    links = {(source_at[i], contracted_at[target_at[j]]) for i, j in phrase.links}
    return Phrase(source, target, tuple(sorted(links)))


def _melt(words: Sequence[str], contractions: Mapping[tuple[str, str], str]) -> tuple[tuple[str, ...], list[int]]:
    """Return the words that are left, and for each old position its new one."""
    kept: list[str] = []
    places = []
    for previous, this in zip(("", *words), words, strict=False):
        if (previous, this) in contractions:
            kept[-1] = contractions[previous, this]
            places.append(len(kept) - 1)
            continue
        places.append(len(kept))
        if this:
            kept.append(this)
    return tuple(kept), places


def _articles(words: Sequence[str]) -> list[str]:
    return ["an" if this == "a" and after[:1] in "aeiou" else this for this, after in _followed(words)]


def _soften(words: Sequence[str]) -> list[str]:
    softer = []
    for this, after in _followed(words):
        if this == "la" and after == "agua":
            softer.append("el")
        else:
            softer.append("e" if this == "y" and after[:1].lower() == "i" else this)
    return softer


def _followed(words: Sequence[str]) -> zip[tuple[str, str]]:
    return zip(words, (*words[1:], "."), strict=True)


# Noun phrases -------------------------------------------------------------------------------------------------------

_SINGULAR = ("the", "the", "the", "the", "a", "a", "a", "this", "that", "my", "your", "his", "her", "our", "their")
_PLURAL = ("the", "the", "the", "my", "your", "our", "their", "these", "those", "many", *lexicon.NUMBERS[:9])
_MANY = {"place": 0.05, "kin": 0.15, "dish": 0.0, "drink": 0.0}  # chance of a plural; others 0.3
_RARE = ("every", "another")
_DEFINITE = ("the", "the", "the", "my", "your", "his", "her", "our", "their", "this")
_MASS = ("the", "the", "my", "this", "")


def pronoun_subject(pronoun: Pronoun) -> Nominal:
    """A dropped subject: silent in Spanish."""
    kind = "thing" if pronoun is lexicon.IT else "person"
    return Nominal(word(pronoun.subject, ""), pronoun.person, pronoun.gender, kind, pronoun)


def named(rng: Random) -> Nominal:
    """A person's name."""
    name = rng.choice(lexicon.NAMES)
    return Nominal(word(name.text, name.text), 2, name.gender, "person")


def both(first: Nominal, second: Nominal) -> Nominal:
    """Two noun phrases joined by and; masculine unless both are feminine."""
    parts = {"first": first.phrase, "and": word("and", "y"), "second": second.phrase}
    phrase = arrange(parts, "first and second", "first and second")
    gender = "f" if first.gender == second.gender == "f" else "m"
    return Nominal(phrase, 4, gender, first.kind)


def overlap(first: Nominal, second: Nominal) -> bool:
    """Whether two noun phrases share a name or a noun."""
    return bool(_content(first) & _content(second))


def _content(nominal: Nominal) -> set[str]:
    return {text.removesuffix("'s") for text in nominal.phrase.source} - lexicon.DETERMINERS.keys()


def can_join(first: Nominal, second: Nominal) -> bool:
    """Whether "… and …" says something, and one thing: not Ana and Ana, nor Ana and Diego's brother."""
    words = (*first.phrase.source, *second.phrase.source)
    return not overlap(first, second) and not any(text.endswith("'s") for text in words)


def common(
    rng: Random,
    kinds: Sequence[str],
    *,
    room: int = 2,
    definite: bool = False,
    indefinite: bool = False,
    qualified: bool = True,
) -> Nominal:
    """A determiner, perhaps adjectives, and a noun of one of `kinds`, in about `room` English words."""
    noun = rng.choice(lexicon.nouns(tuple(kinds)))
    many = rng.random() < _MANY.get(noun.kind, 0.3) and noun.english not in lexicon.ONE_EACH
    number = 2 if many else 1
    parts = {"noun": _noun(noun, number)}
    parts |= _determiner(rng, noun, number, room=room, definite=definite, indefinite=indefinite)
    if qualified and room >= 3 and rng.random() < 0.7:
        parts |= _qualities(rng, noun, number, room - 2)
    phrase = arrange(parts, "det owner size colour noun", "det noun colour size owner")
    return Nominal(phrase, 2 if number == 1 else 4, noun.gender, noun.kind)


def _noun(noun: Noun, number: int) -> Phrase:
    return word(noun.english, noun.spanish) if number == 1 else word(english_plural(noun.english), plural(noun.spanish))


def determiner(text: str, gender: str, number: int) -> Phrase:
    """The determiner in the form that its noun asks for."""
    forms = lexicon.DETERMINERS[text].split()
    return word(text, forms[2 * (number - 1) + (gender == "f")])


def _determiner(
    rng: Random, noun: Noun, number: int, *, room: int, definite: bool, indefinite: bool
) -> dict[str, Phrase]:
    if indefinite:
        text = "a" if number == 1 else rng.choice(("some", "many", *lexicon.NUMBERS[:5]))
        return {"det": determiner(text, noun.gender, number)}
    if noun.kind == "kin":
        if rng.random() < 0.3:
            return _owner(rng, noun, number)
        return {"det": determiner(rng.choice(lexicon.POSSESSIVES), noun.gender, number)}
    if noun.kind in lexicon.MASS:
        text = rng.choice(_MASS[:-1] if definite else _MASS)
        return {"det": determiner(text, noun.gender, number)} if text else {}
    if definite:
        choices: tuple[str, ...] = _DEFINITE if number == 1 else (*_DEFINITE[:-1], "these")
    else:
        choices = (_SINGULAR if rng.random() < 0.95 else _RARE) if number == 1 else _PLURAL
    if noun.english in lexicon.UNOWNED:
        choices = tuple(text for text in choices if text not in lexicon.POSSESSIVES)
    return {"det": determiner(rng.choice(choices), noun.gender, number)}


def _owner(rng: Random, noun: Noun, number: int) -> dict[str, Phrase]:
    """Ana's brother → el hermano de Ana: the article has a silent English word before "Ana's"."""
    name = rng.choice(lexicon.NAMES).text
    article = lexicon.DETERMINERS["the"].split()[2 * (number - 1) + (noun.gender == "f")]
    return {"det": word("", article), "owner": word(f"{name}'s", f"de {name}")}


def _qualities(rng: Random, noun: Noun, number: int, room: int) -> dict[str, Phrase]:
    fits = [item for item in lexicon.adjectives(noun.kind) if item.group != "open"]
    quality = rng.choice(fits)
    phrase = adjective(quality, noun.gender, number)
    colours = [other for other in fits if other.group == "colour"]
    if room >= 2 and quality.group == "size" and colours and rng.random() < 0.5:
        return {"size": phrase, "colour": adjective(rng.choice(colours), noun.gender, number)}
    if room >= 2 and rng.random() < 0.25:
        phrase = chain(word("very", "muy"), phrase) if quality.group not in lexicon.NO_DEGREES else phrase
    elif room >= 3 and quality.group in ("trait", "colour") and rng.random() < 0.4:
        others = [other for other in fits if other.group == quality.group and other.english not in _against(quality)]
        if others:
            phrase = chain(phrase, word("and", "y"), adjective(rng.choice(others), noun.gender, number))
    return {"size": phrase}


def _against(quality: Adjective) -> tuple[str, ...]:
    """What cannot follow an adjective after and: itself, and its opposite."""
    return lexicon.OPPOSITES if quality.english in lexicon.OPPOSITES else (quality.english,)


def adjective(quality: Adjective, gender: str, number: int) -> Phrase:
    """An adjective that agrees."""
    return word(quality.english, agree(quality.spanish, gender, number))


def gloss(entry: str) -> Phrase:
    """A phrase from a table's "english=spanish=links"; `_` joins the words of one unit."""
    source, target, *links = entry.split("=")
    return word(source.replace("_", " "), target, *links)


def preposition(source: str, target: str, nominal: Nominal) -> Phrase:
    """A preposition and its noun phrase."""
    return chain(word(source, target), nominal.phrase)


def bare(rng: Random, kinds: Sequence[str], *, number: int = 1) -> Nominal:
    """A noun alone, after which and how many."""
    noun = rng.choice(lexicon.nouns(tuple(kinds)))
    return Nominal(_noun(noun, number), 2 if number == 1 else 4, noun.gender, noun.kind)
