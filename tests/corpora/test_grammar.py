"""The embedded corpus as a whole: lengths, links, agreement by another road, splits and files."""

from __future__ import annotations

import re
from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest

from mirada.corpora.grammar import BUCKETS, DEMO, AlignedPair, Splits, generate, make_splits, tokens, write_splits
from mirada.errors import DataError


@pytest.fixture(scope="module")
def pairs() -> list[AlignedPair]:
    return generate(2000, seed=7)


def links(text: str) -> tuple[tuple[int, int], ...]:
    """Read "0-1 1-1"."""
    return tuple((int(i), int(j)) for i, j in (link.split("-") for link in text.split()))


def test_tokens_part_the_marks() -> None:
    assert tokens("¿Cómo estás, Ana?") == ["¿", "Cómo", "estás", ",", "Ana", "?"]
    assert tokens("Ana's dog sleeps at five o'clock.") == ["Ana's", "dog", "sleeps", "at", "five", "o'clock", "."]
    assert tokens("¡Hola!  ¿Qué tal?") == ["¡", "Hola", "!", "¿", "Qué", "tal", "?"]


# Sentences ---------------------------------------------------------------------------------------------------


def test_same_seed_same_pairs_and_another_seed_others(pairs: list[AlignedPair]) -> None:
    again = generate(2000, seed=7)
    assert again == pairs
    assert generate(500, seed=7) == pairs[:500]
    assert generate(500, seed=8) != pairs[:500]


def test_no_source_and_no_target_twice(pairs: list[AlignedPair]) -> None:
    assert len({pair.source for pair in pairs}) == len({pair.target for pair in pairs}) == len(pairs) == 2000


def test_spanish_is_a_function_of_english_across_seeds() -> None:
    known: dict[str, str] = {}
    met_again = 0
    for seed in range(5):
        for pair in generate(1500, seed=seed, max_words=5):
            met_again += pair.source in known
            assert known.setdefault(pair.source, pair.target) == pair.target
    assert met_again > 500


def test_lengths_run_from_2_to_50_with_mass_in_every_bucket(pairs: list[AlignedPair]) -> None:
    lengths = [len(pair.source.split()) for pair in pairs]
    assert min(lengths) == 2
    assert 45 <= max(lengths) <= 50
    for low, high in BUCKETS:
        assert sum(low <= length <= high for length in lengths) >= 200  # a tenth


def test_links_are_sorted_in_range_and_leave_out_only_what_has_no_counterpart(pairs: list[AlignedPair]) -> None:
    for pair in pairs:
        source, target = tokens(pair.source), tokens(pair.target)
        assert list(pair.links) == sorted(set(pair.links))
        loose = [text.lower() for i, text in enumerate(source) if i not in {i for i, _ in pair.links}]
        alone = [text.lower() for j, text in enumerate(target) if j not in {j for _, j in pair.links}]
        assert set(loose) <= {"do", "does", "did"}
        assert set(alone) <= {"¿", "a"}
        assert all(0 <= i < len(source) and 0 <= j < len(target) for i, j in pair.links)


def test_text_is_spaced_capitalised_and_closed(pairs: list[AlignedPair]) -> None:
    for source, target, _ in pairs:
        assert re.fullmatch(r"[A-ZÁÉÍÓÚ][^¿¡]*[^ ][.?]", source)
        assert re.fullmatch(r"(¿[A-ZÁÉÍÓÚ][^?]*[^ ]\?|[A-ZÁÉÍÓÚ][^¿?]*[^ ]\.)", target)
        assert source.endswith("?") == target.startswith("¿")
        assert "  " not in source + target
        assert not re.search(r"\b(a el|de el|la agua|y [iI]\w*)\b| [.?,]", target)
        assert not re.search(r"\ba [aeiou]|\ban [^aeiou]| [.?,]", source)


def test_every_joint_is_there_and_linked_to_its_translation(pairs: list[AlignedPair]) -> None:
    joints = {
        "because": "porque", "when": "cuando", "if": "si", "although": "aunque", "while": "mientras", "but": "pero",
        "and": "y", "so": "así", "who": "que", "that": "que", "not": "no", "never": "nunca",
    }  # fmt: skip
    counts = Counter(
        text
        for pair in pairs
        for i, j in pair.links
        if joints.get(text := tokens(pair.source)[i]) == tokens(pair.target)[j]
    )
    assert all(counts[joint] >= 10 for joint in joints), counts


# Another road to agreement: a table of Spanish words, typed here, and what stands next to what.
GENDERS = {
    "m": "hombre chico niño amigo vecino hermano padre hijo abuelo tío profesor médico estudiante artista perro gato "
    "caballo pájaro ratón lobo jardín parque mercado hospital coche cuchillo sombrero zapato árbol mapa regalo reloj "
    "libro periódico poema mensaje huevo tomate pan queso arroz café té",
    "f": "mujer chica hermana madre hija abuela tía vaca casa escuela ciudad plaza biblioteca oficina estación mesa "
    "silla bicicleta caja llave taza camisa cama flor foto puerta ventana carta canción manzana naranja patata sopa "
    "leche",
}
DETERMINERS = {
    "m1": "el un este ese nuestro otro", "f1": "la una esta esa nuestra otra", "m2": "los estos esos nuestros muchos "
    "algunos", "f2": "las estas esas nuestras muchas algunas", "?1": "mi tu su cada", "?2": "mis tus sus dos tres diez",
}  # fmt: skip
ADJECTIVES = """alto bajo famoso rico serio pequeño nuevo blanco negro rojo caro barato bonito largo cansado enfermo
tranquilo contento enfadado ocupado nervioso limpio sucio"""


def shapes() -> dict[str, str]:
    """Spanish noun → gender and number; plurals by hand's rule: -s after a vowel, -es after a consonant."""
    known = {}
    for gender, row in GENDERS.items():
        for noun in row.split():
            plain = noun.translate(str.maketrans("íó", "io")) if noun[-1] == "n" else noun
            known[noun], known[noun + "s" if noun[-1] in "aeoé" else plain + "es"] = gender + "1", gender + "2"
    return known


def test_determiners_and_adjectives_agree_with_their_noun(pairs: list[AlignedPair]) -> None:
    nouns = shapes()
    determiners = {text: shape for shape, row in DETERMINERS.items() for text in row.split()}
    endings = {"m1": "o", "f1": "a", "m2": "os", "f2": "as"}
    adjectives = {item[:-1] + ending: shape for item in ADJECTIVES.split() for shape, ending in endings.items()}
    checked = Counter()
    for pair in pairs:
        for left, right in pairwise(tokens(pair.target)):
            if right in nouns and left.lower() in determiners:
                shape = determiners[left.lower()]
                assert shape.replace("?", nouns[right][0]) == nouns[right], pair
                checked["determiner"] += 1
            if left in nouns and right in adjectives:
                assert adjectives[right] == nouns[left], pair
                checked["adjective"] += 1
    assert checked["determiner"] > 2000
    assert checked["adjective"] > 500


def test_the_verb_carries_the_dropped_subject(pairs: list[AlignedPair]) -> None:
    endings = {"we": "(mos|nos)", "they": "(n|les)", "you": "(s|ste|te)", "i": "([oyéíaei]|me)"}
    checked = Counter()
    for pair in pairs:
        for left, this in pairwise([".", *tokens(pair.source)]):
            starts = left in (".", "because", "that", "although", "when", "if") and this.lower() in endings
            position = tokens(pair.source).index(this)
            linked = [tokens(pair.target)[j] for i, j in pair.links if i == position]
            if starts and tokens(pair.source).count(this) == 1 and linked:
                assert len(linked) == 1, pair
                assert re.search(f"{endings[this.lower()]}$", linked[0].lower()), (pair, linked)
                checked[this.lower()] += 1
    assert all(checked[pronoun] > 20 for pronoun in endings), checked


def test_persons_have_the_personal_a_and_things_do_not(pairs: list[AlignedPair]) -> None:
    names = {"Ana", "Clara", "Elena", "Laura", "Marta", "Inés", "Carlos", "Daniel", "David", "Diego", "Hugo", "Pablo"}
    of_persons = {"helped", "helps", "visited", "visits", "called", "calls", "sees", "saw", "loves", "finds", "found"}
    of_things = {"bought", "buys", "opened", "opens", "closes", "closed", "eats", "ate", "drinks", "drank"}
    seen: Counter[str] = Counter()
    for pair in pairs:
        source, target = tokens(pair.source), tokens(pair.target)
        for i, j in pair.links:
            after = [*source[i + 1 : i + 2], ""][0]
            if source[i] in of_persons and after in names:
                assert target[j + 1] == "a", pair
                seen["person"] += 1
            if source[i] in of_things and after in ("the", "a", "this", "their", "my", "our"):
                assert target[j + 1] not in ("a", "al"), pair
                seen["thing"] += 1
    assert seen["person"] > 10
    assert seen["thing"] > 50


# Splits and files ---------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def splits() -> Splits:
    return make_splits(1500, held_out=60)


def test_splits_have_their_sizes_and_share_nothing(splits: Splits) -> None:
    assert [len(part) for part in splits] == [1500, 60, 60]
    everything = [pair for part in splits for pair in part]
    assert len({pair.source for pair in everything}) == len({pair.target for pair in everything}) == 1620


def test_held_out_defaults_to_a_twentieth_but_at_least_200() -> None:
    assert [len(part) for part in make_splits(300)] == [300, 200, 200]
    assert [len(part) for part in make_splits(4020, max_words=4)] == [4020, 201, 201]


@pytest.mark.parametrize("seed", range(1, 6))
def test_the_demo_sentence_is_in_test_and_nowhere_else(seed: int) -> None:
    parts = make_splits(400, seed=seed, held_out=20, max_words=4)
    assert DEMO in parts.test
    assert AlignedPair("How are you?", "¿Cómo estás?", links("0-1 1-2 2-2 3-3")) == DEMO
    for pair in parts.train + parts.dev:
        assert pair.source != "How are you?"
        assert pair.target != "¿Cómo estás?"


def test_training_has_questions_like_the_demo_sentence(splits: Splits) -> None:
    sources = [pair.source for pair in splits.train]
    assert sum(bool(re.match(r"How (is|are|was|were) ", source)) for source in sources) >= 10
    assert sum(bool(re.search(r"\b(Where|Why|How) are you\b", source)) for source in sources) >= 2


def test_held_out_sentences_are_as_long_as_training_ones(splits: Splits) -> None:
    short = [sum(len(pair.source.split()) <= 10 for pair in part) / len(part) for part in splits]
    assert max(short) - min(short) < 0.25


def test_files_have_a_line_a_pair_and_read_back(splits: Splits, tmp_path: Path) -> None:
    written = write_splits(splits, tmp_path / "new" / "corpus")
    assert [path.name for path in written] == [
        f"{part}.{end}" for part in Splits._fields for end in ("en", "es", "align")
    ]
    assert {path.name for path in (tmp_path / "new" / "corpus").iterdir()} == {path.name for path in written}
    for name, part in zip(Splits._fields, splits, strict=True):
        columns = [
            (tmp_path / "new" / "corpus" / f"{name}.{end}").read_text(encoding="utf-8").split("\n")
            for end in ("en", "es", "align")
        ]
        assert all(column.pop() == "" for column in columns)
        read = [AlignedPair(source, target, links(row)) for source, target, row in zip(*columns, strict=True)]
        assert read == part


def test_files_that_exist_are_kept_unless_forced(splits: Splits, tmp_path: Path) -> None:
    (tmp_path / "dev.es").write_text("mine", encoding="utf-8")
    with pytest.raises(
        DataError, match=r"dev\.es: exists; choose another folder, or force \(--force\) to overwrite it"
    ):
        write_splits(splits, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["dev.es"]
    assert (tmp_path / "dev.es").read_text(encoding="utf-8") == "mine"
    write_splits(splits, tmp_path, force=True)
    assert len((tmp_path / "dev.es").read_text(encoding="utf-8").splitlines()) == 60


def test_a_file_in_the_folders_place_is_said(splits: Splits, tmp_path: Path) -> None:
    (tmp_path / "corpus").write_text("", encoding="utf-8")
    with pytest.raises(DataError, match=r"corpus: cannot be made a folder \(File exists\); choose another one"):
        write_splits(splits, tmp_path / "corpus")


def test_errors_say_what_was_asked_and_what_to_do() -> None:
    with pytest.raises(
        DataError, match=r"found only \d+ different pairs of at most 2 words, 100000 were asked for; ask"
    ):
        generate(100_000, seed=1, max_words=2)
    with pytest.raises(DataError, match=r"max_words must be at least 2 .*, got 1"):
        generate(10, seed=1, max_words=1)
    with pytest.raises(DataError, match="the number of pairs must not be negative, got -1"):
        generate(-1, seed=1)
    with pytest.raises(DataError, match="at least 1 training pair and 1 held-out pair, got 0 and 200"):
        make_splits(0)
    assert generate(0, seed=1) == []
