"""The same command on the same machine, again: the same model, bit for bit, with one thread and with several."""

from __future__ import annotations

import random
from pathlib import Path

from .commands import Command
from .outcome import Outcome, judge

# Wide enough that PyTorch shares the work between threads: matrices of 128 × 1024, 32 sentences.
SIZES = {"embedding-dim": 64, "batch-size": 32, "max-updates": 6, "valid-every": 3}
SYSTEMS = {
    "classic": ["--decoder=classic", "--hidden-size=128", "--rnn-type=gru", "--dec-layers=2", "--enc-layers=2"],
    "bahdanau": ["--decoder=bahdanau", "--hidden-size=128", "--score=additive", "--readout=deep"],
    "luong": ["--decoder=luong", "--hidden-size=128", "--score=general", "--ema-decay=0.9"],
    "transformer": ["--decoder=transformer", "--num-heads=4", "--ff-size=256"],
}
FILES = ("model.safetensors", "validations.tsv", "metrics.json", "source.json", "target.json")


def same(place: Path, tries: int, threads: int) -> Outcome:
    """Train every system so many times, each time anew; each try is compared with the system's first."""
    pairs = _write_pairs(place / "again.tsv")
    results = []
    for system in SYSTEMS:
        first = _trained(place / f"{system}-{threads}", system, pairs, threads)
        for number in range(1, tries):
            found = _trained(place / f"{system}-{threads}-{number}", system, pairs, threads)
            results.append([f"{system}: {name} differs" for name in FILES if found[name] != first[name]])
    plural = "s" if threads > 1 else ""
    return judge(f"the same training again, {threads} thread{plural}", results, "four systems; all files bit-equal")


def _trained(folder: Path, system: str, pairs: Path, threads: int) -> dict[str, bytes]:
    flags = [f"--{name}={value}" for name, value in SIZES.items()]
    flags += [f"--tsv={pairs}", "--tokenizer=word", "--dropout=0.3", "--word-dropout=0.1", "--device=cpu"]
    arguments = ["train", *flags, *SYSTEMS[system], f"--model-dir={folder}"]
    command = Command(arguments, folder.with_suffix(".log"), threads=threads)
    if (code := command.end()) != 0:
        raise RuntimeError(f"a training of {system} ended with {code}: {command.said()}")
    return {name: (folder / name).read_bytes() for name in FILES}


def _write_pairs(path: Path) -> Path:
    """Two hundred and fifty sequences of symbols and their reverses."""
    rng = random.Random(2)
    rows = [rng.choices("abcdefghij", k=rng.randint(5, 16)) for _ in range(250)]
    path.write_text("".join(f"{' '.join(row)}\t{' '.join(reversed(row))}\n" for row in rows), encoding="utf-8")
    return path
