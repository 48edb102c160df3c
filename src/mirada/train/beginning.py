"""What a training begins with: fresh weights, those of another model, vectors of words; and what stays as it is."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor, nn

from mirada.config.configfile import changed
from mirada.config.options import Config
from mirada.data.corpus import Corpus
from mirada.data.parts import SourceTokenizer
from mirada.data.preparing import Tokenizers
from mirada.data.vectors import read_vectors
from mirada.errors import ConfigError, TrainingError
from mirada.files import expanded
from mirada.hub import located
from mirada.models import build_model
from mirada.store import checkpoint
from mirada.train import prepare

# What a kept vocabulary fixes.
VOCABULARY = ("source_tokenizer", "target_tokenizer", "vocab_size", "share_vocab", "normalize", "split_digits")
BEGINNING = "▁"  # of a subword that begins a word


def adopt(config: Config, folder: Path) -> Config:
    """The options of a training that begins with another model, where none are given: its sizes, a kept vocabulary.

    `folder` is that model, or the training itself when it goes on. Raises ConfigError for an option that contradicts.
    """
    stored = checkpoint.read_config(folder)
    given = {name: getattr(config.model, name) for name in config.model.model_fields_set}
    blocks = {"model": changed(stored.model, given)}
    if config.training.init_vocab == "map":
        return config.model_copy(update=blocks)
    kept = {name: getattr(stored.data, name) for name in VOCABULARY}
    for name in sorted(config.data.model_fields_set & {*kept, "tokenizer"}):
        value = getattr(config.data, name)
        if value not in (kept.get(name), *([kept["source_tokenizer"], "auto"] if name == "tokenizer" else [])):
            raise ConfigError(
                f"{name} {value} with init_vocab keep, and {folder} has {kept.get(name, kept['source_tokenizer'])}; "
                f"leave {name} out, or use init_vocab map"
            )
    return config.model_copy(update={**blocks, "data": changed(config.data, kept)})


def origin(name: str) -> Path:
    """The folder of the model to begin with: a path, or hf:USER/NAME."""
    return expanded(located(name))


def first_tokenizers(config: Config, corpus: Corpus) -> Tokenizers:
    """Those of the model to begin with, or new ones learned from the training pairs."""
    options = config.training
    if options.init_from and options.init_vocab == "keep":
        folder = origin(options.init_from)
        return checkpoint.read_tokenizers(folder, checkpoint.read_config(folder))
    return prepare.learn_tokenizers(config, corpus)


def begin(config: Config, model: nn.Module, tokenizers: Tokenizers) -> list[str]:
    """Fill a fresh model with what the options name; returns a line for each thing done.

    Raises ModelFolderError, TrainingError or DataError for what does not fit.
    """
    notes = []
    if config.training.init_from:
        notes += _from_model(config, model, tokenizers)
    for side, name in enumerate(("source", "target")):
        path = (config.training.source_embeddings, config.training.target_embeddings)[side]
        if path:
            notes.append(_from_vectors(config, model, tokenizers, name, expanded(path)))
    return notes


def freeze(model: nn.Module, parts: tuple[str, ...]) -> None:
    """Let the named parts stay as they are. Raises TrainingError if nothing is left to learn."""
    for name, parameter in model.named_parameters():
        parameter.requires_grad_(_part(name) not in parts)
    if not any(parameter.requires_grad for parameter in model.parameters()):
        raise TrainingError(f"freeze {','.join(parts)} leaves nothing to learn")


def _part(name: str) -> str:
    """The part of a model that a weight belongs to."""
    if name.endswith("embedding.weight"):
        return "embeddings"
    first = name.split(".", maxsplit=1)[0]
    return first if first == "output" else "encoder" if first.startswith("encoder") else "decoder"


def _from_model(config: Config, model: nn.Module, tokenizers: Tokenizers) -> list[str]:
    """Weights by name; rows that stand for pieces of a vocabulary go to the same pieces."""
    folder = origin(config.training.init_from or "")
    loaded = checkpoint.load_model(folder, torch.device("cpu"))
    old, bound = checkpoint.weights_of(loaded.model), _bound(config, tokenizers)
    new = checkpoint.weights_of(model)
    if set(old) != set(new):
        name = sorted(set(old) ^ set(new))[0]
        raise TrainingError(f"{folder}: only one of the two models has weights {name}; give the model's own options")
    before = {"source": loaded.source, "target": loaded.target}
    after = dict(zip(("source", "target"), tokenizers, strict=True))
    rows = {side: _same_pieces(before[side], after[side]) for side in ("source", "target")}
    for name, value in new.items():
        places = rows[bound[name]] if name in bound else None
        if value.shape[1:] != old[name].shape[1:] or (places is None and value.shape != old[name].shape):
            raise TrainingError(
                f"{folder}: weights {name} are {list(old[name].shape)}, but these options need {list(value.shape)}; "
                "leave out the sizes: they are the model's own"
            )
        _copy(value, old[name], places)
    return [
        f"weights of {folder}",
        *(_known(side, rows[side], len(after[side])) for side in sorted(set(bound.values()))),
    ]


def _copy(new: Tensor, old: Tensor, places: tuple[Tensor, Tensor] | None) -> None:
    if places is None:
        new.copy_(old)
    else:
        new[places[1].to(new.device)] = old[places[0]].to(new.device)


def _bound(config: Config, tokenizers: Tokenizers) -> dict[str, str]:
    """Which weights have a row for each piece of a vocabulary, and of which: those that grow with it."""
    sizes = [len(tokenizer) for tokenizer in tokenizers]
    found = {}
    for side, more in (("source", (1, 0)), ("target", (0, 1))):
        with torch.device("meta"):
            small, large = (
                build_model(config.model, source_vocab=sizes[0] + k * more[0], target_vocab=sizes[1] + k * more[1])
                for k in (0, 1)
            )
        for (name, left), (_, right) in zip(small.named_parameters(), large.named_parameters(), strict=True):
            if left.shape != right.shape:
                found[name] = side
    return found


def _same_pieces(before: SourceTokenizer, after: SourceTokenizer) -> tuple[Tensor, Tensor]:
    """Ids of the pieces that both have: in the old vocabulary, and in the new."""
    places = {before.token(i): i for i in range(len(before))}
    pairs = [(places[piece], i) for i in range(len(after)) if (piece := after.token(i)) in places]
    return torch.tensor([old for old, _ in pairs]), torch.tensor([new for _, new in pairs])


def _known(side: str, places: tuple[Tensor, Tensor], size: int) -> str:
    return (
        f"{side} vocabulary: {len(places[1]):,} of {size:,} pieces are the model's, {size - len(places[1]):,} are new"
    )


def _from_vectors(config: Config, model: nn.Module, tokenizers: Tokenizers, side: str, path: Path) -> str:
    tokenizer = tokenizers[side == "target"]
    words = {_word(tokenizer.token(i), config, side): i for i in range(len(tokenizer))}
    words.pop("", None)
    found = read_vectors(path, words.keys(), width=config.model.embedding_dim)
    bound = _bound(config, tokenizers)
    names = [name for name, owner in bound.items() if _part(name) == "embeddings" and owner == side]
    if not names:  # shared with the target
        names = [name for name in bound if _part(name) == "embeddings"]
    weights = checkpoint.weights_of(model)
    for word, vector in found.items():
        weights[names[0]][words[word]] = torch.from_numpy(vector).to(weights[names[0]].device)
    return f"{path}: vectors of {len(found):,} of {len(words):,} words of the {side} vocabulary"


def _word(piece: str, config: Config, side: str) -> str:
    """The word that a piece is the beginning of, or nothing for what stands inside words."""
    kind = config.data.source_tokenizer if side == "source" else config.data.target_tokenizer
    if {"bpe", "unigram"} & set((kind or "").split(",")):
        return piece[1:] if piece.startswith(BEGINNING) else ""
    return piece
