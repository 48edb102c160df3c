"""One translator in many threads, in copies of the process, and in copies of itself."""

from __future__ import annotations

import copy
import multiprocessing
import pickle
import random
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import torch

import tiny
from cli_tools import ENVIRONMENT
from mirada.config.options import SearchConfig
from mirada.search.scheduler import Request, Scheduler
from mirada.translator import Translator, load
from search_tools import ToyModel
from toy_decoder import EOS, ToyDecoder

CPU = torch.device("cpu")
TRANSFORMER = pytest.mark.parametrize("model_folder", ["transformer"], indirect=True)
OPTIONS = SearchConfig(beam_size=2, max_length_ratio=0.5)
LONG = " ".join(tiny.SOURCES * 2)


@pytest.mark.parametrize("model_folder", ["luong", "transformer"], indirect=True)
def test_many_threads_with_short_and_long_sources(model_folder: Path) -> None:
    translator = load(model_folder, device="cpu", workers=2)
    lines = [*tiny.SOURCES[:3], LONG, "cat"]
    expected = {line: load(model_folder, device="cpu").search([line], options=OPTIONS)[0][0] for line in lines}

    def ask(seed: int) -> list[tuple[str, str]]:
        draw, wrong = random.Random(seed), []
        for _ in range(3):
            chosen = draw.choices(lines, k=draw.randint(1, 5))
            found = translator.search(chosen, options=OPTIONS, batch_size=draw.choice([2, 64]))
            wrong += [(line, one.text) for line, [one] in zip(chosen, found, strict=True) if one != expected[line]]
            translator.score(["cat"], ["gato"])
        return wrong

    with ThreadPoolExecutor(8) as pool:
        assert _nearly(list(pool.map(ask, range(8))), expected) == []


def test_overlapping_searches_leave_everybody_their_threads() -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(4)
    try:
        shared = Scheduler(ToyModel(ToyDecoder(1, sentences=40, vocabulary=8)), device=CPU, vocabulary=8, workers=2)

        def ask(first: int) -> int:
            for start in range(first, first + 5):
                requests = [Request([i + 4, EOS], [], i) for i in range(start, start + 6)]
                shared.search(requests, OPTIONS, batch_size=2 + start % 3)
            return torch.get_num_threads()

        with ThreadPoolExecutor(6) as pool:
            assert list(pool.map(ask, range(0, 30, 5))) == [4] * 6
        assert torch.get_num_threads() == 4
        with ThreadPoolExecutor(1) as pool:
            assert pool.submit(torch.get_num_threads).result() == 4
    finally:
        torch.set_num_threads(before)


def _nearly(found: list[list[tuple[str, str]]], expected: dict[str, Any]) -> list[tuple[str, str]]:
    """Texts that differ, not numbers in their last bits."""
    return [(line, text) for wrong in found for line, text in wrong if text != expected[line].text]


@TRANSFORMER
def test_a_smaller_table_of_positions_in_the_place_of_a_larger_one(model_folder: Path) -> None:
    """Another thread's table comes just after one's own was made."""
    translator = load(model_folder, device="cpu")
    model: Any = translator.fast_model

    class Interrupted(type(model)):  # type: ignore[misc]
        def __setattr__(self, name: str, value: Any) -> None:
            super().__setattr__(name, value[:64] if name == "positions" else value)

    model.__class__ = Interrupted
    never = SearchConfig(beam_size=1, max_output_length=90, min_output_length=90)
    assert len(translator.search(["cat"], options=never)[0][0].tokens) in (90, 91)


CHILD = """
import multiprocessing, sys, torch
from mirada.translator import load

torch.set_num_threads(2)
torch.randn(700, 700) @ torch.randn(700, 700)
translator = load(sys.argv[1], device="cpu")
expected = translator.translate(["the cat", "a man"]), translator.score(["the cat"], ["el gato"])[0].log_probability
torch.randn(700, 700) @ torch.randn(700, 700)

def ask(queue):
    again = load(sys.argv[1], device="cpu")
    queue.put([(one.translate(["the cat", "a man"]), one.score(["the cat"], ["el gato"])[0].log_probability)
               for one in (translator, again)])

context = multiprocessing.get_context("fork")
queue = context.Queue()
children = [context.Process(target=ask, args=(queue,), daemon=True) for _ in range(2)]
for child in children:
    child.start()
for child in children:
    for texts, score in queue.get(timeout=60):
        assert texts == expected[0], texts
        assert abs(score - expected[1]) < 1e-3
for child in children:
    child.join(20)
    assert child.exitcode == 0, child.exitcode
print("all children translated")
"""


@TRANSFORMER
@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="this system has no fork")
def test_a_forked_child_translates(model_folder: Path) -> None:
    import subprocess

    environment = {**ENVIRONMENT, "OMP_NUM_THREADS": "2", "TOKENIZERS_PARALLELISM": "false"}
    done = subprocess.run(
        [sys.executable, "-c", CHILD, str(model_folder)], env=environment, capture_output=True, timeout=150, check=False
    )
    assert done.stdout == b"all children translated\n", done.stderr.decode()


@pytest.mark.parametrize("used", [False, True])
def test_a_translator_is_pickled_and_copied(model_folder: Path, used: bool) -> None:
    translator: Translator = load(model_folder, device="cpu")
    expected = load(model_folder, device="cpu").translate(tiny.SOURCES)
    if used:
        assert translator.translate(tiny.SOURCES) == expected
    for twin in (pickle.loads(pickle.dumps(translator)), copy.deepcopy(translator), copy.copy(translator)):
        assert twin.translate(tiny.SOURCES) == expected
        assert twin.score(["the cat"], ["el gato"]) == translator.score(["the cat"], ["el gato"])
    assert translator.translate(tiny.SOURCES) == expected
