"""What came out of a comparison, as plain values: the content of results.json, from which the report is made."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from importlib.metadata import version
from statistics import fmean
from typing import Any, NamedTuple

from mirada.config.options import SearchConfig
from mirada.evaluation import compare as arithmetic
from mirada.evaluation.alignment import parse_links
from mirada.evaluation.bootstrap import SAMPLES
from mirada.evaluation.lengths import filled
from mirada.study.compare.jobs import SystemRun, state
from mirada.study.compare.plan import Plan
from mirada.study.compare.runs import System
from mirada.study.compare.stored import failure, read_outputs, read_tested, read_trained
from mirada.translator import load

ALIGNMENT = ("aer", "precision", "recall")
SHOWN = 8  # sentences on which systems differ most


class Finished(NamedTuple):
    """The finished runs of a system: files read, outputs by seed."""

    tasks: tuple[SystemRun, ...]
    tests: list[dict[str, Any]]
    trainings: list[dict[str, Any]]
    outputs: list[list[str]]


def collect(plan: Plan, *, samples: int = SAMPLES) -> dict[str, Any]:
    """Put the results of all runs together; systems without a finished run have no numbers, but their reasons."""
    references = [item.references for item in plan.items]
    done = {system.name: _finished(system, len(references)) for system in plan.systems}
    measured = {
        name: {
            metric: arithmetic.measure(found.outputs, references, metric, samples=samples) for metric in plan.metrics
        }
        for name, found in done.items()
        if found.tasks
    }
    lengths, unit = arithmetic.source_lengths([item.source for item in plan.items])
    edges = filled(lengths)
    systems = []
    for system in plan.systems:
        found = done[system.name]
        row: dict[str, Any] = {"name": system.name, "facts": system.facts, **_runs(system)}
        if found.tasks:
            row |= _costs(found)
            row["metrics"] = _metrics(measured, system.name, plan.baseline)
            scores = arithmetic.by_length(
                lengths, found.outputs, references, plan.metrics[0], edges=edges, samples=samples
            )
            row["by_length"] = [asdict(score) for score in scores]
        systems.append(row)
    return {
        "metrics": list(plan.metrics),
        "baseline": plan.baseline,
        "length_unit": unit,
        "gold": _gold(plan),
        "bootstrap_samples": samples,
        "conditions": plan.conditions,
        "notes": list(plan.notes),
        "systems": systems,
        "sentences": _sentences(plan, done),
        "environment": environment(),
    }


def _gold(plan: Plan) -> dict[str, Any] | None:
    """What the gold links are that the attention is held against; None if there are none."""
    if plan.units is None:
        return None
    links = [parse_links(item.links or "", "gold") for item in plan.items]
    counts = {"sure": sum(len(sure) for sure, _ in links), "possible": sum(len(possible) for _, possible in links)}
    return {"units": plan.units, "sentences": len(links), **counts}


def _alignment(tests: Sequence[Mapping[str, Any]]) -> dict[str, float] | None:
    """Means over seeds; None where attention was not held against gold links."""
    found = [test["alignment"] for test in tests if test.get("alignment") is not None]
    return {name: fmean(one[name] for one in found) for name in ALIGNMENT} if found else None


def _finished(system: System, items: int) -> Finished:
    tasks = tuple(task for task in system.tasks if state(task.folder) == "done")
    trained = [task for task in tasks if task.job.training is not None]
    return Finished(
        tasks,
        [read_tested(task.folder) for task in tasks],
        [read_trained(task.folder) for task in trained],
        [read_outputs(task.folder, items) for task in tasks],
    )


def _runs(system: System) -> dict[str, Any]:
    states = {task.seed: state(task.folder) for task in system.tasks}
    failed = {str(task.seed): failure(task.folder) for task in system.tasks if states[task.seed] == "failed"}
    return {"seeds": [seed for seed, found in states.items() if found == "done"], "failed": failed}


def _costs(found: Finished) -> dict[str, Any]:
    """Sizes, and what training and searching took: means over seeds, the largest of the memories."""
    parts = [*found.trainings, *found.tests] if found.trainings else found.tests
    costs: dict[str, list[float]] = {}
    for part in parts:
        for name, value in part["cost"].items():
            costs.setdefault(name, []).append(value)
    if found.trainings:  # the test's peak holds the training's, being in the same process
        for name in ("peak_memory_mib", "peak_gpu_memory_mib"):
            costs[name] = [part["cost"][name] for part in found.trainings if name in part["cost"]]
    entropies = [test["entropy"] for test in found.tests if test["entropy"] is not None]
    return {
        "parameters": found.tests[0]["parameters"],
        "vocabularies": found.tests[0]["vocabularies"],
        "updates": [training["updates"] for training in found.trainings],
        "best_updates": [training["best_update"] for training in found.trainings],
        "unfinished": sum(test["unfinished"] for test in found.tests),
        "entropy": fmean(entropies) if entropies else None,
        "alignment": _alignment(found.tests),
        "cost": {name: max(v) if "memory" in name else fmean(v) for name, v in costs.items() if v},
    }


def _metrics(measured: dict[str, dict[str, arithmetic.Measured]], name: str, baseline: str) -> dict[str, Any]:
    rows = {}
    for metric, found in measured[name].items():
        row: dict[str, Any] = {**arithmetic.summarise(found)._asdict(), "signature": found.signature}
        if baseline in measured and name != baseline:
            row["difference"] = arithmetic.difference(found, measured[baseline][metric])._asdict()
        rows[metric] = row
    return rows


def _sentences(plan: Plan, done: dict[str, Finished]) -> list[dict[str, Any]]:
    """The sentences on which systems differ most, with the first seed's outputs and attention."""
    finished = {name: found for name, found in done.items() if found.tasks}
    if len(finished) < 2:
        return []
    references = [item.references for item in plan.items]
    scores = {
        name: arithmetic.mean_sentence_scores(found.outputs, references, plan.metrics[0])
        for name, found in finished.items()
    }
    gaps = arithmetic.widest_gaps(scores, SHOWN)
    chosen = [plan.items[gap.item].source for gap in gaps]
    maps = {name: _maps(found.tasks[0], chosen) for name, found in finished.items()}
    return [
        {
            "item": gap.item,
            "source": plan.items[gap.item].source,
            "references": plan.items[gap.item].references,
            "scores": gap.scores,
            "outputs": {name: found.outputs[0][gap.item] for name, found in finished.items()},
            "attention": {name: rows[i] for name, rows in maps.items() if rows},
        }
        for i, gap in enumerate(gaps)
    ]


def _maps(task: SystemRun, sources: Sequence[str]) -> list[dict[str, Any]]:
    """Attention of the first seed's best outputs, as tokens and weights; nothing for a model without attention."""
    translator = load(task.job.model, device=task.job.device)
    if not translator.config.model.has_attention or not sources:
        return []
    options = SearchConfig.model_validate(task.job.search)
    found = translator.search(sources, options=options, with_attention=True)
    return [
        {
            "source": list(outputs[0].source_tokens),
            "target": list(outputs[0].tokens),
            "weights": [[round(float(w), 4) for w in row] for row in outputs[0].attention],
        }
        for outputs in found
        if outputs[0].attention is not None
    ]


def environment() -> dict[str, Any]:
    """Where the numbers were made: versions, processor, threads."""
    import torch

    gpu = torch.cuda.get_device_name() if torch.cuda.is_available() else None
    return {
        "mirada": version("mirada"),
        "torch": torch.__version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "processor": processor(),
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "gpu": gpu,
    }


def processor() -> str:
    """The processor's name, where the system tells it."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as stream:
            names = [line.partition(":")[2].strip() for line in stream if line.startswith("model name")]
    except OSError:
        names = []
    return names[0] if names else platform.machine()
