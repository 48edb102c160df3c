"""Which metrics can measure which texts, and which tokens BLEU counts in which script."""

from __future__ import annotations

import logging
import re
from pathlib import Path

import pytest
from sacrebleu.metrics import BLEU

from mirada.errors import ConfigError
from mirada.evaluation import scripts
from mirada.evaluation.measurable import cannot_measure, concerns
from mirada.evaluation.metrics import METRICS, evaluate, statistics
from mirada.evaluation.scripts import BLEU_TOKENIZERS, best_tokenizer, bleu_tokenizer, has_no_blanks, script_shares

CHINESE, JAPANESE, KOREAN, THAI = (
    "我们明天去北京。",
    "明日は東京へ行きます。",
    "우리는 내일 서울에 갑니다.",
    "พรุ่งนี้เราจะไปกรุงเทพ",
)
ENGLISH, SPANISH = "Tomorrow we will go to London.", "Mañana iremos a la ciudad de Córdoba."


def one_each(*texts):
    return [[text] for text in texts]


def test_shares_of_scripts_by_hand():
    assert script_shares(["abc д", "12 !?"]) == {"LATIN": 0.75, "CYRILLIC": 0.25}
    assert script_shares(["12 !?"]) == {}
    assert [has_no_blanks([text]) for text in (CHINESE, JAPANESE, THAI, KOREAN, ENGLISH)] == [True] * 3 + [False] * 2


@pytest.mark.parametrize(
    ("text", "tokenizer"),
    [
        (CHINESE, "zh"),
        (JAPANESE, "ja-mecab"),
        (KOREAN, "ko-mecab"),
        (THAI, "char"),
        (ENGLISH, "13a"),
        (f"{ENGLISH} {CHINESE}", "13a"),
        ("12 34", "13a"),
    ],
)
def test_the_script_of_most_letters_chooses_bleus_tokens(text, tokenizer):
    assert best_tokenizer([text]) == tokenizer


def test_characters_where_a_dictionary_is_missing(monkeypatch):
    monkeypatch.setattr(scripts, "find_spec", lambda name: None)
    assert [bleu_tokenizer([text]) for text in (JAPANESE, KOREAN, CHINESE)] == ["char", "char", "zh"]
    message = "BLEU tokenizer ja-mecab is not installed: pip install 'sacrebleu[ja]', or choose char"
    with pytest.raises(ConfigError, match=f"^{re.escape(message)}$"):
        bleu_tokenizer([ENGLISH], "ja-mecab")
    said = "bleu counts characters (tok:char); to count words (tok:ko-mecab): pip install 'sacrebleu[ko]'"
    assert concerns("bleu", [KOREAN], one_each(KOREAN)) == [said]


def test_a_dictionary_that_is_there_is_used(monkeypatch):
    monkeypatch.setattr(scripts, "find_spec", lambda name: object())
    assert [bleu_tokenizer([text]) for text in (JAPANESE, KOREAN)] == ["ja-mecab", "ko-mecab"]


def test_an_unknown_tokenizer_is_refused():
    message = f"unknown BLEU tokenizer '13b'; did you mean '13a'? (valid: {', '.join(BLEU_TOKENIZERS)})"
    with pytest.raises(ConfigError, match=f"^{re.escape(message)}$"):
        evaluate(["a"], [["a"]], ["bleu"], tokenizer="13b")


def test_chinese_that_is_right_has_a_bleu_of_100():
    (metric,) = evaluate([CHINESE], one_each(CHINESE), ["bleu"])
    assert metric.value == pytest.approx(100)
    assert "|tok:zh|" in metric.signature
    assert cannot_measure("bleu", one_each(CHINESE)) == ""


@pytest.mark.parametrize("tokenizer", ["13a", "zh", "intl", "char", "none"])
def test_every_tokenizer_is_sacrebleus(tokenizer):
    outputs, references = [ENGLISH, CHINESE], one_each("Tomorrow, we will go to Rome.", "我们今天去北京。")
    (ours,) = evaluate(outputs, references, ["bleu"], tokenizer=tokenizer)
    peer = BLEU(tokenize=tokenizer)
    assert ours.value == pytest.approx(peer.corpus_score(outputs, [[one[0] for one in references]]).score, abs=1e-12)
    assert ours.signature == str(peer.get_signature())


ANSWERS = one_each("garden", "office", "kitchen", "two men")
SHORT = one_each("good morning", "yes sir", "come in")


@pytest.mark.parametrize(
    ("name", "references", "why"),
    [
        (
            "bleu",
            ANSWERS,
            "bleu cannot measure this text: 75 % of the references are a single token (tok:13a), and it counts runs of "
            "four tokens; use exact or cer",
        ),
        (
            "bleu",
            SHORT,
            "bleu cannot measure this text: no reference has 4 tokens (tok:13a), and it counts runs of four tokens; "
            "use exact or cer",
        ),
        (
            "rouge2-stem",
            ANSWERS,
            "rouge2-stem cannot measure this text: 75 % of the references are a single token, and it counts pairs of "
            "tokens; use exact or cer",
        ),
        (
            "wer",
            one_each(CHINESE, THAI),
            "wer cannot measure this text: 100 % of the references have no blank in them, and wer counts what stands "
            "between blanks; use cer or chrf",
        ),
    ],
)
def test_what_cannot_be_measured_is_said_with_what_can(name, references, why):
    assert cannot_measure(name, references) == why
    assert concerns(name, ["x"] * len(references), references) == [why]


def test_bleu_of_a_given_tokenizer_is_judged_by_its_tokens():
    assert "100 % of the references are a single token (tok:13a)" in cannot_measure(
        "bleu", one_each(CHINESE[:-1]), tokenizer="13a"
    )
    assert cannot_measure("bleu", one_each("garden"), tokenizer="char") == ""


def test_what_can_be_measured_is_measured_in_silence():
    for name in ("bleu", "chrf", "ter", "wer", "rouge2", "f1"):
        assert cannot_measure(name, one_each(ENGLISH, SPANISH, KOREAN)) == ""
    for name in ("exact", "cer", "chrf", "f1", "wer", "item_error", "edit_distance"):
        assert cannot_measure(name, ANSWERS) == ""
    # Half of the references, or less, may be single words.
    assert cannot_measure("bleu", one_each("yes", ENGLISH)) == ""


def test_text_that_looks_tokenised_is_told_once_and_by_us(caplog):
    outputs = ["they saw the house ."] * 100
    references = one_each(*["they saw the house."] * 100)
    with caplog.at_level(logging.WARNING):
        statistics(outputs, references, "bleu")
    assert caplog.records == []
    (said,) = concerns("bleu", outputs, references)
    assert said.startswith("100 outputs end in a blank and a period: bleu (tok:13a) is for raw text")
    assert said.endswith("or count the tokens as they are with --bleu-tokenizer none")
    assert concerns("bleu", outputs, references, tokenizer="none") == []
    assert concerns("bleu", outputs[:99], references[:99]) == concerns("chrf", outputs, references) == []


def test_the_page_about_metrics_names_them_all():
    page = (Path(__file__).parents[2] / "docs" / "metrics.md").read_text(encoding="utf-8")
    missing = [name for name in METRICS if f"`{name}`" not in page]
    assert missing == []
