"""The log of a training: one line a validation, rewritten whole so that it never has a gap or a double."""

from __future__ import annotations

import json
from math import isfinite
from pathlib import Path

from mirada.errors import TrainingError
from mirada.files import write_text


class History:
    """Writes validations.tsv, metrics.json and, if asked, TensorBoard events of one model folder."""

    def __init__(self, folder: Path, *, tensorboard: bool = False):
        self.folder, self.tensorboard = folder, tensorboard

    def write(self, validations: list[dict[str, float]]) -> None:
        """Write all validations so far."""
        names = list(validations[-1])
        lines = ["\t".join(names)] + ["\t".join(_number(row[name]) for name in names) for row in validations]
        write_text(self.folder / "validations.tsv", "\n".join(lines) + "\n")
        metrics = {
            name: value if isfinite(value) else None for name, value in validations[-1].items()
        }  # JSON has no NaN
        write_text(self.folder / "metrics.json", json.dumps(metrics, indent=1) + "\n")
        if self.tensorboard:
            self._events(validations[-1])

    def _events(self, row: dict[str, float]) -> None:
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError:
            raise TrainingError("tensorboard true needs the extra: pip install 'mirada[tracking]'") from None
        writer = SummaryWriter(str(self.folder / "tensorboard"))
        for name, value in row.items():
            if name not in ("epoch", "update"):
                writer.add_scalar(f"dev/{name}", value, int(row["update"]))
        writer.close()


def _number(value: float) -> str:
    """Counts stay whole however large; measures get six digits."""
    return str(value) if isinstance(value, int) else f"{value:.6g}"
