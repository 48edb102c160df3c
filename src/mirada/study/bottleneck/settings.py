"""The sizes of the four experiments: of a default run (about 20 minutes on two cores) and of a quick one."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

PARTS = ("lengths", "capacity", "forgetting", "cost")


@dataclass(frozen=True)
class Settings:
    """Sizes. Lengths of sources are in words (in characters where sources are single words)."""

    pairs: int = 8000  # training pairs of the embedded corpus
    length: int = 20  # longest source in training; the test goes to twice that
    tested: int = 400  # test items on each side of it
    updates: int = 2000
    batch: int = 32
    embedding: int = 128
    classic_widths: tuple[int, ...] = (64, 128, 256, 512)
    attention_widths: tuple[int, ...] = (64, 128, 256)
    vocabulary: int = 1000
    learning_rate: float = 3e-3
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


QUICK = Settings(
    pairs=3000,
    length=10,
    tested=200,
    updates=500,
    embedding=64,
    classic_widths=(64, 128),
    attention_widths=(64, 128),
    vocabulary=500,
    learning_rate=8e-3,
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
    """What to do, where, and with whose pairs (the embedded corpus without `data`)."""

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
