"""BPE dropout: the library's pieces without it, other pieces with it, and the same for a seed and an epoch."""

from __future__ import annotations

from random import Random

import pytest

import tiny
from cli_tools import flags, works, write_pairs
from mirada.config.configfile import parse
from mirada.config.options import DataConfig
from mirada.data.bpe_dropout import Dropping
from mirada.data.preparing import Prepared, encode_epoch
from mirada.data.tokenizer import TokenizerOptions, train_tokenizer
from mirada.train import prepare
from training_tools import SMALL, different, weights

LINES = [*tiny.SOURCES, *tiny.TARGETS, "a ▁ Ω, in 1984!"]
OWN = train_tokenizer(LINES * 4, TokenizerOptions("bpe", 120))


def dropping(share: float, seed: int = 1) -> Dropping:
    return Dropping(share, Random(seed))


def test_nothing_dropped_gives_the_pieces_of_the_library():
    lines = [*LINES, "unseen words: zebra, ñu", "", " "]
    assert OWN.encode(lines, dropping(0.0)) == OWN.encode(lines)


def test_everything_dropped_gives_characters():
    assert [OWN.token(i) for i in OWN.encode(["the fox"], dropping(1 - 1e-12))[0]] == [*"▁the", *"▁fox"]


def test_other_pieces_of_the_same_text_each_time_and_the_same_for_a_seed():
    several = {tuple(OWN.encode(LINES[:1], dropping(0.3, seed))[0]) for seed in range(9)}
    assert len(several) > 3
    assert {OWN.decode(ids) for ids in several} == set(LINES[:1])
    assert OWN.encode(LINES, dropping(0.3)) == OWN.encode(LINES, dropping(0.3))


def test_the_share_of_merges_that_are_left_out():
    pairs = train_tokenizer(["ab"] * 9, TokenizerOptions("bpe", 8))  # four special ones, ▁ a b, and one merge
    assert [len(ids) for ids in pairs.encode(["ab"])] == [2]
    found = pairs.encode(["ab"] * 4000, dropping(0.25))
    assert sum(len(ids) == 3 for ids in found) / 4000 == pytest.approx(0.25, abs=0.03)


def prepared(**data: object) -> tuple[DataConfig, Prepared]:
    config = parse({"data": {"source_tokenizer": "bpe", "target_tokenizer": "bpe", "vocab_size": 80, **data}})
    corpora = (tiny.CORPUS, tiny.CORPUS)
    return config.data, prepare.encode(config, corpora, prepare.learn_tokenizers(config, tiny.CORPUS))


def test_an_epoch_is_a_function_of_seed_and_epoch():
    data, known = prepared(bpe_dropout=0.2)
    first = encode_epoch(data, known, seed=1, epoch=0)
    assert first == encode_epoch(data, known, seed=1, epoch=0)
    assert first not in (encode_epoch(data, known, seed=1, epoch=1), encode_epoch(data, known, seed=2, epoch=0))
    target = known.tokenizers[1]
    assert [target.decode(ids) for ids in first.targets] == tiny.TARGETS
    plain, without = prepared()
    assert encode_epoch(plain, without, seed=1, epoch=0) is without.train


def test_what_becomes_too_long_stays_whole():
    _, plain = prepared()
    longest = max(len(ids) for ids in plain.train.sources + plain.train.targets)
    data, known = prepared(bpe_dropout=0.2, max_length=longest)
    found = encode_epoch(data, known, seed=1, epoch=0)
    assert found.targets != known.train.targets
    assert all(len(ids) <= longest + 1 for ids in found.sources + found.targets)


def test_stopped_and_gone_on_is_never_stopped(tmp_path):
    pairs = write_pairs(tmp_path / "a.tsv", list(zip(tiny.SOURCES, tiny.TARGETS, strict=True)) * 3)
    given = SMALL | {"tokenizer": "bpe", "vocab-size": 80, "bpe-dropout": 0.2, "tsv": pairs, "dev-tsv": pairs}
    for name, updates in (("whole", (5,)), ("parts", (3, 5))):
        for last in updates:
            works("train", *flags(given | {"model-dir": tmp_path / name, "max-updates": last}))
    assert different(weights(tmp_path / "whole"), weights(tmp_path / "parts")) == []
