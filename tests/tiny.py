"""A complete model folder in small, for every decoder: real tokenisers, random weights, nothing trained."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from mirada.config import configfile
from mirada.config.model import applicable
from mirada.config.options import Config
from mirada.data.corpus import Corpus
from mirada.data.vocabulary import EOS
from mirada.models import AnyModel, build_model
from mirada.store import checkpoint
from mirada.store.checkpoint import Archive
from mirada.train import prepare

SOURCES = [
    "the red fox sees the cat",
    "a cat sleeps under the old tree, near the house",
    "the old man reads a red book",
    "where does the fox sleep?",
    "a man and a cat see the house",
    "the book is under the tree",
]
TARGETS = [
    "el zorro rojo ve al gato",
    "un gato duerme bajo el viejo árbol, cerca de la casa",
    "el viejo lee un libro rojo",
    "¿dónde duerme el zorro?",
    "un hombre y un gato ven la casa",
    "el libro está bajo el árbol",
]
CORPUS = Corpus(SOURCES, TARGETS, list(range(1, 7)), [], "tiny")
PARTED = Corpus([f"{source}\t{source[:5]}" for source in SOURCES], TARGETS, list(range(1, 7)), [], "parted")
METRICS = {"loss": 1.25, "bleu": 17.5}

# One system a flow; between them both cells, both readouts, several layers, and every way of sharing weights.
MODELS: dict[str, dict[str, Any]] = {
    "classic": {"rnn_type": "lstm", "enc_layers": 2, "dec_layers": 2},
    "bahdanau": {"rnn_type": "gru", "readout": "deep"},
    "luong": {"rnn_type": "lstm", "tied_softmax": True},
    "transformer": {"num_heads": 2, "ff_size": 20, "tied_softmax": True, "tied_embeddings": True},
}

# The same four with what few have: copied words and letters, windows, coverage, sources of two parts.
RARE = {"source_tokenizer": "word", "target_tokenizer": "word", "vocab_min_freq": 2}
SPECIAL: dict[str, tuple[str, dict[str, dict[str, Any]]]] = {
    "copied words": (
        "bahdanau",
        {"data": RARE, "model": {"copy_attn": True, "coverage": True, "attention_window": "local-m"}},
    ),
    "copied letters": (
        "luong",
        {
            "data": {"source_tokenizer": "char", "target_tokenizer": "char", "vocab_min_freq": 4},
            "model": {"copy_attn": True},
        },
    ),
    "copied subwords": ("transformer", {"model": {"copy_attn": True, "copy_head": 2, "norm": "post"}}),
    "near": (
        "luong",
        {"model": {"attention_window": "local-p", "window": 2}},
    ),
    "two parts": (
        "luong",
        {"data": {"source_tokenizer": "word,char", "target_tokenizer": "unigram"}, "model": {"segments": 2}},
    ),
}


def options(decoder: str, changes: Mapping[str, Mapping[str, Any]] | None = None) -> Config:
    """The options of a tiny system, as a training would have resolved them; `changes` by block."""
    changes = changes or {}
    data = {"source_tokenizer": "bpe", "target_tokenizer": "bpe", "vocab_size": 60}
    data |= {"share_vocab": decoder == "transformer", **changes.get("data", {})}
    sizes = {"decoder": decoder, "embedding_dim": 12, "hidden_size": 12, **MODELS[decoder], **changes.get("model", {})}
    # Random weights seldom say </s>: a limit keeps outputs short.
    search = {"beam_size": 3, "max_length_ratio": 0.1}
    return configfile.parse({"data": data, "model": applicable(sizes), "search": search})


# Of some seeds those with which outputs differ, and some end before their limit.
SEEDS = {"classic": 3, "bahdanau": 3, "luong": 3, "transformer": 2}


def random_model(config: Config, vocabularies: tuple[int, int]) -> AnyModel:
    """A model whose choices are clear: large random weights, and </s> not too rare."""
    torch.manual_seed(SEEDS[config.model.decoder])
    model = build_model(config.model, source_vocab=vocabularies[0], target_vocab=vocabularies[1]).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.uniform_(-1.2, 1.2)
        model.output.bias[EOS] = 1.0
    return model


def write_folder(folder: Path, decoder: str, changes: Mapping[str, Mapping[str, Any]] | None = None) -> Path:
    """Write the model folder of a tiny system, with other options than the usual; returns it."""
    config = options(decoder, changes)
    source, target = prepare.learn_tokenizers(config, PARTED if "," in str(config.data.source_tokenizer) else CORPUS)
    model = random_model(config, (len(source), len(target)))
    folder.mkdir(parents=True, exist_ok=True)
    checkpoint.write_start(folder, config, source, target)
    note = {"metrics": METRICS, "updates": 3, "best": True}
    checkpoint.write_archive(folder / checkpoint.WEIGHTS, Archive(checkpoint.weights_of(model), note))
    return folder
