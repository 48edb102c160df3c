"""Sentences that take the places of those that are done: results as if all had come at once, and full steps."""

from __future__ import annotations

import weakref
from typing import Any

import pytest
import torch

from mirada.config.options import SearchConfig
from mirada.search.continuous import NewRequests
from mirada.search.decode import Hypothesis, Sentences, rules_of, running_batch
from search_tools import insert, memory_of, run, steps
from toy_decoder import PAD, ToyDecoder

WAYS = {
    "greedy": SearchConfig(beam_size=1),
    "greedy, no repetition": SearchConfig(beam_size=1, no_repeat_ngram_size=2, min_output_length=2),
    "beam": SearchConfig(beam_size=3, n_best=2, alpha=0.6),
    "beam, no repetition": SearchConfig(beam_size=4, n_best=1, no_repeat_ngram_size=3, min_output_length=3),
    "sample": SearchConfig(sample=True, n_best=2),
    "sample, no repetition": SearchConfig(sample=True, n_best=3, no_repeat_ngram_size=1),
}
LIMITS = [3, 8, 5, 1, 8, 6, 1, 12, 2, 7, 7]
PREFIXES = [[], [4], [4, 5, 4], [5], [], [0], [], [6, 6], [4], [], []]


def coming(toy: ToyDecoder, first: int, count: int, options: SearchConfig) -> NewRequests:
    """Some of a toy's sentences."""
    which = range(first, first + count)
    memory, (_, state) = memory_of(toy, *which), toy.begin(*which)
    width = max(len(PREFIXES[i]) for i in which)
    prefix = torch.tensor([PREFIXES[i] + [PAD] * (width - len(PREFIXES[i])) for i in which]).long().view(count, width)
    rules = rules_of(Sentences(torch.tensor([LIMITS[i] for i in which]), prefix), options)
    return NewRequests(which, which, rules, memory, state)


def in_turn(
    toy: ToyDecoder, options: SearchConfig, sizes: list[int], places: int, *, with_attention: bool
) -> list[list[Hypothesis]]:
    """Some sentences at a time, as soon as there is room for any."""
    batch = running_batch(toy, insert, options, with_attention=with_attention)
    left, first, found = list(sizes), 0, {}
    while left or not batch.empty:
        if left and batch.room(places):
            found |= dict(batch.insert(coming(toy, first, left[0], options), places))
            first += left.pop(0)
        else:
            found |= dict(batch.step(places))
    return [found[i] for i in range(first)]


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("sizes", [[11], [4, 3, 3, 1], [1, 4, 6], [2] * 5 + [1], [1] * 11])
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("places", [2, 5])
def test_coming_in_turn_changes_nothing(way: str, places: int, sizes: list[int], seed: int) -> None:
    toy = ToyDecoder(seed, sentences=11, vocabulary=8, end=seed)
    expected = run(toy, WAYS[way], limit=LIMITS, prefix=PREFIXES)
    found = in_turn(toy, WAYS[way], sizes, places, with_attention=True)
    for here, there in zip(found, expected, strict=True):
        assert [steps(output) for output in here] == [steps(output) for output in there]
        assert [o.log_probability for o in here] == pytest.approx([o.log_probability for o in there], abs=1e-9)
        for one, other in zip(here, there, strict=True):
            torch.testing.assert_close(one.attention, other.attention)


@pytest.mark.parametrize(("way", "beams"), [("greedy", 1), ("beam", 3), ("sample", 2)])
def test_steps_stay_full_until_nobody_waits(way: str, beams: int) -> None:
    toy = ToyDecoder(1, sentences=11, vocabulary=8, end=-50)  # everyone goes to the limit
    in_turn(toy, WAYS[way], [3, 3, 3, 2], 3, with_attention=False)
    together = [rows for rows in toy.rows if rows[0] == rows[1] * beams]
    full = [sentences for _, sentences in together].count(3)
    assert max(sentences for _, sentences in together) == 3
    assert full >= 0.7 * len(together), toy.rows
    assert sum(n for n, _ in toy.rows) <= beams * sum(limit + 1 for limit in LIMITS), "a step a token, and for the end"


@pytest.mark.parametrize("way", WAYS)
def test_who_is_dropped_leaves_at_once_and_changes_nothing_for_others(way: str) -> None:
    toy = ToyDecoder(2, sentences=11, vocabulary=8, end=-50)
    expected = run(toy, WAYS[way], limit=LIMITS, prefix=PREFIXES)
    batch = running_batch(toy, insert, WAYS[way], with_attention=False)
    found = dict(batch.insert(coming(toy, 0, 4, WAYS[way]), 4))
    found |= dict(batch.insert(coming(toy, 4, 7, WAYS[way]), 4))
    batch.drop([1, 7, 99])  # searched, waiting, unknown
    while not batch.empty:
        found |= dict(batch.step(4))
    assert sorted(found) == [0, 2, 3, 4, 5, 6, 8, 9, 10]
    assert all([steps(o) for o in found[i]] == [steps(o) for o in expected[i]] for i in found)


def test_a_running_batch_forgets_the_steps_of_those_that_left() -> None:
    """Memory stays constant, however many come."""
    toy, options = ToyDecoder(1, sentences=11, vocabulary=8, end=-50), SearchConfig(beam_size=3)
    batch, records = running_batch(toy, insert, options, with_attention=False), set[int]()
    advance = batch._search.advance
    alive: list[weakref.ref[Any]] = []

    def noted(group: Any) -> Any:
        advanced = advance(group)
        alive.append(weakref.ref(advanced.record.tokens))
        return advanced

    batch._search = batch._search._replace(advance=noted)
    for _ in range(30):
        batch.insert(coming(toy, 0, 3, options), 3)
        while not batch.empty:
            batch.step(3)
            records.add(sum(reference() is not None for reference in alive))
    assert max(records) <= max(LIMITS[:3]) + 2
    assert batch._trails == {}
