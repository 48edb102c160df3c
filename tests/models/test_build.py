"""`build_model`: what it refuses, what it shares, and how the decoders start."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from mirada.config.configfile import parse
from mirada.config.options import ModelConfig
from mirada.errors import ConfigError
from mirada.models import build_model
from systems import BATCH, FAMILIES, LENGTHS, SOURCE, VOCAB, Options, assert_same, build, some_systems, systems

NARROW = {"embedding_dim": 8, "hidden_size": 7}
LEAVE_OUT = "leave score out, or use decoder bahdanau or luong"
WIDTHS = "set encoder_hidden_size to hidden_size divided by the directions, or use score general, additive or concat"

REFUSED: list[tuple[Options, str]] = [
    (
        {"decoder": "luong", "score": "dot", "encoder_hidden_size": 100},
        f"score dot needs encoder states as wide as hidden_size (got 200 and 512); {WIDTHS}",
    ),
    (
        {"decoder": "bahdanau", "score": "scaled_dot", **NARROW},
        f"score scaled_dot needs encoder states as wide as hidden_size (got 6 and 7); {WIDTHS}",
    ),
    (
        {"decoder": "classic", "score": "additive"},
        f"score additive with decoder classic, which has no attention; {LEAVE_OUT}",
    ),
    (
        {"decoder": "classic", "score": "mlp"},
        f"score additive with decoder classic, which has no attention; {LEAVE_OUT}",
    ),
    (
        {"decoder": "transformer", "score": "additive"},
        f"score additive with decoder transformer, which uses scaled_dot; {LEAVE_OUT}",
    ),
    (
        {"decoder": "transformer", "embedding_dim": 6, "num_heads": 4},
        "embedding_dim 6 is not a multiple of num_heads 4",
    ),
    (
        {"decoder": "luong", "tied_softmax": True, **NARROW},
        "tied_softmax true needs embedding_dim equal to hidden_size with decoder luong (got 8 and 7); "
        "bahdanau with readout deep has no such need",
    ),
    (
        {"decoder": "classic", "tied_softmax": True, **NARROW},
        "tied_softmax true needs embedding_dim equal to hidden_size with decoder classic (got 8 and 7); "
        "bahdanau with readout deep has no such need",
    ),
    (
        {"decoder": "classic", "feed_context": True, "bridge": "tanh"},
        "bridge tanh with feed_context true, where the context alone does that",
    ),
    (
        {"decoder": "classic", "feed_context": True, "input_feeding": True},
        "input_feeding true with feed_context true, where the context alone does that",
    ),
    (
        {"decoder": "luong", "bridge": "copy", "encoder_hidden_size": 100},
        "bridge copy needs encoder states as wide as hidden_size (got 200 and 512); set encoder_hidden_size to "
        "hidden_size divided by the directions",
    ),
    ({"decoder": "luong", "bridge_from": "top"}, "bridge_from top does nothing without bridge"),
    (
        {"attention_bias": True},
        "attention_bias true does nothing with score general; it is for score additive or concat",
    ),
    (
        {"decoder": "transformer", "position_encoding": "tensor2tensor", "embedding_dim": 2, "num_heads": 1},
        "position_encoding tensor2tensor needs embedding_dim 4 at least, got 2",
    ),
    (
        {"reverse_source": True, "add_source_eos": False},
        "reverse_source true with add_source_eos false: the </s> that would stay in place is not read",
    ),
    (
        {"tied_embeddings": True},
        "tied_embeddings true needs share_vocab true (one vocabulary for both sides)",
    ),
]

# option, a value that is not its default, whose it is, and the decoders that must refuse it
OWNED: list[tuple[str, Any, str, tuple[str, ...]]] = [
    ("feed_context", True, "classic", ("bahdanau", "luong", "transformer")),
    ("readout", "deep", "bahdanau", ("classic", "luong", "transformer")),
    ("input_feeding", False, "classic or luong", ("bahdanau", "transformer")),
    ("input_feeding", True, "classic or luong", ("bahdanau", "transformer")),
    ("attentional", "linear", "luong", ("classic", "bahdanau", "transformer")),
    ("attentional_bias", True, "luong", ("classic", "bahdanau", "transformer")),
    ("attention_bias", True, "bahdanau or luong", ("classic", "transformer")),
    ("bridge", "tanh", "classic or luong", ("bahdanau", "transformer")),
    ("bridge_from", "top", "classic or luong", ("bahdanau", "transformer")),
    ("norm_eps", 1e-6, "transformer", ("classic", "bahdanau", "luong")),
    ("position_encoding", "tensor2tensor", "transformer", ("classic", "bahdanau", "luong")),
    ("first_position", 2, "transformer", ("classic", "bahdanau", "luong")),
    ("attention_size", 5, "bahdanau or luong", ("classic", "transformer")),
    ("norm", "post", "transformer", ("classic", "bahdanau", "luong")),
    ("bidirectional", False, "classic or bahdanau or luong", ("transformer",)),
    ("reverse_source", True, "classic or bahdanau or luong", ("transformer",)),
    ("recurrent_dropout", 0.25, "classic or bahdanau or luong", ("transformer",)),
    ("encoder_hidden_size", 9, "classic or bahdanau or luong", ("transformer",)),
]


@pytest.mark.parametrize(("options", "message"), REFUSED)
def test_options_that_contradict_each_other_are_refused_in_one_line(options: Options, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse({"model": options})
    assert str(caught.value) == f"options: {message}"


@pytest.mark.parametrize(("option", "value", "owners", "others"), OWNED)
def test_an_option_of_another_decoder_is_refused(
    option: str, value: object, owners: str, others: tuple[str, ...]
) -> None:
    for decoder in others:
        with pytest.raises(ConfigError) as caught:
            parse({"model": {"decoder": decoder, option: value}})
        shown = str(value).lower()
        expected = f"options: {option} {shown} does nothing with decoder {decoder}; it is for decoder {owners}"
        assert str(caught.value) == expected


@pytest.mark.parametrize(
    "options",
    [
        {"decoder": "bahdanau", "readout": "deep", "tied_softmax": True, **NARROW},
        {"decoder": "classic", "feed_context": True, "tied_softmax": True, **NARROW},
        {"decoder": "luong", "score": "dot", "encoder_hidden_size": 7, "bidirectional": False, **NARROW},
        {"decoder": "transformer", "tied_softmax": True, "embedding_dim": 8},
        {"decoder": "transformer", "score": "scaled_dot", "embedding_dim": 8},
    ],
)
def test_what_looks_like_a_contradiction_but_is_none_can_be_built(options: Options) -> None:
    model = build_model(ModelConfig(**options), source_vocab=VOCAB, target_vocab=VOCAB + 4)
    assert model.logits(model(*BATCH).hidden).shape == (*BATCH.target.shape, VOCAB + 4)


@pytest.mark.parametrize("decoder", ["bahdanau", "luong"])
@pytest.mark.parametrize("score", ["additive", "concat"])
def test_widths_are_those_of_the_options(decoder: str, score: str) -> None:
    """States as wide as all directions together; keys as wide as attention_size, by default as hidden_size."""
    for bidirectional, given, (memory_width, key_width) in (
        (True, {}, (6, 7)),
        (False, {}, (7, 7)),
        (True, {"encoder_hidden_size": 5, "attention_size": 4}, (10, 4)),
        (False, {"encoder_hidden_size": 5, "attention_size": 4}, (5, 4)),
    ):
        model = build({"decoder": decoder, "score": score, "bidirectional": bidirectional, **NARROW, **given})
        memory = model.encode(SOURCE, LENGTHS)
        step = model.step(BATCH.target[:, 0], model.start(memory), memory)
        assert memory.states.shape == (3, 6, memory_width)
        assert memory.keys.shape == (3, 6, key_width)
        assert step.state.layers[0][0].shape == (3, 7)
        assert step.context.shape == (3, memory_width)


def test_a_model_is_as_deep_as_its_options_say() -> None:
    for decoder, score in FAMILIES:
        for options in some_systems(decoder, score):
            model = build(options)
            attentive = decoder == "transformer"
            encoder, stack = (model.encoder, model.decoder) if attentive else (model.encoder.layers, model.stack.cells)
            assert (len(encoder), len(stack)) == (options["enc_layers"], options["dec_layers"])


@pytest.mark.parametrize(("decoder", "score"), FAMILIES)
def test_embeddings_are_shared_where_and_only_where_it_is_asked_for(decoder: str, score: str | None) -> None:
    for options in some_systems(decoder, score):
        model = build(options)
        source = model.source_embedding if decoder == "transformer" else model.encoder.embedding
        assert (model.output.weight is model.embedding.weight) == options.get("tied_softmax", False), options
        assert (source.weight is model.embedding.weight) == options.get("tied_embeddings", False), options


def test_shared_weights_are_one_parameter_with_the_sum_of_its_gradients() -> None:
    """One optimiser step moves every place at once, by what all of them ask for."""
    options = {"decoder": "transformer", "embedding_dim": 8, "ff_size": 7, "dropout": 0.0}
    tied = {"tied_softmax": True, "tied_embeddings": True}
    one = build_model(ModelConfig(**options, **tied), source_vocab=VOCAB, target_vocab=VOCAB).double()
    three = build_model(ModelConfig(**options), source_vocab=VOCAB, target_vocab=VOCAB).double()
    three.load_state_dict(one.state_dict())
    for model in (one, three):
        nn.functional.cross_entropy(model.logits(model(*BATCH).hidden).flatten(0, 1), BATCH.target.flatten()).backward()
    places = (three.source_embedding.weight, three.embedding.weight, three.output.weight)
    assert_same(one.embedding.weight.grad, sum(place.grad for place in places), 1e-12, "gradients")
    assert len(list(three.parameters())) - len(list(one.parameters())) == 2


@pytest.mark.parametrize("decoder", ["classic", "luong"])
@pytest.mark.parametrize("cell", ["lstm", "gru"])
def test_in_one_direction_the_decoder_starts_where_the_encoder_stopped(decoder: str, cell: str) -> None:
    """s_0 = c itself: no weights between, and its h is the encoder's state at the last real word."""
    options = {"decoder": decoder, "rnn_type": cell, "bidirectional": False, "enc_layers": 2, "dec_layers": 2}
    model = build({**options, "embedding_dim": 4, "hidden_size": 6})
    memory = model.encode(SOURCE, LENGTHS)
    start = model.start(memory)
    assert list(model.bridge.parameters()) == []
    assert_same(start.layers, memory.final, 0.0, "s_0")
    assert_same(start.layers[-1][0], memory.states[torch.arange(3), LENGTHS - 1], 0.0, "h at the last word")
    if decoder == "luong":
        assert (start.fed == 0).all()


@pytest.mark.parametrize("cell", ["lstm", "gru"])
def test_bahdanau_starts_from_the_backward_state_at_word_one_alone(cell: str) -> None:
    options = {"decoder": "bahdanau", "rnn_type": cell, "enc_layers": 2, "dec_layers": 2}
    model = build({**options, "embedding_dim": 4, "hidden_size": 6})
    memory = model.encode(SOURCE, LENGTHS)
    start = model.start(memory)
    top = memory.final[-1][0]
    assert_same(top[:, 3:], memory.states[:, 0, 3:], 0.0, "the backward half is the backward state at word 1")
    assert_same(top[:, :3], memory.states[torch.arange(3), LENGTHS - 1, :3], 0.0, "the forward half at the last word")

    def spoilt(half: slice) -> tuple[tuple[torch.Tensor, ...], ...]:
        final = tuple(tuple(part.clone() for part in layer) for layer in memory.final)
        for layer in final:
            for part in layer:
                part[:, half] = torch.nan
        return model.start(memory._replace(final=final)).layers

    assert_same(spoilt(slice(0, 3)), start.layers, 0.0, "garbage in the forward half changes nothing")
    assert all(part.isnan().all() for layer in spoilt(slice(3, 6)) for part in layer)


@pytest.mark.parametrize("layers", [(1, 3), (3, 1), (2, 3)])
def test_layers_of_unequal_depths_meet_at_the_top(layers: tuple[int, int]) -> None:
    """By hand: decoder layers 0, 1, 2 start from encoder layers 0, 0, 0, then 2, then 0, 0, 1."""
    options = {"decoder": "luong", "bidirectional": False, "enc_layers": layers[0], "dec_layers": layers[1]}
    model = build({**options, "embedding_dim": 4, "hidden_size": 6})
    memory = model.encode(SOURCE, LENGTHS)
    sources = {(1, 3): (0, 0, 0), (3, 1): (2,), (2, 3): (0, 0, 1)}[layers]
    assert_same(model.start(memory).layers, tuple(memory.final[source] for source in sources), 0.0, layers)


def test_the_same_seed_gives_the_same_weights() -> None:
    for decoder, score in FAMILIES:
        options = ModelConfig(**next(systems(decoder, score)))
        states = []
        for _ in range(2):
            torch.manual_seed(7)
            states.append(build_model(options, source_vocab=VOCAB, target_vocab=VOCAB).state_dict())
        assert_same(tuple(states[0].values()), tuple(states[1].values()), 0.0, options)


@pytest.mark.parametrize("cell", ["lstm", "gru"])
def test_recurrent_weights_start_orthogonal_and_the_forget_bias_at_one(cell: str) -> None:
    options = ModelConfig(decoder="luong", rnn_type=cell, embedding_dim=4, hidden_size=6)
    model = build_model(options, source_vocab=VOCAB, target_vocab=VOCAB)
    for module in (*model.stack.cells, *model.encoder.layers[0]):
        for block in module.w_h.split(module.size):
            assert_same(block @ block.T, torch.eye(module.size), 1e-5, "orthogonal")
        forget = slice(module.size, 2 * module.size)
        assert (module.b_x[forget] == (1 if cell == "lstm" else 0)).all()
        assert module.b_x.sum() == (module.size if cell == "lstm" else 0)
