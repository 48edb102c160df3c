"""Corpus metrics as pure functions of strings: each value comes with the signature that says how it was made.

Every metric is a row of numbers a sentence, and a rule from the sum of the rows to the value. The corpus, one sentence,
a bucket of lengths and a bootstrap resample are then the same rule over different sums (`Statistics`).
"""

from __future__ import annotations

import string
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from importlib.metadata import version
from itertools import zip_longest
from types import SimpleNamespace
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mirada.errors import ConfigError, DataError, suggestion

FloatArray = NDArray[np.float64]
References = Sequence[Sequence[str]]

ROUGE = ("rouge1", "rouge2", "rougeL")
METRICS = ("bleu", "chrf", "ter", "exact", "item_error", "per", "cer", "wer", "rouge", *ROUGE, "f1")
LOWER_IS_BETTER = ("ter", "item_error", "per", "cer", "wer")


class Metric(NamedTuple):
    """One value of a corpus, in percent; error rates may pass 100 when the outputs are much too long."""

    name: str
    value: float
    signature: str
    better: Literal["higher", "lower"]


class Statistics(NamedTuple):
    """What a corpus metric adds up, so that any set of sentences can be scored again without reading a string.

    `value` takes sums of rows `[M, K]` and gives `M` values in percent.
    """

    rows: FloatArray  # [N, K]
    value: Callable[[FloatArray], FloatArray]
    signature: str


def evaluate(hypotheses: Sequence[str], references: References, names: Sequence[str]) -> list[Metric]:
    """Score a corpus with every metric of `names`, in that order; `references[i]` lists those of sentence i.

    - `bleu`, `chrf`, `ter`: sacreBLEU's defaults on raw text, with its own signature (Post 2018).
    - `exact`: share of outputs equal to a reference, blanks at the ends aside; also called `accuracy`.
    - `item_error`: 100 − exact, which papers on SIGMORPHON's tasks and CMUdict call WER.
    - `wer`: word errors: edit distance over blank-separated tokens, summed over the corpus, by reference tokens.
    - `per`: the same computation under the name that phonemes written with blanks between them go by.
    - `cer`: the same over characters (code points, inner blanks included).
    - `rouge`: `rouge1`, `rouge2` and `rougeL` (Lin 2004), mean of the sentences' F1, lower-cased, no stemming.
    - `f1`: SQuAD's token F1 (Rajpurkar et al. 2016), mean over the sentences.

    With several references the edit distances take the nearest (of equally near ones the shorter, which counts an
    error more), `exact`, `rouge*` and `f1` the best. Raises ConfigError for an unknown name, DataError for unequal
    counts, no sentences, or a sentence without a reference.
    """
    chosen = resolve(names)
    return [measure(name, statistics(hypotheses, references, name)) for name in chosen]


def sentence_scores(hypotheses: Sequence[str], references: References, name: str) -> list[float]:
    """Score each sentence alone, in percent; `bleu` uses effective order, without which short sentences get 0.

    Raises as `evaluate`, and ConfigError for `rouge`, which is three metrics.
    """
    found = statistics(hypotheses, references, name, effective_order=True)
    return [float(score) for score in found.value(found.rows)]


def better(name: str) -> Literal["higher", "lower"]:
    """Say which direction of a metric is the good one; raises ConfigError for an unknown name."""
    return "lower" if single(name) in LOWER_IS_BETTER else "higher"


def resolve(names: Iterable[str]) -> tuple[str, ...]:
    """Return canonical names, each once: `accuracy` is `exact`, `rouge` its three; raises ConfigError for others."""
    found: dict[str, None] = {}
    for name in names:
        canonical = "exact" if name == "accuracy" else name
        if canonical not in METRICS:
            valid = ", ".join(METRICS)
            raise ConfigError(f"unknown metric {name!r}{suggestion(name, METRICS)} (valid: {valid})")
        found.update(dict.fromkeys(ROUGE if canonical == "rouge" else (canonical,)))
    return tuple(found)


def single(name: str) -> str:
    """Return the canonical name of one metric; raises ConfigError for `rouge`, which is three."""
    names = resolve([name])
    if len(names) > 1:
        raise ConfigError(f"metric {name!r} is several; name one of {', '.join(names)}")
    return names[0]


def measure(name: str, found: Statistics) -> Metric:
    """Turn the statistics of some sentences into their metric."""
    return Metric(name, total(found), found.signature, better(name))


def total(found: Statistics) -> float:
    """Return the value of all the sentences together, in percent."""
    return float(found.value(found.rows.sum(axis=0, keepdims=True))[0])


def statistics(
    hypotheses: Sequence[str], references: References, name: str, *, effective_order: bool = False
) -> Statistics:
    """Compute the rows of one metric, and its rule; `effective_order` is for BLEU of single sentences.

    Raises as `evaluate`, and ConfigError for `rouge`.
    """
    name = single(name)
    check_corpus(hypotheses, references)
    if name in ("bleu", "chrf", "ter"):
        return _sacrebleu(name, hypotheses, references, effective_order=effective_order)
    if name in ("wer", "per", "cer"):
        return _edits(name, hypotheses, references)
    if name in ROUGE:
        return _rouge(name, hypotheses, references)
    if name == "f1":
        return _means(map(squad_f1, hypotheses, references), _signature(references, "lc", "tok:squad", "refs:best"))
    return _exact(name, hypotheses, references)


def check_corpus(hypotheses: Sequence[str], references: References) -> None:
    """Raise DataError unless there are sentences, each with at least one reference."""
    if len(hypotheses) != len(references):
        counts = f"{len(hypotheses)} outputs and references for {len(references)} sentences"
        raise DataError(f"expected references for every output, got {counts}")
    if not hypotheses:
        raise DataError("nothing to evaluate: got no outputs and no references")
    for number, several in enumerate(references, start=1):
        if isinstance(several, str):
            raise DataError(f"sentence {number}: expected a list of references, got the string {several[:40]!r}")
        if not several:
            raise DataError(f"sentence {number}: expected at least one reference, got none")


def _sacrebleu(name: str, hypotheses: Sequence[str], references: References, *, effective_order: bool) -> Statistics:
    """Take rows and rule from sacreBLEU: the one place that calls the two private methods its own bootstrap uses."""
    from sacrebleu.metrics import BLEU, CHRF, TER

    metric = {"bleu": lambda: BLEU(effective_order=effective_order), "chrf": CHRF, "ter": TER}[name]()
    # sacreBLEU wants one stream a reference; None stands where a sentence has fewer.
    rows = metric._extract_corpus_statistics(hypotheses, list(zip_longest(*references)))

    def value(sums: FloatArray) -> FloatArray:
        return np.array([metric._compute_score_from_stats(row).score for row in sums], dtype=np.float64)

    return Statistics(np.array(rows, dtype=np.float64), value, metric.get_signature().format())


def _edits(name: str, hypotheses: Sequence[str], references: References) -> Statistics:
    """Rows (edit distance, length) to the nearest reference; the rate of nothing but empty references is 0 or 100."""
    unit = {"cer": "character", "per": "phoneme", "wer": "word"}[name]
    units = _characters if name == "cer" else _tokens
    pairs = zip(hypotheses, references, strict=True)
    rows = [nearest(units(output), [units(reference) for reference in several]) for output, several in pairs]

    def value(sums: FloatArray) -> FloatArray:
        edits, lengths = sums.T
        return np.asarray(100 * np.where(lengths > 0, edits / np.maximum(lengths, 1), edits > 0))

    signature = _signature(references, "mixed", f"unit:{unit}", "edits:levenshtein", "refs:nearest")
    return Statistics(np.array(rows, dtype=np.float64), value, signature)


def _characters(text: str) -> list[str]:
    return list(text.strip())


def _tokens(text: str) -> list[str]:
    return text.split()


def nearest(output: Sequence[str], references: Sequence[Sequence[str]]) -> tuple[int, int]:
    """Return (edit distance, length) of the nearest reference, of equally near ones the shorter."""
    from rapidfuzz.distance import Levenshtein

    return min((Levenshtein.distance(output, reference), len(reference)) for reference in references)


def _exact(name: str, hypotheses: Sequence[str], references: References) -> Statistics:
    """The share of sentences that hit a reference, or for `item_error` of those that miss all."""
    pairs = zip(hypotheses, references, strict=True)
    hits = [output.strip() in [reference.strip() for reference in several] for output, several in pairs]
    if name == "exact":
        return _means(map(float, hits), _signature(references, "mixed", "unit:item", "refs:any"))
    also = "also:the WER of SIGMORPHON and CMUdict papers"
    return _means((1.0 - hit for hit in hits), _signature(references, "mixed", "unit:item", "refs:any", also))


def _rouge(name: str, hypotheses: Sequence[str], references: References) -> Statistics:
    """ROUGE's F1 through rouge-score, whose own tokenizer drops every letter that is not ASCII."""
    from rouge_score.rouge_scorer import RougeScorer

    scorer = RougeScorer([name], tokenizer=SimpleNamespace(tokenize=unicode_words))
    pairs = zip(hypotheses, references, strict=True)
    scores = (scorer.score_multi(several, output)[name].fmeasure for output, several in pairs)
    made = f"rouge-score:{version('rouge-score')}"
    return _means(scores, _signature(references, "lc", "tok:unicode", "stem:no", "refs:best", made))


def unicode_words(text: str) -> list[str]:
    """Split lower-cased text into runs of letters, combining marks and digits; on ASCII, as rouge-score does.

    Text written without blanks, as Chinese is, gives one long token a clause.
    """
    return "".join(char if unicodedata.category(char)[0] in "LMN" else " " for char in text.lower()).split()


def squad_f1(output: str, references: Sequence[str]) -> float:
    """Return the best F1 (0 to 1) of the bags of tokens; 1 if neither side has a token, as in SQuAD 2.0."""
    return max(_bag_f1(squad_tokens(output), squad_tokens(reference)) for reference in references)


def squad_tokens(text: str) -> list[str]:
    """Normalise as SQuAD: lower case, punctuation deleted (all of Unicode's), the English articles a, an, the left out.

    The articles are left out whatever the language is, so that the numbers can be compared with the papers'.
    """
    kept = "".join(char for char in text.lower() if not _is_punctuation(char))
    return [token for token in kept.split() if token not in ("a", "an", "the")]


def _is_punctuation(char: str) -> bool:
    return char in string.punctuation or unicodedata.category(char).startswith("P")


def _bag_f1(output: list[str], reference: list[str]) -> float:
    if not output and not reference:
        return 1.0
    common = (Counter(output) & Counter(reference)).total()
    # 2PR / (P + R) with P = common / |output| and R = common / |reference|.
    return 2 * common / (len(output) + len(reference))


def _means(scores: Iterable[float], signature: str) -> Statistics:
    """Rows (score, 1): the value is 100 times the mean of scores between 0 and 1."""

    def value(sums: FloatArray) -> FloatArray:
        totals, counts = sums.T
        return np.asarray(100 * totals / counts)

    return Statistics(np.array([(score, 1.0) for score in scores], dtype=np.float64), value, signature)


def _signature(references: References, case: str, *parts: str) -> str:
    """Write a signature in the manner of sacreBLEU: the number of references first (`var` if it varies)."""
    counts = {len(several) for several in references}
    return "|".join((f"nrefs:{counts.pop() if len(counts) == 1 else 'var'}", f"case:{case}", *parts))
