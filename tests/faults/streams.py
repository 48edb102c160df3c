"""`translate` between two pipes: a million lines, a reader that leaves, a reader that waits, Ctrl-C."""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import tiny

from .commands import PATIENCE, Command, Ends, Handed, run, wait
from .outcome import Outcome, judge

WORDS = " ".join(tiny.SOURCES).replace(",", "").replace("?", "").split()
MOST_GROWTH = 64.0  # MB
MOST_AHEAD = 2_000_000  # bytes read and not yet answered: what one read, two pipes and the batches hold


class Known(NamedTuple):
    """A model, distinct short lines, and what it makes of each."""

    model: Path
    lines: list[bytes]
    outputs: list[bytes]


def known(place: Path) -> Known:
    """Make a tiny model with random weights and let it translate the lines, once, from a file."""
    model = tiny.write_folder(place / "model", "luong")
    rng = random.Random(3)
    lines = [" ".join(rng.choices(WORDS, k=rng.randint(1, 4))) for _ in range(96)] + [""]
    (place / "lines").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    command = [*translate(model), f"--input={place / 'lines'}", f"--output={place / 'outputs'}"]
    if run(command, place / "known.log") != 0:
        raise RuntimeError((place / "known.log").read_text(encoding="utf-8"))
    outputs = (place / "outputs").read_bytes().split(b"\n")[:-1]
    if len(outputs) != len(lines) or len(set(outputs)) < 30:
        raise RuntimeError("these outputs would not show whether lines are in order")
    return Known(model, [line.encode() + b"\n" for line in lines], [output + b"\n" for output in outputs])


def translate(model: Path) -> list[str]:
    """The command: greedy, short outputs."""
    return ["translate", str(model), "--beam-size=1", "--max-output-length=3", "--device=cpu", "--batch-size=256"]


class Stream:
    """A running `translate` between two pipes, fed by a thread with `count` of the known lines in a random order."""

    def __init__(self, have: Known, log: Path, *, count: int, seed: int):
        self.have, self.count, self.seed = have, count, seed
        self.written = 0
        self.leave = False
        (inner, self.source), (self.sink, outer) = os.pipe(), os.pipe()
        self.command = Command(translate(have.model), log, ends=Ends(Handed(inner), Handed(outer)))
        os.close(inner)
        os.close(outer)
        self.output = os.fdopen(self.sink, "rb")
        self.feeder = threading.Thread(target=self._feed, daemon=True)
        self.feeder.start()

    def _feed(self) -> None:
        order = self.order()
        try:
            for start in range(0, self.count, 500):
                if self.leave:
                    break
                block = b"".join(self.have.lines[next(order)] for _ in range(min(500, self.count - start)))
                while block:  # a pipe takes a part at a time, and what it has taken is counted
                    done = os.write(self.source, block)
                    self.written += done
                    block = block[done:]
        except BrokenPipeError:
            pass
        finally:
            os.close(self.source)

    def order(self) -> Iterator[int]:
        """Which line comes when; the same again at each call."""
        rng = random.Random(self.seed)
        for _ in range(self.count):
            yield rng.randrange(len(self.have.lines))

    def close(self) -> int:
        """Stop feeding and reading; returns the command's exit code."""
        self.leave = True
        self.output.close()
        code = self.command.end()
        self.feeder.join(PATIENCE)
        return code

    def memory(self) -> float:
        """Resident memory in MB."""
        try:
            pages = int(Path(f"/proc/{self.command.process.pid}/statm").read_text(encoding="ascii").split()[1])
        except (OSError, IndexError):
            return 0.0
        return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def million(place: Path, have: Known, lines: int, rng: random.Random) -> Outcome:
    """A long stream: constant memory, order, the first lines early, and no reading ahead of a reader that waits."""
    begun = time.monotonic()
    stream = Stream(have, place / "million.log", count=lines, seed=rng.randrange(1 << 30))
    problems, taken, early, last = [], 0, 0.0, 0.0
    first_after = ahead = 0
    for number, index in enumerate(stream.order()):
        if (line := stream.output.readline()) != have.outputs[index]:
            problems.append(f"line {number + 1} of the stream is {line!r}, expected {have.outputs[index]!r}")
            break
        taken += len(have.lines[index])
        if number == 0:
            first_after = stream.written
        if number == lines // 10:
            early = stream.memory()
        if number == lines // 3:
            ahead = _ahead(stream, taken)
        if number % 1000 == 0:
            last = max(last, stream.memory()) if number > lines // 10 else 0.0
    problems += [] if stream.output.read() == b"" else ["more lines out than in"]
    problems += _ended(stream.close(), stream.command, 0, "")
    if max(first_after, ahead) > MOST_AHEAD:
        problems.append(f"read {first_after} bytes before the first line, {ahead} ahead of a reader that waits")
    if last - early > MOST_GROWTH:
        problems.append(f"memory grew from {early:.0f} to {last:.0f} MB")
    seconds = time.monotonic() - begun
    remark = (
        f"in order; memory {early:.0f} MB after a tenth, {last:.0f} MB at most later; first line after {first_after:,} "
        f"bytes of input; at most {ahead:,} bytes ahead of a reader that waits; {lines / seconds:,.0f} lines/s"
    )
    return judge(f"`translate` on a stream of {lines:,} lines", [problems], remark)


def _ahead(stream: Stream, taken: int) -> int:
    """Stop reading until the other side stops too; returns how far it has gone ahead."""
    before = -1
    while before != stream.written:
        before = stream.written
        time.sleep(0.5)
    return stream.written - taken


def one_by_one(place: Path, have: Known, tries: int, rng: random.Random) -> Outcome:
    """Somebody who types: each line is answered before the next is given."""
    (inner, source), (sink, outer) = os.pipe(), os.pipe()
    command = Command(translate(have.model), place / "typed.log", ends=Ends(Handed(inner), Handed(outer)))
    os.close(inner)
    os.close(outer)
    results = []
    with os.fdopen(sink, "rb") as output:
        for number in range(tries):
            index = rng.randrange(len(have.lines))
            os.write(source, have.lines[index])
            answer = output.readline()
            good = answer == have.outputs[index]
            results.append([] if good else [f"line {number + 1} was answered by {answer!r}"])
        os.close(source)
        results[-1] += [] if output.read() == b"" else ["more lines out than in"]
    results[-1] += _ended(command.end(), command, 0, "")
    return judge("lines given one by one to `translate`", results, "each is answered before the next is given")


def left(place: Path, have: Known, tries: int, rng: random.Random) -> Outcome:
    """A reader that leaves after some lines, as `head` does."""
    results = []
    for number in range(tries):
        stream = Stream(have, place / f"left{number}.log", count=1 << 40, seed=number)
        found = _prefix(stream, [stream.output.readline() for _ in range(rng.choice((1, 10, 3000)))])
        results.append(found + _ended(stream.close(), stream.command, 0, ""))
    return judge("a reader that leaves, as `head` does", results, "exit code 0, nothing on standard error")


def interrupted(place: Path, have: Known, tries: int, rng: random.Random) -> Outcome:
    """Ctrl-C at a random moment: all finished lines come out, whole and in order; also while a reader waits."""
    results, counts = [], []
    for number in range(tries):
        stream = Stream(have, place / f"interrupted{number}.log", count=1 << 40, seed=number)
        lines = [stream.output.readline() for _ in range(rng.choice((1, 100, 2000)))]
        time.sleep(rng.uniform(0.0, 0.4))  # nobody reads: the output's pipe may be full when the signal comes
        stream.command.send(signal.SIGINT)
        lines += stream.output.readlines()
        counts.append(len(lines))
        results.append(_prefix(stream, lines) + _ended(stream.close(), stream.command, 130, "mirada: stopped\n"))
    remark = f"exit code 130; {min(counts)} to {max(counts)} whole lines, in order"
    return judge("Ctrl-C at a random moment of `translate`", results, remark)


def _prefix(stream: Stream, lines: list[bytes]) -> list[str]:
    """What is wrong with the lines as the first ones of the stream's outputs."""
    for number, (line, index) in enumerate(zip(lines, stream.order(), strict=False)):
        if line != stream.have.outputs[index]:
            return [f"line {number + 1} of {len(lines)} is {line!r}, expected {stream.have.outputs[index]!r}"]
    return []


def _ended(code: int, command: Command, expected: int, said: str) -> list[str]:
    wait(lambda: not command.process.is_alive())
    notes = [line for line in command.said().splitlines(keepends=True) if " outputs reached the limit " in line]
    errors = "".join(line for line in command.said().splitlines(keepends=True) if line not in notes)
    if (code, errors) == (expected, said):
        return []
    return [f"ended with {code} and said {command.said()[-300:]!r}, expected {expected} and {said!r}"]
