"""Sides that are swapped are seen by their tokens, in training and where a model meets pairs; other sides are not."""

from __future__ import annotations

from pathlib import Path

import pytest

import tiny
from cli_tools import works, write
from mirada.config.options import DataConfig
from mirada.data.pairs import Corpus
from mirada.data.preparing import encode, learn_tokenizers
from mirada.data.swapped import SWAPPED, sides_swapped

SIDES = (tiny.SOURCES, tiny.TARGETS)


def corpus(sources: list[str], targets: list[str]) -> Corpus:
    return Corpus(sources, targets, list(range(1, len(sources) + 1)), [], "dev")


@pytest.mark.parametrize("kind", ["bpe", "unigram", "word", "char"])
def test_swapped_sides_are_seen_and_right_ones_are_not(kind: str) -> None:
    letters = [["abc ab c", "cab bc"], ["xyz yx", "zzy x y"]]
    sides = letters if kind == "char" else [list(side) for side in SIDES]
    data = DataConfig(source_tokenizer=kind, target_tokenizer=kind, vocab_size=60)
    tokenizers = learn_tokenizers(data, corpus(*sides))
    assert not sides_swapped(*sides, tokenizers)
    assert sides_swapped(*reversed(sides), tokenizers)
    assert not sides_swapped(sides[0], sides[0], tokenizers), "of one side it could be either"


def test_of_one_vocabulary_and_of_several_parts_nothing_is_told() -> None:
    shared = learn_tokenizers(DataConfig(tokenizer="bpe", vocab_size=80, share_vocab=True), corpus(*map(list, SIDES)))
    assert not sides_swapped(*reversed(SIDES), shared)
    parted = learn_tokenizers(DataConfig(source_tokenizer="word,char", vocab_size=80), tiny.PARTED)
    assert not sides_swapped(tiny.TARGETS, tiny.PARTED.sources, parted)


def test_a_training_warns_of_its_dev_pairs() -> None:
    data = DataConfig(source_tokenizer="bpe", target_tokenizer="bpe", vocab_size=60)
    train = corpus(*map(list, SIDES))
    tokenizers = learn_tokenizers(data, train)
    warning = f"warning: dev: {SWAPPED}"
    assert warning not in encode(data, (train, train), tokenizers).notes
    assert warning in encode(data, (train, corpus(*map(list, reversed(SIDES)))), tokenizers).notes


@pytest.mark.parametrize("model_folder", ["bahdanau"], indirect=True)
@pytest.mark.parametrize("command", ["evaluate", "score", "align"])
def test_a_model_warns_of_pairs_the_other_way_round(command: str, model_folder: Path, tmp_path: Path) -> None:
    source, target = (write(tmp_path / name, lines) for name, lines in zip("ab", SIDES, strict=True))
    assert SWAPPED not in works(command, model_folder, "--src", source, "--tgt", target).errors
    assert f"mirada: warning: {SWAPPED}" in works(command, model_folder, "--src", target, "--tgt", source).errors
