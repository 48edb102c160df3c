"""The four experiments from beginning to end; each part's results stand in a file as soon as they are there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from typing import Any

from mirada.errors import ConfigError, suggestion
from mirada.files import locked
from mirada.scaling.engine import EngineChoice
from mirada.study.bottleneck.cost import cost_results, cost_sizes
from mirada.study.bottleneck.findings import capacity_finding, cost_finding, forgetting_finding, lengths_finding
from mirada.study.bottleneck.forgetting import forgetting_results, plan_forgetting
from mirada.study.bottleneck.report import make_report, make_rows
from mirada.study.bottleneck.settings import PARTS, BottleneckRequest
from mirada.study.bottleneck.translation import (
    TrainedSystems,
    capacity_results,
    check_attention,
    lengths_results,
    plan_translation,
)
from mirada.study.compare.jobs import Launch, SystemRun, prepare, run_all, state
from mirada.study.compare.results import environment
from mirada.study.compare.stored import failure, plain, read_json, write_json
from mirada.study.report.figures import require_matplotlib
from mirada.study.report.write import write_report

Show = Callable[[str], None]
COST = "cost.json"


def bottleneck(
    request: BottleneckRequest, show: Show, *, resume: bool = False, launch: Launch | None = None
) -> dict[str, Any]:
    """Do the experiments of `request.parts` and write the report below `request.out`; returns results.json's content.

    `show` receives lines about progress. Raises ConfigError, DataError, TrainingError, or StoppedError after Ctrl-C.
    """
    require_matplotlib()
    check(request)
    begun = [*request.out.glob("*/runs"), *request.out.glob(COST)]
    if begun and not resume:
        raise ConfigError(f"{request.out} holds experiments already; add --resume to go on, or choose another --out")
    request.out.mkdir(parents=True, exist_ok=True)
    with locked(request.out, option="--out"):
        results: dict[str, Any] = plain(_do(request, show, resume, launch))
        write_report(make_report(results), results, make_rows(results), request.out)
    for part in results["parts"].values():
        show(part["finding"])
    return results


def check(request: BottleneckRequest) -> None:
    """Raise ConfigError for what cannot be done, before anything is."""
    for part in request.parts:
        if part not in PARTS:
            raise ConfigError(f"unknown part {part!r}{suggestion(part, PARTS)}; the parts are {', '.join(PARTS)}")
    if request.seeds < 1:
        raise ConfigError(f"seeds {request.seeds}: expected 1 or more")
    if request.length is not None and request.length < 2:
        raise ConfigError(f"length {request.length}: expected 2 or more")
    check_attention(request.attention)


def _do(request: BottleneckRequest, show: Show, resume: bool, launch: Launch | None) -> dict[str, Any]:
    results: dict[str, Any] = {"parts": {}, "failed": {}, "notes": [], "conditions": {}}
    found: TrainedSystems | None = None
    run = partial(_run, show=show, resume=resume, launch=launch, engine=request.engine)
    if {"lengths", "capacity"} & set(request.parts):
        show("experiments 1 and 2: quality by source length, and by width")
        found = plan_translation(request)
        results["notes"], results["conditions"] = list(found.shared.notes), found.shared.conditions
        results["failed"] |= run([task for system in found.systems for task in system.tasks])
        for name, make in (("lengths", lengths_results), ("capacity", capacity_results)):
            if name in request.parts:
                results["parts"][name] = make(request, found)
    if "forgetting" in request.parts:
        show("experiment 3: copying and reversing symbols")
        conditions = plan_forgetting(request)
        tasks = [task for condition in conditions for task in condition.runs.tasks]
        results["failed"] |= run(tasks)
        results["parts"]["forgetting"] = forgetting_results(request, conditions)
    if "cost" in request.parts:
        show("experiment 4: what one step costs")
        results["parts"]["cost"] = _cost(request, show)
    _conclude(results)
    results |= {"settings": {**asdict(request.settings), "seeds": request.seeds}, "environment": environment()}
    return results


def _run(
    tasks: list[SystemRun], *, show: Show, resume: bool, launch: Launch | None, engine: EngineChoice
) -> dict[str, str]:
    """Do the runs; returns those that failed and why."""
    for task in tasks:
        prepare(task, resume=resume)
    run_all(tasks, show, launch=launch, engine=engine)
    failed = [task for task in tasks if state(task.folder) == "failed"]
    return {f"{task.folder.parent.parent.name}/{task.folder.name}": failure(task.folder) for task in failed}


def _cost(request: BottleneckRequest, show: Show) -> dict[str, Any]:
    """The measurements, or those of a run before this one; raises ConfigError if its sizes were others."""
    path, sizes = request.out / COST, plain(cost_sizes(request))
    if not path.exists():
        write_json(path, {**sizes, **cost_results(request, show)})
    found: dict[str, Any] = read_json(path, dict)
    if {name: found.get(name) for name in sizes} != sizes:
        raise ConfigError(f"{path} was measured with other settings; remove it, or choose another --out")
    return found


def _conclude(results: dict[str, Any]) -> None:
    findings: dict[str, Callable[[Any], str]] = {
        "lengths": lengths_finding,
        "capacity": capacity_finding,
        "forgetting": forgetting_finding,
        "cost": cost_finding,
    }
    for name, part in results["parts"].items():
        part["finding"] = findings[name](part)
