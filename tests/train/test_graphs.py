"""Updates as a GPU makes them, tried on a CPU: batches filled up, gradients by two roads, what fails or comes late."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from asking import Asking
from mirada.data.batches import Batch
from mirada.data.vocabulary import PAD
from mirada.models import AnyModel, transformer
from mirada.train import graphs, loss, update
from mirada.train.batch_loss import batch_loss
from mirada.train.graphs import Graphs, shape_of
from systems import BATCH, COPIED, COPIES, FAMILIES, build, some_systems
from training_tools import different, distance, trains, weights, write_data

TARGET_OUT = torch.tensor([[7, 7, 4, 12, 3], [3, 1, 1, 1, 1], [10, 5, 11, 3, 1]])
TOKENS = 10


class Recorder:
    """Records nothing: what is replayed is computed again. `wrong` is added to every gradient then."""

    def __init__(self, *, wrong: float = 0.0, refuses: bool = False):
        self.wrong, self.refuses, self.recorded, self.replayed = wrong, refuses, 0, 0

    def record(self, work: Callable[[], Tensor]) -> Callable[[], Tensor]:
        if self.refuses:
            raise RuntimeError("operation not permitted when stream is capturing\nCUDA kernel errors might be …")
        self.recorded += 1

        def replay() -> Tensor:
            self.replayed += 1
            nll = work()
            for part in LEARNING:
                part.grad += self.wrong
            return nll

        return replay

    def random_state(self) -> Tensor:
        return torch.get_rng_state()

    def set_random_state(self, state: Tensor) -> None:
        torch.set_rng_state(state)


LEARNING: list[torch.nn.Parameter] = []


def work(model: AnyModel, batch: Batch, tokens: float | Tensor) -> Tensor:
    found = batch_loss(model, batch, smoothing=0.1, divisor=tokens)
    found.smoothed.backward()
    return found.nll


def graphed(model: AnyModel, recorder: Recorder, said: list[str]) -> Graphs:
    LEARNING[:] = model.parameters()
    return Graphs(partial(work, model), LEARNING, said.append, recorder)


def gradients(model: AnyModel) -> Tensor:
    return torch.cat([part.grad.flatten() for part in model.parameters()])


def batch(*, copies: bool = False) -> Batch:
    return Batch(*BATCH, TARGET_OUT, TOKENS, COPIES if copies else None)


@pytest.fixture
def as_on_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """A device that is asked for nothing."""
    for module in (loss, transformer):
        monkeypatch.setattr(module, "synchronous", lambda _: False)


def test_shapes_are_of_few_sizes() -> None:
    assert shape_of(batch()) == (8, 8, 8)
    assert shape_of(batch()._replace(source=BATCH.source[:, :4])) == (8, 4, 8)


@pytest.mark.parametrize(("decoder", "score"), FAMILIES)
def test_what_batches_are_filled_up_with_changes_nothing(decoder: str, score: str | None, as_on_a_gpu: None) -> None:
    """In float64: the loss and all gradients of three sentences are those of eight, five of which are padding."""
    for options in some_systems(decoder, score)[:4]:
        copies = decoder != "classic"
        model = build({**options, **({"copy_attn": True} if copies else {})})
        nll = work(model, batch(copies=copies), TOKENS)
        wanted, said = gradients(model), list[str]()
        model.zero_grad(set_to_none=True)
        found = graphed(model, Recorder(), said)(batch(copies=copies), TOKENS)
        assert said == []
        torch.testing.assert_close(found, nll, rtol=1e-12, atol=0)
        torch.testing.assert_close(gradients(model), wanted, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(("decoder", "score"), FAMILIES)
def test_a_gpu_is_asked_nothing_by_a_batch(decoder: str, score: str | None, as_on_a_gpu: None) -> None:
    """Nor is a number sent to it: what graphs cannot hold. Forward, loss and backward, in training."""
    for options in some_systems(decoder, score)[:3]:
        for more in ({}, {"copy_attn": True}) if decoder != "classic" else ({},):
            model, tokens = build({**options, **more, "dropout": 0.2}).train(), torch.tensor(10.0)
            with Asking() as asking:
                work(model, batch(copies=bool(more)), tokens)
            assert asking.found == [], options


@pytest.mark.parametrize(
    "options",
    [
        {"decoder": "bahdanau", "coverage": True, "score": "additive", "copy_attn": True},
        {"decoder": "luong", "attention_window": "local-m"},
        {"decoder": "luong", "attention_window": "local-p", "recurrent_dropout": 0.2, "dec_layers": 2},
        {"decoder": "classic", "feed_context": True, "word_dropout": 0.2},
    ],
)
def test_nor_by_what_is_rarer(options: dict[str, Any], as_on_a_gpu: None) -> None:
    model = build({"embedding_dim": 4, "hidden_size": 6, **options}).train()
    with Asking() as asking:
        found = batch_loss(model, batch(copies="copy_attn" in options), smoothing=0.1, coverage=1.0)
        found.smoothed.backward()
    assert asking.found == []


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("copies", [False, True])
def test_all_rows_have_the_loss_of_the_real_ones(
    smoothing: float, copies: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = build({"decoder": "luong", "embedding_dim": 4, "hidden_size": 6, "copy_attn": copies})
    own = batch(copies=copies)
    if copies:
        own = own._replace(target_out=torch.where(TARGET_OUT == PAD, PAD, COPIED.roll(-1, 1).clamp(min=3)))
    found = []
    for selects in (True, False):
        monkeypatch.setattr(loss, "synchronous", lambda _, selects=selects: selects)
        model.zero_grad()
        one = batch_loss(model, own, smoothing=smoothing, divisor=torch.tensor(7.0).double())
        one.smoothed.backward()
        with torch.no_grad():
            right = batch_loss(model, own, smoothing=smoothing).correct
        found.append(torch.cat([torch.stack((one.smoothed.detach(), one.nll, right)), gradients(model)]))
    torch.testing.assert_close(found[1], found[0], rtol=1e-10, atol=1e-12)


def test_gradients_are_added_and_shapes_recorded_once(as_on_a_gpu: None) -> None:
    """Two batches of one shape, twice: the first is recorded and checked, the others are replayed."""
    model = build({"decoder": "bahdanau", "embedding_dim": 4, "hidden_size": 6})
    work(model, batch(), TOKENS)
    once = gradients(model)
    model.zero_grad(set_to_none=True)
    recorder, said = Recorder(), list[str]()
    made = graphed(model, recorder, said)
    for times in range(1, 4):
        made(batch(), TOKENS)
        torch.testing.assert_close(gradients(model), times * once, rtol=1e-9, atol=1e-12)
    made(batch(), 2 * TOKENS)
    torch.testing.assert_close(gradients(model), 3.5 * once, rtol=1e-9, atol=1e-12)
    assert (recorder.recorded, recorder.replayed, said) == (1, 4, [])


@pytest.mark.parametrize(
    ("recorder", "why"),
    [
        (Recorder(refuses=True), "operation not permitted when stream is capturing"),
        (Recorder(wrong=0.1), "their gradients are others"),
    ],
)
def test_what_cannot_be_recorded_is_computed_plainly_with_one_line(
    recorder: Recorder, why: str, as_on_a_gpu: None
) -> None:
    model = build({"decoder": "luong", "embedding_dim": 4, "hidden_size": 6, "dropout": 0.0}).train()
    said = list[str]()
    made = graphed(model, recorder, said)
    for times in range(1, 4):
        made(batch(), TOKENS)
        if times == 1:
            once = gradients(model)
        torch.testing.assert_close(gradients(model), times * once, rtol=1e-9, atol=1e-12)
    assert said == [f"batches are computed without CUDA graphs, slower: {why}"]
    assert recorder.recorded <= 1


def test_a_shape_too_many_is_computed_plainly(as_on_a_gpu: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graphs, "MOST", 0)
    model = build({"decoder": "luong", "embedding_dim": 4, "hidden_size": 6})
    recorder, said = Recorder(), list[str]()
    graphed(model, recorder, said)(batch(), TOKENS)
    assert (recorder.recorded, said) == (0, [])


def test_the_roads_draw_the_same_random_numbers(as_on_a_gpu: None) -> None:
    """With dropout they are near only because the second begins where the first began."""
    options: dict[str, Any] = {"decoder": "transformer", "embedding_dim": 6, "num_heads": 2, "dropout": 0.5}
    model, said = build(options).train(), list[str]()
    graphed(model, Recorder(), said)(batch(), TOKENS)
    assert said == []


def test_a_training_by_graphs_is_the_training_without(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Outcomes one update late, gradients kept where they are, batches filled up: the same but for rounding.

    A validation and a save wait for the updates before them; an update that is no number is left out all the same.
    """
    data = write_data(tmp_path)
    options: dict[str, object] = {"max-updates": 6, "valid-every": 3, "dropout": 0, "accum-count": 2, "ema-decay": 0.5}
    trains(tmp_path / "plain", data, options)
    monkeypatch.setattr(loss, "synchronous", lambda _: False)
    monkeypatch.setattr(update, "by_graphs", lambda _: True)
    monkeypatch.setattr(update, "Recorder", Recorder)
    LEARNING.clear()
    real, bad = batch_loss, list[bool]()

    def perhaps_no_number(*arguments: Any, **named: Any) -> loss.Loss:
        found = real(*arguments, **named)
        return found._replace(smoothed=found.smoothed * torch.nan) if bad else found

    monkeypatch.setattr("mirada.train.batch_loss.batch_loss", perhaps_no_number)
    assert "without CUDA graphs" not in trains(tmp_path / "graphs", data, options)
    before = weights(tmp_path / "graphs")
    for kind in ("model", "average"):
        assert distance(weights(tmp_path / "plain", kind), weights(tmp_path / "graphs", kind)) < 1e-4
    bad.append(True)
    said = trains(tmp_path / "graphs", data, options, {"max-updates": 7})
    assert "update 7: loss or gradient is not finite; skipped (1 so far)\n" in said
    assert different(weights(tmp_path / "graphs"), before) == []
