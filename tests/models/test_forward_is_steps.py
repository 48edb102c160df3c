"""`forward` equals `step` repeated, for every system, attention included; and attention weights are what they claim."""

from __future__ import annotations

import pytest
import torch

from mirada.models import Memory, Outputs, Step
from mirada.models.attention import attend, build_score, masked_softmax
from systems import BATCH, FAMILIES, LENGTHS, SCORES, SOURCE, TARGET, Options, assert_same, build, systems

REAL = torch.arange(SOURCE.size(1)) < LENGTHS[:, None]  # [B, S]


def both_roads(options: Options) -> tuple[Outputs, torch.Tensor, list[Step]]:
    """All steps at once (with their logits), and one after the other."""
    model = build(options)
    with torch.no_grad():
        outputs = model(*BATCH, with_attention=True)
        logits = model.logits(outputs.hidden)
        memory = model.encode(SOURCE, LENGTHS)
        state, steps = model.start(memory), []
        for token in TARGET.T:
            steps.append(model.step(token, state, memory))
            state = steps[-1].state
    return outputs, logits, steps


def assert_weights(weights: torch.Tensor, what: object) -> None:
    """Rows `[B, …, S]` sum to 1 over the real tokens and are exactly 0 on padding."""
    real = REAL.view(len(REAL), *[1] * (weights.dim() - 2), -1).expand_as(weights)
    assert (weights[~real] == 0).all(), what
    assert (weights[real] >= 0).all(), what
    assert ((weights.sum(-1) - 1).abs() < 1e-12).all(), what


@pytest.mark.parametrize(("decoder", "score"), FAMILIES)
def test_forward_equals_repeated_step(decoder: str, score: str | None) -> None:
    for options in systems(decoder, score):
        outputs, logits, steps = both_roads(options)
        assert_same(outputs.hidden, torch.stack([step.hidden for step in steps], 1), 1e-12, options)
        assert_same(logits, torch.stack([step.logits for step in steps], 1), 1e-12, options)
        if decoder == "classic":
            assert outputs.attention is None
            continue
        attention = torch.stack([step.attention for step in steps], 1)
        assert_same(outputs.attention, attention, 1e-12, options)
        assert_weights(outputs.attention, options)
        assert_weights(attention, options)
        heads = [step.heads for step in steps if step.heads is not None]
        assert_same(outputs.heads, torch.stack(heads, 3) if heads else None, 1e-12, options)
        if decoder == "transformer":
            heads = torch.stack([step.heads for step in steps], 3)
            assert_same(outputs.heads, heads, 1e-12, options)
            assert_weights(heads, options)
            assert_same(heads[:, -1].mean(1), attention, 1e-15, options)


@pytest.mark.parametrize("decoder", ["bahdanau", "luong", "transformer"])
def test_attention_is_returned_only_when_asked_for(decoder: str) -> None:
    options = next(systems(decoder, None if decoder == "transformer" else "general"))
    outputs = build(options)(*BATCH)
    assert outputs.attention is None
    assert outputs.heads is None


@pytest.mark.parametrize("score", ["additive", "concat"])
@pytest.mark.parametrize("decoder", ["bahdanau", "luong"])
def test_v_a_of_zeros_attends_uniformly(decoder: str, score: str) -> None:
    """With the paper's own start v_a = 0 every energy is 0: sentence i gets 1 / length at each of its words."""
    model = build(next(systems(decoder, score)))
    torch.nn.init.zeros_(model.score.v_a)
    attention = model(*BATCH, with_attention=True).attention
    expected = (REAL.double() / LENGTHS[:, None])[:, None].expand_as(attention)
    assert_same(attention, expected, 1e-15, decoder)


@pytest.mark.parametrize("score", SCORES)
def test_a_row_without_any_real_token_gives_zeros_and_finite_gradients(score: str) -> None:
    torch.manual_seed(1)
    function = build_score(score, query_size=4, memory_size=4, attention_size=3).double()
    query, states = torch.randn(2, 3, 4).double().requires_grad_(), torch.randn(2, 5, 4).double().requires_grad_()
    mask = torch.tensor([[True, True, False, False, False], [False] * 5])
    attended = attend(function, query, Memory(states, mask, function.project(states), ()))
    assert (attended.weights[1] == 0).all()
    assert (attended.context[1] == 0).all()
    attended.context.pow(2).sum().backward()
    for gradient in (query.grad, states.grad, *(p.grad for p in function.parameters())):
        assert gradient.isfinite().all()
    assert (query.grad[1] == 0).all()  # a sentence without words teaches nothing
    assert (states.grad[1] == 0).all()
    assert (states.grad[0, :2] != 0).any()


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
def test_masked_softmax_withstands_large_scores_in_every_precision(dtype: torch.dtype) -> None:
    """By hand: equal scores share, a score 1 lower gets e^-1 as much; what the mask hides has no say however large."""
    scores = torch.tensor([[3e4, 3e4, 6e4, -6e4], [0, -1, 9, 9]], dtype=dtype)
    mask = torch.tensor([[True, True, False, False], [True, True, False, False]])
    lower = 1 / (1 + torch.tensor(1.0, dtype=torch.float64).exp().item())
    expected = torch.tensor([[0.5, 0.5, 0, 0], [1 - lower, lower, 0, 0]], dtype=torch.float64)
    assert_same(masked_softmax(scores, mask), expected, 2 * torch.finfo(dtype).eps, dtype)


def test_masked_softmax_keeps_a_real_score_lower_than_any_other() -> None:
    """One real token gets weight 1 whatever its score; the mask's filling must not compete with it."""
    scores = torch.tensor([[-1e30, 5.0, 5.0]])
    assert masked_softmax(scores, torch.tensor([[True, False, False]])).tolist() == [[1.0, 0.0, 0.0]]
