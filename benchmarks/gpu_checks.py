"""Whether a device computes what the CPU computes in float64: the loss of a batch, its gradients, and outputs."""

from __future__ import annotations

import copy
from functools import partial
from typing import Any

import torch
from torch import Tensor

from benchmarks import machine, rows
from benchmarks.train import version
from mirada.config.configfile import parse
from mirada.config.model import applicable
from mirada.config.options import Config, SearchConfig
from mirada.data.batches import Batch, Encoded, collate
from mirada.models import AnyModel, build_model
from mirada.search.scheduler import Request, search_all
from mirada.train.batch_loss import gradients
from mirada.train.graphs import Graphs, Recorder
from mirada.train.precision import products

VOCABULARY, PAIRS = 2000, 48
WIDE = {"embedding_dim": 256, "hidden_size": 512, "ff_size": 1024, "num_heads": 4}
NARROW = {"embedding_dim": 16, "hidden_size": 32, "ff_size": 32, "num_heads": 2}
SYSTEMS: dict[str, dict[str, Any]] = {
    "classic LSTM": {"decoder": "classic", "rnn_type": "lstm", "bidirectional": True},
    "classic GRU with context": {"decoder": "classic", "rnn_type": "gru", "feed_context": True},
    "Bahdanau GRU, additive": {"decoder": "bahdanau", "rnn_type": "gru", "score": "additive", "bidirectional": True},
    "Bahdanau LSTM, general, copying": {
        "decoder": "bahdanau",
        "rnn_type": "lstm",
        "score": "general",
        "bidirectional": True,
        "copy_attn": True,
    },
    "Luong LSTM, general": {"decoder": "luong", "rnn_type": "lstm", "score": "general", "bidirectional": True},
    "Luong GRU, concat, without feeding": {
        "decoder": "luong",
        "rnn_type": "gru",
        "score": "concat",
        "bidirectional": True,
        "input_feeding": False,
        "dec_layers": 2,
    },
    "Transformer": {"decoder": "transformer", "norm": "pre", "enc_layers": 3, "dec_layers": 3},
}


def check(name: str, precision: str, device: str, *, wide: bool) -> rows.Row:
    """A system's row: relative errors of the loss and of all gradients, plainly and by graphs; outputs that are equal.

    Dropout is off: its random numbers differ from device to device.
    """
    config = _config(SYSTEMS[name], precision, device, wide=wide)
    torch.manual_seed(1)
    exact = build_model(config.model, source_vocab=VOCABULARY, target_vocab=VOCABULARY).double().train()
    model = copy.deepcopy(exact).float().to(device)
    pairs = _pairs(copies=config.model.copy_attn)
    nll, wanted = _computed(exact, _config(SYSTEMS[name], "float32", "cpu", wide=wide), _batch(pairs, "cpu"))
    own_nll, own = _computed(model, config, _batch(pairs, device))
    row: rows.Row = {
        "kind": "check",
        "system": "mirada",
        "version": version(),
        "work": name,
        "precision": precision,
        "loss_error": abs(own_nll / nll - 1),
        "gradient_error": float((own - wanted).norm() / wanted.norm()),
        "machine": machine.facts(device),
        "same_outputs": _same_outputs(exact, model, pairs),
    }
    return row | (_graphs(model, config, pairs, wanted, nll) if device == "cuda" else {})


def _config(options: dict[str, Any], precision: str, device: str, *, wide: bool) -> Config:
    sizes = applicable({**(WIDE if wide else NARROW), "dropout": 0.0, **options})
    return parse({"model": sizes, "training": {"precision": precision, "device": device}})


def _pairs(*, copies: bool) -> Encoded:
    """Pairs of random words, of lengths from 1 to 24 and 18."""
    random = torch.Generator().manual_seed(2)

    def words(most: int) -> list[list[int]]:
        lengths = torch.randint(1, most, (PAIRS,), generator=random).tolist()
        return [torch.randint(4, VOCABULARY, (length,), generator=random).tolist() for length in lengths]

    sources, targets = [[*row, 3] for row in words(25)], words(19)
    return Encoded(sources, targets, [list(row) for row in sources] if copies else None)


def _batch(pairs: Encoded, device: str) -> Batch:
    return collate(pairs, range(PAIRS), torch.device(device))


def _computed(model: AnyModel, config: Config, batch: Batch) -> tuple[float, Tensor]:
    model.zero_grad(set_to_none=True)
    with products(config.training.precision, batch.source.device):
        nll = gradients(model, config, batch, batch.tokens)
    return float(nll), _flat(model)


def _flat(model: AnyModel) -> Tensor:
    return torch.cat([part.grad.double().cpu().flatten() for part in model.parameters() if part.grad is not None])


def _graphs(model: AnyModel, config: Config, pairs: Encoded, wanted: Tensor, nll: float) -> rows.Row:
    """The same as a graph, replayed twice: what went wrong with it, and its errors."""
    said, batch = list[str](), _batch(pairs, "cuda")
    made = Graphs(partial(gradients, model, config), list(model.parameters()), said.append, Recorder())
    with products(config.training.precision, batch.source.device):
        for _ in range(3):
            model.zero_grad(set_to_none=False)
            found = float(made(batch, batch.tokens))
    error = float((_flat(model) - wanted).norm() / wanted.norm())
    return {"graph_trouble": " ".join(said), "graph_loss_error": abs(found / nll - 1), "graph_error": error}


def _same_outputs(exact: AnyModel, model: AnyModel, pairs: Encoded) -> float:
    """The share of sources whose best output is the CPU's in float64, by a beam of 4."""
    options = SearchConfig(beam_size=4, max_output_length=12)
    copies = pairs.copies or [[]] * PAIRS
    requests = [Request(list(source), [], i, tuple(copies[i])) for i, source in enumerate(pairs.sources)]
    outputs: list[list[tuple[int, ...]]] = [
        [
            found[0].tokens
            for found in search_all(one.eval(), requests, options, batch_size=PAIRS, device=one.output.weight.device)
        ]
        for one in (exact, model)
    ]
    exact.train()
    model.train()
    return sum(bool(ours == theirs) for ours, theirs in zip(*outputs, strict=True)) / PAIRS
