"""Local attention and coverage: the papers' equations, forward and step, batches, gradients, searching."""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from mirada.config.options import ModelConfig
from mirada.fast.prepacked import prepacked
from mirada.models import AnyModel
from mirada.models.local import Monotonic, Predictive
from mirada.reference import systems as equations
from mirada.search.memory import padded
from mirada.search.scheduler import Request, search_all
from mirada.trees import select_rows
from systems import BATCH, LENGTHS, SOURCE, TARGET, VOCAB, Options, assert_same, build

SHAPE: Options = {"embedding_dim": 4, "hidden_size": 6, "attention_size": 5}
KINDS: dict[str, Options] = {
    "local-m": {"score": "general", "attention_window": "local-m", "window": 1},
    "local-m reversed": {"score": "concat", "attention_window": "local-m", "window": 1, "reverse_source": True},
    "local-p": {"score": "general", "attention_window": "local-p", "window": 2},
    "local-p reversed": {"score": "additive", "attention_window": "local-p", "window": 2, "reverse_source": True},
    "coverage": {"score": "additive", "coverage": True},
    "coverage local-p": {"score": "concat", "coverage": True, "attention_window": "local-p", "window": 3},
}
FLOWS: dict[str, Options] = {
    "bahdanau": {"decoder": "bahdanau", "rnn_type": "gru"},
    "luong": {"decoder": "luong", "dec_layers": 2},
    "luong unfed": {"decoder": "luong", "input_feeding": False, "copy_attn": True},
}
ALL = [pytest.param(flow, kind, id=f"{flow}, {kind}") for flow, kind in product(FLOWS, KINDS)]
COPIES = (SOURCE + 1) % VOCAB


def values(flow: str, kind: str) -> Options:
    found = {**SHAPE, **FLOWS[flow], **KINDS[kind]}
    if found.get("attention_window") == "local-p":
        found.pop("copy_attn", None)  # its weights do not sum to one
    if found["score"] == "general":
        found.pop("attention_size")
    return found


def steps_of(model: AnyModel, memory: Any, state: Any, target: Tensor) -> dict[str, Tensor]:
    """Probabilities and weights of every step of rows."""
    found = []
    for token in target.T:
        step = model.step(token, state, memory)
        state = step.state
        found.append((step.logits.softmax(-1), step.attention))
    logits, weights = (torch.stack(part, 1) for part in zip(*found, strict=True))
    return {"logits": logits, "weights": weights}


def all_steps(model: AnyModel, source: Tensor = SOURCE, lengths: Tensor = LENGTHS) -> dict[str, Tensor]:
    memory = model.encode(source, lengths, COPIES[: len(source), : source.size(1)])
    return steps_of(model, memory, model.start(memory), TARGET[: len(source)])


@pytest.mark.parametrize(("flow", "kind"), ALL)
def test_steps_are_the_papers_equations_and_forward_is_the_steps(flow: str, kind: str) -> None:
    options = values(flow, kind)
    model, config = build(options), ModelConfig(**options)
    weights = {name: value.numpy() for name, value in model.state_dict().items()}
    with torch.no_grad():
        found, outputs = all_steps(model), model(*BATCH, COPIES, with_attention=True)
    p = model.logits(outputs.hidden, outputs.copying).softmax(-1).detach()
    assert_same(found["logits"], p, 1e-12, options)
    assert_same(found["weights"], outputs.attention, 1e-12, options)
    for row, length in enumerate(LENGTHS.tolist()):
        source, copies = SOURCE[row, :length].tolist(), COPIES[row, :length].tolist() if config.copy_attn else []
        run = equations.run(config, weights, source, TARGET[row].tolist(), copies=copies)
        for t, named in enumerate(run.steps):
            assert np.abs(found["weights"][row, t, :length].numpy() - named["alpha"]).max() < 1e-12, (row, t)
            expected = named.get("p", np.exp(named["logits"]) / np.exp(named["logits"]).sum())
            assert np.abs(found["logits"][row, t, : len(expected)].numpy() - expected).max() < 1e-12, (row, t)


@pytest.mark.parametrize(("flow", "kind"), ALL)
def test_a_sentence_alone_in_a_batch_with_other_padding_and_hypotheses(flow: str, kind: str) -> None:
    model = build(values(flow, kind))
    with torch.no_grad():
        whole = all_steps(model)
        for row in (0, 2):
            length = int(LENGTHS[row])
            memory = model.encode(SOURCE[[row], :length], LENGTHS[[row]], COPIES[[row], :length])
            alone = steps_of(model, memory, model.start(memory), TARGET[[row]])
            assert_same(alone["weights"], whole["weights"][[row], :, :length], 1e-12, "alone")
            assert_same(alone["logits"][..., :VOCAB], whole["logits"][[row]][..., :VOCAB], 1e-12, "alone")
        memory = model.encode(SOURCE, LENGTHS, COPIES)
        twice = select_rows(model.start(memory), torch.arange(3).repeat_interleave(2))
        rows = steps_of(model, padded(memory, 9), twice, TARGET.repeat_interleave(2, 0))
        assert_same(rows["weights"][::2, :, :6], whole["weights"], 1e-12, "hypotheses, wider")
        assert_same(rows["logits"][1::2], rows["logits"][::2], 1e-12, "hypotheses")


@pytest.mark.parametrize(("flow", "kind"), ALL)
def test_gradients_by_finite_differences(flow: str, kind: str) -> None:
    """Along a random direction of each parameter; every parameter has a gradient."""
    model = build(values(flow, kind))

    def loss() -> Tensor:
        outputs = model(*BATCH, COPIES, with_attention=True)
        p = model.logits(outputs.hidden, outputs.copying).softmax(-1)
        return (p[..., 4:VOCAB] * torch.linspace(1, 2, VOCAB - 4)).sum() + outputs.attention.pow(2).sum()

    names, parameters = zip(*model.named_parameters(), strict=True)
    for name, parameter, gradient in zip(names, parameters, torch.autograd.grad(loss(), parameters), strict=True):
        direction = torch.randn(parameter.shape, dtype=parameter.dtype, generator=torch.Generator().manual_seed(3))
        found = []
        for sign in (1, -2, 1):
            with torch.no_grad():
                parameter.add_(sign * 1e-5 * direction)
                found.append(loss().item())
        slope = (found[0] - found[1]) / 2e-5
        assert abs(slope - (gradient * direction).sum().item()) < 1e-6 * max(1, abs(slope)), name
        assert gradient.abs().max() > 1e-9, name


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("beam", [1, 3])
def test_searching_many_at_once_is_searching_each(kind: str, beam: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Places in a batch are taken by sentences of other ages and lengths; products are prepacked."""
    from mirada.config.options import SearchConfig

    monkeypatch.setattr("mirada.fast.prepacked.SMALLEST", {"float32": 1, "int8": 1})
    model = prepacked(build(values("luong", kind), dtype=torch.float32))
    draw = torch.Generator().manual_seed(4)
    sources = [[*torch.randint(4, VOCAB, (1 + 3 * i % 17,), generator=draw).tolist(), 3] for i in range(12)]
    options = SearchConfig(beam_size=beam, max_output_length=7)
    requests = [Request(source, [], i, tuple(source)) for i, source in enumerate(sources)]
    device = torch.device("cpu")
    together = search_all(model, requests, options, batch_size=3, device=device)
    for request, found in zip(requests, together, strict=True):
        [[alone]] = search_all(model, [request], options, batch_size=1, device=device)
        assert alone.tokens == found[0].tokens
        assert alone.log_probability == pytest.approx(found[0].log_probability, abs=1e-4)


def test_local_m_by_hand() -> None:
    """Positions from 0; at the edges the window is cut; past the end it stays at the last word."""
    mask = torch.tensor([[True] * 5 + [False] * 2])
    window = Monotonic(1)(torch.zeros(1, 4, 2), mask, torch.tensor([[0, 2, 4, 9]]))
    near = [[j for j, inside in enumerate(row) if inside] for row in window.mask[0].tolist()]
    assert near == [[0, 1], [1, 2, 3], [3, 4], [3, 4]]
    assert window.factor is None


def test_local_p_by_hand() -> None:
    """v_p = 0 puts the middle at half the true length, not the padded one: 2.5 of 5 words; σ = D/2 = 1."""
    window = Predictive(3, 2)
    torch.nn.init.zeros_(window.v_p.weight)
    seen = window(torch.randn(1, 1, 3), torch.tensor([[True] * 5 + [False] * 3]), None)
    assert seen.mask[0, 0].tolist() == [False, True, True, True, True, False, False, False]
    expected = [math.exp(-((j - 2.5) ** 2) / 2) for j in range(1, 5)]
    assert seen.factor[0, 0, 1:5].tolist() == pytest.approx(expected, rel=1e-6)


def test_the_window_counts_words_as_they_stand_where_the_source_is_read_backwards() -> None:
    model = build(values("luong", "local-m reversed"))
    with torch.no_grad():
        weights = all_steps(model)["weights"]
    assert [[j for j, weight in enumerate(row) if weight] for row in weights[0].tolist()] == [
        [0, 1],
        [0, 1, 2],
        [1, 2, 3],
        [2, 3, 4],
        [3, 4, 5],
    ]
