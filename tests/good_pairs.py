"""Thirty good pairs for the tests of the report, and ways to spoil some and to look at the outcome."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from mirada.config.options import DataConfig
from mirada.data.checks.check import check_corpus
from mirada.data.checks.findings import Finding, Report

WORDS = ["the", "quick", "brown", "fox", "jumps", "over", "a", "lazy", "dog", "and", "runs", "far", "from", "here"]
# Thirty pairs that differ, each of 4 to 8 words, with every character often enough.
SOURCES = [" ".join(WORDS[(n * k) % len(WORDS)] for k in range(1, 5 + n % 5)) + f" {'i' * (n + 1)}" for n in range(30)]
TARGETS = [line.upper() for line in SOURCES]


def put(path: Path, lines: Sequence[str]) -> str:
    path.write_bytes("".join(f"{line}\n" for line in lines).encode())
    return str(path)


def changed(lines: Sequence[str], changes: dict[int, str]) -> list[str]:
    """The lines with some replaced, by line number from 1."""
    return [changes.get(number, line) for number, line in enumerate(lines, start=1)]


def check(tmp_path: Path, sources: dict[int, str] | None = None, targets: dict[int, str] | None = None) -> Report:
    """Check the thirty good pairs with some lines replaced."""
    src = put(tmp_path / "a.src", changed(SOURCES, sources or {}))
    return check_corpus(DataConfig(src=src, tgt=put(tmp_path / "a.tgt", changed(TARGETS, targets or {}))))


def the(report: Report, kind: str) -> Finding:
    """The only finding of a kind."""
    (finding,) = [finding for finding in report.findings if finding.kind == kind]
    return finding


def kinds(report: Report, severity: str) -> list[str]:
    return [finding.kind for finding in report.findings if finding.severity == severity]
