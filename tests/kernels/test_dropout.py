"""What each kind of dropout touches, what it leaves alone, and that evaluation has none."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from mirada.kernels.dropout import dropout
from mirada.kernels.dropout import mask as drawn_mask
from mirada.models import cells as recurrence
from mirada.models import encoder as encoder_module
from mirada.models.embedding import Embedding, OutputLayer
from systems import BATCH, FAMILIES, SOURCE, TARGET, Options, assert_same, build, systems

OFF = {"dropout": 0.0}  # on embeddings, too
RECURRENT = ("classic", "bahdanau", "luong")


def small(decoder: str, **options: Any) -> Options:
    return {**next(systems(decoder, {"classic": None, "transformer": None}.get(decoder, "general"))), **options}


def hidden(options: Options, *, training: bool, seed: int = 1) -> Tensor:
    model = build(options).train(training)
    torch.manual_seed(seed)
    return model(*BATCH).hidden


def test_word_dropout_zeroes_whole_tokens_and_nothing_else() -> None:
    torch.manual_seed(1)
    embedding = Embedding(50, 3, word_dropout=0.25)
    ids = torch.randint(0, 50, (100, 100))
    rows = embedding(ids)
    gone = (rows == 0).all(-1)
    assert torch.equal(rows[~gone], embedding.weight[ids[~gone]])  # not scaled, not touched
    # 10,000 draws at 0.25: a standard deviation of 0.0043; 100 draws, a row or a column: one of 0.043
    assert abs(gone.double().mean().item() - 0.25) < 4 * 0.0043
    for axis in (0, 1):
        assert ((gone.double().mean(axis) - 0.25).abs() < 5 * 0.043).all()
    assert torch.equal(embedding.eval()(ids), embedding.weight[ids])


def test_embedding_dropout_zeroes_single_numbers_and_raises_the_others() -> None:
    torch.manual_seed(1)
    embedding = Embedding(50, 3, dropout=0.5)
    ids = torch.randint(0, 50, (100, 100))
    rows = embedding(ids)
    gone = rows == 0
    assert torch.equal(rows[~gone], 2 * embedding.weight[ids][~gone])
    assert 0.1 < gone.all(-1).double().mean() < 0.15  # (1/2)^3 of the tokens


def test_the_output_layer_drops_what_it_reads() -> None:
    torch.manual_seed(1)
    layer = OutputLayer(4, 4, dropout=0.5).double()
    layer.weight.data, layer.bias.data = torch.eye(4).double(), torch.ones(4).double()
    ones = torch.ones(50, 4, dtype=torch.float64)
    assert set(layer(ones).unique().tolist()) == {1.0, 3.0}  # the bias, or the bias and 1 / (1 − ½)
    assert set(layer.eval()(ones).unique().tolist()) == {2.0}


@pytest.mark.parametrize(("decoder", "score"), FAMILIES)
def test_evaluation_has_no_dropout_and_training_has(decoder: str, score: str | None) -> None:
    for options in list(systems(decoder, score))[::20]:
        rates = {"dropout": 0.3, "word_dropout": 0.3}
        if decoder != "transformer":
            rates |= {"recurrent_dropout": 0.3, "embedding_dropout": 0.3}
        without = hidden({**options, **OFF}, training=False)
        assert torch.equal(hidden({**options, **rates}, training=False), without), options
        assert not torch.equal(
            hidden({**options, **rates}, training=True), hidden({**options, **rates}, training=True, seed=2)
        )
        assert torch.equal(hidden({**options, **OFF}, training=True), without), options


@pytest.mark.parametrize("decoder", RECURRENT)
def test_dropout_acts_between_layers_and_before_the_output_only(decoder: str) -> None:
    """Zaremba et al. 2014: with one layer nothing of the recurrence changes; with two it does."""
    rates = {"dropout": 0.5, "embedding_dropout": 0.0}
    one = small(decoder, **rates)
    assert torch.equal(hidden(one, training=True), hidden(one, training=False))
    for layers in ({"enc_layers": 2}, {"dec_layers": 2}):
        two = small(decoder, **rates, **layers)
        assert not torch.equal(hidden(two, training=True), hidden(two, training=False))


@pytest.mark.parametrize("decoder", RECURRENT)
@pytest.mark.parametrize("cell", ["lstm", "gru"])
@pytest.mark.parametrize("bidirectional", [False, True])
def test_recurrent_dropout_is_one_mask_for_all_steps(
    decoder: str, cell: str, bidirectional: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One mask a layer and direction however long the sentences; the same in each step replayed by hand."""
    shape = {"rnn_type": cell, "bidirectional": bidirectional, "enc_layers": 2, "dec_layers": 2}
    model = build(small(decoder, recurrent_dropout=0.5, **OFF, **shape)).train()
    real, drawn, queue = recurrence.recurrent_mask, [], []

    def draw(like: Tensor, size: tuple[int, int], rate: float, training: bool) -> Tensor | None:
        drawn.append(real(like, size, rate, training))
        return drawn[-1]

    def replay(*_: object) -> Tensor:
        return queue.pop(0)

    set_mask(monkeypatch, draw)
    expected = model(*BATCH).hidden
    in_encoder = 4 if bidirectional else 2
    assert len(drawn) == in_encoder + 2
    for mask in drawn:
        assert mask.size(0) == len(SOURCE)
        assert set(mask.unique().tolist()) <= {0.0, 2.0}  # dropped, or divided by what is kept
    set_mask(monkeypatch, replay)
    queue[:] = drawn[:in_encoder]
    memory = model.encode(BATCH.source, BATCH.lengths)
    state = model.start(memory)
    for t, token in enumerate(TARGET.T):
        queue[:] = drawn[in_encoder:]
        step = model.step(token, state, memory)
        state = step.state
        assert_same(step.hidden, expected[:, t], 1e-12, f"step {t}")


def set_mask(monkeypatch: pytest.MonkeyPatch, function: object) -> None:
    monkeypatch.setattr(recurrence, "recurrent_mask", function)
    monkeypatch.setattr(encoder_module, "recurrent_mask", function)


@pytest.mark.parametrize("rate", [0.0, 0.25])
def test_no_recurrent_mask_is_drawn_where_it_is_off(rate: float) -> None:
    like = torch.zeros(1)
    assert recurrence.recurrent_mask(like, (2, 3), rate, False) is None
    assert (recurrence.recurrent_mask(like, (2, 3), rate, True) is None) == (rate == 0)


@pytest.mark.parametrize("rate", [0.1, 0.5, 0.9])
def test_own_masks_keep_what_the_rate_says_and_leave_the_mean(rate: float) -> None:
    torch.manual_seed(3)
    drawn = drawn_mask(torch.empty(1000, 501), rate)  # an odd number of numbers: the last word of bits is not used up
    kept = drawn != 0
    deviation = (rate * (1 - rate) / drawn.numel()) ** 0.5
    assert abs(kept.double().mean().item() - (1 - rate)) < 4 * deviation
    assert drawn[kept].unique().numel() == 1  # one value, 1 / (1 − rate) but for the rounding to 65,536ths
    assert drawn.max().item() == pytest.approx(1 / (1 - rate), rel=2e-4)
    for axis in (0, 1):  # no row and no column is favoured: 5 standard deviations of at least 501 draws
        assert ((kept.double().mean(axis) - (1 - rate)).abs() < 5 * (rate * (1 - rate) / 501) ** 0.5).all()
    neighbours = (kept[:, 1:] & kept[:, :-1]).double().mean().item()  # four numbers come from one word: independent
    assert neighbours == pytest.approx((1 - rate) ** 2, abs=5 * deviation)


def test_own_dropout_sends_the_gradient_through_what_it_kept() -> None:
    torch.manual_seed(3)
    x = torch.randn(40, 7, dtype=torch.float64, requires_grad=True)
    y = dropout(x, 0.3, True)
    (gradient,) = torch.autograd.grad(y.sum(), x)
    torch.testing.assert_close(y, x * gradient, rtol=1e-15, atol=0)
    assert dropout(x, 0.3, False) is x
    assert dropout(x, 0.0, True) is x


def test_a_rate_near_one_still_leaves_something() -> None:
    torch.manual_seed(3)
    drawn = drawn_mask(torch.empty(1 << 20), 1 - 1e-9)
    assert set(drawn.unique().tolist()) == {0.0, 65536.0}
