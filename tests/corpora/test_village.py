"""The small world: lengths as asked, one translation a source, links that say what translates what."""

from collections import Counter

import pytest

from mirada.corpora.grammar import DEMO, tokens
from mirada.corpora.village import ADJECTIVES, PEOPLE, THINGS, village, village_splits
from mirada.errors import DataError

NOUNS = {name: row.split()[0] for name, row in (PEOPLE | THINGS).items()}


@pytest.fixture(scope="module")
def pairs():
    return village(3000, seed=1, max_words=30)


def test_lengths_are_as_asked_and_short_ones_more_often(pairs):
    sizes = [len(pair.source.split()) for pair in pairs]
    assert min(sizes) == 3
    assert 25 < max(sizes) <= 30
    even = [len(pair.source.split()) for pair in village(3000, seed=1, max_words=30, even=True)]
    assert sum(size <= 8 for size in sizes) > 2 * sum(size <= 8 for size in even)
    assert all(count > 20 for size, count in Counter(even).items() if size < 29)


def test_a_source_comes_once_and_the_seed_decides(pairs):
    assert len({pair.source for pair in pairs}) == len(pairs)
    assert village(50, seed=1, max_words=30) == village(50, seed=1, max_words=30)
    assert village(50, seed=2, max_words=30) != village(50, seed=1, max_words=30)


def test_every_word_but_the_opening_mark_is_linked_and_nouns_to_nouns(pairs):
    for pair in pairs:
        source, target = tokens(pair.source), tokens(pair.target)
        assert {i for i, _ in pair.links} == set(range(len(source)))
        assert {j for _, j in pair.links} == {j for j, word in enumerate(target) if word != "¿"}
        for i, j in pair.links:
            if source[i].lower() in NOUNS:
                assert target[j].lower() == NOUNS[source[i].lower()]


def test_adjectives_stand_behind_their_noun_and_agree(pairs):
    for pair in pairs:
        source, target = tokens(pair.source), tokens(pair.target)
        to = dict(pair.links)
        for i, word in enumerate(source):
            if word in ADJECTIVES:
                noun = (PEOPLE | THINGS)[source[i + 1]]
                assert to[i] == to[i + 1] + 1
                assert target[to[i]].endswith("a" if noun.endswith(" f") else "o")


def test_the_demos_question_is_held_out_and_questions_like_it_are_not():
    splits = village_splits(3000, seed=1, held_out=100, max_words=20)
    assert splits.test[0] == DEMO
    train = {pair.source for pair in splits.train}
    assert DEMO.source not in train
    assert len([source for source in train if source.endswith("you?") or "you today?" in source]) >= 2
    assert [len(part) for part in splits] == [3000, 100, 101]
    assert not train & {pair.source for pair in (*splits.dev, *splits.test)}


def test_what_cannot_be_made_is_one_line():
    with pytest.raises(DataError, match=r"^max_words must be 4 to 200, got 3$"):
        village(1, seed=1, max_words=3)
    with pytest.raises(DataError, match=r"^found only \d+ different pairs of at most 4 words; ask for fewer$"):
        village(100_000, seed=1, max_words=4)
