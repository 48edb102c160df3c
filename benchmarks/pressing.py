"""A service in a process of its own and clients that press it: what `python -m benchmarks.load` is made of."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, cast

import httpx


class Question(NamedTuple):
    """What is asked, and the texts that are to come back; None: whatever comes."""

    body: dict[str, Any]
    expected: list[str] | None = None


class Tally:
    """What became of the requests."""

    def __init__(self) -> None:
        self.seconds: list[float] = []
        self.wrong, self.lost, self.refused, self.broken = 0, 0, 0, 0


class Connection:
    """HTTP/1.1 over one connection that stays open: a tenth of what a client library costs.

    The clients share the processors with the service.
    """

    def __init__(self, address: str):
        self.host, port = address.removeprefix("http://").split(":")
        self.port, self._streams = int(port), cast(tuple[asyncio.StreamReader, asyncio.StreamWriter] | None, None)

    async def post(self, path: str, body: bytes) -> tuple[int, bytes]:
        """Status and body of the answer; raises OSError or EOFError where there is none."""
        if self._streams is None:
            self._streams = await asyncio.open_connection(self.host, self.port)
        reader, writer = self._streams
        head = f"POST {path} HTTP/1.1\r\nHost: {self.host}\r\nContent-Type: application/json\r\n"
        try:
            writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
            lines = (await reader.readuntil(b"\r\n\r\n")).lower().split(b"\r\n")
            size = next(int(line[15:]) for line in lines if line.startswith(b"content-length:"))
            return int(lines[0].split()[1]), await reader.readexactly(size)
        except (OSError, EOFError):
            self.close()
            raise

    def close(self) -> None:
        """Close it; another `post` opens a new one."""
        if self._streams is not None:
            self._streams[1].close()
            self._streams = None


async def _client(http: Connection, questions: Iterator[Question], tally: Tally) -> None:
    """Ask one question after the other until there are none; after a 503 wait, and go on with another."""
    for question in questions:
        begun = time.perf_counter()
        try:
            status, body = await http.post("/v1/translate", json.dumps(question.body).encode())
        except (OSError, EOFError):
            tally.lost += 1
            continue
        if status == 503:
            tally.refused += 1
            await asyncio.sleep(0.2)
            continue
        if status != 200:
            tally.broken += 1
            continue
        tally.seconds.append(time.perf_counter() - begun)
        got = [one["text"] for one in json.loads(body)["translations"][0]["outputs"]]
        tally.wrong += question.expected is not None and got != question.expected
    http.close()


async def press(address: str, questions: Iterable[Question], clients: int) -> Tally:
    """So many clients, of whom each takes the next question: no two ask the same at once."""
    tally, shared = Tally(), iter(questions)
    await asyncio.gather(*(_client(Connection(address), shared, tally) for _ in range(clients)))
    return tally


def until(seconds: float, questions: Callable[[], Iterable[Question]]) -> Iterator[Question]:
    """Questions, again and again, for so long."""
    end = time.monotonic() + seconds
    while True:
        for question in questions():
            if time.monotonic() > end:
                return
            yield question


@contextmanager
def started(module: list[str]) -> Iterator[tuple[int, str]]:
    """A service in a process of its own: its number, and its address once it is ready."""
    with tempfile.NamedTemporaryFile("w+") as log:
        service = subprocess.Popen([sys.executable, "-m", *module], stderr=log)
        try:
            while not (found := re.search(r"http://[^ ]+", Path(log.name).read_text())):
                if service.poll() is not None:
                    raise SystemExit(Path(log.name).read_text())
                time.sleep(0.1)
            _wait_for(found[0])
            yield service.pid, found[0]
        finally:
            service.send_signal(signal.SIGTERM)
            service.wait()


def _wait_for(address: str) -> None:
    while True:
        try:
            if httpx.get(f"{address}/readyz", timeout=60).status_code == 200:
                return
        except httpx.TransportError:
            pass
        time.sleep(0.2)


def memory(pid: int) -> float:
    """Resident megabytes of a process and its children."""
    found = [re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{one}/status").read_text()) for one in _family(pid)]
    return sum(int(line[1]) for line in found if line) / 1024


class Busy(NamedTuple):
    """Milliseconds of processors that a service has used: all its threads, and the first of each, the event loop."""

    all: float
    loop: float


def busy(pid: int) -> Busy:
    """What a process and its children have used so far."""
    family = [Path("/proc") / one for one in _family(pid)]
    return Busy(sum(map(_milliseconds, family)), sum(_milliseconds(one / "task" / one.name) for one in family))


def _family(pid: int) -> list[str]:
    return [f"{pid}", *Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def _milliseconds(thread: Path) -> float:
    fields = (thread / "stat").read_text().rpartition(")")[2].split()
    return 1000 * (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
