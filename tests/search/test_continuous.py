"""Sentences that take the places of those that are done: results as if all had come at once, and full steps."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from mirada.config.options import SearchConfig
from mirada.search.continuous import NewRequests
from mirada.search.decode import Hypothesis, Sentences, search_requests
from mirada.trees import map_tensors, put_rows
from search_tools import run, steps
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


class Comings:
    """A toy's sentences, some at a time."""

    can_insert = True

    def __init__(self, toy: ToyDecoder, sizes: list[int]):
        self.toy, self.sizes, self.come = toy, iter(sizes), 0

    def next(self) -> NewRequests | None:
        if (size := next(self.sizes, None)) is None:
            return None
        self.come += size
        return NewRequests(size, *self.toy.begin(*range(self.come - size, self.come)))

    def put(self, live: tuple[Any, Any], places: tuple[Tensor, Tensor], fresh: tuple[Any, Any]) -> tuple[Any, Any]:
        memory, state = map_tensors(Tensor.clone, live)  # the toy's state holds the tokens that it was given
        put_rows(memory, places[0], fresh[0])
        put_rows(state, places[1], fresh[1])
        return memory, state


def in_turn(
    toy: ToyDecoder, options: SearchConfig, sizes: list[int], *, with_attention: bool
) -> list[list[Hypothesis]]:
    count = sum(sizes)
    width = max(map(len, PREFIXES))
    prefix = torch.tensor([one + [PAD] * (width - len(one)) for one in PREFIXES])
    sentences = Sentences(torch.tensor(LIMITS), prefix, range(count))
    return search_requests(toy, Comings(toy, sizes), options, sentences, with_attention=with_attention)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("sizes", [[11], [4, 3, 3, 1], [1, 4, 6], [2] * 5 + [1], [1] * 11])
@pytest.mark.parametrize("way", WAYS)
def test_coming_in_turn_changes_nothing(way: str, sizes: list[int], seed: int) -> None:
    toy = ToyDecoder(seed, sentences=11, vocabulary=8, end=seed)
    expected = run(toy, WAYS[way], limit=LIMITS, prefix=PREFIXES)
    found = in_turn(toy, WAYS[way], sizes, with_attention=True)
    for here, there in zip(found, expected, strict=True):
        assert [steps(output) for output in here] == [steps(output) for output in there]
        assert [o.log_probability for o in here] == pytest.approx([o.log_probability for o in there], abs=1e-9)
        for one, other in zip(here, there, strict=True):
            torch.testing.assert_close(one.attention, other.attention)


@pytest.mark.parametrize(("way", "beams"), [("greedy", 1), ("beam", 3), ("sample", 2)])
def test_steps_stay_full_until_nobody_waits(way: str, beams: int) -> None:
    toy = ToyDecoder(1, sentences=11, vocabulary=8, end=-50)  # everyone goes to the limit
    in_turn(toy, WAYS[way], [3, 3, 3, 2], with_attention=False)
    together = [rows for rows in toy.rows if rows[0] == rows[1] * beams]
    full = [sentences for _, sentences in together].count(3)
    assert max(sentences for _, sentences in together) == 3
    assert full >= 0.7 * len(together), toy.rows
    assert sum(n for n, _ in toy.rows) <= beams * sum(LIMITS), "a step for everyone and each of its tokens"


def test_no_sentences_no_results() -> None:
    nobody = Sentences(torch.tensor([], dtype=torch.long))
    assert search_requests(ToyDecoder(0), Comings(ToyDecoder(0), []), SearchConfig(), nobody) == []
