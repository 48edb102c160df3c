"""The tables about a GPU, from rows (benchmarks/gpu.py). No number is typed by hand."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.grouping import OURS, figure, label, middle, newest, ratio
from benchmarks.rows import Row
from mirada.study.report.document import Grid
from mirada.study.report.numbers import NONE, value


def on_gpu(row: Row) -> bool:
    """Whether a row was measured on a GPU."""
    return "gpu" in row.get("machine", {})


def checks(rows: Sequence[Row]) -> list[Grid]:
    """How near a device's numbers are to the CPU's in float64."""
    body = [
        [
            str(row["work"]),
            str(row["precision"]),
            *(_error(row.get(name)) for name in ("loss_error", "gradient_error", "graph_loss_error", "graph_error")),
            str(row.get("graph_trouble") or NONE),
            f"{row['same_outputs']:.0%}",
        ]
        for group in newest(row for row in rows if row["kind"] == "check")
        for row in group[-1:]
    ]
    header = ["system", "precision", "loss", "gradients", "loss by graph", "gradients by graph", "trouble", "outputs"]
    caption = "Relative errors beside the CPU's float64, and the share of outputs that are the same (beam 4)"
    return [Grid(caption, header, body)] if body else []


def training(rows: Sequence[Row]) -> list[Grid]:
    """Tokens a second by batch and precision."""
    groups = newest(row for row in rows if row["kind"] == "train" and on_gpu(row))
    body = [
        [
            *(str(group[0].get(name, NONE)) for name in ("work", "batch_size", "precision")),
            label(group[0]),
            figure(group, "tokens_per_second"),
            value(_times(group, groups), 2),
            value(middle(group, "tokens_per_update"), 0),
            value(middle(group, "gflops"), 0),
            value(middle(group, "peak_mb"), 0),
        ]
        for group in sorted(groups, key=lambda group: (str(group[0]["work"]), group[0].get("batch_size") or 0))
    ]
    header = ["work", "batch", "precision", "system", "tokens/s", "mirada / it", "tokens an update", "GFLOP/s"]
    return [Grid("Target tokens a second on a GPU", [*header, "peak MB of the GPU"], body)] if body else []


def decoding(rows: Sequence[Row]) -> list[Grid]:
    """Sentences a second by beam and batch."""
    groups = newest(row for row in rows if row["kind"] == "decode" and on_gpu(row))
    body = [
        [
            *(str(group[0].get(name, NONE)) for name in ("work", "batch_size", "beam", "precision")),
            label(group[0]),
            figure(group, "sentences_per_second"),
            value(middle(group, "tokens_per_second"), 0),
            value(middle(group, "peak_mb"), 0),
        ]
        for group in groups
    ]
    header = ["work", "batch", "beam", "precision", "system", "sentences/s", "tokens/s", "peak MB of the GPU"]
    return [Grid("Decoding on a GPU", header, body)] if body else []


def _times(group: list[Row], groups: Sequence[list[Row]]) -> float | None:
    """How many times a peer's figure mirada's best of the same work and batch is."""
    if group[0]["system"] == OURS:
        return None
    same = [
        other
        for other in groups
        if other[0]["system"] == OURS and all(other[0].get(n) == group[0].get(n) for n in ("work", "batch_size"))
    ]
    return max((found for other in same if (found := ratio(other, group, "tokens_per_second"))), default=None)


def _error(found: float | None) -> str:
    return NONE if found is None else f"{found:.1e}"
