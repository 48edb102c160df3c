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
