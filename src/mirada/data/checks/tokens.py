"""What training will make of the pairs: the kinds of tokens it chooses, what it leaves out or cuts, reserved names."""

from __future__ import annotations

import re
from array import array
from typing import NamedTuple

import numpy as np

from mirada.config.data import DataConfig
from mirada.data import preparing
from mirada.data.checks.characters import Side, counted, found, lines_matching
from mirada.data.checks.findings import Finding, Severity
from mirada.data.checks.pairs import PairSet, Sizes, counted_rows, found_pairs
from mirada.data.corpus import Corpus
from mirada.data.fitting import fit
from mirada.data.pairs import drawn_for_dev, source_keys
from mirada.data.recipes import RESERVED
from mirada.data.spool import Chosen
from mirada.data.telling import Tell, silent
from mirada.errors import DataError

NAMES = re.compile(rf"(?<!\S){RESERVED}(?!\S)")


def check_tokens(
    data: DataConfig, train: PairSet, dev: PairSet | None, *, seed: int, tell: Tell = silent
) -> list[Finding]:
    """Prepare the pairs as training does (chosen tokens, learned vocabularies) and find what it says of them."""
    broken = any(finding.severity == "error" for pairs in (train, dev) if pairs for finding in pairs.findings)
    names = [finding for side in (train.source, train.target) for finding in check_reserved(side)]
    if broken or not train.whole.any() or (dev is not None and not dev.whole.any()):
        return names
    try:
        sets = _sets(data, train, dev, seed)
        corpora = sets[0].corpus, sets[1].corpus
        tell("learning tokens", len(corpora[0]), None)
        choices = preparing.choose(data, corpora)
        resolved = preparing.resolve(data, choices)
        tokenizers = preparing.learn_tokenizers(resolved, corpora[0])
        fits = [_check_lengths(resolved, own, tokenizers, tell) for own in sets]
        preparing.encode_dev(resolved, corpora[1], tokenizers)
    except DataError as error:
        return [*names, Finding("untrainable", "error", 1, 1, f"training stops: {error}", ())]
    chosen = [Finding("tokens", "note", 1, 1, note, ()) for note in choices.notes()]
    return [*names, *chosen, *fits[0], *fits[1]]


class Taken(NamedTuple):
    """The pairs of a set that training takes: which rows they are, and what they are."""

    pairs: PairSet
    rows: Sizes
    corpus: Corpus


def check_reserved(side: Side) -> list[Finding]:
    """Find words that are spelled like special tokens, which are learned as words like others."""
    message = "with words such as </s> and <unk>, which are names of special tokens; they are learned as ordinary words"
    return found(side, "reserved_names", "note", counted(lines_matching(side, NAMES)), message)


def _sets(data: DataConfig, train: PairSet, dev: PairSet | None, seed: int) -> tuple[Taken, Taken]:
    rows = train.kept()
    if dev is not None:
        return _taken(train, rows), _taken(dev, dev.kept())
    keys = source_keys(Chosen(train.source.lines, rows))
    drawn = np.zeros(len(rows), dtype=bool)
    drawn[drawn_for_dev(keys, train.source.name, size=data.dev_size, seed=seed)] = True
    return _taken(train, rows[~drawn]), _taken(train, rows[drawn], " (dev)")


def _taken(pairs: PairSet, rows: Sizes, more: str = "") -> Taken:
    sources, targets = (Chosen(side.lines, rows) for side in (pairs.source, pairs.target))
    return Taken(pairs, rows, Corpus(sources, targets, range(len(rows)), [], f"{pairs.source.name}{more}"))


def _check_lengths(data: DataConfig, taken: Taken, tokenizers: preparing.Tokenizers, tell: Tell) -> list[Finding]:
    pairs, rows, corpus = taken
    gone, cut = array("l"), 0
    for start, own in enumerate(preparing.parts(corpus)):
        fitted = fit(preparing.ids(own, tokenizers), data.max_length, data.truncate_source)
        cut += fitted.cut
        gone.extend(start * preparing.TOGETHER + i for i in set(range(len(own))).difference(fitted.kept))
        tell(f"{pairs.name}: cutting into tokens", start * preparing.TOGETHER, len(corpus))
    preparing.too_long(data, corpus, (len(corpus) - len(gone), cut), pairs.name)
    many: Severity = "warning" if len(gone) > preparing.MANY_LEFT_OUT * len(corpus) else "note"
    message = f"with more than max_length {data.max_length} tokens on a side, left out; {preparing.remedy(data)}"
    findings = found_pairs(pairs, "too_long", many, counted_rows(rows[sorted(gone)]), message)
    if cut:
        text = f"{pairs.name}: {cut} of {len(corpus)} sources are cut to {data.max_length} tokens (truncate_source)"
        findings.append(Finding("cut", "note", cut, len(corpus), text, ()))
    return findings
