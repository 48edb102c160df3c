"""Tiny translators of every system for `mirada explain`: real tokenisers, random weights, one vocabulary."""

from __future__ import annotations

from functools import cache
from typing import Any

import torch

import tiny
from mirada.config import configfile
from mirada.config.model import applicable
from mirada.config.options import SearchConfig
from mirada.data.tokenizer import Tokenizer
from mirada.data.vocabulary import EOS
from mirada.explain.record import Trace
from mirada.explain.trace import trace
from mirada.models import build_model
from mirada.store.checkpoint import Loaded
from mirada.train import prepare
from mirada.translator import Translator

SENTENCE, WORD = "the red fox sleeps", "a"
GIVEN = "el gato"
DATA = {"share_vocab": True, "source_tokenizer": "bpe", "target_tokenizer": "bpe", "vocab_size": 40}
SIZES = {"embedding_dim": 6, "hidden_size": 6, "num_heads": 2, "ff_size": 7}
SEARCH = {"beam_size": 3, "max_output_length": 5}


@cache
def tokenizer() -> Tokenizer:
    """The tokeniser of both sides."""
    config = configfile.parse({"data": DATA})
    return prepare.learn_tokenizers(config, tiny.CORPUS)[0]


def make(*, seed: int = 1, **options: Any) -> Translator:
    """A translator with these model options and weights from U(−0.7, 0.7), some of whose outputs end by themselves."""
    config = configfile.parse({"data": DATA, "model": applicable({**SIZES, **options}), "search": SEARCH})
    torch.manual_seed(seed)
    model = build_model(config.model, source_vocab=len(tokenizer()), target_vocab=len(tokenizer())).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.uniform_(-0.7, 0.7)
        model.output.bias[EOS] = 1.0
    return Translator(Loaded(config, model, tokenizer(), tokenizer(), {}))


def searching(**options: Any) -> SearchConfig:
    """Search options: a beam of 3 and at most 5 tokens, if nothing else is said."""
    return SearchConfig(**{**SEARCH, **options})


def one(translator: Translator, text: str = SENTENCE, **arguments: Any) -> Trace:
    """The best output's trace."""
    return trace(translator, text, **{"options": searching(), **arguments})[0]
