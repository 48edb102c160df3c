"""Metrics: by arithmetic on paper, and against sacreBLEU, rouge-score and a plain edit-distance table."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rouge_score.rouge_scorer import RougeScorer
from sacrebleu.metrics import BLEU, CHRF, TER

from mirada.errors import ConfigError, DataError
from mirada.evaluation.metrics import (
    METRICS,
    better,
    evaluate,
    measure,
    nearest,
    resolve,
    sentence_scores,
    squad_f1,
    squad_tokens,
    statistics,
)
from mirada.evaluation.rouge import sentence_a_line, stemmed_words, unicode_words

OUTPUTS = ["The cat sat on a mat.", "He reads the old book again", "", "Yes, we saw it!"]
REFERENCES = [
    ["The cat sat on the mat.", "A cat was sitting on the mat."],
    ["He is reading the old book again"],
    ["Nothing at all"],
    ["Yes, we saw it!", "We did see it."],
]
# The same references as sacreBLEU wants them: a stream a reference, None where a sentence has fewer.
STREAMS = [
    ["The cat sat on the mat.", "He is reading the old book again", "Nothing at all", "Yes, we saw it!"],
    ["A cat was sitting on the mat.", None, None, "We did see it."],
]


def value(outputs, references, name):
    (metric,) = evaluate(outputs, references, [name])
    assert metric.name == name
    return metric.value


@pytest.mark.parametrize(("name", "metric"), [("bleu", BLEU()), ("chrf", CHRF()), ("ter", TER())])
def test_sacrebleu_metrics_equal_sacrebleu_called_directly(name, metric):
    (ours,) = evaluate(OUTPUTS, REFERENCES, [name])
    assert ours.value == pytest.approx(metric.corpus_score(OUTPUTS, STREAMS).score, abs=1e-12)
    assert ours.signature == str(metric.get_signature())
    assert 0 < ours.value < 100


def test_bleu_by_hand():
    # 5 output tokens a b c d f, reference a b c d e: precisions 4/5, 3/4, 2/3, 1/2, whose product is 1/5; no brevity
    # penalty: BLEU = 100 (1/5)^(1/4).
    assert value(["a b c d f"], [["a b c d e"]], "bleu") == pytest.approx(100 * 0.2**0.25)


def test_bleu_signature_says_cased_13a_and_the_number_of_references():
    (one,) = evaluate(["a b c d"], [["a b c d"]], ["bleu"])
    assert one.signature.startswith("nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:")
    (several,) = evaluate(OUTPUTS, REFERENCES, ["bleu"])
    assert several.signature.startswith("nrefs:var|")


@pytest.mark.parametrize(("name", "metric"), [("bleu", BLEU(effective_order=True)), ("chrf", CHRF()), ("ter", TER())])
def test_sentence_scores_equal_sacrebleu_sentence_by_sentence(name, metric):
    expected = [metric.sentence_score(*pair).score for pair in zip(OUTPUTS, REFERENCES, strict=True)]
    assert sentence_scores(OUTPUTS, REFERENCES, name) == pytest.approx(expected, abs=1e-12)


def test_sentence_bleu_of_a_short_right_sentence_is_100_but_its_corpus_bleu_is_0():
    assert sentence_scores(["Good morning"], [["Good morning"]], "bleu") == pytest.approx([100.0])
    assert value(["Good morning"], [["Good morning"]], "bleu") == 0.0


def test_exact_and_item_error_by_hand():
    # Right: 1 (blanks at the ends aside) and 3 (its second reference). Wrong: 2 (case) and 4. 2 of 4.
    outputs = [" k ae t ", "Dog", "b", "x y"]
    references = [["k ae t"], ["dog"], ["a", "b"], ["x  y"]]
    assert value(outputs, references, "exact") == 50.0
    assert value(outputs, references, "item_error") == 50.0
    assert sentence_scores(outputs, references, "exact") == [100.0, 0.0, 100.0, 0.0]
    assert sentence_scores(outputs, references, "item_error") == [0.0, 100.0, 0.0, 100.0]


def test_item_error_says_what_papers_call_it():
    (metric,) = evaluate(["a"], [["b"]], ["item_error"])
    assert metric.value == 100.0
    assert metric.signature == "nrefs:1|case:mixed|unit:item|refs:any|also:the WER of SIGMORPHON and CMUdict papers"


@pytest.mark.parametrize("name", ["wer", "per"])
def test_token_error_rate_by_hand(name):
    # 1 substitution of 3, 1 insertion of 2, 2 deletions of 2: (1 + 1 + 2) / (3 + 2 + 2) = 4 / 7 over the corpus.
    outputs, references = ["k ae d", "d ao g", ""], [["k ae t"], ["d ao"], ["a b"]]
    assert value(outputs, references, name) == pytest.approx(400 / 7)
    assert sentence_scores(outputs, references, name) == pytest.approx([100 / 3, 50, 100])


def test_character_error_rate_by_hand():
    # kitten → sitting: 3 edits of 7. "a  b" against "a b": one blank too many, 1 of 3; blanks at the ends do not count.
    assert value(["kitten", " a  b "], [["sitting"], ["a b"]], "cer") == pytest.approx(100 * (3 + 1) / (7 + 3))


def test_nearest_reference_and_its_length_are_taken():
    # Distances 3 (5 tokens) and 1 (2 tokens): 1 of 2.
    assert value(["a b c"], [["a b x y z", "a b"]], "wer") == 50.0
    # Equally near (1 edit each) are "a b" and "a b c d": the shorter counts, 1 of 2, in either order.
    assert value(["a b c"], [["a b c d", "a b"]], "wer") == 50.0
    assert value(["a b c"], [["a b", "a b c d"]], "wer") == 50.0


def test_error_rates_can_pass_100_and_have_a_value_for_empty_references():
    # 3 insertions against 1 token.
    assert value(["a b c d"], [["a"]], "wer") == 300.0
    assert value(["a"], [[""]], "wer") == 100.0
    assert value([""], [[""]], "wer") == 0.0
    # Over a corpus the empty reference adds its insertions: (1 + 0) / (0 + 4).
    assert value(["a", "a b c d"], [[""], ["a b c d"]], "wer") == 25.0


def table_distance(a, b):
    """Wagner & Fischer's table, row by row."""
    table = [[i + j for j in range(len(b) + 1)] for i in range(len(a) + 1)]
    for i in range(1, len(a) + 1):
        for j in range(1, len(b) + 1):
            swap = table[i - 1][j - 1] + (a[i - 1] != b[j - 1])
            table[i][j] = min(table[i - 1][j] + 1, table[i][j - 1] + 1, swap)
    return table[-1][-1]


symbols = st.lists(st.sampled_from(["ə", "ɪ", "k", "tʃ"]), max_size=6)


@given(symbols, st.lists(symbols, min_size=1, max_size=3))
def test_nearest_agrees_with_a_table_of_edit_distances(output, references):
    distance, length = nearest(output, references)
    distances = [table_distance(output, reference) for reference in references]
    assert distance == min(distances)
    assert length == min(len(r) for r, d in zip(references, distances, strict=True) if d == distance)


def test_phonemes_are_symbols_not_characters():
    # tʃ is one symbol of two characters: 1 of 3 symbols wrong.
    assert value(["tʃ ɪ n"], [["ʃ ɪ n"]], "per") == pytest.approx(100 / 3)
    (metric,) = evaluate(["a"], [["a"]], ["per"])
    assert metric.signature == "nrefs:1|case:mixed|unit:phoneme|edits:levenshtein|refs:nearest"
    units = [m.signature.split("|")[2] for m in evaluate(["a"], [["a"]], ["wer", "cer"])]
    assert units == ["unit:word", "unit:character"]


def test_rouge_by_hand():
    # the cat sat down / the cat sat: 3 common words, P 3/4, R 1: F = 6/7. Bigrams: 2 common, P 2/3, R 1: F = 4/5.
    # Longest common subsequence 3: F = 6/7.
    found = evaluate(["The cat sat down."], [["the cat sat"]], ["rouge"])
    assert [metric.name for metric in found] == ["rouge1", "rouge2", "rougeL"]
    assert [metric.value for metric in found] == pytest.approx([600 / 7, 80, 600 / 7])


def test_rouge_takes_the_best_reference_and_the_mean_of_sentences():
    # First sentence: F 1 with its second reference; second: nothing in common. Mean 1/2.
    assert value(["a b", "c"], [["x", "a b"], ["d"]], "rouge1") == 50.0


@pytest.mark.parametrize("stem", [False, True])
@pytest.mark.parametrize("kind", ["rouge1", "rouge2", "rougeL", "rougeLsum"])
def test_rouge_on_ascii_equals_rouge_scores_own_tokenizer(kind, stem):
    name = f"{kind}-stem" if stem else kind
    outputs = ["It's a state-of-the-art model, isn't it?", "snake_case 3.14 COUNTS", "A b c d e"]
    outputs.append("The models were reading several tokens.")
    references = [["its state of the art model is not it"], ["Snake case 3 14"], ["e d c b a", "a c e"]]
    references.append(["A model reads the token."])
    scorer = RougeScorer([kind], use_stemmer=stem)
    pairs = zip(outputs, references, strict=True)
    expected = [100 * scorer.score_multi(several, output)[kind].fmeasure for output, several in pairs]
    assert sentence_scores(outputs, references, name) == pytest.approx(expected)
    assert value(outputs, references, name) == pytest.approx(sum(expected) / 4)


def test_rouge_keeps_letters_that_are_not_ascii():
    assert unicode_words("¿Mañana, corazón? 2º हिन्दी_Straße") == ["mañana", "corazón", "2º", "हिन्दी", "straße"]
    assert value(["Привет мир"], [["привет, мир!"]], "rouge1") == 100.0
    (metric,) = evaluate(["a"], [["a"]], ["rouge1"])
    assert re.fullmatch(r"nrefs:1\|case:lc\|tok:unicode\|stem:no\|refs:best\|rouge-score:[0-9.]+", metric.signature)


def test_stems_by_hand():
    # Porter takes off -s, -ing and -ed; words of three letters or fewer stay as they are.
    assert stemmed_words("Cats was Reading its walked") == ["cat", "was", "read", "its", "walk"]
    assert value(["he walks"], [["he walked"]], "rouge1") == 50.0
    assert value(["he walks"], [["he walked"]], "rouge1-stem") == 100.0
    (metric,) = evaluate(["a"], [["a"]], ["rougeL-stem"])
    assert "|stem:porter|" in metric.signature


def test_rouge_of_summaries_takes_sentences_in_any_order():
    # As one line the longest common subsequence of "a b c. d e f." and "d e f. a b c." is 3 of 6 words; sentence by
    # sentence every word is found.
    output, reference = "a b c. d e f.", "d e f. a b c."
    assert sentence_a_line(output) == "a b c.\nd e f."
    assert sentence_a_line("一。二！") == "一。\n二！"
    assert value([output], [[reference]], "rougeL") == 50.0
    assert value([output], [[reference]], "rougeLsum") == 100.0
    (metric,) = evaluate(["a"], [["a"]], ["rougeLsum"])
    assert "|sents:marks|" in metric.signature


def test_mean_edit_distance_by_hand():
    # kitten → sitting: 3 edits; "ab" against "ab" or "b": none; nothing against "xy": 2. Mean 5 / 3, and no percentage.
    outputs, references = ["kitten", "ab", ""], [["sitting"], ["b", "ab"], ["xy"]]
    assert value(outputs, references, "edit_distance") == pytest.approx(5 / 3)
    assert sentence_scores(outputs, references, "edit_distance") == [3.0, 0.0, 2.0]
    assert better("edit_distance") == "lower"


def test_f1_by_hand():
    # Tokens of the output: big red dog; of the reference: red dog barks loudly. 2 common, P 2/3, R 2/4: F = 4/7.
    assert value(["The big, red dog."], [["red dog barks loudly"]], "f1") == pytest.approx(400 / 7)
    # A bag counts copies: x x x against x x y has 2 in common, F = 4/6.
    assert value(["x x x"], [["x x y"]], "f1") == pytest.approx(200 / 3)
    # Best of the references, mean of the sentences: (1 + 0) / 2.
    assert value(["in Paris", "no"], [["London", "in Paris"], ["yes"]], "f1") == 50.0


def test_f1_normalises_as_squad():
    assert squad_tokens("The ¿Qué? An «apple», a don't") == ["qué", "apple", "dont"]
    assert squad_f1("the", [""]) == 1.0
    assert squad_f1("x", ["the"]) == 0.0


def test_equal_outputs_are_perfect_by_every_metric():
    texts = ["the quick brown fox jumps", "over it all once more today"]
    found = evaluate(texts, [[text] for text in texts], METRICS)
    assert {metric.name for metric in found} == {*METRICS} - {"rouge", "rouge-stem"}
    for metric in found:
        assert metric.value == pytest.approx(100.0 if metric.better == "higher" else 0.0)


def test_direction_of_each_metric():
    lower = {name for name in resolve(METRICS) if better(name) == "lower"}
    assert lower == {"ter", "item_error", "per", "cer", "wer", "edit_distance"}


def test_names_are_resolved_once_and_in_order():
    assert resolve(["f1", "accuracy", "rouge", "exact", "rouge2"]) == ("f1", "exact", "rouge1", "rouge2", "rougeL")
    assert [metric.name for metric in evaluate(["a"], [["a"]], ["accuracy"])] == ["exact"]
    assert sentence_scores(["a"], [["a"]], "accuracy") == [100.0]


@pytest.mark.parametrize("name", resolve(METRICS))
def test_the_corpus_value_comes_from_the_sum_of_rows(name):
    # Two corpora put together by their rows alone are scored as the joined strings are.
    found = statistics(OUTPUTS, REFERENCES, name)
    for part in (slice(0, 2), slice(1, 4)):
        (expected,) = evaluate(OUTPUTS[part], REFERENCES[part], [name])
        assert measure(name, found._replace(rows=found.rows[part])).value == pytest.approx(expected.value)


def test_unknown_metric_is_refused_with_the_nearest_name():
    message = (
        "unknown metric 'bleau'; did you mean 'bleu'? "
        "(valid: bleu, chrf, ter, exact, item_error, per, cer, wer, edit_distance, f1, rouge, rouge1, rouge2, rougeL, "
        "rougeLsum, rouge-stem, rouge1-stem, rouge2-stem, rougeL-stem, rougeLsum-stem)"
    )
    with pytest.raises(ConfigError, match=f"^{re.escape(message)}$"):
        evaluate(["a"], [["a"]], ["wer", "bleau"])
    with pytest.raises(ConfigError, match=r"^unknown metric 'zzz' \(valid: bleu"):
        better("zzz")


@pytest.mark.parametrize("call", [lambda: sentence_scores(["a"], [["a"]], "rouge"), lambda: better("rouge")])
def test_one_score_of_three_metrics_is_refused(call):
    with pytest.raises(ConfigError, match=r"^metric 'rouge' is several; name one of rouge1, rouge2, rougeL$"):
        call()


@pytest.mark.parametrize(
    ("outputs", "references", "message"),
    [
        (["a", "b"], [["a"]], "expected references for every output, got 2 outputs and references for 1 sentences"),
        ([], [], "nothing to evaluate: got no outputs and no references"),
        (["a", "b"], [["a"], []], "sentence 2: expected at least one reference, got none"),
        (["ab"], ["ab"], "sentence 1: expected a list of references, got the string 'ab'"),
    ],
)
@pytest.mark.parametrize("name", ["bleu", "wer", "exact"])
def test_a_corpus_that_does_not_fit_is_refused(outputs, references, message, name):
    with pytest.raises(DataError, match=f"^{re.escape(message)}$"):
        evaluate(outputs, references, [name])
    with pytest.raises(DataError, match=f"^{re.escape(message)}$"):
        sentence_scores(outputs, references, name)
