"""The loss of a batch: coverage by hand, and that its weight reaches what is minimised and nothing else."""

from __future__ import annotations

import pytest
import torch

from mirada.data.batches import Encoded, collate
from mirada.train.batch_loss import batch_loss, coverage_loss
from systems import build

PAIRS = Encoded([[5, 6, 7, 3], [8, 3]], [[4, 5, 6], [9]])


def test_coverage_by_hand() -> None:
    """Σ_j min(α_tj, Σ_{t' < t} α_t'j): nothing at step 0, then what is attended to again."""
    weights = torch.tensor([[[0.5, 0.5, 0.0], [0.2, 0.0, 0.8], [0.9, 0.1, 0.0]]], dtype=torch.float64)
    every, two = torch.tensor([[True, True, True]]), torch.tensor([[True, True, False]])
    assert coverage_loss(weights, every).item() == pytest.approx(0 + 0.2 + (0.7 + 0.1))
    assert coverage_loss(weights, two).item() == pytest.approx(0.2)


@pytest.mark.parametrize("copies", [False, True])
def test_coverage_is_added_to_what_is_minimised(copies: bool) -> None:
    options = {"decoder": "bahdanau", "score": "additive", "embedding_dim": 4, "hidden_size": 6, "coverage": True}
    model = build({**options, "copy_attn": copies})
    pairs = PAIRS._replace(copies=[[13, 6, 7, 3], [8, 3]]) if copies else PAIRS
    batch = collate(pairs, [0, 1], torch.device("cpu"))
    plain, covered = (batch_loss(model, batch, smoothing=0.1, divisor=2.0, coverage=part) for part in (0.0, 3.0))
    weights = model(batch.source, batch.lengths, batch.target_in, batch.copies, with_attention=True).attention
    again = coverage_loss(weights, batch.target_out != 1)
    assert again > 0
    torch.testing.assert_close(covered.smoothed - plain.smoothed, 3.0 * again / 2, rtol=0, atol=1e-12)
    assert covered.nll == plain.nll
