"""Gradients: what has a backward of its own against finite differences, then whole models."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch.autograd import gradcheck

from mirada.kernels.energy import additive_energy
from mirada.models import AnyModel
from mirada.models.attention import additive_energy_plain
from mirada.models.cells import Cell, CellState
from systems import BATCH, FAMILIES, VOCAB, assert_same, build, some_systems, systems

STEPS, ROWS, SIZE = 4, 3, 2
DROPS = {"dropout": 0.3, "word_dropout": 0.2}


def random(*shape: int) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64, requires_grad=True)


def mask(used: bool) -> Tensor | None:
    """A recurrent dropout mask: some units dropped, the others raised."""
    return torch.tensor([[0, 2], [2, 2], [2, 0]], dtype=torch.float64) if used else None


def test_additive_energy_by_finite_differences() -> None:
    torch.manual_seed(1)
    assert gradcheck(additive_energy, (random(2, 3, 4), random(2, 5, 4), random(4)))


@pytest.mark.parametrize("turned", [False, True])
def test_additive_energy_equals_the_plain_formula(turned: bool) -> None:
    """Values and gradients, whatever the strides of what it is given."""
    torch.manual_seed(1)
    query, keys, v = random(2, 3, 4), random(2, 5, 4), random(4)
    given = (query.mT.contiguous().mT, keys.transpose(0, 1).contiguous().transpose(0, 1)) if turned else (query, keys)
    weight = torch.randn(2, 3, 5, dtype=torch.float64)
    roads = [function(*given, v) for function in (additive_energy, additive_energy_plain)]
    gradients = [torch.autograd.grad((road * weight).sum(), (query, keys, v), retain_graph=True) for road in roads]
    assert_same(roads[0], roads[1], 1e-14, "values")
    assert_same(gradients[0], gradients[1], 1e-14, "gradients")


def scan_inputs(kind: str, dtype: torch.dtype) -> tuple[Cell, Tensor, CellState]:
    torch.manual_seed(1)
    cell = Cell(kind, 5, SIZE).to(dtype)
    nn.init.normal_(cell.b_x)
    x = torch.randn(STEPS, ROWS, 5).to(dtype).requires_grad_()
    state = tuple(torch.randn(ROWS, SIZE).to(dtype).requires_grad_() for _ in ("h", "c")[: 2 if kind == "lstm" else 1])
    if cell.b_n is not None:
        nn.init.normal_(cell.b_n)
    return cell, x, state


@pytest.mark.parametrize("kind", ["lstm", "gru"])
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("lengths", [[4, 4, 4], [4, 1, 2]])
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-13), (torch.float32, 1e-5)])
def test_scan_equals_repeated_step(
    kind: str, masked: bool, lengths: list[int], dtype: torch.dtype, tolerance: float
) -> None:
    """Every h and the last states at each length; and gradients of input, first state and all weights through them."""
    cell, x, state = scan_inputs(kind, dtype)
    drop = mask(True).to(dtype) if masked else None
    own = torch.tensor(lengths)
    real = (torch.arange(STEPS)[:, None] < own)[..., None]
    scanned = cell.scan(x, state, own, drop=drop)
    every = cell.scan_plain(cell.project(x), state, drop=drop)
    values, gradients = [], []
    for hs, last in (scanned, (every[0], tuple(part[own - 1, torch.arange(ROWS)] for part in every))):
        values.append((hs * real, *last))
        loss = sum(((number + 1) * part.sin()).sum() for number, part in enumerate(values[-1]))
        gradients.append(torch.autograd.grad(loss, (x, *state, *cell.parameters())))
    assert_same(values[0], values[1], tolerance, "states")
    assert_same(gradients[0], gradients[1], tolerance, "gradients")


def loss_of(model: AnyModel) -> Tensor:
    """Cross entropy over all steps by `forward`."""
    hidden = model(*BATCH).hidden
    return nn.functional.cross_entropy(model.logits(hidden).flatten(0, 1), wanted(), reduction="sum")


def loss_by_steps(model: AnyModel) -> Tensor:
    """The same loss by repeated `step`, in which no layer is scanned whole."""
    memory = model.encode(BATCH.source, BATCH.lengths)
    state, logits = model.start(memory), []
    for token in BATCH.target.T:
        step = model.step(token, state, memory)
        state = step.state
        logits.append(step.logits)
    return nn.functional.cross_entropy(torch.stack(logits, 1).flatten(0, 1), wanted(), reduction="sum")


def wanted() -> Tensor:
    return (BATCH.target.flatten() * 5 + 1) % VOCAB


def gradients_of(model: AnyModel, loss: Callable[[AnyModel], Tensor]) -> dict[str, Tensor]:
    """Give each parameter's gradient by name; autograd's None stays None."""
    names, parameters = zip(*model.named_parameters(), strict=True)
    return dict(zip(names, torch.autograd.grad(loss(model), parameters, allow_unused=True), strict=True))


def assert_slopes(model: AnyModel, what: object) -> None:
    """Central differences of the loss along a random direction of each parameter equal gradient · direction."""
    step = 1e-5
    for name, gradient in gradients_of(model, seeded_loss).items():
        parameter = model.get_parameter(name)
        direction = torch.randn(parameter.shape, dtype=parameter.dtype, generator=torch.Generator().manual_seed(3))
        losses = []
        for sign in (1, -2, 1):  # forward, backward, and home again
            with torch.no_grad():
                parameter += sign * step * direction
                losses.append(seeded_loss(model).item())
        slope = (losses[0] - losses[1]) / (2 * step)
        assert abs(slope - (gradient * direction).sum().item()) < 1e-6 * max(1, abs(slope)), (what, name)


def seeded_loss(model: AnyModel) -> Tensor:
    """The loss with the same dropout masks at every call."""
    torch.manual_seed(4)
    return loss_of(model)


@pytest.mark.slow
@pytest.mark.parametrize(("decoder", "score"), FAMILIES)
def test_every_parameters_gradient_by_finite_differences(decoder: str, score: str | None) -> None:
    for options in some_systems(decoder, score)[::4]:
        assert_slopes(build(options), options)


@pytest.mark.slow
@pytest.mark.parametrize(("decoder", "score"), FAMILIES)
def test_gradients_in_training_with_every_dropout_by_finite_differences(decoder: str, score: str | None) -> None:
    recurrent = {} if decoder == "transformer" else {"recurrent_dropout": 0.3}
    for options in some_systems(decoder, score)[1::5]:
        assert_slopes(build({**options, **DROPS, **recurrent}).train(), options)


@pytest.mark.parametrize(("decoder", "score"), FAMILIES)
def test_gradients_by_forward_equal_gradients_by_steps(decoder: str, score: str | None) -> None:
    for options in some_systems(decoder, score):
        model = build(options)
        by_forward, by_steps = gradients_of(model, loss_of), gradients_of(model, loss_by_steps)
        for name, gradient in by_forward.items():
            assert_same(gradient, by_steps[name], 1e-11, (options, name))


@pytest.mark.parametrize(("decoder", "score"), FAMILIES)
def test_no_parameter_is_without_a_gradient(decoder: str, score: str | None) -> None:
    """No dead weights: nothing is trained, saved and shipped that cannot change the output."""
    # The whole grid for one score, as scores do not change the rest; some of it for the others.
    for options in systems(decoder, score) if score in (None, "dot") else some_systems(decoder, score):
        for name, gradient in gradients_of(build(options), loss_of).items():
            assert gradient is not None, (options, name)
            closed = options.get("bridge") == "relu" and name.startswith("bridge.")  # a ReLU may be, for every row
            assert closed or gradient.abs().max() > 1e-9, (options, name)
