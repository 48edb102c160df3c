"""What a check of a corpus found, as values, as text for people and as JSON for programs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Literal

from mirada.escape import terminal
from mirada.messages import spoken

Severity = Literal["error", "warning", "note"]
SEVERITIES: tuple[Severity, ...] = ("error", "warning", "note")


@dataclass(frozen=True)
class Finding:
    """One kind of thing found: `count` of `total` lines, pairs, characters, words or tokens, as the message says."""

    kind: str
    severity: Severity
    count: int
    total: int
    message: str
    examples: tuple[str, ...]  # up to five, `file:line: excerpt`


@dataclass(frozen=True)
class SideSummary:
    """One side of a set of pairs: lengths of its lines that are not blank, and its characters."""

    name: str
    lines: int
    unit: str  # what lengths count: tokens (by blanks) or characters
    size: int  # sum of the lengths
    median_length: int
    longest: int
    characters: int  # distinct ones
    scripts: Mapping[str, int]  # characters by script or kind, most frequent first


@dataclass(frozen=True)
class SetSummary:
    """One set of pairs: train, dev or test."""

    name: str
    pairs: int  # with text on both sides
    skipped: int  # with a blank side
    source: SideSummary
    target: SideSummary


@dataclass(frozen=True)
class Report:
    """All that a check found; the gravest findings come first."""

    sets: tuple[SetSummary, ...]
    findings: tuple[Finding, ...]


def exit_code(report: Report) -> int:
    """Return 1 if anything was found that spoils training or its evaluation (severity error), else 0."""
    return int(any(finding.severity == "error" for finding in report.findings))


def to_json(report: Report) -> str:
    """Write the report as one JSON object with `sets`, `findings` and `exit_code`."""
    return json.dumps({**asdict(report), "exit_code": exit_code(report)}, ensure_ascii=False, indent=2)


def to_text(report: Report) -> str:
    """Write the report for a terminal: the sets, then the findings with their examples, then how many there are."""
    lines = [line for summary in report.sets for line in _set_lines(summary)]
    lines += [line for finding in report.findings for line in _finding_lines(finding)]
    counts = [sum(finding.severity == severity for finding in report.findings) for severity in SEVERITIES]
    parts = [spoken(f"{n} {severity}{'' if n == 1 else 's'}") for n, severity in zip(counts, SEVERITIES, strict=True)]
    return "\n".join(terminal(spoken(line)) for line in [*lines, ", ".join(parts)])


def _set_lines(summary: SetSummary) -> list[str]:
    left_out = f" ({summary.skipped} more have a blank side and are left out)" if summary.skipped else ""
    head = f"{summary.name}: {summary.pairs} pairs{left_out}"
    return [head, _side_line("source", summary.source), _side_line("target", summary.target), ""]


def _side_line(side: str, summary: SideSummary) -> str:
    scripts = ", ".join(f"{name} {count}" for name, count in summary.scripts.items())
    lengths = f"{summary.size} {summary.unit}, median {summary.median_length}, longest {summary.longest}"
    return f"  {side} {summary.name}: {lengths}; {summary.characters} distinct characters; {scripts}"


def _finding_lines(finding: Finding) -> list[str]:
    head = f"{spoken(finding.severity)}: {spoken(finding.message)} [{finding.kind}]"
    return [head, *(f"    {example}" for example in finding.examples), ""]
