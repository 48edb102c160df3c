"""Disks that are full while a training saves: a real small one where this user may mount it, else a limit on files."""

from __future__ import annotations

import random
import resource
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mirada.store import checkpoint

from .commands import Command
from .outcome import Outcome, judge
from .trainings import STARTED, Reference, go_on, loads

SAID = "could not be written ({}); what stood there before is intact"


def full(place: Path, known: Reference, tries: int, rng: random.Random) -> Outcome:
    """Fill a small disk while a training saves to it; make room again and give the same command."""
    fault = "disk full while saving (a small tmpfs)"
    results = []
    for number in range(tries):
        disk = place / f"disk{number}"
        disk.mkdir()
        with _mounted(disk) as there:
            if not there:
                return Outcome(fault, 0, 0, "no right to mount a disk here")
            results.append(_fill(disk, known, place / f"disk{number}", rng))
    remark = "one clear line, exit code 2; last good model and saved state load; with room again it ends bit-equal"
    return judge(fault, results, remark)


def limited(place: Path, known: Reference, tries: int, rng: random.Random) -> Outcome:
    """Forbid a running training to write files of more than some kilobytes (RLIMIT_FSIZE), then give it again."""
    results = []
    for number in range(tries):
        folder = place / f"limited{number}"
        command = Command(known.again(folder), place / f"limited{number}.log")
        command.wait_for(STARTED)
        time.sleep(rng.uniform(0.0, 0.7 * known.loop_seconds))
        pid = command.process.pid
        if pid is not None and command.process.is_alive():
            resource.prlimit(pid, resource.RLIMIT_FSIZE, (5000, resource.RLIM_INFINITY))
        results.append(_failed_well(command, folder, known, "File too large"))
        results[-1] += go_on(folder, known, place / f"limited{number}-again.log")
    remark = "one clear line, exit code 2; last good model and saved state load; without the limit it ends bit-equal"
    return judge("a save that may not grow (RLIMIT_FSIZE)", results, remark)


def _fill(disk: Path, known: Reference, log: Path, rng: random.Random) -> list[str]:
    folder = disk / "model"
    command = Command(known.again(folder), log.with_suffix(".log"))
    command.wait_for(STARTED)
    time.sleep(rng.uniform(0.0, 0.7 * known.loop_seconds))
    while command.process.is_alive():  # what a save leaves free is taken too
        _take_all(disk / "filler")
    found = _failed_well(command, folder, known, "No space left on device")
    (disk / "filler").unlink(missing_ok=True)  # none where the training was done before
    return found + go_on(folder, known, log.with_suffix(".again.log"))


def _take_all(path: Path) -> None:
    try:
        with path.open("ab", buffering=0) as stream:
            while True:
                stream.write(bytes(512))
    except OSError:
        time.sleep(0.002)


def _failed_well(command: Command, folder: Path, known: Reference, reason: str) -> list[str]:
    code, text = command.end(), command.said()
    if code == 0 and known.done in text:  # it was done before
        return []
    last = text.splitlines()[-1] if text else ""
    if code == 2 and last.startswith("mirada: ") and SAID.format(reason) in last:
        # The very first save may be the one that fails: then nothing was there that could be lost.
        return loads(folder) if (folder / checkpoint.RESUME).exists() else []
    return [f"{folder.name}: ended with {code}: {text[-300:]}", *loads(folder)]


@contextmanager
def _mounted(folder: Path) -> Iterator[bool]:
    mount = ["mount", "-t", "tmpfs", "-o", "size=400k", "mirada-faults", str(folder)]
    try:
        done = subprocess.run(mount, capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        done = False
    try:
        yield done
    finally:
        if done:
            subprocess.run(["umount", str(folder)], check=True)
