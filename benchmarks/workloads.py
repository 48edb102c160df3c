"""The four workloads that are measured, and the options with which mirada does them.

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

from benchmarks.tokenised import MOST, Tokenised
from mirada.config.configfile import parse
from mirada.config.options import Config, ModelConfig


class Workload(NamedTuple):
    """A task with its sizes."""

    task: str  # translation or spelling
    batch_size: int  # sentences
    model: dict[str, Any]


RNN = {"embedding_dim": 256, "hidden_size": 512, "encoder_hidden_size": 256, "bidirectional": True, "dropout": 0.2}
ADDITIVE = {"decoder": "bahdanau", "score": "additive", "rnn_type": "gru", "readout": "state"}
GENERAL = {"decoder": "luong", "score": "general", "rnn_type": "lstm"}
STACK = {"enc_layers": 3, "dec_layers": 3, "embedding_dim": 256, "ff_size": 1024, "num_heads": 4}
SMALLER = {"embedding_dim": 128, "hidden_size": 256, "encoder_hidden_size": 128}
WORKLOADS = {
    "T1": Workload("translation", 64, {**RNN, **ADDITIVE}),
    "T1-deep": Workload("translation", 64, {**RNN, **ADDITIVE, "readout": "deep"}),
    "T2": Workload("translation", 64, {**RNN, **GENERAL, "input_feeding": True}),
    "T2-nofeed": Workload("translation", 64, {**RNN, **GENERAL, "input_feeding": False}),
    "T3": Workload("translation", 64, {"decoder": "transformer", **STACK, "norm": "pre", "dropout": 0.1}),
    "T4": Workload("spelling", 256, {**RNN, **ADDITIVE, **SMALLER, "rnn_type": "lstm"}),
}
TINY = {"embedding_dim": 16, "hidden_size": 32, "encoder_hidden_size": 16, "ff_size": 32, "num_heads": 2}
FEW = {"pairs": 300, "entries": 400}  # of the embedded corpus, for the same end


def smaller(workload: Workload) -> Workload:
    """The same workload in a size that says nothing about speed, to see that everything runs."""
    model = {name: TINY.get(name, value) for name, value in workload.model.items()}
    return Workload(workload.task, 8, model)


class Place(NamedTuple):
    """Where a training goes, and where it computes."""

    folder: Path
    precision: str = "float32"
    device: str = "cpu"


def options(
    workload: Workload, tokenised: Tokenised, place: Place, *, updates: int | None = None, epochs: int = 1000
) -> Config:
    """Everything that mirada is told: the peers' optimiser (Adam, clipped at 1, no smoothing), and no validation."""
    data = {
        "src": str(tokenised.files["train.source"]),
        "tgt": str(tokenised.files["train.target"]),
        "dev_src": str(tokenised.files["dev.source"]),
        "dev_tgt": str(tokenised.files["dev.target"]),
        "tokenizer": "word",
        "vocab_size": tokenised.entries,
        "share_vocab": tokenised.entries is not None,
        "normalize": "none",
        "max_length": MOST,
    }
    training = {
        "epochs": epochs,
        "max_updates": updates,
        "valid_every": 1_000_000,
        "batch_size": workload.batch_size,
        "learning_rate": 1e-3,
        "clip_grad_norm": 1.0,
        "label_smoothing": 0.0,
        "device": place.device,
        "precision": place.precision,
    }
    return parse({"model_dir": str(place.folder), "data": data, "model": workload.model, "training": training})


def name_of(model: ModelConfig) -> str:
    """The workload that a model does, or a description of it."""
    for name, workload in WORKLOADS.items():
        if ModelConfig(**workload.model) == model:
            return name
    return f"{model.decoder} {model.embedding_dim}/{model.hidden_size}"
