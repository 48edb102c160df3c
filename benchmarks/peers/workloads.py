"""What every toolkit is given: the workloads in plain numbers, the tokenised files, and the command line."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

LAYERS, HEADS, FEEDFORWARD = 3, 4, 1024  # of the Transformer, T3
SPECIALS = ("<unk>", "<pad>", "<s>", "</s>")  # before the pieces, in this order, in every vocabulary
LONGEST = 60  # tokens of an output


@dataclass(frozen=True)
class Workload:
    """A model and how it is trained; an encoder has half of the hidden size in each direction."""

    name: str
    data: str  # text or g2p
    score: str  # additive, general; none: the Transformer
    cell: str
    feeding: bool
    embedding: int
    hidden: int
    batch: int
    dropout: float


WORKLOADS = (
    Workload("T1", "text", "additive", "GRU", True, 256, 512, 64, 0.2),
    Workload("T2", "text", "general", "LSTM", True, 256, 512, 64, 0.2),
    Workload("T2-nofeed", "text", "general", "LSTM", False, 256, 512, 64, 0.2),
    Workload("T3", "text", "", "", False, 256, 256, 64, 0.1),
    Workload("T4", "g2p", "additive", "LSTM", True, 128, 256, 256, 0.2),
)


class Corpus(NamedTuple):
    """Tokenised files: pieces between blanks, and vocabularies of one piece a line."""

    train_source: Path
    train_target: Path
    test_source: Path
    test_target: Path
    reference: Path  # the test target before it was cut into pieces
    source_vocabulary: Path
    target_vocabulary: Path


def corpus(folder: Path, data: str) -> Corpus:
    """The files that prepare.py writes; text has one vocabulary for both sides."""
    names = ["train.source", "train.target", "test.source", "test.target", "test.reference"]
    names += ["vocabulary"] * 2 if data == "text" else ["vocabulary.source", "vocabulary.target"]
    return Corpus(*(folder / "data" / f"{data}.{name}" for name in names))


def read_lines(path: Path) -> list[str]:
    """The lines of a UTF-8 file."""
    return path.read_text(encoding="utf-8").removesuffix("\n").split("\n")


class Job(NamedTuple):
    """What a driver does: one workload in one folder, and the options of the command line."""

    folder: Path
    workload: Workload
    options: argparse.Namespace

    @property
    def files(self) -> Corpus:
        """What the workload is trained and tested on."""
        return corpus(self.folder, self.workload.data)

    @property
    def updates(self) -> int:
        """Updates that a training is asked for."""
        return int(self.options.keep or self.options.warmup + self.options.updates)

    def lines(self) -> list[str]:
        """The test lines, as many as asked for."""
        return read_lines(self.files.test_source)[: self.options.sentences or None]

    def model(self, pattern: str) -> Path:
        """The newest of the models that a training has kept."""
        kept = sorted((self.folder / "models").glob(pattern), key=lambda path: path.stat().st_mtime)
        return kept[-1] if kept else sys.exit(f"{self.folder / 'models' / pattern}: no model; train with --keep first")


def run(
    name: str, verbs: dict[str, Callable[[Job], None]], *, more: Callable[[argparse.ArgumentParser], None] | None = None
) -> None:
    """Read the command line and do one verb; `more` adds a driver's own options."""
    parser = argparse.ArgumentParser(description=f"Measure {name}.")
    parser.add_argument("verb", choices=verbs)
    parser.add_argument("work", choices=[workload.name for workload in WORKLOADS])
    parser.add_argument("folder", type=Path, help="where install.sh and prepare.py have put everything")
    parser.add_argument("--cell", choices=("GRU", "LSTM"), help="another cell than the work's")
    parser.add_argument("--threads", type=int, default=2, help="[%(default)s]")
    parser.add_argument("--warmup", type=int, default=30, help="updates before the clock starts [%(default)s]")
    parser.add_argument("--updates", type=int, default=90, help="updates measured, in three windows [%(default)s]")
    parser.add_argument("--keep", type=int, default=0, help="train for so many updates and keep the model [do not]")
    parser.add_argument("--beam", type=int, default=5, help="[%(default)s]")
    parser.add_argument("--batch", type=int, default=64, help="sentences decoded at a time [%(default)s]")
    parser.add_argument("--sentences", type=int, default=0, help="test sentences decoded [all]")
    parser.add_argument("--repeat", type=int, default=3, help="passes over the sentences, or starts [%(default)s]")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu", help="cuda: onmt and hf [%(default)s]")
    parser.add_argument("--train-batch", type=int, help="sentences of a batch in training [the work's]")
    if more:
        more(parser)
    options = parser.parse_args()
    workload = next(workload for workload in WORKLOADS if workload.name == options.work)
    if options.cell and workload.cell:
        workload = replace(workload, cell=options.cell)
    workload = replace(workload, batch=options.train_batch or workload.batch)
    (options.folder / "models").mkdir(parents=True, exist_ok=True)
    verbs[options.verb](Job(options.folder.resolve(), workload, options))
