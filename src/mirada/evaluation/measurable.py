"""Whether a metric can measure a text at all: a number that cannot move steers a training, or a reader, wrongly."""

from __future__ import annotations

from collections.abc import Sequence

from mirada.evaluation.metrics import References, single
from mirada.evaluation.scripts import best_tokenizer, bleu_tokenizer, has_no_blanks, how_to_install, installed

NGRAM = 4  # BLEU multiplies the precisions of runs of one to four tokens
TOO_MANY_PERIODS = 100  # outputs that end in " .", as sacreBLEU counts them
BY_BLANKS = ("ter", "wer", "per", "rouge1", "rougeL", "rougeLsum", "f1")


def cannot_measure(name: str, references: References, *, tokenizer: str = "auto") -> str:
    """Say why a metric cannot measure texts such as these references, and what can; "" where it can.

    Most references being a single token is what speaks against BLEU (or none having four), against ROUGE-2, and,
    where the script puts no blanks between words, against all that counts words. `tokenizer` is BLEU's.
    Raises ConfigError for an unknown metric.
    """
    plain = single(name).removesuffix("-stem")
    texts = [reference for several in references for reference in several]
    if plain == "bleu":
        chosen = bleu_tokenizer(texts, tokenizer)
        return _too_short(name, texts, _bleu_lengths(texts, chosen), f" (tok:{chosen})")
    lengths = [len(text.split()) for text in texts]
    if plain in BY_BLANKS and _mostly_single(lengths) and has_no_blanks(texts):
        why = f"{_share(lengths)} of the references have no blank in them, and {name} counts what stands between blanks"
        return f"{name} cannot measure this text: {why}; use cer or chrf"
    return _too_short(name, texts, lengths, "") if plain == "rouge2" else ""


def concerns(name: str, hypotheses: Sequence[str], references: References, *, tokenizer: str = "auto") -> list[str]:
    """List, one line each, what a reader of this figure should know. Raises as `cannot_measure`."""
    found = [cannot_measure(name, references, tokenizer=tokenizer)]
    if single(name) == "bleu":
        texts = [reference for several in references for reference in several]
        best = best_tokenizer(texts)
        if tokenizer == "auto" and not installed(best):
            found.append(f"bleu counts characters (tok:char); to count words (tok:{best}): {how_to_install(best)}")
        ends = sum(output.endswith(" .") for output in hypotheses)
        if ends >= TOO_MANY_PERIODS and bleu_tokenizer(texts, tokenizer) == "13a":
            found.append(
                f"{ends} outputs end in a blank and a period: bleu (tok:13a) is for raw text, and its figure for "
                "tokenised text is another; join marks to their words, or count the tokens as they are with "
                "--bleu-tokenizer none"
            )
    return [line for line in found if line]


def _bleu_lengths(texts: Sequence[str], tokenizer: str) -> list[int]:
    from sacrebleu.metrics import BLEU

    split = BLEU(tokenize=tokenizer).tokenizer
    return [len(split(text.rstrip()).split()) for text in texts]


def _too_short(name: str, texts: Sequence[str], lengths: Sequence[int], how: str) -> str:
    """Why runs of tokens cannot be counted, "" where they can."""
    counts = "runs of four tokens" if name == "bleu" else "pairs of tokens"
    instead = "cer or chrf" if has_no_blanks(texts) else "exact or cer"
    if _mostly_single(lengths):
        why = f"{_share(lengths)} of the references are a single token{how}"
    elif name == "bleu" and max(lengths) < NGRAM:
        why = f"no reference has {NGRAM} tokens{how}"
    else:
        return ""
    return f"{name} cannot measure this text: {why}, and it counts {counts}; use {instead}"


def _mostly_single(lengths: Sequence[int]) -> bool:
    return 2 * sum(length <= 1 for length in lengths) > len(lengths)


def _share(lengths: Sequence[int]) -> str:
    return f"{100 * sum(length <= 1 for length in lengths) / len(lengths):.0f} %"
