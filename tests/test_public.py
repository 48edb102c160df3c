"""The names that `import mirada` gives, and what a call from Python leaves as it was."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path

import numpy as np
import pytest
import torch

import mirada
from mirada.config import configfile
from mirada.train import prepare
from training_tools import trains, write_data


def test_public_names_are_listed_and_there() -> None:
    assert dir(mirada) == sorted([*mirada.__all__, "__version__"])
    assert all(callable(getattr(mirada, name)) for name in mirada.__all__)
    assert mirada.__version__ == version("mirada")


def test_direct_options_are_refused_in_a_line() -> None:
    """`mirada.SearchConfig(beam_size=0)`: what pydantic says, with its addresses, stays inside."""
    for make, message in {
        lambda: mirada.SearchConfig(beam_size=0): "beam_size: input should be greater than or equal to 1 (got 0)",
        lambda: mirada.SearchConfig(beam=3): "unknown option 'beam'; did you mean 'beam_size'?",
        lambda: mirada.SearchConfig(n_best=9): "n_best 9 is larger than beam_size 5; n_best must be 1 to beam_size",
        lambda: mirada.Config(model={"decoder": "lung"}): (
            "decoder: input should be 'classic', 'bahdanau', 'luong' or 'transformer' (got 'lung')"
        ),
        lambda: mirada.Config(modle={}): "unknown option 'modle'; did you mean 'model'?",
    }.items():
        with pytest.raises(mirada.ConfigError) as caught:
            make()
        assert str(caught.value) == message


def test_another_name_is_none() -> None:
    with pytest.raises(AttributeError, match=r"^module 'mirada' has no attribute 'Tranlator'$"):
        mirada.Tranlator  # noqa: B018


def test_training_from_python_leaves_chance_alone_and_hashes_the_pairs_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hashed, fingerprint = [], prepare.fingerprint
    monkeypatch.setattr(prepare, "fingerprint", lambda corpora: hashed.append(corpora) or fingerprint(corpora))
    trains(tmp_path / "m", write_data(tmp_path), {"max-updates": 2})
    assert len(hashed) == 1
    config = configfile.load(tmp_path / "m" / "config.yaml")
    before = torch.get_rng_state(), np.random.get_state()[1].tolist()
    for name in ("n", "o"):  # the second time, `mirada.train` is the room of this name
        mirada.train(config.model_copy(update={"model_dir": str(tmp_path / name)}))
    assert torch.equal(before[0], torch.get_rng_state())
    assert before[1] == np.random.get_state()[1].tolist()
    assert len(hashed) == 3
