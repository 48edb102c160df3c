"""Make tests/importing/onmt_*: tiny models of OpenNMT-py from random weights, and what it says about 50 sentences.

`python -m benchmarks.peers.import_onmt FOLDER`, in an environment with OpenNMT-py 3 (and pyonmttok, configargparse).
Models are built and saved by the toolkit's own code; log-probabilities are those of its logits without <blank> and <s>,
which no output holds.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import torch
from onmt import opts
from onmt.inputters.inputter import dict_to_vocabs
from onmt.model_builder import build_base_model
from onmt.models.model_saver import ModelSaver
from onmt.utils.parse import ArgumentParser

from benchmarks.peers.sentences import greedy, sentences, vocabulary, write_expected

RECURRENT = {"word_vec_size": 10, "hidden_size": 12, "layers": 1}
TRANSFORMER = {
    "encoder_type": "transformer",
    "decoder_type": "transformer",
    "word_vec_size": 16,
    "hidden_size": 16,
    "layers": 2,
    "heads": 2,
    "transformer_ff": 20,
    "position_encoding": True,
}
MODELS: dict[str, dict[str, Any]] = {
    "onmt_general": {**RECURRENT, "encoder_type": "brnn", "layers": 2},
    "onmt_dot": {**RECURRENT, "global_attention": "dot", "rnn_type": "GRU", "encoder_type": "rnn", "input_feed": 0},
    "onmt_mlp": {
        **RECURRENT,
        "global_attention": "mlp",
        "encoder_type": "brnn",
        "bridge": True,
        "tgt_word_vec_size": 8,
    },
    "onmt_classic": {**RECURRENT, "global_attention": "none", "encoder_type": "rnn", "layers": 2},
    "onmt_transformer": {**TRANSFORMER, "share_decoder_embeddings": True},
    "onmt_transformer_concat": {
        **TRANSFORMER,
        "position_encoding_type": "SinusoidalConcat",
        "pos_ffn_activation_fn": "gelu",
        "add_qkvbias": True,
        "add_ffnbias": True,
    },
}
# A seed with which outputs differ and some end, and the bias of </s>.
DRAWN = {
    "onmt_general": (2, 1.5),
    "onmt_dot": (3, 0.3),
    "onmt_mlp": (2, 1.5),
    "onmt_classic": (3, 1.5),
    "onmt_transformer": (2, 0.3),
    "onmt_transformer_concat": (5, 0.3),
}
NEVER = ("<blank>", "<s>")


def vocabularies() -> dict[str, Any]:
    """Both sides, as a checkpoint holds them."""
    pairs = sentences(1, 200)
    special = ["<unk>", "<blank>", "<s>", "</s>"]
    sides = {name: special + vocabulary([pair[side] for pair in pairs]) for side, name in enumerate(("src", "tgt"))}
    return {**sides, "data_task": "seq2seq", "decoder_start_token": "<s>"}


def options(changes: dict[str, Any]) -> Any:
    """The toolkit's own defaults, changed."""
    found = ArgumentParser.defaults(opts.model_opts)
    vars(found).update(
        {"layers": -1, "share_vocab": False, "freeze_word_vecs_enc": False, "freeze_word_vecs_dec": False}
    )
    vars(found).update({"dropout": [0.1], "attention_dropout": [0.1], "optim": "sgd", "parallel_mode": "data_parallel"})
    vars(found).update({"use_ckpting": [], "world_size": 1, "gpu_ranks": [], **changes})
    ArgumentParser.update_model_opts(found)
    if "tgt_word_vec_size" in changes:
        found.word_vec_size, found.tgt_word_vec_size = -1, changes["tgt_word_vec_size"]
    ArgumentParser.validate_model_opts(found)
    return found


class Sgd:
    """What the saver asks of an optimiser."""

    def state_dict(self) -> dict[str, Any]:
        """Nothing was learned."""
        return {"training_step": 1, "decay_step": 1, "optimizer": {"state": {}, "param_groups": []}}


def shake(model: torch.nn.Module, seed: int, end: float) -> None:
    """Large random weights in all parts, so that choices are clear, and </s> neither too rare nor too frequent."""
    torch.manual_seed(seed)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.uniform_(-1.2, 1.2)
            if "layer_norm" in name and name.endswith("weight"):
                parameter.abs_().add_(0.5)
        model.generator.bias[3] = end
    for module in model.modules():
        if isinstance(getattr(module, "pe", None), torch.Tensor):  # 5,000 places: the first are enough here
            module.pe = module.pe[:40].clone()


class Reading:
    """A model that reads and writes words."""

    def __init__(self, model: Any, vocab: dict[str, Any]):
        self.model, self.source, self.target = model, vocab["src"], vocab["tgt"]

    def logits(self, source: str, written: list[int]) -> torch.Tensor:
        """Logits after each of the words written so far, of which the first is <s>: `[T, V]`."""
        words = [self.source.index(word) if word in self.source else 0 for word in source.split()]
        given = torch.tensor([*written, 0])[None, :, None]
        read = torch.tensor(words)[None, :, None]
        output, _ = self.model(read, given, torch.tensor([len(words)]))
        found = self.model.generator(output)[0]
        found[:, [self.target.index(name) for name in NEVER]] = -torch.inf
        return found

    @torch.no_grad()
    def expected(self, source: str, target: str) -> dict[str, Any]:
        """Log-probabilities of a target with </s>, and the greedy output."""
        ids = [self.target.index(word) if word in self.target else 0 for word in target.split()]
        log_p = self.logits(source, [2, *ids]).log_softmax(-1)
        given = log_p.gather(1, torch.tensor([*ids, 3])[:, None])[:, 0]
        written = [self.target[i] for i in greedy(self.logits, source, start=2, end=3)]
        return {"log_probabilities": [round(value, 6) for value in given.tolist()], "greedy": written}


def main(folder: Path, only: list[str]) -> None:
    """Write model.pt and expected.json of each, or of some."""
    for name, changes in MODELS.items():
        if only and name not in only:
            continue
        vocab, own = vocabularies(), options(changes)
        vocabs = dict_to_vocabs(vocab)
        model = build_base_model(own, vocabs).eval()
        shake(model, *DRAWN[name])
        place = folder / name
        place.mkdir(parents=True, exist_ok=True)
        saved, _ = ModelSaver(str(place / "m"), model, own, vocabs, Sgd(), -1)._save(1, model)
        Path(saved).rename(place / "model.pt")
        write_expected(place, Reading(model, vocab).expected)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
