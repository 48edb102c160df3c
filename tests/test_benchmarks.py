"""The benchmarks say what they claim: operations counted right, windows cut right, nothing left out. Never how fast."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from mirada.config import ModelConfig
from mirada.models import build_model

sys.path.insert(0, str(Path(__file__).parent.parent))

from benchmarks import flops

VOCABULARY, BATCH, SOURCE, TARGET = 11, 3, 5, 7
RNN = {"embedding_dim": 6, "hidden_size": 8, "encoder_hidden_size": 10}
MODELS = {
    "bahdanau gru": {"decoder": "bahdanau", "rnn_type": "gru", "readout": "state", **RNN},
    "bahdanau lstm deep": {"decoder": "bahdanau", "rnn_type": "lstm", "readout": "deep", **RNN},
    "bahdanau one direction": {"decoder": "bahdanau", "bidirectional": False, "attention_size": 9, **RNN},
    "bahdanau general": {"decoder": "bahdanau", "score": "general", "rnn_type": "lstm", **RNN},
    "luong": {"decoder": "luong", **RNN},
    "luong without feeding": {"decoder": "luong", "input_feeding": False, **RNN},
    "luong one direction": {"decoder": "luong", "bidirectional": False, "embedding_dim": 6, "hidden_size": 8},
    "luong dot deep": {"decoder": "luong", "score": "dot", "enc_layers": 2, "dec_layers": 2, "hidden_size": 8},
    "transformer": {"decoder": "transformer", "embedding_dim": 8, "num_heads": 2, "ff_size": 12, "dec_layers": 2},
}


def counted(options: ModelConfig) -> int:
    """What torch counts in a forward pass of equal lengths with all logits, at double precision: the plain products."""
    torch.manual_seed(1)
    model = build_model(options, source_vocab=VOCABULARY, target_vocab=VOCABULARY).double().eval()
    source, target = (torch.randint(4, VOCABULARY, (BATCH, length)) for length in (SOURCE, TARGET))
    with FlopCounterMode(display=False) as counter, torch.no_grad(), sdpa_kernel(SDPBackend.MATH):
        model.logits(model(source, torch.full((BATCH,), SOURCE), target).hidden)
    return int(counter.get_total_flops())


@pytest.mark.parametrize("name", MODELS)
def test_operations_are_those_that_torch_counts(name: str) -> None:
    """Torch sees neither a product with a vector (v of an additive score), nor the causal half that need not be."""
    options = ModelConfig(**{"dropout": 0.0, **MODELS[name]})
    sizes = flops.of_pairs([(SOURCE, TARGET)] * BATCH)
    expected = flops.forward(options, VOCABULARY, sizes).total
    if options.score_name == "additive":
        expected -= 2 * BATCH * SOURCE * TARGET * (options.attention_size or options.hidden_size)
    if options.decoder == "transformer":
        future = TARGET * (TARGET - 1) // 2
        expected += options.dec_layers * 2 * 2 * BATCH * future * options.embedding_dim
    assert counted(options) == expected
