"""The sizes of the four experiments: of a default run and of a quick one."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from mirada.scaling.engine import LOCAL, EngineChoice

PARTS = ("lengths", "capacity", "forgetting", "cost")


@dataclass(frozen=True)
class Settings:
    """Sizes. Lengths of sources are in words (in characters where sources are single words)."""

    pairs: int = 20000  # training pairs of the small world (corpora/village.py)
    length: int = 30  # longest source in training; the test goes to twice that
    tested: int = 300  # test items of each kind: near, far, any; of given test pairs all are taken
    updates: int = 1500
    batch: int = 64
    embedding: int = 64
    classic_widths: tuple[int, ...] = (64, 128, 256, 512, 1024)
    attention_widths: tuple[int, ...] = (64, 128, 256)
    vocabulary: int = 400
    learning_rate: float = 4e-3
    symbols: int = 20  # of the copy and reverse tasks
    sequence: int = 16  # symbols of a test sequence; training has 1 to so many
    sequences: int = 40000
    sequence_width: int = 128
    sequence_updates: int = 1200
    sequence_tests: int = 400
    cost_width: int = 256
    cost_batch: int = 16
    cost_vocabulary: int = 8000
    cost_lengths: tuple[int, ...] = (10, 20, 50, 100, 200, 400, 800)
    cost_repeats: int = 60

    @property
    def common_width(self) -> int:
        """The largest width that both systems have: that of the first experiment."""
        return max(set(self.classic_widths) & set(self.attention_widths))


class Bounds(NamedTuple):
    """Short sources have `near` words at most; long ones `far` at least, and no more than training saw."""

    near: int
    far: int
    limit: int


def bounds(limit: int) -> Bounds:
    """Of training on sources of at most `limit` words: of 30, short is up to 8 and long from 25 on."""
    near = min(limit - 1, max(4, round(limit * 4 / 15)))
    return Bounds(near, max(near + 1, round(limit * 5 / 6)), limit)


QUICK = Settings(
    pairs=12000,
    tested=150,
    updates=700,
    classic_widths=(64, 256),
    attention_widths=(64, 256),
    sequence=10,
    sequences=15000,
    sequence_width=64,
    sequence_updates=400,
    sequence_tests=200,
    cost_lengths=(10, 50, 200, 800),
    cost_repeats=25,
)


@dataclass(frozen=True)
class BottleneckRequest:
    """What to do, where, and with whose pairs (a small world without `data`)."""

    out: Path
    settings: Settings = field(default_factory=Settings)
    parts: tuple[str, ...] = PARTS
    data: dict[str, Any] = field(default_factory=dict)
    test: dict[str, Any] = field(default_factory=dict)
    attention: str = "luong-general"  # a system's name, with a recurrent decoder
    cell: str = "lstm"
    length: int | None = None  # in place of the settings', or of what the user's pairs suggest
    seeds: int = 1
    device: str = "auto"
    quiet: bool = False
    engine: EngineChoice = LOCAL
