"""Make tests/importing/joey_*: tiny models of JoeyNMT from random weights, and what it says about 50 sentences.

`python -m benchmarks.peers.import_joey FOLDER`, in an environment with JoeyNMT 2. Models are built by the toolkit's own
code; a folder holds what its trainings write. Log-probabilities are those of its logits without <pad> and <s>.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
import yaml
from joeynmt.config import _check_special_symbols
from joeynmt.model import build_model
from joeynmt.vocabulary import Vocabulary

from benchmarks.peers.sentences import greedy, sentences, until_outputs_differ, vocabulary


def recurrent(encoder: dict[str, Any], decoder: dict[str, Any]) -> dict[str, Any]:
    """A recurrent model's block."""
    both = {"type": "recurrent", "hidden_size": 6, "dropout": 0.1}
    return {
        "encoder": {**both, "embeddings": {"embedding_dim": 10}, "bidirectional": True, **encoder},
        "decoder": {**both, "embeddings": {"embedding_dim": 8}, "hidden_size": 12, **decoder},
    }


def transformer(*, scale: bool, more: dict[str, Any]) -> dict[str, Any]:
    """A Transformer's block."""
    both = {"type": "transformer", "hidden_size": 16, "ff_size": 20, "num_heads": 2, "dropout": 0.1, **more}
    both["embeddings"] = {"embedding_dim": 16, "scale": scale}
    return {"encoder": {**both, "num_layers": 2}, "decoder": {**both, "num_layers": 1}}


MODELS: dict[str, dict[str, Any]] = {
    "joey_bahdanau": recurrent(
        {"rnn_type": "lstm", "num_layers": 2}, {"rnn_type": "lstm", "num_layers": 2, "attention": "bahdanau"}
    ),
    "joey_luong": recurrent(
        {"rnn_type": "gru", "hidden_size": 12},
        {
            "rnn_type": "gru",
            "attention": "luong",
            "init_hidden": "last",
            "input_feeding": False,
            "embeddings": {"embedding_dim": 8, "scale": True},
        },
    ),
    "joey_transformer": {**transformer(scale=True, more={"layer_norm": "pre"}), "tied_softmax": True},
    "joey_transformer_post": {
        **transformer(scale=False, more={"layer_norm": "post", "activation": "gelu"}),
        "tied_embeddings": True,
    },
}
NEVER = [1, 2]


def shake(model: torch.nn.Module, seed: int) -> None:
    """Large random weights in all parts, so that choices are clear, and </s> not too rare."""
    torch.manual_seed(seed)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.uniform_(-1.2, 1.2)
            if "layer_norm" in name and name.endswith("weight"):
                parameter.abs_().add_(0.5)
    for module in model.modules():
        if isinstance(getattr(module, "pe", None), torch.Tensor):  # 5,000 places: the first are enough here
            module.pe = module.pe[:, :40].clone()


class Reading:
    """A model that reads and writes words."""

    def __init__(self, model: Any, source: Vocabulary, target: Vocabulary):
        self.model, self.source, self.target = model, source, target

    def logits(self, source: str, written: list[int]) -> torch.Tensor:
        """Logits after each of the words written so far, of which the first is <s>: `[T, V]`."""
        words = torch.tensor([[*map(self.source.lookup, source.split()), self.source.eos_index]])
        mask = torch.ones(1, 1, words.size(1), dtype=torch.bool)
        encoded, hidden, *_ = self.model._encode(words, torch.tensor([words.size(1)]), mask)
        given = torch.tensor([written])
        seen = torch.ones(1, 1, len(written), dtype=torch.bool)
        found = self.model._decode(encoded, hidden, mask, given, len(written), trg_mask=seen)[0][0]
        found[:, NEVER] = -torch.inf
        return found

    @torch.no_grad()
    def expected(self, source: str, target: str) -> dict[str, Any]:
        """Log-probabilities of a target with </s>, and the greedy output."""
        ids = [self.target.lookup(word) for word in target.split()]
        log_p = self.logits(source, [2, *ids]).log_softmax(-1)
        given = log_p.gather(1, torch.tensor([*ids, 3])[:, None])[:, 0]
        written = [self.target._itos[i] for i in greedy(self.logits, source, start=2, end=3)]
        return {"log_probabilities": [round(value, 6) for value in given.tolist()], "greedy": written}


def vocabularies(*, shared: bool) -> list[Vocabulary]:
    """Both sides; one and the same list where they are shared."""
    symbols, pairs = SimpleNamespace(**_check_special_symbols({})), sentences(1, 200)
    sides = [vocabulary([pair[side] for pair in pairs]) for side in range(2)]
    sides = [list(dict.fromkeys(sides[0] + sides[1]))] * 2 if shared else sides
    return [Vocabulary(side, symbols) for side in sides]


def main(folder: Path, only: list[str]) -> None:
    """Write the folder of each, with expected.json."""
    for name, block in MODELS.items():
        if only and name not in only:
            continue
        place = folder / name
        place.mkdir(parents=True, exist_ok=True)
        sides = vocabularies(shared=block.get("tied_embeddings", False))
        model = build_model(json.loads(json.dumps(block)), *sides).eval()
        until_outputs_differ(place, lambda seed, model=model: shake(model, seed), Reading(model, *sides).expected)
        for side, words in zip(("src", "trg"), sides, strict=True):
            words.to_file(place / f"{side}_vocab.txt")
        data = {side: {"lang": lang, "level": "word"} for side, lang in (("src", "en"), ("trg", "es"))}
        config = json.loads(json.dumps({"name": name, "data": data, "model": block}))  # nothing twice in it
        (place / "config.yaml").write_text(yaml.safe_dump(config, sort_keys=False), encoding="utf-8")
        stats = {"epochs": 1, "steps": 1, "best_ckpt_score": np.float64(1.5), "best_ckpt_iter": 1}
        state = {
            "model_state": model.state_dict(),
            "optimizer_state": {},
            "scheduler_state": None,
            "stats_state": stats,
        }
        torch.save(state, place / "best.ckpt")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
