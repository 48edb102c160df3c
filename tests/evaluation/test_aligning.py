"""Attention read as links: weights whose links are known, the arithmetic of shifts, and gold counted a second way."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirada.data.tokenizer import Piece
from mirada.errors import ConfigError, DataError
from mirada.evaluation.aligning import (
    MEAN,
    Aligned,
    Options,
    Profile,
    Quality,
    Reading,
    align,
    best_reading,
    head_names,
    mean_profile,
    pair_sizes,
    parse_gold,
    qualities,
    quality,
    read_links,
)
from mirada.evaluation.alignment import AlignmentScore, LinkCounts, parse_links

STAY = Reading(MEAN, 0)
NEXT = Reading(MEAN, 1)


def ones(count: int) -> list[tuple[int, ...]]:
    """Every token a unit."""
    return [(i,) for i in range(count)]


def pointing(columns: Sequence[int], width: int) -> np.ndarray:
    """Rows with half of their weight on the given column, the rest evenly on all."""
    return np.eye(width)[list(columns)] / 2 + 0.5 / width


# A model whose attention is known


class Words:
    """A tokeniser: what stands between blanks."""

    def pieces(self, texts: Sequence[str], /) -> list[list[Piece]]:
        return [
            [Piece(9, match[0], i, match.span()) for i, match in enumerate(re.finditer(r"\S+", text))] for text in texts
        ]


class Pair(NamedTuple):
    """Attention of a pair."""

    attention: np.ndarray | None
    heads: np.ndarray | None


class Mirror:
    """Each target word looks at the source word of the same name, one step too late; </s> looks at </s>.

    Head 1.1 is in time; head 2.1 always looks at the first source word.
    """

    source_tokenizer = target_tokenizer = Words()

    def __init__(self) -> None:
        self.calls: list[tuple[int, bool]] = []

    def score(
        self,
        sources: Sequence[str],
        targets: Sequence[str],
        /,
        *,
        batch_size: int,
        with_attention: bool,
        with_heads: bool,
    ) -> list[Pair]:
        assert with_attention
        self.calls.append((len(sources), with_heads))
        return [self._pair(*pair, with_heads) for pair in zip(sources, targets, strict=True)]

    @staticmethod
    def _pair(source: str, target: str, with_heads: bool) -> Pair:
        words = source.split()
        places = [words.index(word) for word in target.split()]
        late = pointing([len(words), *places], len(words) + 1)
        heads = [[pointing([*places, len(words)], len(words) + 1)], [pointing([0] * (len(places) + 1), len(words) + 1)]]
        return Pair(late, np.array(heads) if with_heads else None)


SOURCES = ["a b c", "", "x", "one two", "p q", " "]
TARGETS = ["c a b", "lost", "x", "two one two", " \t", ""]
KNOWN = [{(2, 0), (0, 1), (1, 2)}, set(), {(0, 0)}, {(1, 0), (0, 1), (1, 2)}, set(), set()]


def test_the_known_attention_gives_the_known_links_and_blank_lines_keep_their_places():
    rows = list(align(Mirror(), (SOURCES, TARGETS), [NEXT], Options()))
    assert [row[NEXT].links for row in rows] == KNOWN
    assert [row[NEXT].profile is None for row in rows] == [False, True, False, False, True, True]


def test_each_head_is_read_apart():
    readings = [STAY, Reading("1.1", 0), Reading("2.1", 0)]
    rows = list(align(Mirror(), (SOURCES, TARGETS), readings, Options()))
    assert [set(row) for row in rows] == [set(readings)] * len(SOURCES)
    assert [row[Reading("1.1", 0)].links for row in rows] == KNOWN
    assert [row[Reading("2.1", 0)].links for row in rows] == [{(0, j) for _, j in links} for links in KNOWN]
    # One step too late, word t shows where word t − 1 belongs; the first looks at </s>, and of the words at the first.
    assert rows[0][STAY].links == {(0, 0), (2, 1), (0, 2)}


def test_pairs_are_forced_in_batches_and_heads_only_when_asked_for():
    model = Mirror()
    rows = list(align(model, (SOURCES * 3, TARGETS * 3), [NEXT], Options(batch_size=2)))
    assert [row[NEXT].links for row in rows] == KNOWN * 3
    # 18 lines in eights. Whole are 1, 3, 4, 7; then 9, 10, 13, 15, 16; then none, and the model is not asked.
    assert model.calls == [(4, False), (5, False)]
    list(align(model, (SOURCES, TARGETS), [Reading("1.1", 0)], Options()))
    assert model.calls[-1] == (3, True)


def test_unequal_sides_are_refused():
    with pytest.raises(DataError, match=r"^2 sources and 1 targets; line n of both must belong together$"):
        list(align(Mirror(), (["a", "b"], ["a"]), [STAY], Options()))


class Blind(Mirror):
    """No attention, or one without heads."""

    def __init__(self, *pair: np.ndarray | None) -> None:
        super().__init__()
        self.pair = Pair(*pair)

    def score(self, sources: Sequence[str], targets: Sequence[str], /, **_: object) -> list[Pair]:
        return [self.pair for _ in sources]


def test_a_model_without_attention_or_without_heads_is_refused():
    with pytest.raises(ConfigError, match=r"^the model has no attention to align with$"):
        list(align(Blind(None, None), (["a"], ["a"]), [STAY], Options()))
    with pytest.raises(ConfigError, match=r"^heads 2\.1: the model has one attention, without heads; use mean$"):
        list(align(Blind(np.eye(2), None), (["a"], ["a"]), [Reading("2.1", 0)], Options()))


# Reading weights


def test_shift_arithmetic_by_hand():
    # Rows 0, 1, 2 (the last is that of </s>) look at source words 2, 0, 1 of three and </s>.
    weights = pointing([2, 0, 1], 4)
    assert read_links(weights, ones(3), ones(2), 0).links == {(2, 0), (0, 1)}
    assert read_links(weights, ones(3), ones(2), 1).links == {(0, 0), (1, 1)}


def test_shift_acts_on_tokens_before_they_are_joined():
    # Target tokens 0 and 1 are one word. Shift 0: rows 0 and 1, whose mean prefers 1; shift 1: rows 1 and 2, 0.
    weights = np.array([[0.0, 0.9, 0.1], [0.6, 0.3, 0.1], [0.8, 0.1, 0.1]])
    target = [(0,), (0,)]
    assert read_links(weights, ones(2), target, 0).links == {(1, 0)}
    assert read_links(weights, ones(2), target, 1).links == {(0, 0)}


def test_pieces_of_a_source_word_are_summed_before_the_largest_is_taken():
    # The single token with the largest weight is 2; but 0 and 1 are one word, with 0.3 + 0.25.
    weights = np.array([[0.3, 0.25, 0.4, 0.05], [0.0, 0.0, 0.0, 1.0]])
    assert read_links(weights, [(0,), (0,), (1,)], ones(1), 0).links == {(0, 0)}
    assert read_links(weights, ones(3), ones(1), 0).links == {(2, 0)}


def test_a_word_that_looks_mostly_at_the_end_is_linked_to_its_best_real_word():
    weights = np.array([[0.1, 0.3, 0.6], [0.45, 0.1, 0.45], [0.0, 0.0, 1.0]])
    assert read_links(weights, ones(2), ones(2), 0).links == {(1, 0), (0, 1)}


def test_measures_leave_the_end_out_and_say_how_much_it_had():
    # Without </s> and brought to a sum of 1: (1/2, 1/2), (0, 1). Entropy: (ln 2 + 0) / 2. Columns sum to 1/2 and 3/2:
    # coverage (1/2 + 1) / 2. Places 1/2 and 1: forward. On </s>: (1/5 + 1/2) / 2.
    weights = np.array([[0.4, 0.4, 0.2], [0.0, 0.5, 0.5], [1.0, 0.0, 0.0]])
    profile = read_links(weights, ones(2), ones(2), 0).profile
    assert profile == pytest.approx((math.log(2) / 2, 0.75, 1.0, 0.35))
    # Shifted, the rows are (0, 1) and (1, 0): sharp, everything covered, one step back.
    assert read_links(weights, ones(2), ones(2), 1).profile == pytest.approx((0.0, 1.0, 0.0, 0.25))


def test_a_row_wholly_on_the_end_is_no_division_by_zero():
    found = read_links(np.array([[0.0, 0.0, 1.0], [0.0, 0.0, 1.0]]), ones(2), ones(1), 0)
    assert found == Aligned(frozenset({(0, 0)}), Profile(0.0, 0.0, 1.0, 1.0))


def test_means_over_pairs_leave_blank_ones_out():
    assert mean_profile([Profile(1.0, 0.5, 0.0, 0.25), None, Profile(2.0, 1.0, 1.0, 0.75)]) == Profile(
        1.5, 0.75, 0.5, 0.5
    )
    assert mean_profile([None]) is None


# Gold


SIZES = [(3, 3), (0, 1), (2, 1)]


def test_gold_is_read_line_by_line():
    gold = parse_gold(["0-0 2p1", "", "1-0"], "g.align", SIZES)
    assert gold.sure == [{(0, 0)}, set(), {(1, 0)}]
    assert gold.possible == [{(0, 0), (2, 1)}, set(), {(1, 0)}]


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["0-0", ""], "g.align: 2 lines of links, but there are 3 pairs; line n is for pair n"),
        (["0-0", "", "", ""], "g.align: 4 lines of links, but there are 3 pairs; line n is for pair n"),
        (
            ["0-0", "", "0-0 1:0"],
            "g.align:3: bad link '1:0'; expected source-target from 0, such as 0-1 (sure) or 0p1 (possible)",
        ),
        (
            ["0-0 3-0", "", ""],
            "g.align:1: link 3-0 is outside the pair, which has 3 source and 3 target words; were they split in "
            "another way (--units)?",
        ),
        (
            ["", "", "0p0 0p1"],
            "g.align:3: link 0-1 is outside the pair, which has 2 source and 1 target words; were they split in "
            "another way (--units)?",
        ),
        (
            ["", "0-0", ""],
            "g.align:2: link 0-0 is outside the pair, which has 0 source and 1 target words; were they split in "
            "another way (--units)?",
        ),
    ],
)
def test_gold_that_does_not_fit_is_refused_with_its_line(lines, message):
    with pytest.raises(DataError, match=f"^{re.escape(message)}$"):
        parse_gold(lines, "g.align", SIZES)


def test_sizes_count_the_units():
    pairs = (["a b, c", ""], ["¿x?", "y"])
    assert pair_sizes(Mirror(), pairs, "words") == [(3, 1), (0, 1)]
    assert pair_sizes(Mirror(), pairs, "punctuation") == [(4, 3), (0, 1)]
    assert pair_sizes(Mirror(), pairs, "tokens") == [(3, 1), (0, 1)]


def test_quality_by_hand():
    # A = {00, 11, 21} and {10}; S = {00, 12} and {}; possible besides: {21} and {10}. |A| = 4, |S| = 2, |P| = 4,
    # |A∩S| = 1, |A∩P| = 3: precision 3/4, recall 1/2, F1 = 2 · (3/8) / (5/4) = 3/5, AER = 1 − 4/6.
    gold = parse_gold(["0-0 1-2 2p1", "1p0"], "g", [(3, 3), (2, 1)])
    found = quality([frozenset({(0, 0), (1, 1), (2, 1)}), frozenset({(1, 0)})], gold)
    assert found.counts == LinkCounts(links=4, sure=2, possible=4, hit_sure=1, hit_possible=3)
    assert found.score == pytest.approx((3 / 4, 1 / 2, 3 / 5, 1 / 3))


def second_error_rate(rows: Sequence[str], gold: Sequence[str]) -> Fraction:
    """Judge link after link, as text: 1 for a wrong one, then compare with what could have been right."""
    right, all_of_both = Fraction(0), 0
    for row, line in zip(rows, gold, strict=True):
        marks = {token.replace("p", "-"): "p" in token for token in line.split()}
        for token in line.split():  # a link given in both ways is sure
            if "p" not in token:
                marks[token] = False
        sure = [token for token, only_possible in marks.items() if not only_possible]
        all_of_both += len(row.split()) + len(sure)
        right += sum({None: 0, True: 1, False: 2}[marks.get(token)] for token in row.split())
    return 1 - right / all_of_both


tokens = st.lists(st.tuples(st.integers(0, 3), st.sampled_from("-p"), st.integers(0, 3)), max_size=8)


@given(st.lists(st.tuples(tokens, tokens), min_size=1, max_size=4))
def test_error_rate_equals_a_second_way_to_count(corpus):
    rows = [" ".join(sorted({f"{i}-{j}" for i, _, j in links})) for links, _ in corpus]
    gold = ["0-0 " + " ".join(f"{i}{kind}{j}" for i, kind, j in links) for _, links in corpus]
    found = quality([parse_links(row, "x")[0] for row in rows], parse_gold(gold, "g", [(4, 4)] * len(gold)))
    assert found.score.aer == pytest.approx(float(second_error_rate(rows, gold)))


def test_every_reading_is_scored_and_the_best_is_chosen():
    rows = list(align(Mirror(), (SOURCES, TARGETS), [STAY, NEXT], Options()))
    gold = parse_gold([" ".join(f"{i}-{j}" for i, j in links) for links in KNOWN], "g", [(3, 3)] * len(KNOWN))
    scores = qualities(rows, gold)
    assert list(scores) == [STAY, NEXT]
    assert scores[NEXT].score.aer == 0
    # Too early: of 7 links 1 in sentence 1 ({00, 21, 02}: none), x is right, "two one two" gives {00, 11, 02}: none.
    assert scores[STAY].counts[-1] == 1
    assert best_reading(scores) == NEXT


def test_of_equally_good_readings_the_first_is_chosen():
    same = Quality(LinkCounts(1, 1, 1, 1, 1), AlignmentScore(1, 1, 1, 0))
    assert best_reading({NEXT: same, STAY: same}) == NEXT


def test_heads_are_named_from_one():
    assert head_names(2, 3) == ["1.1", "1.2", "1.3", "2.1", "2.2", "2.3"]
    assert str(Reading("2.1", 1)) == "heads 2.1, shift 1"
