"""What `mirada evaluate` reports of some outputs: each metric with its interval, by source length and by group."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from mirada.evaluation.bootstrap import by_cluster, percentiles, resample
from mirada.evaluation.compare import TASK_METRICS, source_lengths
from mirada.evaluation.lengths import buckets
from mirada.evaluation.measurable import cannot_measure
from mirada.evaluation.metrics import References, Statistics, best_of, resolve, statistics, total
from mirada.evaluation.values import recall
from mirada.messages import spoken


@dataclass(frozen=True)
class Hypotheses:
    """Hypotheses with what they are measured by, item by item; what is not there is an empty list."""

    hypotheses: list[str]
    references: list[list[str]]
    sources: Sequence[str] = field(default_factory=list)
    lists: list[list[str]] = field(default_factory=list)  # the n best outputs of each item, best first
    values: list[list[str]] = field(default_factory=list)  # the strings that each output must hold
    groups: list[str] = field(default_factory=list)  # such as the task of each item
    clusters: list[str] = field(default_factory=list)  # items that stand or fall together, such as forms of a lemma


class Estimate(NamedTuple):
    """A metric's value on some items, with its 95 % bootstrap interval."""

    value: float
    low: float
    high: float


def usual_metrics(kind: str, references: References, *, tokenizer: str = "auto") -> tuple[str, ...]:
    """Return what is measured when nobody says what: by the kind of target tokens, and what the text lets BLEU see."""
    usual = TASK_METRICS[kind]
    return (
        TASK_METRICS["char"]
        if usual[0] == "bleu" and cannot_measure("bleu", references, tokenizer=tokenizer)
        else usual
    )


def make_report(outputs: Hypotheses, names: Sequence[str], *, tokenizer: str = "auto") -> dict[str, Any]:
    """Measure outputs; the first metric also by source length and by group, where those are known.

    Intervals draw items, or whole clusters where there are some. Raises as `metrics.evaluate`.
    """
    found = _all(outputs, names, tokenizer)
    first, leading = next(iter(found.items()))
    groups = _by_group(leading, outputs)
    return {
        "items": len(outputs.hypotheses),
        "clusters": len(set(outputs.clusters)) or None,
        "metrics": [
            {"metric": name, **_measure(one, outputs.clusters)._asdict(), "made": one.signature}
            for name, one in found.items()
        ],
        "by_length": _by_length(leading, outputs) if outputs.sources else [],
        "by_group": groups,
        "group_mean": {"metric": first, "value": float(np.mean([g["value"] for g in groups]))} if groups else None,
    }


def _all(outputs: Hypotheses, names: Sequence[str], tokenizer: str) -> dict[str, Statistics]:
    """Every metric's statistics by name: those asked for, then the best of n, then the values."""
    found = {
        name: statistics(outputs.hypotheses, outputs.references, name, tokenizer=tokenizer) for name in resolve(names)
    }
    if outputs.lists:
        count = max(map(len, outputs.lists))
        found[f"exact@{count}"] = best_of(outputs.lists, outputs.references)
    if outputs.values:
        found["value_recall"] = recall(outputs.hypotheses, outputs.values)
    return found


def _measure(found: Statistics, clusters: Sequence[str]) -> Estimate:
    resampled = resample(by_cluster(found, clusters) if clusters else found)
    return Estimate(total(found), *percentiles(resampled))


def _part(found: Statistics, outputs: Hypotheses, indices: Sequence[int]) -> dict[str, Any]:
    """The metric of some of the items, as a corpus of their own."""
    part = found._replace(rows=found.rows[list(indices)])
    clusters = [outputs.clusters[i] for i in indices] if outputs.clusters else []
    return {"count": len(indices), **_measure(part, clusters)._asdict()}


def _by_length(found: Statistics, outputs: Hypotheses) -> list[dict[str, Any]]:
    lengths, unit = source_lengths(outputs.sources)
    return [
        {"length": f"{bucket.label} {unit}", **_part(found, outputs, bucket.indices)} for bucket in buckets(lengths)
    ]


def _by_group(found: Statistics, outputs: Hypotheses) -> list[dict[str, Any]]:
    """The metric of each group, in the order in which they come."""
    places: dict[str, list[int]] = {}
    for index, group in enumerate(outputs.groups):
        places.setdefault(group, []).append(index)
    return [{"group": group, **_part(found, outputs, indices)} for group, indices in places.items()]


def to_text(report: Mapping[str, Any]) -> str:
    """Show a report as lines."""
    over = f"over {report['clusters']} clusters" if report["clusters"] else "over items"
    width = max(11, *(len(row["metric"]) + 1 for row in report["metrics"]))
    lines = [spoken(f"{report['items']} items; 95 % intervals by bootstrap {over}")]
    lines += [f"{row['metric']:<{width}}{_figures(row)}  {row['made']}" for row in report["metrics"]]
    first = report["metrics"][0]["metric"]
    lengths = [{**row, "part": spoken(row["length"])} for row in report["by_length"]]
    groups = [{**row, "part": row["group"]} for row in report["by_group"]]
    for title, rows in (("by source length:", lengths), ("by group:", groups)):
        lines += [f"{first} {spoken(title)}"] if rows else []
        lines += [f"  {row['part']:<18}{_figures(row)}  {_count(row)}" for row in rows]
    if report["group_mean"]:
        lines.append(f"  {spoken(f'mean of {len(groups)} groups')}  {report['group_mean']['value']:.2f}")
    return "\n".join(lines)


def _count(row: Mapping[str, Any]) -> str:
    return spoken(f"{row['count']} items")


def _figures(row: Mapping[str, Any]) -> str:
    return f"{row['value']:7.2f}  [{row['low']:.2f}, {row['high']:.2f}]"
