"""Trainings that are killed, crash in a save, are asked to stop, or meet another in their folder."""

from __future__ import annotations

import random
import re
import signal
import time
from pathlib import Path

from .commands import Command, Crash
from .outcome import Outcome, judge
from .trainings import STARTED, Reference, go_on


def killed(place: Path, known: Reference, tries: int, rng: random.Random) -> Outcome:
    """Kill -9 at a random moment between start and end; the same command again must end as if nothing had been."""
    results, saved = [], []
    for number in range(tries):
        folder = place / f"killed{number}"
        command = Command(known.again(folder), place / f"killed{number}.log")
        time.sleep(rng.uniform(0, known.seconds))
        command.send(signal.SIGKILL)
        command.end()
        results.append(go_on(folder, known, place / f"killed{number}-again.log"))
        saved.append(_went_on(place / f"killed{number}-again.log"))
    remark = f"went on after updates {_list(saved)} of {known.updates}; all files bit-equal"
    return judge("`kill -9` at a random moment of a training", results, remark)


def crashed(place: Path, known: Reference, tries: int, rng: random.Random) -> Outcome:
    """Die inside a save: with half a file written, with all of it under no name yet, and just after it was named."""
    results = []
    for number in range(tries):
        crash = Crash(("torn", "written", "renamed")[number % 3], rng.randint(1, known.updates // 2))
        folder = place / f"crashed{number}"
        command = Command(known.again(folder), place / f"crashed{number}.log", crash=crash)
        code = command.end()
        results.append([] if code == -signal.SIGKILL else [f"{folder.name}: ended with {code}, no crash"])
        results[-1] += go_on(folder, known, place / f"crashed{number}-again.log")
    return judge("crash inside a save (half written, not yet named, just named)", results, "all files bit-equal")


def stopped(place: Path, known: Reference, tries: int, rng: random.Random, *, by: signal.Signals) -> Outcome:
    """Ask to stop at a random moment: the update is finished and saved, the exit code is the signal's own."""
    results, updates = [], []
    for number in range(tries):
        folder = place / f"{by.name}{number}"
        command = Command(known.again(folder), place / f"{by.name}{number}.log")
        command.wait_for(STARTED)
        time.sleep(rng.uniform(0.0, 0.9 * known.loop_seconds))
        command.send(by)
        found = _stopped_well(command, by, folder, known)
        results.append(found + go_on(folder, known, place / f"{by.name}{number}-again.log"))
        updates.append(_went_on(place / f"{by.name}{number}-again.log"))
        told = re.search(r"stopped after update (\d+)", command.said())
        if told and int(told[1]) != updates[-1]:
            results[-1].append(f"{folder.name}: stopped after update {told[1]}, went on after {updates[-1]}")
    name = "Ctrl-C" if by == signal.SIGINT else by.name
    remark = f"exit code {128 + by}; stopped after updates {_list(updates)} of {known.updates}; all files bit-equal"
    return judge(f"{name} at a random moment of a training", results, remark)


def _stopped_well(command: Command, by: signal.Signals, folder: Path, known: Reference) -> list[str]:
    code, text = command.end(), command.said()
    if code == 0 and known.done in text:  # it was done before the signal came
        return []
    found = [] if code == 128 + by else [f"{folder.name}: exit code {code}, expected {128 + by}: {text[-300:]}"]
    if f"saved in {folder}; the same command goes on from there" not in text:
        found.append(f"{folder.name}: does not say that it has saved: {text[-300:]}")
    return found


def two_in_one(place: Path, known: Reference, tries: int, rng: random.Random) -> Outcome:
    """A second training in the folder of a running one is refused, and the first does not notice."""
    results = []
    for number in range(tries):
        folder = place / f"shared{number}"
        first = Command(known.again(folder), place / f"shared{number}.log")
        first.wait_for(STARTED)
        time.sleep(rng.uniform(0.0, 0.3 * known.loop_seconds))
        first.send(signal.SIGSTOP)  # or it might be done before the second has begun
        second = Command(known.again(folder), place / f"shared{number}-second.log")
        code, text = second.end(), second.said()
        first.send(signal.SIGCONT)
        refused = code == 2 and "another process is writing into this folder" in text and text.count("\n") == 1
        found = [] if refused else [f"{folder.name}: the second ended with {code}: {text[-300:]}"]
        if (code := first.end()) != 0:
            found.append(f"{folder.name}: the first ended with {code}")
        results.append(found + go_on(folder, known, place / f"shared{number}-again.log"))
    return judge("two trainings in one folder", results, "the second is refused, the first ends bit-equal")


def _went_on(log: Path) -> int:
    found = re.search(r"going on after update (\d+)", log.read_text(encoding="utf-8"))
    return int(found[1]) if found else 0


def _list(numbers: list[int]) -> str:
    return ", ".join(map(str, sorted(numbers)))
