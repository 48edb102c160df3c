"""A training of a second or two, run once undisturbed: whatever happens to others, they must end as it did."""

from __future__ import annotations

import random
import time
from pathlib import Path
from typing import NamedTuple

import torch

from mirada.errors import MiradaError
from mirada.store import checkpoint

from .commands import Command

TIMES = ("seconds", "validated_at", "validation_seconds")

STARTED = "weights, vocabularies"  # what a training says when its loop begins
BATCHES = 9  # of an epoch


class Reference(NamedTuple):
    """The undisturbed training: where it is, and how long its process and its loop took."""

    folder: Path
    pairs: Path
    epochs: int
    seconds: float
    loop_seconds: float

    @property
    def updates(self) -> int:
        """How many updates it makes."""
        return BATCHES * self.epochs

    @property
    def done(self) -> str:
        """What it says when it has reached its end."""
        return f"stopped: {self.epochs} epochs"

    def again(self, folder: Path) -> list[str]:
        """The same command for another folder."""
        return arguments(self.pairs, folder, self.epochs)


def arguments(pairs: Path, folder: Path, epochs: int) -> list[str]:
    """The command: dropout, a moving average, saves between validations and in them, several epochs."""
    flags = {
        "tsv": pairs, "model_dir": folder, "decoder": "luong", "embedding_dim": 8, "hidden_size": 8, "epochs": epochs,
        "batch_size": 6, "ema_decay": 0.9, "save_every": 4, "valid_every": 7, "patience": 100, "warmup_steps": 20,
        "learning_rate": 0.01, "valid_metrics": "exact", "valid_sentences": 3, "device": "cpu",
    }  # fmt: skip
    return ["train", *(f"--{name.replace('_', '-')}={value}" for name, value in flags.items())]


def write_pairs(path: Path) -> Path:
    """Sixty short words and what they are backwards."""
    rng = random.Random(5)
    words = {"".join(rng.choices("abcdefgh", k=rng.randint(3, 8))): None for _ in range(70)}
    path.write_text("".join(f"{word}\t{word[::-1]}\n" for word in list(words)[:60]), encoding="utf-8")
    return path


def reference(place: Path, *, epochs: int) -> Reference:
    """Run the training undisturbed."""
    pairs = write_pairs(place / "pairs.tsv")
    Command(["--version"], place / "first.log").end()  # the first has to wait until torch is loaded
    begun = time.monotonic()
    command = Command(arguments(pairs, place / "undisturbed", epochs), place / "undisturbed.log")
    command.wait_for(STARTED)
    looping = time.monotonic()
    if command.end() != 0:
        raise RuntimeError(f"the undisturbed training failed: {command.said()}")
    now = time.monotonic()
    return Reference(place / "undisturbed", pairs, epochs, now - begun, now - looping)


def go_on(folder: Path, known: Reference, log: Path) -> list[str]:
    """Give the same command (again) until its end; returns in what the result differs from the undisturbed one."""
    command = Command(known.again(folder), log)
    if (code := command.end()) != 0:
        return [f"{folder.name}: the same command ended with {code}: {command.said()[-300:]}"]
    return differences(folder, known)


def differences(folder: Path, known: Reference) -> list[str]:
    """In what a finished training differs from the undisturbed one: files byte by byte, saved state bit by bit."""
    names = (checkpoint.WEIGHTS, "validations.tsv", "metrics.json", checkpoint.CONFIG, *checkpoint.TOKENIZERS)
    found = [
        f"{folder.name}: {name} differs"
        for name in names
        if (folder / name).read_bytes().replace(bytes(folder), b"") != original(known, name)
    ]
    left, right = (checkpoint.read_archive(where / checkpoint.RESUME) for where in (folder, known.folder))
    if left.tensors.keys() != right.tensors.keys():
        found.append(f"{folder.name}: the saved state has other tensors")
    found += [
        f"{folder.name}: {name} of the saved state differs"
        for name, tensor in left.tensors.items()
        if name in right.tensors and not torch.equal(tensor, right.tensors[name])
    ]
    states = [{**archive.metadata["progress"], **dict.fromkeys(TIMES)} for archive in (left, right)]
    if states[0] != states[1]:
        found.append(f"{folder.name}: the saved progress differs")
    return found


def original(known: Reference, name: str) -> bytes:
    """A file of the undisturbed training, without its folder's name."""
    return (known.folder / name).read_bytes().replace(bytes(known.folder), b"")


def loads(folder: Path) -> list[str]:
    """What is wrong with the last good model of a folder and with its saved state, if there are any yet."""
    from mirada.translator import load

    found = []
    try:
        checkpoint.read_archive(folder / checkpoint.RESUME)
        if (folder / checkpoint.WEIGHTS).exists():
            load(folder, device="cpu").translate(["abc", ""])
    except MiradaError as error:
        found.append(f"{folder.name}: {error}")
    return found
