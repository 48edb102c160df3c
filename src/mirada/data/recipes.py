"""How each kind of tokeniser is made of the library's parts: normalisation, splitting, model and trainer.

What would be lost comes back: `▁` in a text, which means a blank inside subwords, is learned as a character that no
text holds (a noncharacter of Unicode), and a word that is spelled like a special token is learned with a backslash
before it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from mirada.data.vocabulary import SPECIAL_TOKENS, UNK

SPACE = "▁"
BLOCK = "\ufdd0"  # ▁ of a text, inside; as text it is no character at all, and becomes U+FFFD
KINDS = {"bpe": "BPE", "unigram": "Unigram", "word": "WordLevel", "char": "WordLevel", "features": "WordLevel"}
SPACED = ("bpe", "unigram", "char")  # a blank is the character ▁ of a token
FORMS = ("nfc", "nfkc", "none")
_NAMES = "|".join(SPECIAL_TOKENS)
RESERVED = rf"\\*(?:{_NAMES})"  # a special token's name as a word, with any backslashes before it
_BEFORE_NAME = rf"(?<!\S)(?={RESERVED}(?!\S))"


class TokenizerOptions(NamedTuple):
    """How a tokeniser is learned: kind, most entries, fewest occurrences, Unicode form, digits one by one."""

    kind: str
    vocab_size: int
    min_freq: int = 1
    normalize: str = "nfc"
    split_digits: bool = False


def untrained(kind: str) -> Any:
    """The library's model of a kind, with nothing learned."""
    from tokenizers import models

    unk = SPECIAL_TOKENS[UNK]
    if kind == "unigram":
        return models.Unigram()
    return models.BPE(unk_token=unk) if kind == "bpe" else models.WordLevel(unk_token=unk)


def normalizer(options: TokenizerOptions, *, version: int = 2) -> Any:
    """What a text becomes before it is split; version 1 is that of folders whose ▁ came back as a blank."""
    from tokenizers import Regex, normalizers

    steps: list[Any] = [normalizers.Strip(), normalizers.Replace(Regex(r"\s+"), " ")]
    if options.normalize != "none":
        steps.insert(0, normalizers.NFC() if options.normalize == "nfc" else normalizers.NFKC())
    if version > 1 and options.kind in SPACED:
        steps += [normalizers.Replace(BLOCK, "\ufffd"), normalizers.Replace(SPACE, BLOCK)]
    elif version > 1:
        steps.append(normalizers.Replace(Regex(_BEFORE_NAME), "\\"))
    if options.kind == "char":
        steps.append(normalizers.Replace(" ", SPACE))
    return normalizers.Sequence(steps)


def pre_tokenizer(kind: str, *, split_digits: bool = False) -> Any:
    """How a text is cut before the model sees it: no token reaches over such a cut."""
    from tokenizers import Regex, pre_tokenizers

    if kind == "char":
        return pre_tokenizers.Split(Regex(r"[\s\S]"), "isolated")
    if kind == "features":  # V;IND;NOM(1,SG): each name with the mark before it
        return pre_tokenizers.Split(Regex(r"[;,()\[\]{} ]"), "merged_with_next")
    if kind == "word":
        return pre_tokenizers.WhitespaceSplit()
    apart = r"[\p{P}\p{S}\p{N}]" if split_digits else r"[\p{P}\p{S}]"
    marks = pre_tokenizers.Split(Regex(rf"{SPACE}?(?!{SPACE}){apart}"), "isolated")  # with the ▁ before them
    return pre_tokenizers.Sequence([pre_tokenizers.Metaspace(SPACE, prepend_scheme="always"), marks])


def recipes(kind: str) -> tuple[list[bytes], list[bytes]]:
    """Every normalisation and every splitting with which mirada ever made tokenisers of a kind."""
    forms = [TokenizerOptions(kind, 0, normalize=form) for form in FORMS]
    normalizers = [normalizer(options, version=version) for options in forms for version in (1, 2)]
    return [bytes(made.__getstate__()) for made in normalizers], list(_cuts(kind))


def _cuts(kind: str) -> Iterator[bytes]:
    for split_digits in (False, True):
        yield bytes(pre_tokenizer(kind, split_digits=split_digits).__getstate__())


def trainer(options: TokenizerOptions) -> Any:
    """What learns a vocabulary of a kind, at most `vocab_size` entries (unigram keeps every character all the same)."""
    from tokenizers import trainers

    special = list(SPECIAL_TOKENS)
    size, fewest = options.vocab_size, options.min_freq
    if options.kind == "bpe":
        return trainers.BpeTrainer(
            vocab_size=size,
            min_frequency=max(2, fewest),
            limit_alphabet=size - len(special),
            special_tokens=special,
            show_progress=False,
        )
    if options.kind == "unigram":
        return trainers.UnigramTrainer(
            vocab_size=size, special_tokens=special, unk_token=special[UNK], show_progress=False
        )
    return trainers.WordLevelTrainer(vocab_size=size, min_frequency=fewest, special_tokens=special, show_progress=False)


def without_added(inner: Any) -> Any:
    """Keep the special entries in the vocabulary, but let no text be read as one of them."""
    import json

    from tokenizers import Tokenizer as Inner

    content = json.loads(inner.to_str())
    content["added_tokens"] = []
    return Inner.from_str(json.dumps(content))
