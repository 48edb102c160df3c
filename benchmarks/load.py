"""Load on `mirada serve`, and answers compared with the offline ones: `python -m benchmarks.load MODEL…` (make load).

Clients ask for sentences of 1 to 60 words over connections that stay open, on 127.0.0.1: all with the model's own
options, then with four kinds of options mixed, so that batches of three kinds take turns. Counted: answers lost,
answers that are not the offline ones, five-hundreds; measured, after a warm-up: sentences a second beside `mirada
translate` on the same sentences, p50 and p99, what the event loop and the search cost, and the service's memory.

`--beside` also asks CTranslate2 behind the simplest server (benchmarks/peers/ct2_serve.py). It searches in its own way,
so `wrong` only says how many of its answers are other ones. `--requests 100000` asks for so many short texts, no two of
them alike, and prints the service's memory meanwhile, which must stay flat.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.pressing import Busy, Question, Tally, busy, memory, press, started, until

MIXED: tuple[dict[str, Any], ...] = ({}, {"beam_size": 1}, {"beam_size": 4, "n_best": 2}, {"max_output_length": 20})
KINDS: dict[str, tuple[dict[str, Any], ...]] = {"own": ({},), "mixed": MIXED}  # options of requests
WORDS = ("the", "old", "man", "reads", "a", "red", "book", "under", "tree", "near", "house", "where", "sleep", "buys")
WARM = 3.0  # seconds before anything is measured
PASSES = 4  # over the texts, offline; of several kinds of options together
FLAT = 1.03  # times the memory after the first tenth of the requests, at most


def sentences(count: int, seed: int) -> list[str]:
    """Sentences of 1 to 60 words."""
    draw = random.Random(seed)
    return [" ".join(draw.choices(WORDS, k=draw.randint(1, 60))) for _ in range(count)]


class Offline(NamedTuple):
    """What the texts give with each kind of options, and what all of them together cost."""

    questions: list[Question]
    rate: float  # sentences a second
    milliseconds: float  # of a processor, a sentence
    beam: int  # of the model's own options


def offline(model: str, texts: Sequence[str], kinds: Sequence[dict[str, Any]], workers: int) -> Offline:
    """Search with each kind of options, without a service; its questions are in one random order.

    They are asked in that order again and again: two that are equal are never searched at the same time, and so once.
    """
    from mirada.config.configfile import changed
    from mirada.translator import load

    translator = load(model, device="cpu", workers=workers)
    ways = [(kind, changed(translator.config.search, kind)) for kind in kinds]
    found = [(kind, translator.search(texts, options=options)) for kind, options in ways]
    begun, used = time.perf_counter(), time.process_time()
    for _, options in ways * (PASSES // len(ways)):
        translator.search(texts, options=options)
    seconds, used = time.perf_counter() - begun, time.process_time() - used
    questions = [
        Question({"text": text, **kind}, [one.text for one in outputs])
        for kind, results in found
        for text, outputs in zip(texts, results, strict=True)
    ]
    random.Random(2).shuffle(questions)
    count = PASSES // len(ways) * len(questions)
    return Offline(questions, count / seconds, 1000 * used / count, translator.config.search.beam_size)


class Measured(NamedTuple):
    """What clients saw of a service, and what it cost."""

    tally: Tally
    seconds: float
    used: Busy
    clients: float  # share of a processor that the clients took themselves
    megabytes: float

    @property
    def rate(self) -> float:
        """Answers a second."""
        return len(self.tally.seconds) / self.seconds

    def percentile(self, share: float) -> float:
        """Milliseconds within which this share of the requests was answered."""
        times = sorted(self.tally.seconds) or [float("nan")]
        return 1000 * times[min(len(times) - 1, int(share * len(times)))]


def measure(module: list[str], ask: Callable[[], Iterable[Question]], clients: int, seconds: float) -> Measured:
    """Press a service for so long."""
    with started(module) as (pid, address):
        asyncio.run(press(address, until(WARM, ask), clients))
        before, mine, begun = busy(pid), time.process_time(), time.perf_counter()
        tally = asyncio.run(press(address, until(seconds, ask), clients))
        took, after = time.perf_counter() - begun, busy(pid)
        used = Busy(*(one - other for one, other in zip(after, before, strict=True)))
        return Measured(tally, took, used, (time.process_time() - mine) / took, memory(pid))


def report(found: Measured, alone: Offline) -> str:
    """Two lines."""
    tally, count = found.tally, max(1, len(found.tally.seconds))
    cost, loop = found.used.all / count, found.used.loop / count
    return (
        f"{len(tally.seconds)} answers, {tally.wrong} wrong, {tally.lost} lost, {tally.broken} times 500, "
        f"{tally.refused} times 503; {found.rate:.0f}/s = {found.rate / alone.rate:.0%} of offline; "
        f"p50 {found.percentile(0.5):.0f} ms, p99 {found.percentile(0.99):.0f} ms\n"
        f"  {cost:.2f} ms of a processor each ({loop:.2f} the event loop, {cost - loop:.2f} the search) = "
        f"{cost / alone.milliseconds:.0%} of offline; {found.megabytes:.0f} MB; "
        f"the clients themselves: {found.clients:.0%} of a processor"
    )


def compare(mine: Measured, other: Measured) -> str:
    """One line: mirada's figures as multiples of another service's."""
    times = [mine.percentile(share) / other.percentile(share) for share in (0.5, 0.99)]
    return f"  mirada / ctranslate2: throughput {mine.rate / other.rate:.2f}, p50 {times[0]:.2f}, p99 {times[1]:.2f}"


def short_questions(count: int) -> Iterator[Question]:
    """So many texts of three words, no two alike, and four kinds of options."""
    for number in range(count):
        kind = MIXED[number % len(MIXED)] | {"max_output_length": 5}
        yield Question({"text": f"the {number:x} {WORDS[number % len(WORDS)]}", **kind})


def stays_flat(service: list[str], requests: int, clients: int) -> bool:
    """Ask so often, print the memory after each tenth, and say whether it stayed as it was after the first."""
    ask, seen = short_questions(requests), list[float]()
    with started(service) as (pid, address):
        print(f"at the start: {memory(pid):.0f} MB", flush=True)
        for tenth in range(1, 11):
            begun = time.perf_counter()
            tally = asyncio.run(press(address, islice(ask, requests // 10), clients))
            seen.append(memory(pid))
            rate = len(tally.seconds) / (time.perf_counter() - begun)
            wrong = tally.lost + tally.broken + tally.refused
            print(f"{tenth * requests // 10} requests: {seen[-1]:.0f} MB, {rate:.0f}/s, {wrong} failed", flush=True)
    flat = max(seen) <= FLAT * seen[0]
    print(f"after the first tenth: {max(seen) / seen[0] - 1:+.1%} at most{'' if flat else ': NOT FLAT'}")
    return flat


def serving(model: str, workers: int) -> list[str]:
    """The command of the service."""
    return ["mirada", "serve", model, "--preload", "--port", "0", "--workers", str(workers)]


def exported(model: str) -> str:
    """CTranslate2's export of a Transformer, in a new folder."""
    from mirada.cli import main as mirada

    folder = str(Path(tempfile.mkdtemp()) / "ctranslate2")
    if mirada(["export", model, "--to", "ctranslate2", "--out", folder]):
        raise SystemExit(f"{model}: not exported; CTranslate2 runs Transformers only")
    return folder


def main() -> int:
    """Print two lines for each number of clients."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model")
    parser.add_argument("--clients", default="1,8,64,200", help="numbers of clients [1,8,64,200]")
    parser.add_argument("--seconds", type=float, default=120.0, help="for each number [120]")
    parser.add_argument("--sentences", type=int, default=400)
    parser.add_argument("--workers", type=int, default=1, help="processes of the service, threads offline [1]")
    parser.add_argument("--options", choices=(*KINDS, "both"), default="both", help="of the requests [both]")
    parser.add_argument("--beside", action="store_true", help="ask CTranslate2 too, with the model's own options")
    parser.add_argument("--requests", type=int, help="so many short texts, and the memory meanwhile; nothing else")
    values = parser.parse_args()
    numbers = [int(number) for number in values.clients.split(",")]
    if values.requests:
        return 0 if stays_flat(serving(values.model, values.workers), values.requests, max(numbers)) else 1
    chosen = ["own"] if values.beside else [name for name in KINDS if values.options in (name, "both")]
    for name in chosen:
        alone = offline(values.model, sentences(values.sentences, 1), KINDS[name], values.workers)
        print(f"{name} options, offline: {alone.rate:.0f}/s, {alone.milliseconds:.2f} ms of a processor each")
        press_all(values, numbers, alone)
    return 0


def press_all(values: argparse.Namespace, numbers: Sequence[int], alone: Offline) -> None:
    """Each number of clients, and the other service in turn where it is wanted."""
    services = {"mirada": serving(values.model, values.workers)}
    if values.beside:
        services["ctranslate2"] = ["benchmarks.peers.ct2_serve", exported(values.model), "--beam", str(alone.beam)]
    for clients in numbers:
        seen = {}
        for name, module in services.items():
            seen[name] = measure(module, lambda: alone.questions, clients, values.seconds)
            print(f"{name}, {clients} clients: {report(seen[name], alone)}", flush=True)
        if values.beside:
            print(compare(*seen.values()), flush=True)


if __name__ == "__main__":
    sys.exit(main())
