"""ROUGE (Lin 2004) through rouge-score, with words of every script."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from importlib.metadata import version
from types import SimpleNamespace

STEM = "-stem"
SENTENCE_END = re.compile(r"(?<=[.!?…])\s+|(?<=[。！？])")


def rouge_scores(name: str, hypotheses: Sequence[str], references: Sequence[Sequence[str]]) -> Iterator[float]:
    """Yield each sentence's F1 (0 to 1), the best of its references; `name` may end in -stem.

    rouge-score's own tokenizer drops every letter that is not ASCII; its own splitter of sentences, for ROUGE-Lsum,
    fetches a model from the network. Neither is used.
    """
    from rouge_score.rouge_scorer import RougeScorer

    kind = name.removesuffix(STEM)
    words = stemmed_words if name.endswith(STEM) else unicode_words
    scorer = RougeScorer([kind], tokenizer=SimpleNamespace(tokenize=words))
    prepare = sentence_a_line if kind == "rougeLsum" else str
    for output, several in zip(hypotheses, references, strict=True):
        yield scorer.score_multi([prepare(one) for one in several], prepare(output))[kind].fmeasure


def rouge_signature(name: str) -> list[str]:
    """Say how the numbers of a ROUGE are made, as parts of a signature."""
    stem = "porter" if name.endswith(STEM) else "no"
    sentences = ["sents:marks"] if name.startswith("rougeLsum") else []
    return ["tok:unicode", f"stem:{stem}", *sentences, "refs:best", f"rouge-score:{version('rouge-score')}"]


def unicode_words(text: str) -> list[str]:
    """Split lower-cased text into runs of letters, combining marks and digits; on ASCII, as rouge-score does.

    Text written without blanks, as Chinese is, gives one long token a clause.
    """
    return "".join(char if unicodedata.category(char)[0] in "LMN" else " " for char in text.lower()).split()


def stemmed_words(text: str) -> list[str]:
    """Split as `unicode_words`; as in rouge-score words of over three letters lose English endings (Porter 1980)."""
    from nltk.stem.porter import PorterStemmer  # rouge-score brings it

    stem = PorterStemmer().stem
    return [stem(word) if len(word) > 3 else word for word in unicode_words(text)]


def sentence_a_line(text: str) -> str:
    """Put each sentence on a line of its own: ROUGE-Lsum takes the longest common subsequences of sentences."""
    return "\n".join(part for part in SENTENCE_END.split(text) if part)
