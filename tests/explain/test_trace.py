"""A trace: the path that the search found, every number of it, and what belongs together does."""

from __future__ import annotations

import json
from math import fsum

import numpy as np
import pytest

import tiny
from cli_tools import works
from explain_tools import GIVEN, SENTENCE, WORD, make, one, searching
from mirada.config.configfile import changed
from mirada.data.vocabulary import BOS, EOS, PAD
from mirada.errors import ConfigError, DataError
from mirada.explain.record import Trace, document, plain
from mirada.explain.trace import trace
from mirada.translator import Translation, Translator

SOURCE = tiny.SOURCES[0]


def same_output(found: Trace, expected: Translation) -> None:
    output = found.output
    assert (output.text, output.tokens, output.finished) == (expected.text, expected.tokens, expected.finished)
    assert found.source.tokens == expected.source_tokens
    assert found.source.words == (*expected.source_words, None)
    assert output.log_probability == pytest.approx(expected.log_probability, abs=1e-4)
    assert output.score == pytest.approx(expected.score, abs=1e-4)
    own = [step.chosen.log_probability for step in found.steps]
    assert own == pytest.approx(list(expected.token_log_probabilities), abs=1e-4)
    if expected.attention is None:
        assert found.attention is None
    else:
        assert found.attention == pytest.approx(expected.attention, abs=1e-5)


@pytest.mark.parametrize("search", [{"beam_size": 1}, {"beam_size": 3, "n_best": 3}, {"sample": True, "n_best": 2}])
def test_a_trace_follows_what_translate_finds(translator: Translator, search: dict[str, object]) -> None:
    options = changed(translator.config.search, search)
    attends = translator.config.model.has_attention
    expected = translator.search([SOURCE], options=options, with_attention=attends)[0]
    found = trace(translator, SOURCE, options=options)
    assert [one.rank for one in found] == list(range(1, len(expected) + 1))
    for one_found, one_expected in zip(found, expected, strict=True):
        same_output(one_found, one_expected)


def test_a_reference_has_the_numbers_of_forced_decoding(translator: Translator) -> None:
    attends = translator.config.model.has_attention
    expected = translator.score([SOURCE], [tiny.TARGETS[0]], with_attention=attends)[0]
    (found,) = trace(translator, SOURCE, options=translator.config.search, reference=tiny.TARGETS[0])
    assert found.method == f"given output, alpha {translator.config.search.alpha}"
    assert found.output.tokens == expected.tokens
    assert found.output.text == tiny.TARGETS[0]
    assert all(step.given for step in found.steps)
    own = [step.chosen.log_probability for step in found.steps]
    assert own == pytest.approx(list(expected.token_log_probabilities), abs=1e-4)
    if attends:
        assert found.attention == pytest.approx(expected.attention, abs=1e-5)


def test_a_forced_beginning_is_followed_by_the_models_own_choices(translator: Translator) -> None:
    options = changed(translator.config.search, {"beam_size": 2, "n_best": 2})
    [expected, *_] = translator.search([SOURCE], options=options, prefixes=["el gat"])[0]
    found = trace(translator, SOURCE, options=options, prefix="el gat")
    assert expected.text.startswith("el gat")
    same_output(found[0]._replace(attention=None), expected)
    for path in found:
        given = [step.chosen.token for step in path.steps if step.given]
        assert [step.given for step in path.steps] == [t < len(given) for t in range(len(path.steps))]
        assert "".join(given).replace("▁", " ").strip().startswith("el gat")
        assert path.method == "beam search, 2 hypotheses, after a given beginning, alpha 1.0"


@pytest.mark.parametrize("decoder", ["bahdanau", "luong", "transformer"])
@pytest.mark.parametrize("text", [SENTENCE, WORD])
@pytest.mark.parametrize("arguments", [{}, {"reference": GIVEN}, {"reference": ""}, {"prefix": GIVEN}])
def test_rows_are_the_output_tokens_and_columns_the_source_tokens(
    decoder: str, text: str, arguments: dict[str, str]
) -> None:
    for found in trace(make(decoder=decoder), text, options=searching(n_best=3), **arguments):
        assert found.attention.shape == (len(found.output.tokens), len(found.source.tokens))
        assert found.attention.sum(1) == pytest.approx(1, abs=1e-5)
        assert found.source.tokens[-1] == "</s>"
        assert (found.output.tokens[-1] == "</s>") is found.output.finished
        assert "</s>" not in found.output.tokens[:-1]
        assert len(found.steps) == len(found.output.ids) == len(found.output.words)


@pytest.mark.parametrize("model_folder", ["bahdanau", "luong", "transformer"], indirect=True)
def test_translate_saves_the_same_attention(model_folder, translator: Translator, tmp_path) -> None:
    file = tmp_path / "attention.jsonl"
    works("translate", model_folder, "--n-best", 2, "--save-attention", file, given=f"{SOURCE}\n")
    saved = [json.loads(line) for line in file.read_text().splitlines()]
    found = trace(translator, SOURCE, options=changed(translator.config.search, {"n_best": 2}))
    for line, path in zip(saved, found, strict=True):
        assert tuple(line["source"]) == path.source.tokens
        assert tuple(line["target"]) == path.output.tokens
        assert np.array(line["attention"]) == pytest.approx(path.attention, abs=1e-5)


def test_the_choices_are_the_softmax_of_the_logits(translator: Translator) -> None:
    """Over all tokens but <pad> and <s>, likeliest first, the one taken marked."""
    (found,) = trace(translator, SOURCE, options=changed(translator.config.search, {"beam_size": 1}), top_k=4)
    for step in found.steps:
        powers = np.exp(step.logits)
        powers[[PAD, BOS]] = 0
        p = powers / powers.sum()
        assert [choice.id for choice in step.top] == np.argsort(-p, kind="stable")[:4].tolist()
        for choice in (*step.top, step.chosen):
            assert choice.probability == pytest.approx(p[choice.id], abs=1e-5)
            assert choice.log_probability == pytest.approx(np.log(p[choice.id]), abs=1e-4)
            assert choice.token == translator.target_tokenizer.token(choice.id)
            assert choice.chosen is (choice.id == step.chosen.id)
        assert step.chosen == step.top[0]  # greedy


def test_more_choices_than_tokens_are_all_tokens_that_can_be_produced() -> None:
    found = one(make(decoder="luong"), top_k=1000)
    ids = {choice.id for choice in found.steps[0].top}
    assert ids == set(range(len(found.steps[0].logits))) - {PAD, BOS}


def test_steps_are_chained_and_the_score_is_written_out() -> None:
    found = one(make(decoder="luong"))
    output = found.output
    assert [step.step for step in found.steps] == list(range(1, len(output.ids) + 1))
    assert [step.previous.id for step in found.steps] == [BOS, *output.ids[:-1]]
    assert tuple(step.chosen.id for step in found.steps) == output.ids
    assert output.log_probability == pytest.approx(fsum(step.chosen.log_probability for step in found.steps))
    assert output.penalty == pytest.approx((5 + len(output.ids)) / 6)
    assert output.score == pytest.approx(output.log_probability / output.penalty)


@pytest.mark.parametrize("decoder", ["bahdanau", "luong"])
def test_the_context_is_the_weighted_sum_and_states_hand_over(decoder: str) -> None:
    found = one(make(decoder=decoder, dec_layers=2))
    before = found.start["s_0.2"]
    for step in found.steps:
        tensors = step.tensors
        assert tensors["c"] == pytest.approx(tensors["alpha"] @ found.encoder["h"], abs=1e-5)
        assert tensors["s_prev"] == pytest.approx(before)
        before = tensors["s.2"]


def test_a_transformers_heads_are_the_weighted_sums_of_the_values() -> None:
    found = one(make(decoder="transformer", num_heads=2, ff_size=7, dec_layers=2))
    for t, step in enumerate(found.steps, start=1):
        for layer in (1, 2):
            weights, values = step.tensors[f"alpha.{layer}"], found.encoder[f"values.{layer}"]
            assert step.tensors[f"heads.{layer}"] == pytest.approx(np.einsum("hs,hsd->hd", weights, values), abs=1e-5)
            assert step.tensors[f"self_alpha.{layer}"].shape == (2, t)
            assert step.tensors[f"self_alpha.{layer}"].sum(1) == pytest.approx(1, abs=1e-5)
        assert step.tensors["alpha"] == pytest.approx(step.tensors["alpha.2"].mean(0), abs=1e-6)


def test_the_file_holds_nine_digits_of_every_number_and_explains_every_name(translator: Translator) -> None:
    found = trace(translator, SOURCE, options=translator.config.search)
    content = json.loads(document(found))
    assert (content["format"], content["version"]) == ("mirada-trace", 3)
    for read, made in zip(content["traces"], found, strict=True):
        parts = [(read["encoder"], made.encoder), (read["start"], made.start)]
        parts += [(step["tensors"], own.tensors) for step, own in zip(read["steps"], made.steps, strict=True)]
        for named, arrays in parts:
            assert list(named) == list(arrays)
            for name, array in arrays.items():
                assert np.array(named[name]).reshape(array.shape) == pytest.approx(array, rel=5e-9, abs=0)
                assert len(read["legend"][name]["axes"]) == array.ndim
        for step, own in zip(read["steps"], made.steps, strict=True):
            assert np.array(step["logits"]) == pytest.approx(own.logits, rel=5e-9, abs=0)


def test_the_options_in_force_are_told() -> None:
    assert plain(make(decoder="luong").config.model)["input_feeding"] is True
    assert plain(make(decoder="bahdanau").config.model)["score"] == "additive"
    assert plain(make(decoder="classic").config.model)["bidirectional"] is False


def test_a_long_text_is_cut_with_a_warning() -> None:
    translator, said = make(decoder="luong"), []
    translator.warn = said.append
    found = one(translator, options=searching(max_input_length=3))
    assert len(found.source.ids) == 4
    assert found.source.ids[-1] == EOS
    assert "cut to max_input_length 3" in said[0]


@pytest.mark.parametrize("text", ["", "  ", "\u3000"])
def test_an_empty_text_is_answered_clearly(text: str) -> None:
    with pytest.raises(DataError, match="the text is empty, so there is nothing to look into; give a sentence"):
        one(make(decoder="classic"), text)


def test_a_reference_and_a_beginning_exclude_each_other() -> None:
    with pytest.raises(ConfigError, match="--reference and --force exclude each other"):
        one(make(decoder="luong"), reference=GIVEN, prefix=GIVEN)
