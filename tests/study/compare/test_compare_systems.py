"""Names of systems, budgets, and widths that give equal numbers of weights."""

from __future__ import annotations

import re

import pytest

from mirada.config.configfile import parse
from mirada.errors import ConfigError
from mirada.models import build_model
from mirada.study.compare import systems
from mirada.study.compare.systems import (
    Vocabularies,
    count_weights,
    match_weights,
    parse_budget,
    system_config,
    system_options,
)

SIZES = Vocabularies(300, 200)


def test_every_name_of_the_list_is_a_system_of_its_own():
    found = [system_config({}, name).model for name in systems.NAMES]
    made = [(model.decoder, model.rnn_type, model.score_name) for model in found]
    assert made == [
        ("classic", "lstm", None),
        ("classic", "gru", None),
        ("bahdanau", "lstm", "additive"),
        ("luong", "lstm", "dot"),
        ("luong", "lstm", "general"),
        ("luong", "lstm", "concat"),
        ("transformer", "lstm", "scaled_dot"),
    ]
    assert system_options("bahdanau-gru-dot") == {"decoder": "bahdanau", "rnn_type": "gru", "score": "dot"}


@pytest.mark.parametrize("name", ["lstm", "luong-", "luong-dot-general", "transformer-lstm", "luong-softmax", ""])
def test_other_names_are_refused(name):
    with pytest.raises(ConfigError, match=rf"^unknown system '{name}'.*such as luong-gru-dot$"):
        system_options(name)


def test_the_nearest_name_is_suggested():
    with pytest.raises(ConfigError, match=r"did you mean 'luong-general'"):
        system_options("luong-generel")


def test_a_score_that_does_not_fit_the_decoder_is_refused():
    with pytest.raises(ConfigError, match=r"^classic-dot: score dot with decoder classic"):
        system_config({}, "classic-dot")


def test_shared_options_reach_those_they_act_on():
    values = {"model": {"input_feeding": False, "norm": "post", "hidden_size": 64, "reverse_source": True}}
    luong, classic, transformer = (
        system_config(values, name).model for name in ("luong-dot", "classic-gru", "transformer")
    )
    assert (luong.input_feeding, luong.norm, luong.hidden_size, luong.reverse_source) == (False, "pre", 64, True)
    assert (classic.input_feeding, classic.reverse_source, classic.rnn_type) == (None, True, "gru")
    assert (transformer.norm, transformer.reverse_source) == ("post", False)


def test_shared_options_may_not_name_what_the_systems_name():
    with pytest.raises(ConfigError, match=r"^score is named by the systems .* leave --score out$"):
        system_config({"model": {"score": "dot"}}, "bahdanau")


def test_budgets():
    assert parse_budget("2000updates")["max_updates"] == parse_budget("2000 update")["max_updates"] == 2000
    assert parse_budget("10epochs") == {"epochs": 10}
    assert parse_budget("1.5minutes")["max_minutes"] == 1.5


@pytest.mark.parametrize("text", ["", "10", "updates", "10 apples", "-3epochs", "0updates", "1e3updates"])
def test_bad_budgets(text):
    with pytest.raises(ConfigError, match=rf"^budget {text!r}: expected a number and a unit, such as 2000updates"):
        parse_budget(text)


def test_halves_of_updates_are_refused():
    with pytest.raises(ConfigError, match=re.escape("budget '2.5updates': updates are counted whole")):
        parse_budget("2.5updates")


def test_a_budget_is_the_only_limit():
    found = systems.budgeted({"training": {"batch_size": 8}}, "7updates")["training"]
    assert (found["batch_size"], found["max_updates"], found["patience"]) == (8, 7, systems.ENDLESS)
    assert systems.budgeted({"training": {"patience": 3}}, "7updates")["training"]["patience"] == 3
    with pytest.raises(ConfigError, match=r"^max_minutes and a budget both say when to stop; give only --budget$"):
        systems.budgeted({"training": {"max_minutes": 3}}, "7updates")
    with pytest.raises(ConfigError, match=r"^scheduling cosine ends at a known update; give the budget in updates"):
        systems.budgeted({"training": {"scheduling": "cosine"}}, "7minutes")


def test_weights_are_counted_as_a_real_model_has_them():
    options = parse({"model": {"decoder": "transformer", "embedding_dim": 16, "tied_softmax": True}}).model
    model = build_model(options, source_vocab=300, target_vocab=200)
    assert count_weights(options, SIZES) == sum(weights.numel() for weights in model.parameters())


@pytest.mark.parametrize("name", systems.NAMES)
def test_matched_systems_are_within_five_percent(name):
    values = {"model": {"embedding_dim": 32, "hidden_size": 96, "num_heads": 2, "ff_size": 64}}
    goal = count_weights(system_config(values, "classic-lstm").model, SIZES)
    matched = match_weights(system_config(values, name), goal, SIZES)
    assert abs(count_weights(matched.model, SIZES) - goal) <= 0.05 * goal
    if name == "transformer":
        assert matched.model.ff_size == 2 * matched.model.embedding_dim
    else:
        assert matched.model.embedding_dim == 32


def test_tied_widths_stay_tied():
    config = system_config({"model": {"embedding_dim": 48, "hidden_size": 48, "tied_softmax": True}}, "luong-general")
    goal = count_weights(system_config({"model": {"hidden_size": 96}}, "classic-lstm").model, SIZES)
    matched = match_weights(config, goal, SIZES).model
    assert matched.embedding_dim == matched.hidden_size
    assert abs(count_weights(matched, SIZES) - goal) <= 0.05 * goal


def test_a_goal_out_of_reach_is_refused():
    with pytest.raises(
        ConfigError, match=r"^no width gives luong \(general\) lstm 100 weights within 5 % \(the nearest: "
    ):
        match_weights(system_config({}, "luong-general"), 100, SIZES)


def test_equal_and_different():
    makes = [{"cell": "lstm", "width": "64", "dropout": "0.1"}, {"width": "32", "dropout": "0.1", "heads": "4"}]
    assert systems.equal_and_different(makes) == ({"dropout": "0.1"}, ["cell", "width", "heads"])
