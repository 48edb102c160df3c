"""Corpus metrics as pure functions of strings: each value comes with the signature that says how it was made.

Every metric is a row of numbers a sentence, and a rule from the sum of the rows to the value. The corpus, one sentence,
a bucket of lengths and a bootstrap resample are then the same rule over different sums (`Statistics`).
"""

from __future__ import annotations

import string
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import zip_longest
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mirada.errors import ConfigError, DataError, suggestion
from mirada.evaluation.rouge import STEM, rouge_scores, rouge_signature
from mirada.evaluation.scripts import bleu_tokenizer

FloatArray = NDArray[np.float64]
References = Sequence[Sequence[str]]

ROUGE = ("rouge1", "rouge2", "rougeL")
STEMMED = tuple(name + STEM for name in ROUGE)
GROUPS = {"rouge": ROUGE, f"rouge{STEM}": STEMMED}
METRICS = (
    *("bleu", "chrf", "ter", "exact", "item_error", "per", "cer", "wer", "edit_distance", "f1"),
    *("rouge", *ROUGE, "rougeLsum", f"rouge{STEM}", *STEMMED, f"rougeLsum{STEM}"),
)
LOWER_IS_BETTER = ("ter", "item_error", "per", "cer", "wer", "edit_distance")


class Metric(NamedTuple):
    """One value of a corpus, in percent (`edit_distance` in edits); error rates of outputs much too long pass 100."""

    name: str
    value: float
    signature: str
    better: Literal["higher", "lower"]


class Statistics(NamedTuple):
    """What a corpus metric adds up, so that any set of sentences can be scored again without reading a string.

    `value` takes sums of rows `[M, K]` and gives `M` values, in the unit of `Metric.value`.
    """

    rows: FloatArray  # [N, K]
    value: Callable[[FloatArray], FloatArray]
    signature: str


def evaluate(
    hypotheses: Sequence[str], references: References, names: Sequence[str], *, tokenizer: str = "auto"
) -> list[Metric]:
    """Score a corpus with every metric of `names`, in that order; `references[i]` lists those of sentence i.

    - `bleu`, `chrf`, `ter`: sacreBLEU's defaults on raw text, with its own signature (Post 2018). `tokenizer` is
      BLEU's, by default chosen by the references' script (`scripts.bleu_tokenizer`).
    - `exact`: share of outputs equal to a reference, blanks at the ends aside; also called `accuracy`.
    - `item_error`: 100 − exact, which papers on SIGMORPHON's tasks and CMUdict call WER.
    - `wer`: word errors: edit distance over blank-separated tokens, summed over the corpus, by reference tokens.
    - `per`: the same computation under the name that phonemes written with blanks between them go by.
    - `cer`: the same over characters (code points, inner blanks included).
    - `edit_distance`: mean over the sentences of the edits, in characters, to the nearest reference.
    - `rouge`: `rouge1`, `rouge2` and `rougeL` (Lin 2004), mean of the sentences' F1, lower-cased; `rougeLsum` by
      sentences. Names that end in -stem drop English endings first (Porter 1980), as many papers do.
    - `f1`: SQuAD's token F1 (Rajpurkar et al. 2016), mean over the sentences.

    With several references the edit distances take the nearest (of equally near ones the shorter, which counts an
    error more), `exact`, `rouge*` and `f1` the best. Raises ConfigError for an unknown name, DataError for unequal
    counts, no sentences, or a sentence without a reference.
    """
    chosen = resolve(names)
    return [measure(name, statistics(hypotheses, references, name, tokenizer=tokenizer)) for name in chosen]


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
        found.update(dict.fromkeys(GROUPS.get(canonical, (canonical,))))
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
    hypotheses: Sequence[str],
    references: References,
    name: str,
    *,
    effective_order: bool = False,
    tokenizer: str = "auto",
) -> Statistics:
    """Compute the rows of one metric, and its rule; `effective_order` is for BLEU of single sentences.

    Raises as `evaluate`, and ConfigError for `rouge`.
    """
    name = single(name)
    check_corpus(hypotheses, references)
    if name == "bleu":
        texts = [reference for several in references for reference in several]
        return _sacrebleu(name, hypotheses, references, bleu_tokenizer(texts, tokenizer), effective_order)
    if name in ("chrf", "ter"):
        return _sacrebleu(name, hypotheses, references)
    if name in ("wer", "per", "cer", "edit_distance"):
        return _edits(name, hypotheses, references)
    if name.startswith("rouge"):
        scores = rouge_scores(name, hypotheses, references)
        return _means(scores, _signature(references, "lc", *rouge_signature(name)))
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


def _sacrebleu(
    name: str, hypotheses: Sequence[str], references: References, tokenizer: str = "", effective_order: bool = False
) -> Statistics:
    """Take rows and rule from sacreBLEU: the one place that calls the two private methods its own bootstrap uses."""
    from sacrebleu.metrics import BLEU, CHRF, TER

    # force: sacreBLEU's own warning names a parameter that nobody here can set; `measurable.concerns` says it instead.
    bleu = partial(BLEU, effective_order=effective_order, tokenize=tokenizer, force=True)
    metric = {"bleu": bleu, "chrf": CHRF, "ter": TER}[name]()
    # sacreBLEU wants one stream a reference; None stands where a sentence has fewer.
    rows = metric._extract_corpus_statistics(hypotheses, list(zip_longest(*references)))

    def value(sums: FloatArray) -> FloatArray:
        return np.array([metric._compute_score_from_stats(row).score for row in sums], dtype=np.float64)

    return Statistics(np.array(rows, dtype=np.float64), value, metric.get_signature().format())


def _edits(name: str, hypotheses: Sequence[str], references: References) -> Statistics:
    """Rows (edit distance, length) to the nearest reference; the rate of nothing but empty references is 0 or 100."""
    unit = {"per": "phoneme", "wer": "word"}.get(name, "character")
    units = _characters if unit == "character" else _tokens
    pairs = zip(hypotheses, references, strict=True)
    rows = [nearest(units(output), [units(reference) for reference in several]) for output, several in pairs]
    signature = _signature(references, "mixed", f"unit:{unit}", "edits:levenshtein", "refs:nearest")
    if name == "edit_distance":
        return _means((float(edits) for edits, _ in rows), signature, _ratio)

    def value(sums: FloatArray) -> FloatArray:
        edits, lengths = sums.T
        return np.asarray(100 * np.where(lengths > 0, edits / np.maximum(lengths, 1), edits > 0))

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
    hits = [_is_exact(output, several) for output, several in pairs]
    if name == "exact":
        return _means(map(float, hits), _signature(references, "mixed", "unit:item", "refs:any"))
    also = "also:the WER of SIGMORPHON and CMUdict papers"
    return _means((1.0 - hit for hit in hits), _signature(references, "mixed", "unit:item", "refs:any", also))


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


def best_of(lists: Sequence[Sequence[str]], references: References) -> Statistics:
    """Compute the share of sentences one of whose outputs is right, as `exact` is; `lists[i]` has those of sentence i.

    Raises DataError as `evaluate`.
    """
    check_corpus(["" for _ in lists], references)
    pairs = zip(lists, references, strict=True)
    hits = [any(_is_exact(output, several) for output in outputs) for outputs, several in pairs]
    most = max(map(len, lists))
    return _means(map(float, hits), _signature(references, "mixed", "unit:item", "refs:any", f"outputs:best of {most}"))


def _is_exact(output: str, references: Sequence[str]) -> bool:
    return output.strip() in [reference.strip() for reference in references]


def _means(
    scores: Iterable[float], signature: str, value: Callable[[FloatArray], FloatArray] | None = None
) -> Statistics:
    """Rows (score, 1) and their mean, as a percentage unless said otherwise."""
    return Statistics(np.array([(s, 1.0) for s in scores], dtype=np.float64), value or percentage, signature)


def percentage(sums: FloatArray) -> FloatArray:
    """Return 100 times the first column by the second, the rule of means and shares."""
    return 100 * _ratio(sums)


def _ratio(sums: FloatArray) -> FloatArray:
    hits, counts = sums.T
    return np.asarray(hits / np.maximum(counts, 1))  # nothing of nothing is 0


def _signature(references: References, case: str, *parts: str) -> str:
    """Write a signature in the manner of sacreBLEU: the number of references first (`var` if it varies)."""
    counts = {len(several) for several in references}
    return "|".join((f"nrefs:{counts.pop() if len(counts) == 1 else 'var'}", f"case:{case}", *parts))
