"""One training and its test as a job: a folder, a file that says what to do, and a process of its own that does it.

A process of its own makes the peak memory that of one system, and keeps the others standing when one fails. What is
done stands in files, so a job that was stopped or killed anywhere goes on where it was.

    job.json        what to do          training.json  what the training took
    model/          the model folder    test.json      what the test took, and everything measured but the outputs
    failed.json     why it failed       outputs.json   one output a test item
"""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, cast

from mirada.errors import ConfigError, MiradaError
from mirada.scaling.engine import LOCAL, EngineChoice, workplace
from mirada.scaling.pool import in_order
from mirada.study.compare.stored import FAILED, JOB, TEST, RunJob, failure, plain, read_job, write_json

STOPPED = (128 + signal.SIGINT, 128 + signal.SIGTERM, -signal.SIGINT, -signal.SIGTERM)


class SystemRun(NamedTuple):
    """A job in its folder, under the system and the seed that it stands for."""

    system: str
    seed: int
    folder: Path
    job: RunJob


Launch = Callable[[Path], int]


class StoppedError(MiradaError):
    """The work was asked to stop, and has saved where it was."""

    exit_code = 130


def state(folder: Path) -> str:
    """Where a job stands: `done`, `failed`, or `open`."""
    if (folder / FAILED).exists():
        return "failed"
    return "done" if (folder / TEST).exists() else "open"


def prepare(task: SystemRun, *, resume: bool) -> None:
    """Write the job's file, or check that the one there says the same; a failed job is open again.

    Raises ConfigError if there is one and `resume` is false, or if the options have changed.
    """
    path = task.folder / JOB
    todo = cast(dict[str, Any], plain(task.job._asdict()))
    if not path.exists():
        task.folder.mkdir(parents=True, exist_ok=True)
        write_json(path, todo)
        return
    if not resume:
        raise ConfigError(f"{task.folder} holds a run already; add --resume to go on with it, or choose another --out")
    if changed := _changes(read_job(task.folder)._asdict(), todo):
        raise ConfigError(
            f"{task.folder} was begun with other options ({'; '.join(changed[:3])}); choose another --out, "
            "or give the same options to go on"
        )
    (task.folder / FAILED).unlink(missing_ok=True)


def _changes(old: Mapping[str, Any], new: Mapping[str, Any], path: str = "") -> list[str]:
    """Name the options that differ, as `data.max_length was 256, now 128`. Showing progress or not is no option."""
    found: list[str] = []
    for name in [name for name in dict.fromkeys([*old, *new]) if name != "quiet"]:
        before, now = old.get(name), new.get(name)
        if isinstance(before, dict) and isinstance(now, dict):
            found += _changes(before, now, f"{path}{name}.")
        elif before != now:
            found.append(f"{path}{name} was {before}, now {now}")
    return found


class OpenJob(NamedTuple):
    """A job that is to be done, and what lines about it begin with."""

    where: str
    folder: Path

    def __str__(self) -> str:
        """For messages."""
        return self.where


def run_all(
    tasks: list[SystemRun],
    show: Callable[[str], None],
    *,
    launch: Launch | None = None,
    engine: EngineChoice = LOCAL,
) -> None:
    """Do every open job: one after the other, so that none disturbs another's clock, or as an engine's tasks.

    A job that fails is shown and leaves a note (`failed.json`). Raises StoppedError if one was asked to stop.
    """
    here, todo = engine.kind == "local", sum(state(task.folder) != "done" for task in tasks)
    with workplace(engine, partial(_launching, launch or in_a_process), show, items=todo) as place:
        for job, done in in_order(place, _begun(tasks, show, here), most=None if here else todo):
            code = done.result()
            if code in STOPPED:
                raise StoppedError(f"stopped in {job.folder}; the same command with --resume goes on from there")
            if state(job.folder) == "open":
                write_json(job.folder / FAILED, {"error": _how_it_ended(code)})
            if state(job.folder) == "failed":
                show(f"{job.where}: failed: {failure(job.folder)}")
            elif not here:
                show(f"{job.where}: done")


def _begun(tasks: list[SystemRun], show: Callable[[str], None], here: bool) -> Iterator[OpenJob]:
    """Jobs as they are begun, which is shown."""
    for number, task in enumerate(tasks, 1):
        where = f"[{number}/{len(tasks)}] {task.system}, seed {task.seed}"
        if state(task.folder) == "done":
            show(f"{where}: done before")
        else:
            todo = "training" if task.job.training else "testing"
            show(f"{where}: {todo if here else 'queued'}")
            yield OpenJob(where, task.folder)


def _launching(launch: Launch) -> Callable[[OpenJob], int]:
    return lambda job: launch(job.folder)


def _how_it_ended(code: int) -> str:
    if code == -signal.SIGKILL:
        return "its process was killed (signal 9), as a machine without memory does; try smaller sizes or batches"
    return f"its process ended by signal {-code}" if code < 0 else f"its process ended with exit code {code}"


def in_a_process(folder: Path) -> int:
    """Do the job of a folder in a process of its own; returns its exit code.

    The process saves and ends when its standard input closes, which happens however this one ends; Ctrl-C reaches it
    only so, once.
    """
    command = [sys.executable, "-P", "-m", "mirada.study.compare.worker", str(folder)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, process_group=0) as process:
        try:
            return process.wait()
        finally:
            if process.stdin is not None:
                process.stdin.close()
