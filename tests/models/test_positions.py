"""The Transformer's sinusoidal positions: the paper's formula, at any place, in any precision."""

from __future__ import annotations

from math import cos, sin

import pytest
import torch

from mirada.models.embedding import positions
from systems import build, systems


@pytest.mark.parametrize("size", [6, 7])
def test_the_papers_formula(size: int) -> None:
    """PE(pos, 2i) = sin(pos / 10000^(2i/d)), PE(pos, 2i+1) = cos(pos / 10000^(2i/d)), odd widths too."""
    table = positions(0, 40, torch.zeros(size, dtype=torch.float64))
    assert table.shape == (40, size)
    for place in range(40):
        for k in range(size):
            angle = place / 10000 ** (k // 2 * 2 / size)
            assert abs(table[place, k].item() - (sin(angle) if k % 2 == 0 else cos(angle))) < 1e-12


def test_every_place_is_the_same_however_it_is_asked_for() -> None:
    """One by one in decoding, all at once in training, and as far beyond any earlier length as wanted."""
    like = torch.zeros(6, dtype=torch.float64)
    table = positions(0, 3000, like)
    for place in (0, 1, 511, 512, 2999):
        assert torch.equal(positions(place, 1, like)[0], table[place])
    far = positions(100_000, 2, like)
    assert abs(far[1, 0].item() - sin(100_001)) < 1e-9


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_rounds_the_result_and_not_the_place(dtype: torch.dtype) -> None:
    """bfloat16 cannot tell 256 from 257: places that far must still differ as they should."""
    half = positions(250, 2000, torch.zeros(6, dtype=dtype))
    exact = positions(250, 2000, torch.zeros(6))
    assert half.dtype == dtype
    assert (half.float() - exact).abs().max() <= torch.finfo(dtype).eps


def test_a_model_goes_beyond_any_length_it_has_seen() -> None:
    """A long sentence after a short one: what a table grown on demand gets wrong."""
    model = build(next(systems("transformer", None)))
    source = torch.randint(4, 13, (1, 700))
    lengths = torch.tensor([700])
    with torch.no_grad():
        fresh = model.encode(source, lengths).states
        model.encode(source[:, :3], torch.tensor([3]))
        assert torch.equal(model.encode(source, lengths).states, fresh)
        assert fresh.isfinite().all()
