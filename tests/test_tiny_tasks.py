"""The promise that matters most: every system, trained by the command line alone, solves a task it can solve."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cli_tools import Pair, flags, reversals, works, write, write_pairs

SHARED = {
    "device": "cpu",
    "epochs": 99,
    "patience": 99,
    "valid-every": 100,
    "scheduling": "cosine",
    "warmup-steps": 50,
    "batch-size": 64,
    "valid-metrics": "",
    "dropout": 0,
    "label-smoothing": 0,
}
LOOKING = {"embedding-dim": 64, "hidden-size": 64, "learning-rate": 8e-3, "max-updates": 200}
# Through one vector, bit by bit: more updates for fewer symbols.
CLASSIC = {"decoder": "classic", "embedding-dim": 64, "hidden-size": 128, "learning-rate": 5e-3, "max-updates": 350}
SYSTEMS: dict[str, dict[str, object]] = {
    "bahdanau": LOOKING | {"decoder": "bahdanau", "rnn-type": "gru"},
    "luong-dot": LOOKING | {"decoder": "luong", "score": "dot"},
    "luong-general": LOOKING | {"decoder": "luong", "score": "general"},
    "luong-concat": LOOKING | {"decoder": "luong", "score": "concat"},
    "transformer": {
        "decoder": "transformer",
        "embedding-dim": 48,
        "ff-size": 128,
        "learning-rate": 5e-3,
        "max-updates": 400,
    },
    "classic-lstm": CLASSIC | {"rnn-type": "lstm"},
    "classic-gru": CLASSIC | {"rnn-type": "gru"},
}


def parts(lengths: tuple[int, int]) -> tuple[list[Pair], list[Pair], list[Pair]]:
    """Train, dev and test pairs, no source twice."""
    pairs = reversals(6300, lengths=lengths, seed=1)
    return pairs[:6000], pairs[6000:6100], pairs[6100:]


@pytest.mark.parametrize(
    "system",
    [name if name in ("bahdanau", "classic-gru") else pytest.param(name, marks=pytest.mark.slow) for name in SYSTEMS],
)
def test_sequences_never_seen_are_reversed(system: str, tmp_path: Path) -> None:
    """Up to six symbols where there is attention, up to four where one vector must hold them all."""
    train, dev, test = parts((3, 4) if system.startswith("classic") else (4, 6))
    data = {"tsv": write_pairs(tmp_path / "train", train), "dev-tsv": write_pairs(tmp_path / "dev", dev)}
    model = tmp_path / "model"
    works("train", *flags(data | {"model-dir": model} | SHARED | SYSTEMS[system]))

    given = "".join(f"{source}\n" for source, _ in test)
    outputs = works("translate", model, "--device", "cpu", given=given).lines
    right = sum(output == target for output, (_, target) in zip(outputs, test, strict=True))
    assert right >= 0.99 * len(test)

    sides = [write(tmp_path / name, side) for name, side in zip("st", zip(*test, strict=True), strict=True)]
    ran = works("evaluate", model, "--device", "cpu", "--src", sides[0], "--tgt", sides[1], "--json")
    measured = {row["metric"]: row["value"] for row in json.loads(ran.output)["metrics"]}
    assert measured["exact"] == pytest.approx(100 * right / len(test))
