"""Copying, coverage and windows in a trace: by hand, as the model has them, as text, JSON and page."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cli_tools import mirada, refusal, works
from explain_tools import SENTENCE, make, searching
from mirada.data.vocabulary import BOS, EOS, PAD
from mirada.errors import DataError
from mirada.explain.agreement import agreement
from mirada.explain.edits import Edits
from mirada.explain.page import page
from mirada.explain.record import Trace, document
from mirada.explain.trace import trace
from mirada.explain.verify import verify
from mirada.explain.walkthrough import walkthrough
from mirada.translator import Translator

COPYING: list[dict[str, Any]] = [
    {"decoder": "bahdanau", "rnn_type": "gru", "coverage": True},
    {"decoder": "bahdanau", "readout": "deep", "score": "dot"},
    {"decoder": "luong", "score": "concat", "coverage": True, "attention_window": "local-m", "window": 9},
    {"decoder": "luong", "input_feeding": False, "dec_layers": 2, "enc_layers": 2},
    {"decoder": "transformer", "dec_layers": 2},
    {"decoder": "transformer", "norm": "post", "copy_head": 2},
]
WINDOWS: list[dict[str, Any]] = [
    {"decoder": decoder, "score": score, "attention_window": window, "window": 2}
    for decoder, score, window in product(("bahdanau", "luong"), ("additive", "dot"), ("local-m", "local-p"))
]
ODD = "the red ☃ fox ☃"  # no vocabulary holds the snowman, which stands there twice


def copying(options: dict[str, Any]) -> Translator:
    return make(**options, copy_attn=True)


def found(translator: Translator, text: str = ODD, **arguments: Any) -> list[Trace]:
    return trace(translator, text, options=searching(n_best=2), **arguments)


@pytest.mark.parametrize("options", COPYING, ids=str)
def test_the_mixture_by_hand_and_as_the_model_itself_has_it(options: dict[str, Any]) -> None:
    """Equations 8 and 9 of See, Liu & Manning 2017, from what else stands in the trace."""
    translator = copying(options)
    gate = translator.model.copy_gate.w
    w, b = gate.weight[0].detach().double().numpy(), float(gate.bias.detach())
    for one in found(translator):
        assert agreement(translator, one).is_near
        assert agreement(translator, one).logits < 1e-4
        for moment in one.steps:
            t, V = moment.tensors, len(moment.logits)
            context = t["copy_context" if options["decoder"] == "transformer" else "c"]
            state = t["s"] if "s" in t else t[f"s.{options.get('dec_layers', 1)}"]
            p_gen = 1 / (1 + np.exp(-(w @ np.concatenate([context, state, t["y"]]) + b)))
            assert t["p_gen"] == pytest.approx(p_gen)
            powers = np.exp(moment.logits - moment.logits.max())
            powers[[PAD, BOS]] = 0
            p = np.zeros(V + len(one.source.ids))
            p[:V] = p_gen * powers / powers.sum()
            alpha = t["alpha.1"][1] if "copy_head" in options else t["alpha"]
            np.add.at(p, list(one.source.copies), (1 - p_gen) * alpha)
            np.testing.assert_allclose(t["p"], p, atol=1e-12)
            assert p.sum() == pytest.approx(1)
            snow = [j for j, token in enumerate(one.source.tokens) if "☃" in token]
            assert len(snow) == 2
            assert t["copy"][snow] == pytest.approx(alpha[snow].sum())
            for choice in (*moment.top, moment.chosen):
                assert choice.probability == pytest.approx(p[choice.id])
                mixed = p_gen * choice.vocabulary + (1 - p_gen) * choice.copied
                assert choice.probability == pytest.approx(mixed)


@pytest.mark.parametrize("options", COPYING, ids=str)
def test_a_trace_of_copying_follows_what_translate_and_score_find(options: dict[str, Any]) -> None:
    translator = copying(options)
    outputs = translator.search([ODD], options=searching(n_best=2))[0]
    for one, output in zip(found(translator), outputs, strict=True):
        assert (one.output.text, one.output.tokens) == (output.text, output.tokens)
        assert one.output.score == pytest.approx(output.score, abs=1e-4)
    [given] = found(translator, reference="☃ fox")
    [scored] = translator.score([ODD], ["☃ fox"])
    assert given.output.log_probability == pytest.approx(scored.log_probability, abs=1e-4)
    known = len(translator.target_tokenizer)
    assert any(i >= known for i in given.output.ids)
    assert given.output.text == "☃ fox"


@pytest.mark.parametrize("options", [*COPYING, *WINDOWS], ids=str)
def test_everything_is_verified_and_nothing_can_be_altered(options: dict[str, Any]) -> None:
    translator = make(**options, copy_attn=options.get("attention_window") != "local-p")
    edits = Edits(attention="shuffled", from_step=1, seed=3)
    plain, edited = (trace(translator, "a ☃", options=searching(), edits=one) for one in (None, edits))
    traces = json.loads(document([*plain, *edited]))["traces"]
    assert all(verdict.faults == [] and verdict.own.is_near for verdict in verify(traces, translator))
    new = {"p_gen", "copy", "p", "coverage", "coverage_loss", "middle", "gaussian"}
    tensors = traces[0]["steps"][0]["tensors"]
    for name in (names := new & set(tensors)):
        value = tensors[name]
        tensors[name] = value + 1e-6 if isinstance(value, float) else [value[0] + 1e-6, *value[1:]]
    [verdict] = verify(traces[:1], translator)
    assert {fault.name for fault in verdict.faults} == names != set()


@pytest.mark.parametrize("decoder", ["bahdanau", "luong"])
def test_coverage_by_hand(decoder: str) -> None:
    """Equations 10, 11 and 12 of See, Liu & Manning 2017."""
    translator = make(decoder=decoder, score="additive", coverage=True)
    weights = {name: value.double().numpy() for name, value in translator.model.score.state_dict().items()}
    for one in found(translator, SENTENCE):
        covered = np.zeros(len(one.source.ids))
        for moment in one.steps:
            t = moment.tensors
            np.testing.assert_allclose(t["coverage"], covered, atol=1e-12)
            query = t["s_prev"] if decoder == "bahdanau" else t["s.1"]
            for j, h in enumerate(one.encoder["h"]):
                inner = weights["w_a.weight"] @ query + weights["u_a.weight"] @ h + weights["w_c"] * covered[j]
                assert t["e"][j] == pytest.approx(weights["v_a"] @ np.tanh(inner))
            assert t["coverage_loss"] == pytest.approx(np.minimum(t["alpha"], covered).sum())
            covered = covered + t["alpha"]


@pytest.mark.parametrize("options", WINDOWS, ids=str)
def test_windows_by_hand(options: dict[str, Any]) -> None:
    """Luong, Pham & Manning 2015, equations 9 and 10, with source tokens counted from 1."""
    translator = make(**options)
    S = 0
    for one in found(translator, SENTENCE):
        S = len(one.source.ids)
        for t, moment in enumerate(one.steps, start=1):
            tensors = moment.tensors
            p_t, j = float(tensors["middle"]), np.arange(1, S + 1)
            near = np.abs(j - p_t) <= 2
            powers = np.where(near, np.exp(tensors["e"]), 0)
            alpha = powers / powers.sum()
            if options["attention_window"] == "local-m":
                assert p_t == min(t, S)
            else:
                window = {name: value.double().numpy() for name, value in translator.model.window.state_dict().items()}
                query = tensors["s_prev"] if options["decoder"] == "bahdanau" else tensors["s.1"]
                inner = window["v_p.weight"][0] @ np.tanh(window["w_p.weight"] @ query)
                assert p_t == pytest.approx(1 + S / (1 + np.exp(-inner)))
                gaussian = np.where(near, np.exp(-((j - p_t) ** 2) / 2), 0)  # σ = 2 / 2
                np.testing.assert_allclose(tensors["gaussian"], gaussian, atol=1e-12)
                alpha = alpha * gaussian
            np.testing.assert_allclose(tensors["alpha"], alpha, atol=1e-12)
    assert S > 5, "the window must leave something out"


def test_the_walkthrough_writes_the_mixture_out() -> None:
    [one] = found(copying(COPYING[0]), reference="☃")
    lines = walkthrough(one, width=110, step=2).split("\n")
    told = "\n".join(lines)
    snow = one.steps[1]
    assert "  cov_2,j = Σ_k α_{kj} of the steps k < 2: weights of all steps before" in lines
    assert "  e_2,j = v_aᵀ tanh(W_a s_1 + U_a h_j + w_c cov_2,j): scores" in lines
    assert "  p_gen = σ(w_cᵀ c_2 + w_sᵀ s_2 + w_xᵀ y_1 + b) = " in told
    assert "  copy_2,j = Σ_k α_2,k, over the k where x_k = x_j: what copying gives each source token" in lines
    assert "  P(w) = p_gen P_vocab(w) + (1 − p_gen) Σ_j α_2,j, over the j where x_j = w: what is written next" in lines
    assert "  covloss_2 = Σ_j min(α_2,j, cov_2,j) = " in told
    assert snow.chosen.vocabulary == 0
    p_gen = float(snow.tensors["p_gen"])
    assert f"= {p_gen:.2f} · 0.00 + {1 - p_gen:.2f} · {snow.chosen.copied:.2f}" in told


def test_the_page_has_the_mixture_and_not_the_whole_vocabulary() -> None:
    traces = found(copying(COPYING[4]))
    data = page(traces).split('id="traces">')[1].split("</script>")[0]
    tensors = json.loads(data)[0]["steps"][0]["tensors"]
    assert "p" not in tensors
    assert tensors["p_gen"] == pytest.approx(float(traces[0].steps[0].tensors["p_gen"]))
    assert len(tensors["copy"]) == len(traces[0].source.tokens)


def test_what_cannot_be_written_is_one_clear_line() -> None:
    """An own word outside the window has no way to be written; an id of another sentence neither."""
    translator = copying({"decoder": "luong", "attention_window": "local-m", "window": 1})
    text = "fox fox fox fox ☃"
    with pytest.raises(DataError, match=r"^step 2: '☃' has the probability 0 there, so no output can hold it$"):
        found(translator, text, reference="☃")
    traces = json.loads(document(found(translator, text)))["traces"]
    known = len(translator.target_tokenizer)
    traces[0]["asked"]["given"] = [known]
    with pytest.raises(
        DataError, match=f"id {known}: the vocabulary has {known} entries, and this source no such word"
    ):
        verify(traces, translator)


def test_the_command_explains_a_model_that_copies(tmp_path: Path) -> None:
    import tiny

    data = {"source_tokenizer": "word", "target_tokenizer": "word", "vocab_min_freq": 2, "share_vocab": False}
    folder = tiny.write_folder(tmp_path / "m", "luong", {"data": data, "model": {"copy_attn": True}})
    file = tmp_path / "traces.json"
    ran = works("explain", folder, "the yak sees the gnu", "--device", "cpu", "--format", "json", "--output", file)
    assert "the model's own logits differ by at most" in ran.errors
    verified = works("explain", "--verify", file, folder)
    assert "every value agrees with the weights" in verified.output
    assert any(line.startswith("copy ") for line in verified.lines)
    assert "P_vocab" in works("explain", folder, "the yak", "--device", "cpu").output
    content = json.loads(file.read_text())
    content["traces"][0]["steps"][0]["tensors"]["p_gen"] += 1e-4
    file.write_text(json.dumps(content))
    assert mirada("explain", "--verify", file, folder).code == 1
    assert "has the probability 0" not in refusal("explain", folder, "", "--device", "cpu")
    assert EOS == 3
