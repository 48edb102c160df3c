"""Searches of the toy decoder in few words."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor

import tiny
from mirada.config.options import SearchConfig
from mirada.search.decode import Hypothesis, Sentences, search
from mirada.search.scheduler import Request, Scheduler, with_end
from mirada.translator import Translator
from mirada.trees import map_tensors, put_rows
from toy_decoder import EOS, PAD, ToyDecoder

WAYS = {
    "greedy": SearchConfig(beam_size=1),
    "beam": SearchConfig(beam_size=4, n_best=3),
    "sample": SearchConfig(sample=True, n_best=3),
}
# For models with random weights, which seldom say </s>.
SHORT_WAYS = {name: way.model_copy(update={"max_length_ratio": 0.1}) for name, way in WAYS.items()}


def requests(translator: Translator) -> list[Request]:
    """The tiny sources as a translator hands them on."""
    ids = translator.source_tokenizer.encode(tiny.SOURCES)
    return [Request(with_end(row, len(row)), [], number) for number, row in enumerate(ids)]


class Memory(NamedTuple):
    """A toy's memory, as a decoder gives it."""

    sentence: Tensor
    states: Tensor
    mask: Tensor
    keys: tuple[()] = ()
    final: tuple[()] = ()


def memory_of(toy: ToyDecoder, *sentences: int) -> Memory:
    sentence, states = toy.begin(*sentences)[0]
    return Memory(sentence, states, torch.ones(states.shape[:2], dtype=torch.bool))


def insert(state: Any, rows: Tensor, fresh: Any) -> Any:
    return put_rows(map_tensors(Tensor.clone, state), rows, fresh)  # the toy's state holds the tokens it was given


class ToyModel:
    """A toy as a scheduler has it: the first token of a source is the sentence, behind the special tokens."""

    def __init__(self, toy: ToyDecoder):
        self.toy = toy
        self.insert = insert

    def encode(self, source: Tensor, lengths: Tensor) -> Memory:
        return memory_of(self.toy, *(source[:, 0] - 4).tolist())

    def start(self, memory: Memory) -> Any:
        return self.toy.begin(*memory.sentence.tolist())[1]

    def step(self, token: Tensor, state: Any, memory: Any) -> Any:
        return self.toy(token, state, memory)


def run(
    toy: ToyDecoder,
    options: SearchConfig,
    *which: int,
    limit: int | list[int] = 8,
    prefix: list[list[int]] | None = None,
) -> list[list[Hypothesis]]:
    memory, state = toy.begin(*which)
    limits = torch.tensor(limit).expand(len(memory.sentence))
    width = max(map(len, prefix or [[]]))
    padded = torch.tensor([one + [PAD] * (width - len(one)) for one in prefix]) if prefix else None
    sentences = Sentences(limits, padded, memory.sentence.tolist())
    return search(toy, memory, state, options, sentences, with_attention=True)


def steps(output: Hypothesis) -> list[int]:
    return [*output.tokens, EOS] if output.finished else list(output.tokens)


class Gated(ToyModel):
    """A decoder whose steps wait for a gate; `steps` are the rows of each."""

    def __init__(self, toy: ToyDecoder):
        super().__init__(toy)
        self.gate, self.begun, self.steps = threading.Event(), threading.Event(), list[int]()
        self.arrive: Callable[[], object] = lambda: None  # at each step

    def step(self, token: torch.Tensor, state: Any, memory: Any) -> Any:
        self.steps.append(len(token))
        self.begun.set()
        assert self.gate.wait(30)
        self.arrive()
        return super().step(token, state, memory)


def request(sentence: int, number: int = 0) -> Request:
    return Request([sentence + 4, EOS], [], number)


def scheduler(model: ToyModel, **options: Any) -> Scheduler:
    return Scheduler(model, device=torch.device("cpu"), vocabulary=8, **options)
