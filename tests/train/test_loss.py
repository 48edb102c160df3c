"""The loss in chunks is the loss in one expression, its twin in PyTorch, and what paper says."""

from __future__ import annotations

from math import log
from typing import NamedTuple

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from mirada.data.vocabulary import BOS, PAD
from mirada.train import loss as module
from mirada.train.loss import Loss, plain_loss, sequence_loss

VOCAB = 11
WRITTEN = [0, *range(3, VOCAB)]  # all but <pad> and <s>


class Problem(NamedTuple):
    hidden: Tensor  # [B, T, R]
    weight: Tensor  # [V, R]
    bias: Tensor  # [V]
    targets: Tensor  # [B, T]

    def real(self) -> Tensor:
        return self.targets != PAD

    def loss(self, smoothing: float) -> Loss:
        return sequence_loss(self.hidden, self.weight, self.bias, self.targets, smoothing=smoothing)

    def leaves(self) -> tuple[Tensor, Tensor, Tensor]:
        return self.hidden, self.weight, self.bias


@pytest.fixture
def problem() -> Problem:
    random = torch.Generator().manual_seed(3)
    shapes = ((3, 5, 4), (VOCAB, 4), (VOCAB,))
    hidden, weight, bias = (torch.randn(shape, generator=random, dtype=torch.float64) for shape in shapes)
    targets = torch.randint(3, VOCAB, (3, 5), generator=random)
    targets[1, 2:] = PAD
    targets[2, 4:] = PAD
    return Problem(hidden.requires_grad_(), weight.requires_grad_(), bias.requires_grad_(), targets)


@pytest.mark.parametrize("rows", [1, 3, 11, 2048])  # 11 tokens are real: chunks of one, a rest, an exact fit, one chunk
@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.7])
def test_three_roads_to_the_same_loss_and_gradients(problem, smoothing, rows, monkeypatch):
    monkeypatch.setattr(module, "ROWS", rows)
    real, targets = problem.hidden[problem.real()], problem.targets[problem.real()]
    own = problem.hidden[problem.real()]
    logits = functional.linear(own, problem.weight[WRITTEN], problem.bias[WRITTEN])  # a vocabulary without the two
    places = torch.tensor([WRITTEN.index(target) for target in targets.tolist()])
    library = functional.cross_entropy(logits, places, label_smoothing=smoothing, reduction="sum")
    twin = plain_loss(real, problem.weight, problem.bias, targets, smoothing)
    own = problem.loss(smoothing).smoothed
    expected = torch.autograd.grad(library, problem.leaves())
    for value in (own, twin):
        torch.testing.assert_close(value, library, rtol=1e-12, atol=0)
        for actual, wanted in zip(torch.autograd.grad(value, problem.leaves()), expected, strict=True):
            torch.testing.assert_close(actual, wanted, rtol=1e-10, atol=1e-12)


def test_gradients_against_differences(problem, monkeypatch):
    monkeypatch.setattr(module, "ROWS", 4)

    def smoothed(hidden: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        # Scaled, as training does when it divides by the tokens.
        return sequence_loss(hidden, weight, bias, problem.targets, smoothing=0.3).smoothed / 7

    assert torch.autograd.gradcheck(smoothed, problem.leaves())


def test_on_paper():
    # <unk> or </s>, p = 3/4 and 1/4: −log p(y) = ln 4/3, and the mean over what can be written is (ln 4/3 + ln 4) / 2.
    hidden = torch.tensor([[[log(3.0), 50.0, 90.0, 0.0]]], dtype=torch.float64)  # <pad> and <s> would win
    parts = (hidden, torch.eye(4, dtype=torch.float64), torch.zeros(4, dtype=torch.float64), torch.tensor([[0]]))
    found = sequence_loss(*parts, smoothing=0.2)
    assert found.nll.item() == pytest.approx(log(4 / 3))
    assert found.smoothed.item() == pytest.approx(0.8 * log(4 / 3) + 0.2 * (log(4 / 3) + log(4)) / 2)
    assert found.correct.item() == 1


def test_without_knowledge_every_token_costs_the_log_of_the_vocabulary(problem):
    nothing = problem._replace(weight=torch.zeros_like(problem.weight), bias=torch.zeros_like(problem.bias))
    for smoothing in (0.0, 0.4):
        found = nothing.loss(smoothing)
        assert found.smoothed.item() == pytest.approx(11 * log(VOCAB - 2))
        assert found.nll.item() == pytest.approx(11 * log(VOCAB - 2))


def test_the_likelihood_is_never_smoothed(problem):
    logits = functional.linear(problem.hidden, problem.weight, problem.bias)
    logits[..., [PAD, BOS]] = -torch.inf
    log_p = logits.log_softmax(-1)
    nll = -log_p.gather(2, problem.targets[..., None])[..., 0][problem.real()].sum()
    for smoothing in (0.0, 0.1, 0.9):
        found = problem.loss(smoothing).nll
        torch.testing.assert_close(found, nll.detach(), rtol=1e-12, atol=0)
        assert not found.requires_grad


def test_correct_tokens_are_counted(monkeypatch):
    monkeypatch.setattr(module, "ROWS", 2)
    hidden = functional.one_hot(torch.tensor([[4, 5, 0], [3, 3, 3]]), 6).double()
    targets = torch.tensor([[4, 3, 0], [3, PAD, 5]])  # right, wrong, right; right, padding, wrong
    found = sequence_loss(hidden, torch.eye(6).double(), torch.zeros(6).double(), targets, smoothing=0.1)
    assert found.correct.item() == 3


@pytest.mark.parametrize("chooses", [True, False])  # the real rows, as on a CPU, or none, as on a GPU
def test_what_stands_on_padding_does_not_matter(problem, chooses, monkeypatch):
    monkeypatch.setattr(module, "synchronous", lambda _: chooses)
    expected = problem.loss(0.1)
    spoiled = problem.hidden.detach().clone()
    spoiled[~problem.real()] = torch.nan
    spoiled.requires_grad_()
    found = problem._replace(hidden=spoiled).loss(0.1)
    assert [part.item() for part in found] == [part.item() for part in expected]
    (gradient,) = torch.autograd.grad(found.smoothed, spoiled)
    assert gradient[~problem.real()].abs().sum().item() == 0
    assert gradient[problem.real()].abs().min().item() > 0


@pytest.mark.parametrize("chooses", [True, False])  # the real rows, as on a CPU, or none, as on a GPU
def test_padding_only(problem, chooses, monkeypatch):
    monkeypatch.setattr(module, "synchronous", lambda _: chooses)
    found = problem._replace(targets=torch.full_like(problem.targets, PAD)).loss(0.1)
    assert [part.item() for part in found] == [0, 0, 0]
    assert all(part.abs().sum().item() == 0 for part in torch.autograd.grad(found.smoothed, problem.leaves()))


def test_logits_exist_for_some_rows_at_a_time(problem, monkeypatch):
    monkeypatch.setattr(module, "ROWS", 4)
    seen = []
    add = module._log_probabilities
    monkeypatch.setattr(
        module,
        "_log_probabilities",
        lambda *parts: (seen.append((len(parts[0].hidden), parts[-1].shape)), add(*parts))[1],
    )
    problem.loss(0.1)
    assert seen == [(4, (4, VOCAB)), (4, (4, VOCAB)), (3, (3, VOCAB))]
    seen.clear()
    monkeypatch.setattr(module, "ROWS", 10)  # 11 tokens: not ten and one
    problem.loss(0.1)
    assert [rows for rows, _ in seen] == [6, 5]


def test_no_gradient_is_made_where_none_is_wanted(problem, monkeypatch):
    expected = problem.loss(0.1)

    def never(*_: object) -> Tensor:
        raise AssertionError("a gradient was computed")

    monkeypatch.setattr(module, "_peaked_gradient", never)
    for mode in (torch.no_grad, torch.inference_mode):
        with mode():
            found = problem.loss(0.1)
        assert [part.item() for part in found] == [part.item() for part in expected]
        assert not found.smoothed.requires_grad


def test_half_the_precision_gives_the_same_within_it(problem):
    single = Problem(*(part.detach().float() for part in problem.leaves()), problem.targets).loss(0.1)
    assert single.smoothed.dtype == torch.float32
    torch.testing.assert_close(
        single.smoothed.double(), problem.loss(0.1).smoothed, rtol=1e-5, atol=0, check_dtype=False
    )


def test_a_divisor_told_beforehand_is_a_division_afterwards(problem):
    afterwards = problem.loss(0.1).smoothed / 7
    beforehand = sequence_loss(*problem.leaves(), problem.targets, smoothing=0.1, divisor=7)
    torch.testing.assert_close(beforehand.smoothed, afterwards, rtol=1e-14, atol=0)
    assert [beforehand.nll.item(), beforehand.correct.item()] == [part.item() for part in problem.loss(0.1)[1:]]
    for value in (beforehand.smoothed, 3 * beforehand.smoothed):  # with and without a factor from outside
        factor = (value / afterwards).item()
        expected = torch.autograd.grad(factor * afterwards, problem.leaves(), retain_graph=True)
        for actual, wanted in zip(
            torch.autograd.grad(value, problem.leaves(), retain_graph=True), expected, strict=True
        ):
            torch.testing.assert_close(actual, wanted, rtol=1e-12, atol=1e-14)


def test_what_is_never_written_has_no_probability_and_no_gradient(problem):
    for smoothing in (0.0, 0.1):
        found = problem.loss(smoothing)
        changed = problem.bias.detach().clone()
        changed[[PAD, BOS]] = torch.tensor([7.0, -9.0]).double()
        assert problem._replace(bias=changed.requires_grad_()).loss(smoothing) == found
        _, d_weight, d_bias = torch.autograd.grad(found.smoothed, problem.leaves())
        assert d_weight[[PAD, BOS]].abs().sum() == d_bias[[PAD, BOS]].abs().sum() == 0
        assert d_weight[WRITTEN].abs().amin() > 0
