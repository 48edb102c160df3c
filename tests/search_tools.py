"""Searches of the toy decoder in few words."""

from __future__ import annotations

import torch

from mirada.config.options import SearchConfig
from mirada.search.decode import Hypothesis, Sentences, search
from toy_decoder import EOS, PAD, ToyDecoder

WAYS = {
    "greedy": SearchConfig(beam_size=1),
    "beam": SearchConfig(beam_size=4, n_best=3),
    "sample": SearchConfig(sample=True, n_best=3),
}


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
