"""Inflection for the embedded corpus: Spanish conjugation and agreement, English plurals and verb forms.

Rules first, tables for what no rule gives. Spanish persons are 0 yo, 1 tú, 2 él, 3 nosotros, 4 ellos.
Source of the paradigms: Real Academia Española, Nueva gramática de la lengua española (2009), chapter 4.
"""

from __future__ import annotations

from functools import cache

Forms = tuple[str, str, str, str, str]

_PRESENT = {
    "a": ("o", "as", "a", "amos", "an"),
    "e": ("o", "es", "e", "emos", "en"),
    "i": ("o", "es", "e", "imos", "en"),
}
_PRETERITE = {"a": ("é", "aste", "ó", "amos", "aron"), "e": ("í", "iste", "ió", "imos", "ieron")}
_IMPERFECT = {"a": ("aba", "abas", "aba", "ábamos", "aban"), "e": ("ía", "ías", "ía", "íamos", "ían")}
_AFTER_VOWEL = ("í", "íste", "yó", "ímos", "yeron")  # leer, creer: leí, leíste, leyó
_STRONG = ("e", "iste", "o", "imos", "ieron")  # vine, viniste, vino

# The stressed vowel of the stem in all present forms but nosotros: the stem that replaces it.
_STEMS = {
    "encontrar": "encuentr", "cerrar": "cierr", "querer": "quier", "perder": "pierd", "dormir": "duerm",
    "jugar": "jueg", "volver": "vuelv", "mostrar": "muestr", "pensar": "piens", "poder": "pued", "tener": "tien",
    "venir": "vien", "decir": "dic", "enviar": "enví",
}  # fmt: skip
_FIRST = {
    "ver": "veo", "tener": "tengo", "conocer": "conozco", "venir": "vengo", "dar": "doy", "traer": "traigo",
    "decir": "digo", "saber": "sé",
}  # fmt: skip
_WHOLE_PRESENT = {
    "ser": "soy eres es somos son", "estar": "estoy estás está estamos están", "ir": "voy vas va vamos van",
}  # fmt: skip
_WHOLE_PAST = {
    "ir": "fui fuiste fue fuimos fueron", "dar": "di diste dio dimos dieron", "ver": "vi viste vio vimos vieron",
    "traer": "traje trajiste trajo trajimos trajeron", "decir": "dije dijiste dijo dijimos dijeron",
    "dormir": "dormí dormiste durmió dormimos durmieron", "ser": "era eras era éramos eran",
}  # fmt: skip
_STRONG_STEMS = {"venir": "vin"}
_FIRST_SPELLING = {"car": "qu", "gar": "gu"}  # busqué, llegué: the sound of the stem stays

_PAST = {
    "eat": "ate", "drink": "drank", "buy": "bought", "sell": "sold", "see": "saw", "find": "found", "write": "wrote",
    "have": "had", "know": "knew", "sing": "sang", "break": "broke", "lose": "lost", "sleep": "slept", "run": "ran",
    "go": "went", "come": "came", "give": "gave", "send": "sent", "bring": "brought", "say": "said",
    "think": "thought", "can": "could", "do": "did",
}  # fmt: skip
_PLURALS = {
    "man": "men", "woman": "women", "child": "children", "mouse": "mice", "wolf": "wolves", "knife": "knives",
    "photo": "photos",
}  # fmt: skip
_THIRD = {"have": "has", "can": "can"}
_BE = {"present": ("am", "are", "is", "are", "are"), "past": ("was", "were", "was", "were", "were")}
_PLAIN = str.maketrans("áéíóú", "aeiou")


@cache
def conjugate(infinitive: str, tense: str) -> Forms:
    """Return the five forms (yo, tú, él, nosotros, ellos) in "present", "preterite" or "imperfect"."""
    if tense == "present":
        return _present(infinitive)
    return _preterite(infinitive) if tense == "preterite" else _imperfect(infinitive)


def _five(forms: list[str]) -> Forms:
    first, second, third, we, they = forms
    return first, second, third, we, they


def _present(verb: str) -> Forms:
    if verb in _WHOLE_PRESENT:
        return _five(_WHOLE_PRESENT[verb].split())
    stem, endings = verb[:-2], _PRESENT[verb[-2]]
    strong = _STEMS.get(verb, stem)
    forms = [(stem if person == 3 else strong) + ending for person, ending in enumerate(endings)]
    forms[0] = _FIRST.get(verb, forms[0])
    return _five(forms)


def _preterite(verb: str) -> Forms:
    if verb in _WHOLE_PAST:
        return _five(_WHOLE_PAST[verb].split())
    if verb in _STRONG_STEMS:
        return _five([_STRONG_STEMS[verb] + ending for ending in _STRONG])
    stem = verb[:-2]
    endings = _PRETERITE["a" if verb[-2] == "a" else "e"]
    if stem[-1] in "aeo" and verb[-2] != "a":
        endings = _AFTER_VOWEL
    forms = [stem + ending for ending in endings]
    if verb[-3:] in _FIRST_SPELLING:
        forms[0] = stem[:-1] + _FIRST_SPELLING[verb[-3:]] + endings[0]
    return _five(forms)


def _imperfect(verb: str) -> Forms:
    if verb == "ser":
        return _five(_WHOLE_PAST[verb].split())
    return _five([verb[:-2] + ending for ending in _IMPERFECT["a" if verb[-2] == "a" else "e"]])


@cache
def plural(word: str) -> str:
    """Return the Spanish plural of a noun or adjective: casas, ciudades, jardines, franceses; paraguas stays."""
    if word in ("paraguas",):
        return word
    if word == "joven":
        return "jóvenes"
    if word.endswith("z"):
        return word[:-1] + "ces"
    if word[-1] in "aeoé":
        return word + "s"
    accented = word[-2] in "áéíóú"
    return word[:-2] + word[-2].translate(_PLAIN) + word[-1] + "es" if accented else word + "es"


@cache
def agree(adjective: str, gender: str, number: int) -> str:
    """Return the adjective in a gender ("m", "f") and number (1, 2): cansado → cansadas, español → españolas."""
    word = adjective
    if gender == "f":
        if word.endswith("o"):
            word = word[:-1] + "a"
        elif word in ("español", "francés"):
            word = word[:-2] + word[-2].translate(_PLAIN) + word[-1] + "a"
    return word if number == 1 else plural(word)


@cache
def english_plural(noun: str) -> str:
    """Return the English plural: boxes, cities, potatoes, knives, children."""
    if noun in _PLURALS:
        return _PLURALS[noun]
    if noun.endswith("y") and noun[-2] not in "aeiou":
        return noun[:-1] + "ies"
    return noun + ("es" if noun.endswith(("s", "x", "ch", "sh", "o")) else "s")


@cache
def english_present(verb: str, person: int) -> str:
    """Return the English present: eat, eats, studies; am, are, is."""
    if verb == "be":
        return _BE["present"][person]
    if person != 2:
        return verb
    if verb in _THIRD:
        return _THIRD[verb]
    return english_plural(verb)  # the same spelling rule: washes, cries, goes


@cache
def english_past(verb: str, person: int) -> str:
    """Return the English past: ate, studied, danced; was, were."""
    if verb == "be":
        return _BE["past"][person]
    if verb in _PAST:
        return _PAST[verb]
    if verb.endswith("y") and verb[-2] not in "aeiou":
        return verb[:-1] + "ied"
    return verb + ("d" if verb.endswith("e") else "ed")
