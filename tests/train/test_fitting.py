"""`batch_size auto`: what decides, what is said, what is stored, and that a training goes on with it."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from mirada.store import checkpoint
from mirada.train import fitting
from mirada.train.fitting import most_tokens
from training_tools import assert_same, trains, write_data

MEBIBYTE = 1 << 20


def lengths(pairs: int, each: int) -> np.ndarray:
    return np.full((pairs, 2), each)


def test_an_epoch_keeps_a_hundred_updates():
    assert most_tokens(lengths(10_000, 20), 4096) == (2000, "an epoch of 100 updates")
    assert most_tokens(lengths(100_000, 20), 4096) == (4096, "the most that is chosen unasked")
    assert most_tokens(lengths(1_000, 20), 4096) == (512, "the least that is chosen unasked")


def test_the_memory_is_filled_by_what_is_measured():
    """A batch takes 100 MiB and half a MiB a token: two fifths of 10 GiB hold (4,096 − 100) · 2 tokens."""
    pairs, asked = lengths(1_000_000, 20), list[int]()

    def measure(tokens: int) -> int:
        asked.append(tokens)
        return 100 * MEBIBYTE + tokens * MEBIBYTE // 2

    assert most_tokens(pairs, 32_768, measure, 10 << 30) == (
        7992,
        "what 40% of the free memory (10.0 GiB) holds of the longest pairs",
    )
    assert asked == list(fitting.TRIED)
    assert most_tokens(pairs, 32_768, measure, 1 << 40) == (32_768, "the most that is chosen unasked")


def test_without_memory_for_what_is_tried_it_is_the_least():
    def full(_: int) -> int:
        raise torch.OutOfMemoryError("CUDA out of memory")

    def faulty(_: int) -> int:
        raise RuntimeError("mat1 and mat2 shapes cannot be multiplied")

    assert most_tokens(lengths(1_000_000, 20), 32_768, full, 1)[0] == fitting.LEAST
    with pytest.raises(RuntimeError, match="mat1"):
        most_tokens(lengths(1_000_000, 20), 32_768, faulty, 1)


def test_a_training_says_it_stores_it_and_goes_on_with_it(tmp_path, monkeypatch):
    """Also where another size would be chosen by then: of 50 pairs the least has all in a batch, 64 tokens have not."""
    monkeypatch.setattr(fitting, "LEAST", 64)
    options = write_data(tmp_path) | {"batch-size": "auto", "valid-every": 3}
    said = trains(tmp_path / "whole", options, {"max-updates": 6})
    assert "batch_size 64 tokens: the least that is chosen unasked (--batch-size)\n" in said
    stored = checkpoint.read_config(tmp_path / "whole").training
    assert (stored.batch_size, stored.batch_type) == (64, "token")
    trains(tmp_path / "parts", options, {"max-updates": 3})
    monkeypatch.setattr(fitting, "LEAST", 4096)
    again = trains(tmp_path / "parts", options, {"max-updates": 6})
    assert "batch_size" not in again
    assert_same(tmp_path / "whole", tmp_path / "parts")
