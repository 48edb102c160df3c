"""What single options of a training do, seen from outside: in the folder it leaves and in what it says."""

from __future__ import annotations

import gzip
import math
import os
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from cli_tools import flags, mirada, one_line, refusal, reversals, works, write, write_pairs
from mirada.store import checkpoint
from mirada.train import loss
from mirada.train.batch_loss import batch_loss
from mirada.translator import load
from training_tools import (
    PAIRS,
    SMALL,
    assert_same,
    best,
    different,
    distance,
    losses_rise,
    progress,
    trains,
    weights,
    write_data,
)


@pytest.fixture
def data(tmp_path: Path) -> dict[str, object]:
    return write_data(tmp_path)


# The rate and the weights


def test_a_plateau_lowers_the_rate(data, tmp_path, monkeypatch):
    """Adam's first updates move weights by about the rate, and a rate a million times lower by a millionth of that."""
    losses_rise(monkeypatch)
    options = data | {"scheduling": "plateau", "plateau-patience": 0, "decrease-factor": 1e-6, "dropout": 0}
    options["valid-every"] = 2
    states = []
    for updates in (2, 4, 6):
        trains(tmp_path / "m", options, {"max-updates": updates})
        states.append(weights(tmp_path / "m"))
    assert progress(tmp_path / "m")["rate_factor"] == pytest.approx(1e-12)
    assert 1e-3 < distance(states[0], states[1]) < 1e-1
    assert distance(states[1], states[2]) < 1e-7


def test_the_moving_average_is_what_is_kept(data, tmp_path):
    """avg ← d·avg + (1 − d)·w with d = min(decay, (1 + n) / (10 + n)) after update n."""
    options = data | {"ema-decay": 0.2, "valid-every": 1}
    averages = []
    for updates, decay in ((1, 2 / 11), (2, 0.2), (3, 0.2)):
        trains(tmp_path / "m", options, {"max-updates": updates})
        averages.append(weights(tmp_path / "m", "average"))
        own = weights(tmp_path / "m")
        assert different(averages[-1], own) == list(own)
        if updates > 1:
            expected = {name: decay * old + (1 - decay) * own[name] for name, old in averages[-2].items()}
            assert distance(averages[-1], expected) < 1e-6
    assert progress(tmp_path / "m")["best_update"] == 3
    assert different(best(tmp_path / "m"), averages[-1]) == []


def not_a_number(updates: set[int]) -> SimpleNamespace:
    """A loss that is no number in some updates; counts its calls in training."""
    calls = SimpleNamespace(count=0)

    def broken(*arguments: object, **options: object) -> loss.Loss:
        calls.count += 1
        found = batch_loss(*arguments, **options)
        return loss.Loss(*(part * math.nan for part in found)) if calls.count in updates else found

    calls.loss = broken
    return calls


def test_a_loss_that_is_no_number_is_skipped(data, tmp_path, monkeypatch):
    monkeypatch.setattr("mirada.train.batch_loss.batch_loss", not_a_number({3}).loss)
    trains(tmp_path / "m", data, {"max-updates": 2})
    before = weights(tmp_path / "m")
    monkeypatch.setattr("mirada.train.batch_loss.batch_loss", not_a_number({1}).loss)
    said = trains(tmp_path / "m", data, {"max-updates": 3})
    assert "update 3: loss or gradient is not finite; skipped (1 so far)\n" in said
    assert different(weights(tmp_path / "m"), before) == []
    monkeypatch.undo()
    trains(tmp_path / "m", data, {"max-updates": 4})
    assert different(weights(tmp_path / "m"), before) == list(before)
    assert (progress(tmp_path / "m")["bad_updates"], progress(tmp_path / "m")["bad_in_a_row"]) == (1, 0)


@pytest.mark.parametrize(
    ("every", "reason"),
    [
        (99, "20 updates in a row had a loss or gradient that is not finite; no model was kept yet"),
        (1, "no validation gave a loss that is a number, so no model was kept"),
    ],
)
def test_a_rate_far_too_high_is_given_up_with_advice(every, reason, data, tmp_path):
    """The first update makes weights so large that nothing after it is a number."""
    options = SMALL | data | {"model-dir": tmp_path / "m", "learning-rate": 1e38, "warmup-steps": 0, "batch-size": 1}
    ran = mirada("train", *flags(options | {"valid-every": every}))
    assert (ran.code, ran.output) == (2, "")
    assert (
        one_line(ran.errors)
        == f"{reason}. In another model_dir, lower learning_rate or clip_grad_norm, or raise warmup_steps"
    )
    skipped = ran.errors.count("loss or gradient is not finite; skipped (")
    assert skipped == (20 if every == 99 else 4)  # patience is five validations, the first after a good update
    assert not (tmp_path / "m" / checkpoint.WEIGHTS).exists()


# Data


def test_batches_of_tokens(tmp_path):
    """A pair of five symbols is six tokens a side, so ten fit into 64: 99 pairs are ten batches."""
    pairs = reversals(109, lengths=(5, 5), seed=1)
    data = {"tsv": write_pairs(tmp_path / "t", pairs[:99]), "dev-tsv": write_pairs(tmp_path / "d", pairs[99:])}
    trains(tmp_path / "m", data, {"batch-type": "token", "batch-size": 64, "epochs": 2})
    assert progress(tmp_path / "m")["updates"] == 20


def test_a_part_is_split_off_for_validation(tmp_path):
    """Of sixty pairs a tenth, or fewer if asked; chosen by the seed."""
    data = {"tsv": write_pairs(tmp_path / "t", PAIRS), "max-updates": 1}
    said = trains(tmp_path / "a", data)
    assert f"{tmp_path / 't'}: 54 pairs\n{tmp_path / 't'} (dev): 6 dev pairs\n" in said
    assert "(dev): 4 dev pairs\n" in trains(tmp_path / "b", data, {"dev-size": 4})


def test_blank_pairs_are_left_out_and_counted(data, tmp_path):
    trains(tmp_path / "a", data, {"max-updates": 3})
    pairs = [PAIRS[0], ("", "a b"), ("a b", " \u00a0"), *PAIRS[1:50]]
    holed = data | {"tsv": write_pairs(tmp_path / "holed", pairs)}
    said = trains(tmp_path / "b", holed, {"max-updates": 3})
    assert f"{tmp_path / 'holed'}: 50 pairs (2 left out for a blank side: lines 2, 3)\n" in said
    assert_same(tmp_path / "a", tmp_path / "b")


def test_long_pairs_are_left_out_and_counted(data, tmp_path):
    count = sum(len(source.split()) > 4 for source, _ in PAIRS[:50])
    said = trains(tmp_path / "m", data, {"max-updates": 1, "max-length": 4})
    assert f"{count} training pairs have more than max_length 4 tokens and are left out" in said


def test_compressed_files(data, tmp_path):
    trains(tmp_path / "a", data, {"max-updates": 2})
    packed = tmp_path / "t.gz"
    packed.write_bytes(gzip.compress(Path(str(data["tsv"])).read_bytes()))
    trains(tmp_path / "b", data, {"tsv": packed, "max-updates": 2})
    assert_same(tmp_path / "a", tmp_path / "b")


def test_one_vocabulary_and_one_embedding(tmp_path):
    """Sources know only a to c, targets only d to f; four special tokens and six symbols are what both share."""
    pairs = [(source, target.translate(str.maketrans("abc", "def"))) for source, target in letters()]
    data = {"tsv": write_pairs(tmp_path / "t", pairs), "max-updates": 2}
    said = trains(tmp_path / "one", data, {"share-vocab": "true", "tied-embeddings": "true", "tied-softmax": "true"})
    assert "vocabularies 10 and 10\n" in said
    model = load(tmp_path / "one", device="cpu").model
    assert model.encoder.embedding.weight is model.embedding.weight is model.output.weight
    names = [checkpoint.TOKENIZERS, checkpoint.TOKENIZERS[::-1]]
    assert [
        (tmp_path / "one" / first).read_bytes() == (tmp_path / "one" / second).read_bytes() for first, second in names
    ]
    assert "vocabularies 7 and 7\n" in trains(tmp_path / "two", data)
    # Three tables of 7 × 8 became one of 10 × 8; the output's bias grew by three.
    assert count(tmp_path / "two") - count(tmp_path / "one") == 3 * 7 * 8 - 10 * 8 - 3


def letters() -> list[tuple[str, str]]:
    return reversals(40, lengths=(3, 6), seed=2, symbols="abc")


def count(folder: Path) -> int:
    return sum(map(torch.numel, best(folder).values()))


def test_tensorboard_events(data, tmp_path):
    reader = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator", reason="an extra")
    trains(tmp_path / "m", data, {"max-updates": 4, "valid-every": 2, "tensorboard": "true"})
    events = reader.EventAccumulator(str(tmp_path / "m" / "tensorboard")).Reload()
    found = [(event.step, event.value) for event in events.Scalars("dev/loss")]
    rows = progress(tmp_path / "m")["validations"]
    assert found == [(row["update"], pytest.approx(row["loss"])) for row in rows]
    assert [step for step, _ in found] == [2, 4]


def test_quiet_says_nothing(data, tmp_path):
    ran = works("train", "--quiet", *flags(SMALL | data | {"model-dir": tmp_path / "m", "max-updates": 2}))
    assert (ran.lines, ran.errors) == ([str(tmp_path / "m")], "")


def test_files_that_do_not_belong_together(tmp_path):
    files = {"src": write(tmp_path / "s", ["a"] * 12), "tgt": write(tmp_path / "t", ["a"] * 11)}
    ran = mirada("train", *flags(SMALL | files | {"model-dir": tmp_path / "m"}))
    assert ran.code == 2
    assert "12 lines" in one_line(ran.errors)
    assert "11" in one_line(ran.errors)
    assert not (tmp_path / "m").exists()


def test_no_folder_is_made_for_what_cannot_be_trained(data, tmp_path):
    """Whatever is wrong with the data, nothing stays; a folder that was there already does."""
    bad = {"missing": {"tsv": tmp_path / "none"}, "blank": {"tsv": write(tmp_path / "blank", ["a\t"] * 9)}}
    longest = write_pairs(tmp_path / "l", [pair for pair in PAIRS if len(pair[0].split()) > 2])
    bad |= {
        "long": {"tsv": longest, "max-length": 2},
        "unknown": {"dev-tsv": write_pairs(tmp_path / "u", [("x y", "z w")])},
    }
    (tmp_path / "there").mkdir()
    for name, options in bad.items():
        for folder in (tmp_path / "new" / name / "deep", tmp_path / "there"):
            refusal("train", *flags(SMALL | data | {"model-dir": folder} | options))
        assert not (tmp_path / "new").exists(), name
    assert (tmp_path / "there").is_dir()


def test_a_folder_whose_name_no_file_can_hold(data, tmp_path):
    """It would be written into config.yaml, which is UTF-8: trained, and never loaded again."""
    folder = tmp_path / os.fsdecode(b"caf\xe9")
    said = f"{tmp_path}/caf\\udce9: the name is not UTF-8; choose another --model-dir"
    assert refusal("train", *flags(SMALL | data | {"model-dir": folder})) == said
    assert not folder.exists()


def test_the_random_state_of_the_caller_is_left_as_it_is(data, tmp_path):
    torch.manual_seed(7)
    expected = torch.rand(3)
    torch.manual_seed(7)
    trains(tmp_path / "m", data, {"max-updates": 2})
    assert torch.equal(torch.rand(3), expected)
