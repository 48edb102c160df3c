"""Packed weights against the plain ones: the same equations by other products."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from mirada.fast.flows import FusedBahdanau, FusedLuong
from mirada.fast.kv_cache import CachedTransformer, DecoderOutput
from mirada.fast.prepacked import (
    Decoding,
    Int8Linear,
    Precision,
    PrepackedCell,
    PrepackedEnergy,
    PrepackedLinear,
    Table,
    can_prepack,
    prepacked,
)
from mirada.fast.scripted import added, layers
from mirada.kernels.widths import round_up
from mirada.models.attention import AdditiveScore
from mirada.models.base import Memory, State, Step
from mirada.models.cells import Cell
from mirada.search.memory import padded
from mirada.trees import select_rows
from systems import FAMILIES, LENGTHS, SOURCE, TARGET, Options, assert_same, build, some_systems

SOME = nn.Linear(1, 1)
BY_8_BITS = pytest.mark.skipif(not can_prepack(SOME, "int8"), reason="this CPU has no 8-bit products")
pytestmark = pytest.mark.skipif(not can_prepack(SOME, "float32"), reason="this machine has no packed products")
RECURRENT: Options = {"embedding_dim": 4, "hidden_size": 6}


@pytest.fixture
def all_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mirada.fast.prepacked.SMALLEST", {"float32": 1, "int8": 1})


def follow(model: Decoding) -> list[tuple[Tensor, Tensor, Tensor | None]]:
    """What a search sees of three steps with one hypothesis a sentence, then of more with some, without sentence 1.

    A second step from the same state, with other words, comes between where that is allowed: it must leave the state as
    it was.
    """
    seen: list[Step | DecoderOutput] = []

    def go_on(token: Tensor, state: State, memory: Memory) -> State:
        if not isinstance(model, CachedTransformer):
            model.step(token.flip(0), state, memory)
        seen.append(model.step(token, state, memory))
        return seen[-1].state

    with torch.inference_mode():
        memory = model.encode(SOURCE, LENGTHS)
        state = model.start(memory)
        for token in TARGET.T[:3]:
            state = go_on(token, state, memory)
        state = select_rows(state, torch.arange(3).repeat_interleave(3))
        state = go_on(TARGET[:, :3].flatten(), state, memory)
        state = select_rows(state, torch.tensor([2, 0, 0, 3, 4, 5, 7, 7, 6]))
        state = go_on(TARGET[:, 1:4].flatten(), state, memory)
        state, memory = select_rows(state, torch.tensor([0, 2, 1, 8, 7, 6])), select_rows(memory, torch.tensor([0, 2]))
        for token in TARGET.T[:4]:
            state = go_on(token[[0, 1, 2, 2, 1, 0]], state, memory)
    return [(step.logits, step.hidden, step.attention) for step in seen]


@pytest.mark.parametrize(("decoder", "score"), FAMILIES)
def test_a_packed_model_says_what_the_plain_one_says(decoder: str, score: str | None, all_sizes: None) -> None:
    for options in some_systems(decoder, score)[::3]:
        model = build(options, dtype=torch.float32)
        twin = prepacked(model)
        assert any(isinstance(part, PrepackedLinear) for part in twin.modules()), options
        assert_same(follow(twin), follow(model), 2e-5, options)


@BY_8_BITS
@pytest.mark.parametrize(("decoder", "score"), FAMILIES)
def test_8_bits_come_close(decoder: str, score: str | None, all_sizes: None) -> None:
    for options in some_systems(decoder, score)[::3]:
        model = build(options, dtype=torch.float32)
        twin = prepacked(model, "int8")
        assert any(isinstance(part, Int8Linear) for part in twin.modules()), options
        one, other = (torch.cat([logits for logits, _, _ in follow(which)]) for which in (model, twin))
        assert 0 < (one - other).abs().max() < 0.2 * one.std(), options


@pytest.mark.parametrize("bias", [False, True])
def test_energies_by_a_sigmoid_of_doubled_weights_are_those_of_the_tanh(bias: bool) -> None:
    """Also where the tanh is 1 or −1, and for several hypotheses."""
    torch.manual_seed(1)
    score = AdditiveScore(5, 6, 7, bias=bias)
    for part in score.parameters():
        nn.init.normal_(part, std=3)
    fast, query, states = PrepackedEnergy(score), torch.randn(3, 4, 5), torch.randn(3, 9, 6)
    with torch.inference_mode():
        found = fast(query, fast.project(states))
        assert found.shape == (3, 4, 9)
        torch.testing.assert_close(found, score(query, score.project(states)), atol=2e-5, rtol=1e-5)
    assert not any(part.data_ptr() == own.data_ptr() for part in fast.parameters() for own in score.parameters())


@pytest.mark.parametrize("kind", ["lstm", "gru"])
def test_a_packed_cell_scans_as_a_plain_one(kind: str) -> None:
    torch.manual_seed(1)
    cell, x = Cell(kind, 5, 4).eval(), torch.randn(7, 3, 5)
    twin = PrepackedCell(cell, "float32")
    with torch.inference_mode():
        assert_same(twin.project(x), cell.project(x), 1e-6, kind)
        state = tuple(torch.randn_like(part) for part in cell.zero_state(x, 3))
        lengths, before = torch.tensor([7, 2, 4]), x.clone()
        assert_same(twin.scan(x, state, lengths).last, cell.scan(x, state, lengths).last, 1e-6, kind)
        assert_same(twin.scan(x, state, lengths).hs, cell.scan_plain(cell.project(x), state)[0], 1e-6, kind)
        assert torch.equal(x, before), "what comes in stays as it is"
        assert_same(twin.zero_state(x, 3), cell.zero_state(x, 3), 0, kind)


def test_the_model_stays_as_it_is_and_shares_what_is_small() -> None:
    model = build({"decoder": "luong", "score": "general", "embedding_dim": 8, "hidden_size": 160}, dtype=torch.float32)
    weights = {name: value.clone() for name, value in model.named_parameters()}
    kinds = [type(part) for part in model.modules()]
    twin = prepacked(model)
    assert isinstance(twin.stack.cells[0], PrepackedCell)
    assert twin.encoder.embedding.weight is model.encoder.embedding.weight
    assert [type(part) for part in model.modules()] == kinds
    assert all(torch.equal(value, weights[name]) for name, value in model.named_parameters())


@pytest.mark.parametrize("precision", ["float32", pytest.param("int8", marks=BY_8_BITS)])
@pytest.mark.parametrize("norm", ["pre", "post"])
def test_a_step_in_one_call_is_the_same_written_in_python(
    norm: str, precision: Precision, all_sizes: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = build(some_systems("transformer", None)[0] | {"norm": norm}, dtype=torch.float32)
    twin = prepacked(model, precision)
    assert isinstance(twin.layers.run, torch.jit.ScriptFunction), "every search is slower: torch cannot compile"
    found = [follow(twin)]
    monkeypatch.delattr("torch.jit.script")
    assert prepacked(model, precision).layers.run is layers
    found.append(follow(prepacked(model, precision)))
    assert_same(*found, 1e-6, norm)


@pytest.mark.parametrize(("decoder", "score"), [family for family in FAMILIES if family[0] in ("bahdanau", "luong")])
def test_a_flow_is_one_call_where_attention_depends_on_the_query_alone(
    decoder: str, score: str | None, all_sizes: None
) -> None:
    options: Options = {"decoder": decoder, "score": score, "hidden_size": 6, "embedding_dim": 4}
    one = prepacked(build(options, dtype=torch.float32))
    assert isinstance(vars(one).get("_advance"), FusedLuong | FusedBahdanau)
    for more in ({"dec_layers": 2, "enc_layers": 2}, {"attention_window": "local-m"}):
        assert "_advance" not in vars(prepacked(build(options | more, dtype=torch.float32)))


@pytest.mark.parametrize("decoder", ["bahdanau", "luong"])
def test_replaced_weights_are_heeded_by_a_flow_of_one_call(decoder: str, all_sizes: None) -> None:
    model = build({"decoder": decoder, **RECURRENT}, dtype=torch.float32)
    found = []
    with torch.inference_mode():
        for one in (model, prepacked(model)):
            memory = one.encode(SOURCE, LENGTHS)
            replaced = memory._replace(replaced=memory.mask[:, None] / LENGTHS[:, None, None])
            step = one.step(TARGET[:, 0], one.start(memory), replaced)
            found.append([(step.logits, step.hidden, step.attention)])
    assert_same(found[1], found[0], 2e-5, decoder)
    torch.testing.assert_close(found[1][0][2], memory.mask / LENGTHS[:, None])


def test_a_state_is_gone_on_from_once(all_sizes: None) -> None:
    model = prepacked(build(some_systems("transformer", None)[0], dtype=torch.float32))
    with torch.inference_mode():
        memory = model.encode(SOURCE, LENGTHS)
        state = model.step(TARGET[:, 0], model.start(memory), memory).state
        model.step(TARGET[:, 1], state, memory)
        with pytest.raises(RuntimeError, match="this state was gone on from; a search goes on from the last state"):
            model.step(TARGET[:, 1], state, memory)


def test_weights_are_not_forced_on_a_copy_for_searching(all_sizes: None) -> None:
    model = prepacked(build(some_systems("transformer", None)[0], dtype=torch.float32))
    with torch.inference_mode():
        memory = model.encode(SOURCE, LENGTHS)
        forced = memory._replace(replaced=memory.mask[:, None].float())
        with pytest.raises(ValueError, match="weights are replaced in the model itself, not on its copy for searching"):
            model.step(TARGET[:, 0], model.start(memory), forced)


def test_words_are_looked_up_where_that_takes_little_room(all_sizes: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """And results are the same either way, for every flow that has no readout of the embedding."""
    for decoder, options in (("luong", {}), ("bahdanau", {"readout": "state"}), ("classic", {"rnn_type": "gru"})):
        model = build({"decoder": decoder, **RECURRENT, **options}, dtype=torch.float32)
        found = [follow(twin := prepacked(model))]
        assert isinstance(twin.stack.cells[0].x, Table)
        with monkeypatch.context() as patch:
            patch.setattr("mirada.fast.prepacked.LARGEST_TABLE", 0)
            found.append(follow(twin := prepacked(model)))
        assert not isinstance(twin.stack.cells[0].x, Table)
        assert_same(*found, 2e-6, decoder)
    deep = prepacked(build({"decoder": "bahdanau", "readout": "deep", **RECURRENT}, dtype=torch.float32))
    assert not [part for part in deep.modules() if isinstance(part, Table)], "its readout reads the embedding too"


def test_small_weights_stay_plain() -> None:
    twin = prepacked(build({"decoder": "luong", "score": "general", **RECURRENT}, dtype=torch.float32))
    assert not [part for part in twin.modules() if isinstance(part, PrepackedLinear | PrepackedCell)]


def test_elsewhere_the_model_itself_comes_back() -> None:
    double = build({"decoder": "luong", "score": "dot", **RECURRENT})
    assert prepacked(double) is double
    assert not can_prepack(double, "int8")
    away = build({"decoder": "luong", "score": "dot", **RECURRENT}, dtype=torch.float32).to("meta")
    assert prepacked(away) is away


# Products


def whole_numbers(*shape: int) -> Tensor:
    """Numbers from −127 to 127 whose last axis begins with 127, so that 8 bits hold them exactly."""
    numbers = torch.randint(-127, 128, shape).float()
    numbers[..., 0] = 127
    return numbers


@BY_8_BITS
def test_whole_numbers_are_multiplied_exactly() -> None:
    torch.manual_seed(2)
    weight, bias, x, other = whole_numbers(9, 33), torch.randn(9), whole_numbers(2, 5, 33), torch.randn(2, 5, 9)
    layer, scale = Int8Linear(weight, bias), torch.tensor([0.5, 2, 1 / 64, 8, 1])[:, None]
    torch.testing.assert_close(layer(x * scale), (x @ weight.T) * scale + bias, rtol=1e-6, atol=1e-6)
    torch.testing.assert_close(Int8Linear(weight / 128, None)(x), x @ weight.T / 128, rtol=1e-6, atol=0)
    torch.testing.assert_close(layer.added(x, other), x @ weight.T + other, rtol=1e-6, atol=1e-6)


@BY_8_BITS
def test_the_error_is_that_of_rounding_to_8_bits() -> None:
    torch.manual_seed(3)
    weight, x = torch.randn(50, 70), torch.randn(20, 70)
    half_x, half_w = x.abs().amax(1) / 127 / 2, weight.abs().amax(1) / 127 / 2
    bound = half_x[:, None] * weight.abs().sum(1) + (x.abs().sum(1) + 70 * half_x)[:, None] * half_w
    assert ((Int8Linear(weight, None)(x) - x @ weight.T).abs() <= bound).all()


@BY_8_BITS
def test_by_8_bits_a_row_gets_the_same_in_any_batch() -> None:
    torch.manual_seed(4)
    layer, x = (
        Int8Linear(torch.randn(40, 96), torch.randn(40)),
        torch.randn(65, 96) * torch.logspace(-3, 3, 65)[:, None],
    )
    together = layer(x)
    assert all(torch.equal(layer(x[i : i + 1])[0], together[i]) for i in range(65))


@BY_8_BITS
def test_zeros_give_the_bias() -> None:
    bias = torch.randn(4)
    assert torch.equal(Int8Linear(torch.randn(4, 8), bias)(torch.zeros(2, 8)), bias.expand(2, 4))
    assert torch.equal(Int8Linear(torch.zeros(4, 8), bias)(torch.randn(2, 8)), bias.expand(2, 4))


def test_a_packed_product_is_the_plain_one() -> None:
    torch.manual_seed(5)
    weight, bias, x, other = torch.randn(30, 20), torch.randn(30), torch.randn(2, 3, 20), torch.randn(2, 3, 30)
    layer = PrepackedLinear(weight, bias)
    torch.testing.assert_close(layer(x), x @ weight.T + bias, rtol=1e-5, atol=1e-5)
    summed = added(x, [layer.weight, bias], other)
    torch.testing.assert_close(summed, x @ weight.T + other, rtol=1e-5, atol=1e-5)
    assert layer(x[:0]).shape == (0, 3, 30)


def test_widths_that_are_fast_for_the_softmax() -> None:
    assert [round_up(width) for width in (1, 15, 16, 17, 24, 25)] == [16, 16, 16, 24, 24, 32]


def test_a_memory_has_another_padding_and_is_the_same() -> None:
    model = build({"decoder": "luong", "score": "general", **RECURRENT}, dtype=torch.float32)
    with torch.inference_mode():
        memory = model.encode(SOURCE, LENGTHS)
        state = model.start(memory)
        width = memory.mask.size(1)
        for other in (padded(memory, round_up(width)), padded(memory, width), padded(padded(memory, 24), width)):
            assert other.mask.sum() == memory.mask.sum()
            here, there = (model.step(TARGET[:, 0], state, one) for one in (other, memory))
            assert_same([here.logits, here.attention[:, :width]], [there.logits, there.attention], 1e-6, width)


def test_a_packed_transformer_keeps_no_product_twice(all_sizes: None) -> None:
    twin = prepacked(build(some_systems("transformer", None)[0], dtype=torch.float32))
    for layer in twin.inner.decoder:
        products = [name for name, part in layer.named_modules() if isinstance(part, PrepackedLinear | nn.Linear)]
        assert products == ["cross_heads.v", "cross_heads.k"]
