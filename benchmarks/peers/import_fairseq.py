"""Make tests/importing/fairseq_*: tiny models of fairseq from random weights, and what it says about 50 sentences.

`python -m benchmarks.peers.import_fairseq FOLDER`, with the unpacked source of fairseq 0.12.2 on PYTHONPATH, and
torch, bitarray, hydra-core 1.3, omegaconf 2.3, regex, sacrebleu and tqdm installed (see `let_it_load`). Models are
built by the toolkit's own code; a folder holds what its trainings write. Log-probabilities are those of its logits
without <pad> and <s>, which no output holds.
"""

from __future__ import annotations

import dataclasses
import functools
import sys
from argparse import Namespace
from pathlib import Path
from typing import Any

import torch

from benchmarks.peers.sentences import greedy, sentences, until_outputs_differ, vocabulary


def let_it_load() -> None:
    """Python 3.11 refuses fairseq's defaults of dataclasses, which cannot be hashed: make them so."""
    dataclasses.dataclass = functools.partial(dataclasses.dataclass, unsafe_hash=True)  # type: ignore[assignment]


let_it_load()

from fairseq.data import Dictionary  # noqa: E402
from fairseq.models.lstm import LSTMModel, base_architecture  # noqa: E402
from fairseq.models.transformer import TransformerModel  # noqa: E402
from fairseq.models.transformer import base_architecture as transformer_architecture  # noqa: E402

LSTM = {"arch": "lstm", "encoder_embed_dim": 10, "decoder_embed_dim": 8, "decoder_hidden_size": 12}
LSTM |= {"criterion": "cross_entropy"}
TRANSFORMER = {"arch": "transformer", "encoder_embed_dim": 16, "encoder_ffn_embed_dim": 20, "encoder_layers": 2}
TRANSFORMER |= {"decoder_layers": 1, "encoder_attention_heads": 2, "decoder_attention_heads": 2}
TRANSFORMER |= {"max_source_positions": 64, "max_target_positions": 64}
MODELS: dict[str, dict[str, Any]] = {
    "fairseq_lstm": {
        **LSTM,
        "encoder_bidirectional": True,
        "encoder_hidden_size": 7,
        "encoder_layers": 2,
        "decoder_layers": 2,
        "decoder_out_embed_dim": 9,
    },
    "fairseq_lstm_plain": {
        **LSTM,
        "encoder_hidden_size": 12,
        "decoder_attention": "0",
        "decoder_embed_dim": 10,
        "decoder_out_embed_dim": 10,
        "share_decoder_input_output_embed": True,
    },
    "fairseq_transformer": {**TRANSFORMER, "share_decoder_input_output_embed": True},
    "fairseq_transformer_pre": {
        **TRANSFORMER,
        "encoder_normalize_before": True,
        "decoder_normalize_before": True,
        "no_scale_embedding": True,
        "activation_fn": "gelu",
    },
}
EOS, NEVER = 2, [0, 1]  # <s> and <pad>


class Task:
    """What a model asks of a task: the dictionaries."""

    def __init__(self, source: Dictionary, target: Dictionary):
        self.source_dictionary, self.target_dictionary = source, target


def dictionaries() -> tuple[Dictionary, Dictionary]:
    """Both sides, as preprocessing makes them."""
    pairs = sentences(1, 200)
    made = []
    for side in range(2):
        found = Dictionary()
        for place, word in enumerate(vocabulary([pair[side] for pair in pairs])):
            found.add_symbol(word, n=1000 - place)
        found.finalize(padding_factor=8)
        made.append(found)
    return made[0], made[1]


def shake(model: torch.nn.Module, seed: int) -> None:
    """Large random weights in all parts, so that choices are clear."""
    torch.manual_seed(seed)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.uniform_(-1.2, 1.2)
            if "layer_norm" in name and name.endswith("weight"):
                parameter.abs_().add_(0.5)


class Reading:
    """A model that reads and writes words."""

    def __init__(self, model: Any, source: Dictionary, target: Dictionary):
        self.model, self.source, self.target = model, source, target

    def logits(self, source: str, written: list[int]) -> torch.Tensor:
        """Logits after each of the words written so far, of which the first is </s>: `[T, V]`."""
        words = torch.tensor([[*map(self.source.index, source.split()), EOS]])
        found = self.model(words, torch.tensor([words.size(1)]), torch.tensor([written]))[0][0]
        found[:, NEVER] = -torch.inf
        return found

    @torch.no_grad()
    def expected(self, source: str, target: str) -> dict[str, Any]:
        """Log-probabilities of a target with </s>, and the greedy output."""
        ids = [self.target.index(word) for word in target.split()]
        log_p = self.logits(source, [EOS, *ids]).log_softmax(-1)
        given = log_p.gather(1, torch.tensor([*ids, EOS])[:, None])[:, 0]
        written = [self.target[i] for i in greedy(self.logits, source, start=EOS, end=EOS)]
        return {"log_probabilities": [round(value, 6) for value in given.tolist()], "greedy": written}


def main(folder: Path, only: list[str]) -> None:
    """Write checkpoint_best.pt, the dictionaries and expected.json of each."""
    for name, values in MODELS.items():
        if only and name not in only:
            continue
        place = folder / name
        place.mkdir(parents=True, exist_ok=True)
        source, target = dictionaries()
        own = Namespace(**values)
        (base_architecture if values["arch"] == "lstm" else transformer_architecture)(own)
        kind = LSTMModel if values["arch"] == "lstm" else TransformerModel
        model = kind.build_model(own, Task(source, target)).eval()
        reading = Reading(model, source, target)
        until_outputs_differ(place, lambda seed, model=model: shake(model, seed), reading.expected)
        source.save(str(place / "dict.en.txt"))
        target.save(str(place / "dict.es.txt"))
        task = {"_name": "translation", "source_lang": "en", "target_lang": "es"}
        state = {"args": None, "cfg": {"model": own, "task": task}, "model": model.state_dict()}
        state |= {"optimizer_history": [{"num_updates": 1}], "task_state": {}, "extra_state": {"epoch": 1}}
        torch.save(state, place / "checkpoint_best.pt")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
