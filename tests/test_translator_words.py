"""Attention put to use: words in place of <unk>, and links from word to word."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

import tiny
from mirada.config.options import Config, SearchConfig
from mirada.data.tokenizer import TokenizerOptions, train_tokenizer
from mirada.data.vocabulary import EOS, PAD, UNK
from mirada.models.base import Memory
from mirada.store.checkpoint import Loaded
from mirada.texts import replaced
from mirada.translator import EMPTY, Translation, Translator

LINES = [*tiny.SOURCES, "", "the Ω sleeps </s> 漢"]


def best(found: list[list[Translation]]) -> list[Translation]:
    return [outputs[0] for outputs in found]


# <unk>


class Looker(torch.nn.Module):
    """A model that says <unk> once a source token, and looks at them from last to first, but even more at </s>."""

    def __init__(self) -> None:
        super().__init__()
        self.output = torch.nn.Linear(1, 1, dtype=torch.float64)  # double: searched as it is, not packed

    def encode(self, source: torch.Tensor, lengths: torch.Tensor) -> Memory:
        return Memory(source[..., None].float(), source != PAD, lengths[:, None, None], None)

    def start(self, memory: Memory) -> torch.Tensor:
        return torch.zeros_like(memory.keys[:, 0, 0])

    def step(self, token: torch.Tensor, state: torch.Tensor, memory: Memory) -> SimpleNamespace:
        real = memory.keys[:, 0, 0] - 1  # where </s> stands
        logits = torch.zeros(len(token), 9)
        logits[torch.arange(len(token)), torch.where(state < real, UNK, EOS)] = 9.0
        attention = torch.zeros(len(token), memory.mask.shape[1])
        attention.scatter_(1, (real - 1 - state).clamp(min=0)[:, None], 0.4)
        attention.scatter_(1, real[:, None], 0.6)
        return SimpleNamespace(logits=logits, state=state + 1, attention=attention)


def test_unknown_words_are_replaced_by_what_the_model_looked_at():
    words = train_tokenizer(["the cat sees a dog"], TokenizerOptions("word", 50))
    model: Any = Looker()
    translator = Translator(Loaded(Config(), model, words, words, {}))
    lines = ["cat Ψευδώς  the", "Ω", "a dog sees the Ω cat"]
    options = SearchConfig(beam_size=1, replace_unk=True)
    found = best(translator.search(lines, options=options))
    assert [output.text for output in found] == ["the Ψευδώς cat", "Ω", "cat Ω the sees dog a"]
    assert found[0].tokens == ("the", "Ψευδώς", "cat", "</s>")
    plain = best(translator.search(lines, options=SearchConfig(beam_size=1)))
    assert [output.text for output in plain] == ["<unk> <unk> <unk>", "<unk>", " ".join(["<unk>"] * 6)]


def test_only_unk_is_replaced_and_never_by_the_end():
    words = train_tokenizer(["a b"], TokenizerOptions("word", 50))
    (source,) = words.pieces(["a Ω b"])
    attention = np.array([[0.0, 1.0, 0.0, 0.0], [0.1, 0.2, 0.0, 0.7], [0.3, 0.0, 0.2, 0.5]])
    assert replaced(["b", "<unk>", "<unk>"], (5, UNK, UNK), source, attention) == ["b", "Ω", "a"]


# Alignments


def linked(translator: Translator, attention: Any, *, finished: bool = True) -> str:
    tokens = ("▁x", "▁y", "z", "</s>") if finished else ("▁x", "▁y", "z")
    weights = None if attention is None else np.array(attention)[: len(tokens)]
    found = Translation(
        "x yz", 0, 0, finished, ("▁a", "b", "▁c", "</s>"), (0, 0, 1), tokens, (0.0,) * len(tokens), weights
    )
    return translator.word_links(found)


WEIGHTS = [
    [0.3, 0.3, 0.35, 0.05],  # x: 0.6 at the word ab, though c is the likeliest piece
    [0.2, 0.2, 0.1, 0.5],  # y: 0.4 at ab, 0.1 at c, most at </s>
    [0.1, 0.0, 0.6, 0.3],  # z: 0.1 and 0.6; so yz: 0.25 and 0.35
    [0.0, 0.0, 0.0, 1.0],
]


@pytest.mark.parametrize("model_folder", ["luong"], indirect=True)
def test_links_join_pieces_into_words_and_leave_the_ends_out(translator):
    assert linked(translator, WEIGHTS) == "0-0 1-1"
    assert linked(translator, WEIGHTS, finished=False) == "0-0 1-1"
    assert linked(translator, None) == ""
    assert translator.word_links(EMPTY) == ""


def test_every_word_of_an_output_is_linked_to_a_word_of_its_source(translator):
    options = SearchConfig(beam_size=1, max_length_ratio=0.1)
    outputs = best(translator.search(LINES, options=options, with_attention=True))
    for line, output in zip(LINES, outputs, strict=True):
        links = [tuple(map(int, link.split("-"))) for link in translator.word_links(output).split()]
        words = translator.target_tokenizer.words(output.tokens[: len(output.tokens) - output.finished])
        expected = set() if output.attention is None else set(words)
        assert {target for _, target in links} == expected
        assert len(links) == len(expected)
        assert all(0 <= source < len(line.split()) for source, _ in links)
