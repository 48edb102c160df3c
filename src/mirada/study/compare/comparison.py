"""Compare systems from beginning to end: plan, train and test each, collect, report."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from mirada.errors import ConfigError, TrainingError
from mirada.files import locked
from mirada.study.compare.jobs import Launch, prepare, run_all
from mirada.study.compare.plan import ComparisonRequest, make_plan
from mirada.study.compare.report import conclusion, make_report, make_rows
from mirada.study.compare.results import collect
from mirada.study.compare.stored import plain
from mirada.study.report.figures import require_matplotlib
from mirada.study.report.write import write_report


def compare(
    request: ComparisonRequest, show: Callable[[str], None], *, resume: bool = False, launch: Launch | None = None
) -> dict[str, Any]:
    """Train and test every system, and write the report below `request.out`; returns the content of results.json.

    `show` receives lines about progress. A run that fails is reported, the others stand. Raises ConfigError, DataError,
    TrainingError (also if every run failed), ModelFolderError, or StoppedError after Ctrl-C in a run.
    """
    require_matplotlib()
    open_folder(request.out, resume=resume)
    with locked(request.out, option="--out"):
        plan = make_plan(request)
        tasks = [task for system in plan.systems for task in system.tasks]
        for task in tasks:
            prepare(task, resume=resume)
        run_all(tasks, show, launch=launch, engine=request.engine)
        results: dict[str, Any] = plain(collect(plan))
        write_report(make_report(results), results, make_rows(results), request.out)
    show(conclusion(results))
    if not any("metrics" in system for system in results["systems"]):
        reasons = [reason for system in results["systems"] for reason in system["failed"].values()]
        raise TrainingError(f"every run failed; the first: {reasons[0]}")
    return results


def open_folder(folder: Path, *, resume: bool) -> None:
    """Make the folder; raises ConfigError if it holds runs and they are not to be gone on with."""
    if (folder / "runs").exists() and not resume:
        raise ConfigError(f"{folder} holds runs already; add --resume to go on with them, or choose another --out")
    folder.mkdir(parents=True, exist_ok=True)
