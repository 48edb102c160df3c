"""Copying from end to end: a task that only copying can solve, by every flow, from the command line and in Python."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from cli_tools import Pair, flags, refusal, works, write_pairs
from mirada.loading import load

LETTERS = "abcdefghiklmnoprstuvz"
SIZES: dict[str, dict[str, object]] = {
    "bahdanau": {"decoder": "bahdanau", "rnn-type": "gru", "embedding-dim": 32, "hidden-size": 48},
    "luong": {"decoder": "luong", "embedding-dim": 32, "hidden-size": 48},
    "luong-dot": {"decoder": "luong", "score": "dot", "input-feeding": False, "embedding-dim": 32, "hidden-size": 48},
    "transformer": {"decoder": "transformer", "embedding-dim": 32, "ff-size": 64, "num-heads": 2},
}
TRAINING = {
    "device": "cpu",
    "epochs": 99,
    "max-updates": 200,
    "valid-every": 200,
    "patience": 99,
    "batch-size": 32,
    "learning-rate": 6e-3,
    "scheduling": "cosine",
    "warmup-steps": 30,
    "dropout": 0,
    "tokenizer": "word",
    "vocab-min-freq": 20,
    "copy-attn": True,
}


def sentences(count: int, seed: int) -> list[Pair]:
    """`please call A or B` → `B A called`: names are made up, so that none is met twice."""
    draw = random.Random(seed)
    pairs = []
    for _ in range(count):
        a, b = ("".join(draw.choices(LETTERS, k=7)) for _ in "ab")
        if draw.random() < 0.5:
            pairs.append((f"please call {a} or {b}", f"{b} {a} called"))
        else:
            pairs.append((f"write to {a} about {b} soon", f"{a} read of {b}"))
    return pairs


@pytest.fixture(scope="module", params=list(SIZES))
def model(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp(request.param)
    files = [write_pairs(folder / name, sentences(count, count)) for name, count in (("train", 1000), ("dev", 50))]
    data = dict(zip(("tsv", "dev-tsv"), files, strict=True))
    works("train", *flags(data | {"model-dir": folder / "model"} | TRAINING | SIZES[request.param]))
    return folder / "model"


def test_names_never_seen_are_copied(model: Path) -> None:
    """Greedy, by a beam, in n-best lists, sampled at a low temperature, and as `evaluate` sees it."""
    test = sentences(60, 3)
    given = "".join(f"{source}\n" for source, _ in test)
    for search in ({"beam-size": 1}, {"beam-size": 3}, {"sample": True, "temperature": 0.05}):
        outputs = works("translate", model, *flags({"device": "cpu"} | search), given=given).lines
        right = sum(output == target for output, (_, target) in zip(outputs, test, strict=True))
        assert right >= 0.95 * len(test), search
    best = works("translate", model, *flags({"device": "cpu", "beam-size": 2, "n-best": 2}), given=given).lines
    assert len(best) == 2 * len(test)


def test_scores_beginnings_and_validation_know_the_copied_words(model: Path, tmp_path: Path) -> None:
    translator = load(model, device="cpu")
    source, target, wrong = "please call quortz or blimpf", "blimpf quortz called", "blimpf zzz called"
    right, other = translator.score([source] * 2, [target, wrong])
    assert right.log_probability > -1 > -5 > other.log_probability
    [[best]] = translator.search([source])
    assert best.text == target
    assert best.tokens[:2] == ("blimpf", "quortz")
    assert sum(best.token_log_probabilities) == pytest.approx(right.log_probability, abs=1e-4)
    [[forced]] = translator.search([source], prefixes=["quortz blimpf"])
    assert forced.text.startswith("quortz blimpf")
    # What two sources have in common as ids they have not as texts.
    both = translator.translate([source, "please call plumph or trigk"])
    assert both == [target, "trigk plumph called"]
    assert translator.metrics["accuracy"] > 95


@pytest.mark.parametrize(
    ("kinds", "told"),
    [
        ({"source-tokenizer": "word", "target-tokenizer": "char"}, "got word and char"),
        ({"tokenizer": "bpe"}, "got bpe and bpe"),
        ({"source-tokenizer": "char", "target-tokenizer": "unigram"}, "got char and unigram"),
    ],
)
def test_tokens_that_the_sides_do_not_share_cannot_be_copied(
    kinds: dict[str, object], told: str, tmp_path: Path
) -> None:
    pairs = write_pairs(tmp_path / "pairs", sentences(30, 1))
    told_all = refusal("train", *flags({"tsv": pairs, "model-dir": tmp_path / "m", "copy-attn": True} | kinds))
    assert (
        "copy_attn true needs tokens that both sides have: source and target by word, both by char, or one shared "
        f"vocabulary of subwords (share_vocab true); {told}"
    ) in told_all


def test_rare_characters_can_be_copied(tmp_path: Path) -> None:
    """Letters that no vocabulary holds, not even one that this test trained with, are written back."""
    draw = random.Random(1)
    words = [f"{draw.choice('ab')}{chr(draw.randint(0x4E00, 0x8E00))}{draw.choice('cd')}" for _ in range(1000)]
    pairs = write_pairs(tmp_path / "pairs", [(word, f"{word[2]}{word[1]}") for word in words])
    given = {"tsv": pairs, "model-dir": tmp_path / "m"} | TRAINING | SIZES["luong"] | {"tokenizer": "char"}
    works("train", *flags(given | {"max-updates": 150, "valid-every": 150}))
    assert works("translate", tmp_path / "m", "--device", "cpu", given="aßc\nbød\n").lines == ["cß", "dø"]


def test_shared_subwords_can_be_copied(tmp_path: Path) -> None:
    pairs = write_pairs(tmp_path / "pairs", sentences(200, 1))
    given = {"tsv": pairs, "model-dir": tmp_path / "m"} | TRAINING | SIZES["luong"]
    given |= {"tokenizer": "bpe", "share-vocab": True, "vocab-size": 60, "vocab-min-freq": 1}
    works("train", *flags(given | {"max-updates": 3, "valid-every": 3}))
    assert "p_gen = σ(" in works("explain", tmp_path / "m", "please call", "--device", "cpu").output
    assert len(works("translate", tmp_path / "m", "--device", "cpu", given="please ☃\n").lines) == 1
