"""Text as Multi30k's makers have it in their files `*.lc.norm.tok.*`, by which published BLEU is counted.

Lower case, then Moses' punctuation normaliser, then its tokeniser, in that order and with their defaults (the set's
scripts/task1-tokenize.sh): sacremoses does what those Perl scripts do.
"""

from __future__ import annotations

from collections.abc import Iterable


def lower_tokenised(lines: Iterable[str], language: str) -> list[str]:
    """Lines with blanks between their tokens; raises SystemExit without sacremoses."""
    try:
        from sacremoses import MosesPunctNormalizer, MosesTokenizer
    except ImportError:
        raise SystemExit("the tokenised rows of Multi30k need sacremoses: pip install sacremoses") from None
    normaliser, tokeniser = MosesPunctNormalizer(lang=language), MosesTokenizer(lang=language)
    return [tokeniser.tokenize(normaliser.normalize(line.lower()), return_str=True) for line in lines]
