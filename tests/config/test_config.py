"""Options: what holds by default, which values are refused, and which contradict each other."""

from __future__ import annotations

import re
from typing import Any

import pytest
from pydantic import ValidationError

from mirada.config.configfile import BLOCKS, changed, leaves, parse
from mirada.config.model import OWNERS, applicable
from mirada.config.options import Config, DataConfig, ModelConfig, SearchConfig, TrainingConfig
from mirada.errors import ConfigError

DECODERS = ("classic", "bahdanau", "luong", "transformer")
# For each option that only some flows have, a value that differs from the default.
UNUSUAL: dict[str, Any] = {
    "copy_attn": True,
    "attention_window": "local-p",
    "window": 3,
    "coverage": True,
    "feed_context": True,
    "readout": "deep",
    "input_feeding": False,
    "attention_size": 7,
    "norm": "post",
    "bidirectional": True,
    "reverse_source": True,
    "recurrent_dropout": 0.1,
    "encoder_hidden_size": 9,
    "num_heads": 8,
    "activation": "swish",
    "copy_head": 2,
    "ff_size": 9,
    "rnn_type": "gru",
    "hidden_size": 10,
    "embedding_dropout": 0.1,
    "attentional": "linear",
    "attentional_bias": True,
    "attention_bias": True,
    "bridge": "tanh",
    "bridge_from": "top",
    "norm_eps": 1e-6,
    "position_encoding": "tensor2tensor",
    "first_position": 2,
}


def model(**values: Any) -> ModelConfig:
    return parse({"model": values}).model


def refuses(values: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=f"^options: {re.escape(message)}$"):
        parse(values)


# Defaults


@pytest.mark.parametrize(
    ("decoder", "score", "both_directions", "memory_size"),
    [
        ("classic", None, False, 512),
        ("bahdanau", "additive", True, 512),
        ("luong", "general", True, 512),
        ("transformer", "scaled_dot", True, 256),
    ],
)
def test_defaults_are_those_of_the_flow(decoder, score, both_directions, memory_size):
    options = model(decoder=decoder)
    assert options.score_name == score
    assert options.both_directions == both_directions
    assert options.memory_size == memory_size


def test_the_encoder_is_as_wide_as_the_decoder_unless_told():
    assert model(hidden_size=10).direction_size == 5
    assert model(hidden_size=10, bidirectional=False).direction_size == 10
    assert model(hidden_size=10, encoder_hidden_size=7).memory_size == 14
    assert model(hidden_size=10, encoder_hidden_size=7, bidirectional=False).memory_size == 7
    assert model(hidden_size=1).direction_size == 1


def test_what_is_left_open_follows_from_the_rest():
    assert model().feeds_input
    assert model(input_feeding=True).feeds_input
    assert not model(input_feeding=False).feeds_input
    assert model(dropout=0.3).embedding_drop == 0.3
    assert model(dropout=0.3, embedding_dropout=0.0).embedding_drop == 0.0
    assert model(decoder="bahdanau").has_maxout
    assert not model(decoder="bahdanau", readout="state").has_maxout
    assert not model(decoder="luong").has_maxout
    assert model(decoder="classic", feed_context=True).has_maxout


@pytest.mark.parametrize("name", ["mlp", "bahdanau", "additive"])
def test_other_names_of_the_additive_score(name):
    assert model(decoder="luong", score=name).score == "additive"


@pytest.mark.parametrize("decoder", ["bahdanau", "luong"])
@pytest.mark.parametrize("score", ["additive", "dot", "scaled_dot", "general", "concat"])
def test_flow_and_score_are_independent(decoder, score):
    assert model(decoder=decoder, score=score).score_name == score


def test_every_option_is_described_and_stands_in_one_block():
    names = [name for _, name in leaves()]
    assert len(names) == len(set(names))
    assert len(names) > 50
    for block in BLOCKS.values():
        assert all(field.description for field in block.model_fields.values())


@pytest.mark.parametrize("block", [DataConfig(), ModelConfig(), TrainingConfig(), SearchConfig(), Config()])
def test_options_are_frozen(block):
    name = next(iter(type(block).model_fields))
    with pytest.raises(ValidationError, match="frozen"):
        setattr(block, name, None)


# Contradictions


def test_score_without_attention():
    refuses(
        {"model": {"decoder": "classic", "score": "dot"}},
        "score dot with decoder classic, which has no attention; leave score out, or use decoder bahdanau or luong",
    )


def test_score_of_the_transformer():
    assert model(decoder="transformer", score="scaled_dot").score_name == "scaled_dot"
    refuses(
        {"model": {"decoder": "transformer", "score": "additive"}},
        "score additive with decoder transformer, which uses scaled_dot; "
        "leave score out, or use decoder bahdanau or luong",
    )


@pytest.mark.parametrize("score", ["dot", "scaled_dot"])
def test_dot_needs_equal_widths(score):
    values = {"decoder": "luong", "score": score, "hidden_size": 12, "encoder_hidden_size": 12}
    assert model(**values, bidirectional=False).memory_size == 12
    refuses(
        {"model": values},
        f"score {score} needs encoder states as wide as hidden_size (got 24 and 12); set encoder_hidden_size to "
        "hidden_size divided by the directions, or use score general, additive or concat",
    )


def test_dot_with_an_odd_width_in_two_directions():
    with pytest.raises(ConfigError, match=r"\(got 10 and 11\)"):
        model(decoder="bahdanau", score="dot", hidden_size=11)


def test_heads_share_the_width():
    assert model(decoder="transformer", embedding_dim=12, num_heads=3).memory_size == 12
    refuses(
        {"model": {"decoder": "transformer", "embedding_dim": 10, "num_heads": 4}},
        "embedding_dim 10 is not a multiple of num_heads 4",
    )


def test_every_option_of_some_flows_has_an_unusual_value_here():
    assert set(UNUSUAL) == set(OWNERS)


@pytest.mark.parametrize("decoder", DECODERS)
@pytest.mark.parametrize("option", list(UNUSUAL))
def test_an_option_that_would_do_nothing(option, decoder):
    value, owners = UNUSUAL[option], OWNERS[option]
    values = {"decoder": decoder, option: value}
    if decoder in owners:
        needs = {"score": "concat"} if option in ("attention_size", "attention_bias", "coverage") else {}
        needs |= {"bridge": "tanh"} if option == "bridge_from" else {}
        needs |= {"attention_window": "local-m"} if option == "window" else {}
        needs |= {"copy_attn": True} if option == "copy_head" else {}
        assert getattr(model(**values, **needs), option) == value
        return
    stored = parse({"model": values}, stored=True).model  # an older version wrote it: it did nothing then either
    assert stored == model(decoder=decoder)
    refuses(
        {"model": {"decoder": decoder, option: value}},
        f"{option} {str(value).lower()} does nothing with decoder {decoder}; it is for decoder {' or '.join(owners)}",
    )


@pytest.mark.parametrize("decoder", DECODERS)
def test_the_default_of_such_an_option_may_be_written_out(decoder):
    written = {option: ModelConfig.model_fields[option].default for option in OWNERS}
    assert model(decoder=decoder, **written) == model(decoder=decoder)


@pytest.mark.parametrize("decoder", ["classic", "bahdanau", "luong"])
def test_an_output_layer_tied_to_an_embedding_of_another_width(decoder):
    assert model(decoder=decoder, tied_softmax=True, embedding_dim=64, hidden_size=64).tied_softmax
    readout = {"readout": "state"} if decoder == "bahdanau" else {}
    refuses(
        {"model": {"decoder": decoder, "tied_softmax": True, "embedding_dim": 32, "hidden_size": 64, **readout}},
        f"tied_softmax true needs embedding_dim equal to hidden_size with decoder {decoder} (got 32 and 64); "
        "bahdanau with readout deep has no such need",
    )


@pytest.mark.parametrize(
    "values",
    [
        {"decoder": "bahdanau", "readout": "deep"},
        {"decoder": "classic", "feed_context": True},
        {"decoder": "transformer"},
    ],
)
def test_a_maxout_is_as_wide_as_the_embedding(values):
    assert model(**applicable({**values, "tied_softmax": True, "embedding_dim": 32, "hidden_size": 64})).tied_softmax


def test_one_embedding_needs_one_vocabulary():
    both = {"model": {"tied_embeddings": True}, "data": {"share_vocab": True}}
    assert parse(both).model.tied_embeddings
    refuses(
        {"model": {"tied_embeddings": True}},
        "tied_embeddings true needs share_vocab true (one vocabulary for both sides)",
    )


def test_one_vocabulary_needs_one_kind_of_tokens():
    same = {"share_vocab": True, "source_tokenizer": "char", "target_tokenizer": "char"}
    assert parse({"data": same}).data.share_vocab
    refuses(
        {"data": {**same, "target_tokenizer": "word"}},
        "share_vocab true needs source_tokenizer and target_tokenizer to be the same (got char and word)",
    )


def test_best_by_a_metric_that_nobody_computes():
    named = {"early_stopping_metric": "bleu", "valid_metrics": ["wer", "bleu"]}
    assert parse({"training": named}).training.early_stopping_metric == "bleu"
    refuses(
        {"training": {"early_stopping_metric": "bleu", "valid_metrics": ["wer"]}},
        "early_stopping_metric bleu is not computed; use loss, or name bleu in valid_metrics too",
    )


def test_more_outputs_than_hypotheses():
    assert parse({"search": {"beam_size": 3, "n_best": 3}}).search.n_best == 3
    assert parse({"search": {"beam_size": 1, "n_best": 9, "sample": True}}).search.n_best == 9
    refuses(
        {"search": {"beam_size": 3, "n_best": 4}},
        "n_best 4 is larger than beam_size 3; n_best must be 1 to beam_size",
    )


def test_a_model_with_a_rule_for_beams_can_be_asked_for_greedy_search():
    stored = parse({"search": {"exact_stop": True}}).search
    assert changed(stored, {"beam_size": 1}).exact_stop


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"search": {"temperature": 0.5}}, "temperature 0.5 does nothing without sampling; add sample true"),
        ({"search": {"top_k": 5}}, "top_k 5 does nothing without sampling; add sample true"),
        ({"search": {"top_p": 0.5}}, "top_p 0.5 does nothing without sampling; add sample true"),
        ({"search": {"sample_seed": 5}}, "sample_seed 5 does nothing without sampling; add sample true"),
        (
            {"training": {"plateau_patience": 5}},
            "plateau_patience 5 does nothing with scheduling inverse_sqrt; it is for scheduling plateau",
        ),
        (
            {"training": {"decrease_factor": 0.1}},
            "decrease_factor 0.1 does nothing with scheduling inverse_sqrt; it is for scheduling plateau",
        ),
        (
            {"model": {"attention_size": 5}},
            "attention_size 5 does nothing with score general; it is for score additive or concat",
        ),
    ],
)
def test_other_options_that_would_do_nothing(values, message):
    refuses(values, message)
    assert parse(values, stored=True) == parse({})  # of a folder that an older version wrote
    needed = {"search": {"sample": True}, "training": {"scheduling": "plateau"}, "model": {"score": "concat"}}
    ((block, given),) = values.items()
    assert getattr(parse({block: {**given, **needed[block]}}), block) != getattr(parse({block: needed[block]}), block)


def test_the_shortest_output_longer_than_the_longest():
    assert parse({"search": {"min_output_length": 5, "max_output_length": 5}}).search.max_output_length == 5
    refuses(
        {"search": {"min_output_length": 6, "max_output_length": 5}},
        "min_output_length 6 is larger than max_output_length 5",
    )


# Values


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (
            {"model": {"decoder": "luogn"}},
            "model.decoder: input should be 'classic', 'bahdanau', 'luong' or 'transformer' (got 'luogn')",
        ),
        ({"model": {"hidden_size": 0}}, "model.hidden_size: input should be greater than or equal to 1 (got 0)"),
        (
            {"model": {"hidden_size": "wide"}},
            "model.hidden_size: input should be a valid integer, unable to parse string as an integer (got 'wide')",
        ),
        ({"model": {"dropout": 1.0}}, "model.dropout: input should be less than 1 (got 1.0)"),
        ({"model": 3}, "model: input should be a valid dictionary or instance of ModelConfig (got 3)"),
        ({"search": {"alpha": float("nan")}}, "search.alpha: input should be a finite number (got nan)"),
        ({"search": {"top_p": 1.5}}, "search.top_p: input should be less than or equal to 1 (got 1.5)"),
        ({"training": {"learning_rate": 0}}, "training.learning_rate: input should be greater than 0 (got 0)"),
        ({"training": {"adam_betas": [0.9, 1.2]}}, "training.adam_betas.1: input should be less than 1 (got 1.2)"),
        ({"training": {"adam_betas": [0.9]}}, "training.adam_betas.1: field required (got [0.9])"),
        ({"data": {"vocab_size": 7}}, "data.vocab_size: input should be greater than or equal to 8 (got 7)"),
        ({"data": {"tsv": 3}}, "data.tsv: input should be a valid string (got 3)"),
    ],
)
def test_wrong_values(values, message):
    refuses(values, message)


def test_options_of_attention_that_need_others():
    refuses(
        {"model": {"decoder": "luong", "window": 3}},
        "window 3 does nothing with attention_window global; it is for attention_window local-m or local-p",
    )
    refuses(
        {"model": {"decoder": "luong", "coverage": True}},
        "coverage true does nothing with score general; it is for score additive or concat",
    )
    refuses(
        {"training": {"coverage_weight": 0.5}}, "coverage_weight 0.5 does nothing without coverage; set coverage true"
    )
    refuses(
        {"model": {"copy_attn": True, "attention_window": "local-p"}},
        "copy_attn true with attention_window local-p, whose weights do not sum to one; use global or local-m",
    )
