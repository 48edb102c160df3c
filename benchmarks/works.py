"""The four works that are measured, and the options with which mirada does them.

T1       Bahdanau's flow, additive score, GRU; predicts from s_t alone, as every peer's RNN does
T1-deep  the same with the paper's maxout readout, mirada's own default
T2       Luong's flow, general score, LSTM, with input feeding; T2-nofeed without
T3       Transformer, 3 + 3 layers, pre-norm
T4       letters to sounds with T1's model in small, as an LSTM, as the peers have it
Embeddings are not tied in any; T1 to T3 have one list of 8,000 entries for both languages.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.pieces import MOST, Pieces
from mirada.config.configfile import parse
from mirada.config.options import Config, ModelConfig


class Work(NamedTuple):
    """A task with its sizes."""

    task: str  # translation or spelling
    batch_size: int  # sentences
    model: dict[str, Any]


RNN = {"embedding_dim": 256, "hidden_size": 512, "encoder_hidden_size": 256, "bidirectional": True, "dropout": 0.2}
ADDITIVE = {"decoder": "bahdanau", "score": "additive", "rnn_type": "gru", "readout": "state"}
GENERAL = {"decoder": "luong", "score": "general", "rnn_type": "lstm"}
STACK = {"enc_layers": 3, "dec_layers": 3, "embedding_dim": 256, "ff_size": 1024, "num_heads": 4}
SMALLER = {"embedding_dim": 128, "hidden_size": 256, "encoder_hidden_size": 128}
WORKS = {
    "T1": Work("translation", 64, {**RNN, **ADDITIVE}),
    "T1-deep": Work("translation", 64, {**RNN, **ADDITIVE, "readout": "deep"}),
    "T2": Work("translation", 64, {**RNN, **GENERAL, "input_feeding": True}),
    "T2-nofeed": Work("translation", 64, {**RNN, **GENERAL, "input_feeding": False}),
    "T3": Work("translation", 64, {"decoder": "transformer", **STACK, "norm": "pre", "dropout": 0.1}),
    "T4": Work("spelling", 256, {**RNN, **ADDITIVE, **SMALLER, "rnn_type": "lstm"}),
}
TINY = {"embedding_dim": 16, "hidden_size": 32, "encoder_hidden_size": 16, "ff_size": 32, "num_heads": 2}
FEW = {"pairs": 300, "entries": 400}  # of the embedded corpus, for the same end


def smaller(work: Work) -> Work:
    """The same work in a size that says nothing about speed, to see that everything runs."""
    model = {name: TINY.get(name, value) for name, value in work.model.items()}
    return Work(work.task, 8, model)


def options(work: Work, pieces: Pieces, folder: Path, *, updates: int | None = None, epochs: int = 1000) -> Config:
    """Everything that mirada is told: the peers' optimiser (Adam, clipped at 1, no smoothing), and no validation."""
    data = {
        "src": str(pieces.files["train.source"]),
        "tgt": str(pieces.files["train.target"]),
        "dev_src": str(pieces.files["dev.source"]),
        "dev_tgt": str(pieces.files["dev.target"]),
        "tokenizer": "word",
        "vocab_size": pieces.entries,
        "share_vocab": pieces.entries is not None,
        "normalize": "none",
        "max_length": MOST,
    }
    training = {
        "epochs": epochs,
        "max_updates": updates,
        "valid_every": 1_000_000,
        "batch_size": work.batch_size,
        "learning_rate": 1e-3,
        "clip_grad_norm": 1.0,
        "label_smoothing": 0.0,
        "device": "cpu",
    }
    return parse({"model_dir": str(folder), "data": data, "model": work.model, "training": training})


def name_of(model: ModelConfig) -> str:
    """The work that a model does, or a description of it."""
    for name, work in WORKS.items():
        if ModelConfig(**work.model) == model:
            return name
    return f"{model.decoder} {model.embedding_dim}/{model.hidden_size}"
