"""What training will make of the pairs: the kinds of tokens it chooses, what it leaves out or cuts, reserved names."""

from __future__ import annotations

import re
from collections.abc import Sequence

from mirada.config.data import DataConfig
from mirada.data import preparing
from mirada.data.checks.characters import Side, found, lines_matching
from mirada.data.checks.findings import Finding, Severity
from mirada.data.checks.pairs import PairSet, found_pairs
from mirada.data.corpus import Corpus, split_dev
from mirada.data.fitting import fit
from mirada.data.recipes import RESERVED
from mirada.errors import DataError

NAMES = re.compile(rf"(?<!\S){RESERVED}(?!\S)")


def check_tokens(data: DataConfig, train: PairSet, dev: PairSet | None, *, seed: int) -> list[Finding]:
    """Prepare the pairs as training does (chosen tokens, learned vocabularies) and find what it says of them."""
    broken = any(finding.severity == "error" for pairs in (train, dev) if pairs for finding in pairs.findings)
    names = [finding for side in (train.source, train.target) for finding in check_reserved(side)]
    if broken or not train.kept() or (dev is not None and not dev.kept()):
        return names
    try:
        corpora = _corpora(data, train, dev, seed)
        choices = preparing.choose(data, corpora)
        resolved = preparing.resolve(data, choices)
        tokenizers = preparing.learn_tokenizers(resolved, corpora[0])
        fits = [_check_lengths(resolved, own, tokenizers) for own in zip((train, dev or train), corpora, strict=True)]
        preparing.encode(resolved, corpora, tokenizers)
    except DataError as error:
        return [*names, Finding("untrainable", "error", 1, 1, f"training stops: {error}", ())]
    chosen = [Finding("tokens", "note", 1, 1, note, ()) for note in choices.notes()]
    return [*names, *chosen, *fits[0], *fits[1]]


def check_reserved(side: Side) -> list[Finding]:
    """Find words that are spelled like special tokens, which are learned as words like others."""
    message = "with words such as </s> and <unk>, which are names of special tokens; they are learned as ordinary words"
    return found(side, "reserved_names", "note", lines_matching(side, NAMES), message)


def _corpora(data: DataConfig, train: PairSet, dev: PairSet | None, seed: int) -> preparing.Corpora:
    corpora = [_corpus(pairs) for pairs in (train, dev) if pairs]
    return (corpora[0], corpora[1]) if dev else split_dev(corpora[0], size=data.dev_size, seed=seed)


def _corpus(pairs: PairSet) -> Corpus:
    rows = pairs.kept()
    numbers = [pairs.source.numbers[row] for row in rows]
    sides = [[side.lines[row] for row in rows] for side in (pairs.source, pairs.target)]
    return Corpus(sides[0], sides[1], numbers, [], pairs.source.name)


def _check_lengths(data: DataConfig, own: tuple[PairSet, Corpus], tokenizers: preparing.Tokenizers) -> list[Finding]:
    pairs, corpus = own
    fitted = fit(preparing.ids(corpus, tokenizers), data.max_length, data.truncate_source)
    gone = sorted(set(range(len(corpus))).difference(fitted.kept))
    rows = _rows(pairs, [corpus.lines[i] for i in gone])
    many: Severity = "warning" if len(gone) > preparing.MANY_LEFT_OUT * len(corpus) else "note"
    message = f"with more than max_length {data.max_length} tokens on a side, left out; {preparing.remedy(data)}"
    findings = found_pairs(pairs, "too_long", many, rows, message)
    if fitted.cut:
        text = (
            f"{pairs.name}: {fitted.cut} of {len(corpus)} sources are cut to {data.max_length} tokens (truncate_source)"
        )
        findings.append(Finding("cut", "note", fitted.cut, len(corpus), text, ()))
    return findings


def _rows(pairs: PairSet, numbers: Sequence[int]) -> list[int]:
    places = {number: row for row, number in enumerate(pairs.source.numbers)}
    return [places[number] for number in numbers]
