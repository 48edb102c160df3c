"""Inflection against forms typed by hand from the grammar books."""

from __future__ import annotations

import pytest

from mirada.corpora import lexicon
from mirada.corpora.morphology import agree, conjugate, english_past, english_plural, english_present, plural

PRESENT = """
ser soy eres es somos son
estar estoy estás está estamos están
ir voy vas va vamos van
tener tengo tienes tiene tenemos tienen
venir vengo vienes viene venimos vienen
decir digo dices dice decimos dicen
dar doy das da damos dan
ver veo ves ve vemos ven
saber sé sabes sabe sabemos saben
conocer conozco conoces conoce conocemos conocen
traer traigo traes trae traemos traen
querer quiero quieres quiere queremos quieren
poder puedo puedes puede podemos pueden
pensar pienso piensas piensa pensamos piensan
cerrar cierro cierras cierra cerramos cierran
perder pierdo pierdes pierde perdemos pierden
dormir duermo duermes duerme dormimos duermen
jugar juego juegas juega jugamos juegan
volver vuelvo vuelves vuelve volvemos vuelven
encontrar encuentro encuentras encuentra encontramos encuentran
mostrar muestro muestras muestra mostramos muestran
enviar envío envías envía enviamos envían
creer creo crees cree creemos creen
leer leo lees lee leemos leen
buscar busco buscas busca buscamos buscan
llegar llego llegas llega llegamos llegan
hablar hablo hablas habla hablamos hablan
beber bebo bebes bebe bebemos beben
vivir vivo vives vive vivimos viven
"""
PRETERITE = """
ir fui fuiste fue fuimos fueron
venir vine viniste vino vinimos vinieron
decir dije dijiste dijo dijimos dijeron
dar di diste dio dimos dieron
ver vi viste vio vimos vieron
traer traje trajiste trajo trajimos trajeron
leer leí leíste leyó leímos leyeron
dormir dormí dormiste durmió dormimos durmieron
buscar busqué buscaste buscó buscamos buscaron
llegar llegué llegaste llegó llegamos llegaron
jugar jugué jugaste jugó jugamos jugaron
enviar envié enviaste envió enviamos enviaron
perder perdí perdiste perdió perdimos perdieron
volver volví volviste volvió volvimos volvieron
cerrar cerré cerraste cerró cerramos cerraron
encontrar encontré encontraste encontró encontramos encontraron
mostrar mostré mostraste mostró mostramos mostraron
hablar hablé hablaste habló hablamos hablaron
beber bebí bebiste bebió bebimos bebieron
abrir abrí abriste abrió abrimos abrieron
"""
IMPERFECT = """
ser era eras era éramos eran
estar estaba estabas estaba estábamos estaban
tener tenía tenías tenía teníamos tenían
querer quería querías quería queríamos querían
poder podía podías podía podíamos podían
conocer conocía conocías conocía conocíamos conocían
saber sabía sabías sabía sabíamos sabían
creer creía creías creía creíamos creían
pensar pensaba pensabas pensaba pensábamos pensaban
vivir vivía vivías vivía vivíamos vivían
"""
TABLES = {"present": PRESENT, "preterite": PRETERITE, "imperfect": IMPERFECT}
ROWS = [(tense, *row.split(maxsplit=1)) for tense, table in TABLES.items() for row in table.strip().split("\n")]
# The lexicon's verbs that follow the model of their conjugation in every form used here.
REGULAR = """
comer beber cocinar comprar vender escribir abrir lavar necesitar ayudar llamar visitar esperar escuchar
cantar romper pintar trabajar vivir correr llorar estudiar bailar
"""
MODELS = {"ar": "hablar", "er": "beber", "ir": "vivir"}


@pytest.mark.parametrize(("tense", "verb", "forms"), ROWS)
def test_hand_typed_forms(tense: str, verb: str, forms: str) -> None:
    assert " ".join(conjugate(verb, tense)) == forms


@pytest.mark.parametrize("verb", REGULAR.split())
def test_regular_verbs_follow_their_model(verb: str) -> None:
    model = MODELS[verb[-2:]]
    for tense in TABLES:
        expected = [verb[:-2] + form.removeprefix(model[:-2]) for form in conjugate(model, tense)]
        assert list(conjugate(verb, tense)) == expected


def test_every_verb_of_the_lexicon_is_typed_here_or_regular() -> None:
    typed = {(tense, verb) for tense, verb, _ in ROWS}
    for verb in lexicon.VERBS:
        for tense in ("present", verb.aspect):
            assert verb.spanish in REGULAR.split() or (tense, verb.spanish) in typed, verb


@pytest.mark.parametrize(
    ("singular", "several"),
    [
        ("casa", "casas"), ("ciudad", "ciudades"), ("jardín", "jardines"), ("estación", "estaciones"), ("té", "tés"),
        ("árbol", "árboles"), ("reloj", "relojes"), ("paraguas", "paraguas"), ("ratón", "ratones"), ("flor", "flores"),
        ("café", "cafés"), ("joven", "jóvenes"), ("lápiz", "lápices"), ("difícil", "difíciles"), ("tío", "tíos"),
    ],
)  # fmt: skip
def test_spanish_plurals(singular: str, several: str) -> None:
    assert plural(singular) == several


@pytest.mark.parametrize(
    ("adjective", "forms"),
    [
        ("alto", "alto alta altos altas"),
        ("grande", "grande grande grandes grandes"),
        ("azul", "azul azul azules azules"),
        ("joven", "joven joven jóvenes jóvenes"),
        ("español", "español española españoles españolas"),
        ("francés", "francés francesa franceses francesas"),
        ("frío", "frío fría fríos frías"),
        ("difícil", "difícil difícil difíciles difíciles"),
    ],
)
def test_agreement(adjective: str, forms: str) -> None:
    assert [agree(adjective, gender, number) for number in (1, 2) for gender in "mf"] == forms.split()


@pytest.mark.parametrize(
    ("noun", "several"),
    [
        ("man", "men"), ("woman", "women"), ("child", "children"), ("mouse", "mice"), ("wolf", "wolves"),
        ("knife", "knives"), ("box", "boxes"), ("city", "cities"), ("key", "keys"), ("potato", "potatoes"),
        ("photo", "photos"), ("library", "libraries"), ("boy", "boys"), ("house", "houses"),
    ],
)  # fmt: skip
def test_english_plurals(noun: str, several: str) -> None:
    assert english_plural(noun) == several


@pytest.mark.parametrize(
    ("verb", "third", "past"),
    [
        ("eat", "eats", "ate"), ("go", "goes", "went"), ("wash", "washes", "washed"), ("cry", "cries", "cried"),
        ("play", "plays", "played"), ("have", "has", "had"), ("do", "does", "did"), ("can", "can", "could"),
        ("study", "studies", "studied"), ("dance", "dances", "danced"), ("be", "is", "was"), ("buy", "buys", "bought"),
        ("think", "thinks", "thought"), ("bring", "brings", "brought"), ("see", "sees", "saw"),
        ("write", "writes", "wrote"), ("break", "breaks", "broke"), ("lose", "loses", "lost"),
        ("sleep", "sleeps", "slept"), ("know", "knows", "knew"), ("find", "finds", "found"), ("give", "gives", "gave"),
        ("send", "sends", "sent"), ("sell", "sells", "sold"), ("say", "says", "said"), ("run", "runs", "ran"),
        ("come", "comes", "came"), ("sing", "sings", "sang"), ("drink", "drinks", "drank"), ("cook", "cooks", "cooked"),
        ("open", "opens", "opened"), ("visit", "visits", "visited"), ("show", "shows", "showed"),
    ],
)  # fmt: skip
def test_english_verbs(verb: str, third: str, past: str) -> None:
    assert english_present(verb, 2) == third
    assert english_past(verb, 2) == past
    assert english_present(verb, 4) == ("are" if verb == "be" else verb)
