"""Measurements as JSON lines, one object a line: what every benchmark writes and report.py reads.

Every row has
    kind      train, decode, latency, startup, scaling or check
    system    mirada, or a peer's name; `version` is that system's own
    work      T1, T1-deep, T2, T2-nofeed, T3, T4 (workloads.py), or what was started
    when      UTC, ISO 8601
    machine   of machine.facts: cpu, cores, threads, torch, python
    others    cores that other processes kept busy, one number a window
and then, by kind (mirada's rows hold all of them, a peer's those that it can tell)
    train     tokens_per_second (median over `windows`, a list), updates (a window), tokens_per_update, peak_mb;
              padding and source_padding (padded / real tokens), rates (GFLOP/s), gflop (an update, by part),
              parts (ms an update), operations, fraction, fraction_of_best
    decode    beam, batch_size, precision, workers, sentences, sentences_per_second (median over `windows`),
              tokens_per_second, rows (that these outputs need) and rows_per_second, rows_computed,
              mean_length, bleu, signature, peak_mb; rates, gflop, fraction, fraction_of_best
    latency   beam, precision, workers, sentences, median_ms, p90_ms
    startup   best_s, median_s, runs (seconds); imports
    scaling   task (train or decode), axis, value, threads, ms, tokens_per_second
    check     precision, loss_error, gradient_error, same_outputs; with CUDA also graph_trouble,
              graph_loss_error, graph_error
and on a GPU `gpu` and `cuda` in machine, batch_size in train.
Tokens are real ones, </s> counted, <s> and padding not. Rows of one pair in alternation share a `round`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

Row = dict[str, Any]


def write(row: Row, folder: Path) -> None:
    """Add a row to `folder`/<system>.jsonl, with the time, and say it in short on standard error."""
    import sys

    folder.mkdir(parents=True, exist_ok=True)
    whole = {**row, "when": datetime.now(UTC).isoformat(timespec="seconds")}
    name = row["system"].lower().replace(" ", "-")
    with (folder / f"{name}.jsonl").open("a", encoding="utf-8", newline="\n") as file:
        file.write(json.dumps(whole, ensure_ascii=False) + "\n")
    print(brief(row), file=sys.stderr, flush=True)


def read(folder: Path) -> list[Row]:
    """Every row of every .jsonl in a folder, oldest first; raises ValueError naming a line that is no row."""
    return sorted(_rows(folder), key=lambda row: str(row["when"]))


def _rows(folder: Path) -> Iterator[Row]:
    for path in sorted(folder.glob("*.jsonl")):
        for number, line in enumerate(path.read_text(encoding="utf-8").split("\n"), start=1):
            if line:
                row = json.loads(line)
                if not {"kind", "system", "work", "when"} <= row.keys():
                    raise ValueError(f"{path}:{number}: a row needs kind, system, work and when")
                yield row


def brief(row: Row) -> str:
    """One line about a row."""
    shown = ("tokens_per_second", "sentences_per_second", "median_ms", "best_s", "ms", "fraction", "bleu", "peak_mb")
    parts = [f"{name} {row[name]:.4g}" for name in shown if row.get(name) is not None]
    named = [f"{name} {row[name]}" for name in ("beam", "precision", "workers", "axis", "value") if name in row]
    busy = max(row.get("others") or [0.0])
    warning = [f"OTHERS KEPT {busy:.2f} CORES BUSY"] if busy >= 0.05 else []
    return "  ".join([f"{row['kind']} {row['system']} {row['work']}", *named, *parts, *warning])
