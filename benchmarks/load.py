"""Load on `mirada serve`, and answers compared with the offline ones: `python -m benchmarks.load MODEL…` (make load).

Clients ask for sentences of 1 to 60 words with mixed options over connections that stay open, on 127.0.0.1. Counted:
answers lost, answers that are not the offline ones, five-hundreds; measured: sentences a second beside `mirada
translate` on the same sentences, p50 and p99, and the service's memory. CTranslate2 searches in its own way, so beside
it `wrong` only says how many of its answers are other ones.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, cast

import httpx

KINDS: tuple[dict[str, Any], ...] = ({}, {"beam_size": 1}, {"beam_size": 4, "n_best": 2}, {"max_output_length": 20})
WORDS = ("the", "old", "man", "reads", "a", "red", "book", "under", "tree", "near", "house", "where", "sleep", "buys")


def sentences(count: int, seed: int) -> list[str]:
    """Sentences of 1 to 60 words."""
    draw = random.Random(seed)
    return [" ".join(draw.choices(WORDS, k=draw.randint(1, 60))) for _ in range(count)]


class Offline(NamedTuple):
    """What each kind of options gives, and the cost of all of them together."""

    outputs: list[list[list[str]]]
    rate: float  # sentences a second
    milliseconds: float  # of a processor, a sentence
    beam: int  # of the first kind


def offline(model: str, texts: list[str]) -> Offline:
    """Search with each kind of options, without a service."""
    from mirada.config.configfile import changed
    from mirada.translator import load

    translator = load(model, device="cpu")
    translator.translate(texts[:2])
    found, begun, busy = [], time.perf_counter(), time.process_time()
    for kind in KINDS:
        options = changed(translator.config.search, kind)
        found.append([[one.text for one in outputs] for outputs in translator.search(texts, options=options)])
    count = len(KINDS) * len(texts)
    seconds, busy = time.perf_counter() - begun, time.process_time() - busy
    return Offline(found, count / seconds, 1000 * busy / count, translator.config.search.beam_size)


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


async def client(
    http: Connection, texts: list[str], expected: list[list[list[str]]], until: float, tally: Tally
) -> None:
    """Ask one after the other until the time is over; after a 503 wait and ask again."""
    draw = random.Random(id(http) ^ len(tally.seconds) ^ time.perf_counter_ns())
    while time.monotonic() < until:
        kind, place = draw.randrange(len(KINDS)), draw.randrange(len(texts))
        begun = time.perf_counter()
        try:
            status, body = await http.post("/v1/translate", json.dumps({"text": texts[place], **KINDS[kind]}).encode())
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
        tally.wrong += got != expected[kind][place]


async def press(
    address: str, texts: list[str], expected: list[list[list[str]]], *, clients: int, seconds: float
) -> Tally:
    """So many clients for so long."""
    tally, connections = Tally(), [Connection(address) for _ in range(clients)]
    until = time.monotonic() + seconds
    await asyncio.gather(*(client(http, texts, expected, until, tally) for http in connections))
    for http in connections:
        http.close()
    return tally


def memory(pid: int) -> float:
    """Resident megabytes of a process."""
    return int(re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())[1]) / 1024  # type: ignore[index]


def processor(pid: int) -> float:
    """Milliseconds of processors that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return 1000 * (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main() -> None:
    """Print one line a number of clients."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model")
    parser.add_argument("--clients", default="1,8,64,200", help="numbers of clients [1,8,64,200]")
    parser.add_argument("--seconds", type=float, default=120.0, help="for each number [120]")
    parser.add_argument("--sentences", type=int, default=200)
    parser.add_argument("--beside", metavar="FOLDER", help="CTranslate2's export of the model: its server is asked too")
    values = parser.parse_args()
    texts = sentences(values.sentences, 1)
    alone = offline(values.model, texts)
    print(
        f"offline: {alone.rate:.0f} sentences/s, {alone.milliseconds:.1f} ms of a processor each "
        "(the same options in turn, batches of 64)",
        flush=True,
    )
    services = {"mirada": ["mirada", "serve", values.model, "--preload", "--port", "0"]}
    if values.beside:
        services["ctranslate2"] = ["benchmarks.peers.ct2_serve", values.beside, "--beam", str(alone.beam)]
    for clients in map(int, values.clients.split(",")):
        for name, module in services.items():
            print(f"{name}, {clients} clients: ", end="")
            with started(module) as (pid, address):
                busy, mine = processor(pid), time.process_time()
                tally = asyncio.run(press(address, texts, alone.outputs, clients=clients, seconds=values.seconds))
                pressing = time.process_time() - mine
                report(tally, values.seconds, alone, pid, processor(pid) - busy)
                print(f"  the clients themselves: {pressing / values.seconds:.0%} of a processor", flush=True)


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
            wait_for(found[0])
            yield service.pid, found[0]
        finally:
            service.send_signal(signal.SIGTERM)
            service.wait()


def wait_for(address: str) -> None:
    """Until the service is ready."""
    while True:
        try:
            if httpx.get(f"{address}/readyz", timeout=60).status_code == 200:
                return
        except httpx.TransportError:
            pass
        time.sleep(0.2)


def report(tally: Tally, seconds: float, alone: Offline, pid: int, busy: float) -> None:
    """One line."""
    times = sorted(tally.seconds) or [float("nan")]
    p50, p99 = times[len(times) // 2], times[min(len(times) - 1, int(0.99 * len(times)))]
    mine = len(tally.seconds) / seconds
    print(
        f"{len(tally.seconds)} answers, {tally.wrong} wrong, {tally.lost} lost, {tally.broken} "
        f"times 500, {tally.refused} times 503; {mine:.0f}/s = {mine / alone.rate:.0%} of offline; p50 "
        f"{1000 * p50:.0f} ms, p99 {1000 * p99:.0f} ms; {busy / len(times):.1f} ms of a processor each = "
        f"{busy / len(times) / alone.milliseconds:.0%} of offline; {memory(pid):.0f} MB",
        flush=True,
    )


if __name__ == "__main__":
    main()
