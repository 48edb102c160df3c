"""Batches: every pair once an epoch, in an order that the seed alone decides, with little padding."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from mirada.data.batches import BatchSize, Encoded, collate, cut, pad, pair_lengths, plan

LENGTHS = st.lists(st.tuples(st.integers(1, 40), st.integers(1, 40)), min_size=1, max_size=300).map(np.array)
SIZES = st.builds(BatchSize, st.integers(1, 120), st.booleans())
CPU = torch.device("cpu")
PAIRS = Encoded([[10, 11, 3], [12, 3], [3]], [[20], [], [21, 22, 23]])


def widths(lengths: np.ndarray, batches: list[np.ndarray]) -> list[int]:
    """Padded tokens of each batch, on the longer side."""
    return [len(batch) * int(lengths[batch].max()) for batch in batches]


# The plan of an epoch


@given(lengths=LENGTHS, size=SIZES, seed=st.integers(0, 5), epoch=st.integers(0, 5))
def test_every_pair_comes_once(lengths, size, seed, epoch):
    batches = plan(lengths, size, seed=seed, epoch=epoch)
    assert sorted(np.concatenate(batches).tolist()) == list(range(len(lengths)))
    assert all(len(batch) for batch in batches)


@given(lengths=LENGTHS, size=SIZES)
def test_no_batch_is_larger_than_asked(lengths, size):
    batches = plan(lengths, size, seed=1, epoch=0)
    if not size.by_tokens:
        assert max(map(len, batches)) <= size.size
        return
    for batch, tokens in zip(batches, widths(lengths, batches), strict=True):
        assert tokens <= size.size or len(batch) == 1  # a pair that is too long by itself is a batch by itself


def test_batches_of_sentences_are_full_but_for_the_last():
    batches = plan(np.full((1003, 2), 7), BatchSize(10, False), seed=1, epoch=0)
    assert sorted(map(len, batches)) == [3] + 100 * [10]


def random_lengths() -> np.ndarray:
    return np.random.default_rng(0).integers(1, 50, (5000, 2))


def test_the_order_is_decided_by_seed_and_epoch():
    lengths, size = random_lengths(), BatchSize(32, False)

    def order(seed: int, epoch: int) -> list[int]:
        return np.concatenate(plan(lengths, size, seed=seed, epoch=epoch)).tolist()

    assert order(1, 0) == order(1, 0)
    orders = [order(seed, epoch) for seed in (1, 2) for epoch in (0, 1)]
    assert len({tuple(one) for one in orders}) == 4


def test_an_epoch_is_not_sorted_by_length():
    lengths = random_lengths()
    batches = plan(lengths, BatchSize(32, False), seed=1, epoch=0)
    means = [lengths[batch, 1].mean() for batch in batches]
    assert abs(np.corrcoef(means, np.arange(len(means)))[0, 1]) < 0.3


@pytest.mark.parametrize("size", [BatchSize(64, False), BatchSize(1500, True)])
def test_similar_lengths_share_a_batch(size):
    """Targets decide, then sources, which go along as they do in real pairs: padding stays small."""
    random = np.random.default_rng(0)
    targets = random.integers(1, 50, 5000)
    lengths = np.stack([targets + random.integers(0, 3, 5000), targets], 1)
    batches = plan(lengths, size, seed=1, epoch=0)
    real = lengths.max(1).sum()
    padded = sum(widths(lengths, batches))
    assert real <= padded < 1.06 * real
    blind = widths(lengths, np.array_split(np.random.default_rng(1).permutation(5000), 79))
    assert sum(blind) > 1.5 * real


def test_both_sides_have_little_padding():
    """Lengths like those of a translation: sources differ by a few tokens around each target length."""
    random = np.random.default_rng(0)
    targets = random.normal(15, 4.5, 30_000).clip(3).astype(int)
    lengths = np.stack([(targets + random.normal(0, 3, 30_000)).clip(2).astype(int), targets], 1)
    batches = plan(lengths, BatchSize(64, False), seed=1, epoch=0)
    for side, most in ((0, 1.06), (1, 1.01)):
        padded = sum(len(batch) * lengths[batch, side].max() for batch in batches)
        assert lengths[:, side].sum() <= padded < most * lengths[:, side].sum()


def test_cut_by_tokens_on_paper():
    lengths = np.array([[2, 1], [2, 2], [3, 2], [1, 9], [3, 3], [3, 3]])
    batches = cut(lengths, np.arange(10, 16), BatchSize(6, True))
    assert [batch.tolist() for batch in batches] == [[10, 11], [12], [13], [14, 15]]  # 2 × 2, 1 × 3, 1 × 9, 2 × 3


def test_cut_of_nothing():
    assert cut(np.zeros((0, 2), int), np.arange(0), BatchSize(6, True)) == []
    assert cut(np.zeros((0, 2), int), np.arange(0), BatchSize(6, False)) == []


# From pairs to tensors


def test_lengths_count_the_end_on_both_sides():
    assert pair_lengths(PAIRS).tolist() == [[3, 2], [2, 1], [1, 4]]
    assert pair_lengths(Encoded([], [])).shape == (0, 2)


def test_the_decoder_reads_what_it_must_say_one_step_later():
    batch = collate(PAIRS, [2, 0, 1], CPU)
    assert batch.source.tolist() == [[3, 1, 1], [10, 11, 3], [12, 3, 1]]
    assert batch.lengths.tolist() == [1, 3, 2]
    assert batch.target_in.tolist() == [[2, 21, 22, 23], [2, 20, 1, 1], [2, 1, 1, 1]]
    assert batch.target_out.tolist() == [[21, 22, 23, 3], [20, 3, 1, 1], [3, 1, 1, 1]]
    assert batch.tokens == 7


@given(
    pairs=st.lists(st.tuples(st.lists(st.integers(4, 9)), st.lists(st.integers(4, 9))), min_size=1, max_size=6),
)
def test_collated_pairs_can_be_read_back(pairs):
    encoded = Encoded([[*source, 3] for source, _ in pairs], [target for _, target in pairs])
    batch = collate(encoded, np.arange(len(pairs)), CPU)
    for row, (source, target) in enumerate(pairs):
        assert batch.source[row, : batch.lengths[row]].tolist() == [*source, 3]
        assert batch.source[row, batch.lengths[row] :].eq(1).all()
        assert [i for i in batch.target_in[row].tolist() if i != 1] == [2, *target]
        assert [i for i in batch.target_out[row].tolist() if i != 1] == [*target, 3]
    assert batch.tokens == int(batch.target_out.ne(1).sum())


def test_pad():
    ids, lengths = pad([[5], [6, 7, 8], []], CPU)
    assert ids.tolist() == [[5, 1, 1], [6, 7, 8], [1, 1, 1]]
    assert ids.dtype == torch.int64
    assert lengths.tolist() == [1, 3, 0]


def test_a_batch_of_sentences_has_fewer_where_they_are_long():
    """A few pairs of a thousand tokens among short ones: the padded batch never holds more than 256 a sentence."""
    lengths = np.array([[20, 10]] * 200 + [[1000, 30]] * 40 + [[300, 300]] * 40)
    batches = plan(lengths, BatchSize(16, False), seed=1, epoch=0)
    assert sorted(int(i) for batch in batches for i in batch) == list(range(280))
    sizes = [(len(batch), len(batch) * int(lengths[batch].max())) for batch in batches]
    assert max(rows for rows, _ in sizes) == 16
    assert max(tokens for _, tokens in sizes) <= 16 * 256
    assert {len(batch) for batch in plan(lengths[:200], BatchSize(16, False), seed=1, epoch=0)} == {16, 8}
