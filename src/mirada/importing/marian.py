"""Marian's Transformers as Hugging Face holds them (MarianMTModel): opus-mt and its language pairs.

Sinusoids come as all sines, then all cosines: the numbers of every position are put in mirada's order, once. Outputs
begin with the embedding of <pad>, and <pad> is never written; mirada's <s> has that embedding.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from mirada.data.vocabulary import SPECIAL_TOKENS
from mirada.errors import ModelFolderError
from mirada.importing.files import Tensors, read_json, read_tensors
from mirada.importing.spm import Pieces, is_language, read_pieces, tokenizer
from mirada.importing.transformers import (
    FAIRSEQ,
    Ties,
    Weights,
    check_positions,
    from_halves,
    layers,
    looked_up,
    reordered,
)
from mirada.importing.write import Imported
from mirada.models.embedding import Places

PLACES = {"encoder": "model.encoder.layers.", "decoder": "model.decoder.layers."}
WEIGHTS = ("model.safetensors", "pytorch_model.bin")
ACTIVATIONS = {"relu": "relu", "gelu": "gelu", "swish": "swish", "silu": "swish"}
ONLY = {"normalize_before": False, "normalize_embedding": False, "add_bias_logits": False}
FEW = 0.5  # of a SentencePiece model's pieces, if no more are in the vocabulary, they do not belong together


def read_marian(folder: Path) -> Imported:
    """A folder of `save_pretrained`; raises ModelFolderError, naming what is wrong with it."""
    where, config = folder / "config.json", read_json(folder / "config.json")
    options = _options(where, config)
    shared = config.get("share_encoder_decoder_embeddings", True)
    names = ("vocab.json", "vocab.json" if shared else "target_vocab.json")
    rows = [_rows(folder / name, config, where) for name in names]
    pieces = [read_pieces(folder / name) for name in ("source.spm", "target.spm")]
    notes = [_missing(*pair) for pair in zip(pieces, rows, strict=True)]
    tensors = _weights_file(folder)
    weights = _weights(tensors, config, options, (rows[0], rows[1]))
    tensors.finish()
    languages = [entry for entry in rows[0] if is_language(entry)]
    if languages:
        notes.append(
            f"each source must begin with the language it is to become, such as {languages[0]} "
            f"({len(languages)} in vocab.json)"
        )
    tokenizers = [tokenizer(model, list(entries)) for model, entries in zip(pieces, rows, strict=True)]
    return Imported(
        "Marian (Hugging Face)",
        options,
        weights,
        (tokenizers[0], tokenizers[1]),
        [
            "a Transformer as Vaswani et al. 2017 have it, but for "
            f"{options['activation']} in the feed-forward layers and a first token that is <pad>",
            *filter(None, notes),
        ],
    )


def _options(where: Path, config: Mapping[str, Any]) -> dict[str, Any]:
    """mirada's options of the model; raises ModelFolderError for what has no option."""
    if config.get("model_type") != "marian":
        raise ModelFolderError(f"{where}: model_type {config.get('model_type')!r}, expected 'marian'")
    for name, value in ONLY.items():
        if config.get(name, value) != value:
            raise ModelFolderError(f"{where}: {name} {config[name]}; only {value} can be imported")
    both = [("attention_heads", "num_heads"), ("ffn_dim", "ff_size")]
    found = {"embedding_dim": _whole(where, config, "d_model")}
    for name, option in both:
        sides = [_whole(where, config, f"{side}_{name}") for side in ("encoder", "decoder")]
        if sides[0] != sides[1]:
            raise ModelFolderError(f"{where}: encoder_{name} {sides[0]} and decoder_{name} {sides[1]} must be equal")
        found[option] = sides[0]
    found |= {f"{side[:3]}_layers": _whole(where, config, f"{side}_layers") for side in ("encoder", "decoder")}
    activation = config.get("activation_function")
    if activation not in ACTIVATIONS:
        raise ModelFolderError(f"{where}: activation_function {activation!r}, expected {', '.join(ACTIVATIONS)}")
    scaled, tied = config.get("scale_embedding", False), config.get("tie_word_embeddings", True)
    return {
        "decoder": "transformer",
        **found,
        "norm": "post",
        "activation": ACTIVATIONS[activation],
        "tied_embeddings": bool(config.get("share_encoder_decoder_embeddings", True)),
        "tied_softmax": bool(tied and scaled),
    }


def _whole(where: Path, config: Mapping[str, Any], name: str) -> int:
    value = config.get(name)
    if not isinstance(value, int) or isinstance(value, bool) or not 0 < value <= 1 << 20:
        raise ModelFolderError(f"{where}: {name} is {value!r:.60}, expected a whole number from 1 to {1 << 20}")
    return value


def _rows(path: Path, config: Mapping[str, Any], where: Path) -> dict[str, int]:
    """mirada's entries in order, the special tokens first, each with its row in the file's embeddings."""
    vocabulary = read_json(path)
    if sorted(map(str, vocabulary.values())) != sorted(map(str, range(len(vocabulary)))):
        raise ModelFolderError(f"{path}: its entries are not numbered from 0 without a gap")
    own = {"<unk>": vocabulary.get("<unk>"), "</s>": config.get("eos_token_id", 0)}
    own |= {
        "<pad>": config.get("pad_token_id"),
        "<s>": config.get("decoder_start_token_id", config.get("pad_token_id")),
    }
    for name, row in own.items():
        if not isinstance(row, int) or isinstance(row, bool) or not 0 <= row < len(vocabulary):
            raise ModelFolderError(f"{where}: {name} is {row!r:.60}, but {path.name} has {len(vocabulary)} entries")
    taken = set(own.values())
    ordered = {name: own[name] for name in SPECIAL_TOKENS}
    for name, row in sorted(vocabulary.items(), key=lambda item: item[1]):
        if row not in taken:
            if name in ordered:
                raise ModelFolderError(f"{path}: the entry {name} is not the one that {where.name} names")
            ordered[name] = row
    return ordered


def _missing(pieces: Pieces, rows: Mapping[str, int]) -> str:
    """A line about pieces that have no entry; raises ModelFolderError where there are many."""
    missing = sum(piece not in rows for piece in pieces.scores)
    if missing > FEW * len(pieces.scores):
        raise ModelFolderError(
            f"{pieces.path}: {missing} of its {len(pieces.scores)} pieces are not in the vocabulary; "
            "it is of another model"
        )
    return f"{missing} pieces of {pieces.path.name} are in no vocabulary: text is cut without them" if missing else ""


def _weights_file(folder: Path) -> Tensors:
    for name in WEIGHTS:
        if (folder / name).is_file():
            return read_tensors(folder / name)
    raise ModelFolderError(f"{folder}: neither {WEIGHTS[0]} nor {WEIGHTS[1]} is there")


def _weights(
    tensors: Tensors, config: Mapping[str, Any], options: Mapping[str, Any], rows: tuple[dict[str, int], dict[str, int]]
) -> Weights:
    width = options["embedding_dim"]
    embedded, output = _embeddings(tensors, config, width)
    for entries, embeddings in zip(rows, embedded, strict=True):
        if (last := max(entries.values())) >= len(embeddings):
            raise ModelFolderError(
                f"{tensors.path}: {len(embeddings)} embeddings, but the vocabulary has {last + 1} entries"
            )
    source, target = (torch.tensor(list(entries.values())) for entries in rows)
    scale = 1.0 if config.get("scale_embedding", False) else width**-0.5
    tied = Ties(options["tied_embeddings"], options["tied_softmax"])
    found = looked_up((embedded[0] * scale, embedded[1] * scale), output, (source, target), tied)
    found["output.bias"] = tensors.take("final_logits_bias", 1, len(output))[0][target]
    found |= layers(tensors, FAIRSEQ, options, PLACES)
    for side in ("encoder", "decoder"):
        check_positions(tensors, f"model.{side}.embed_positions.weight", width, Places(), halves=True)
    return reordered(found, from_halves(width))


def _embeddings(tensors: Tensors, config: Mapping[str, Any], width: int) -> tuple[tuple[Tensor, Tensor], Tensor]:
    """Embeddings of both sides, and the output layer's weights."""
    sides = ("model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight")
    if config.get("share_encoder_decoder_embeddings", True):
        size = config.get("vocab_size")
        names = ["model.shared.weight", "model.shared.weight"]
        if "model.shared.weight" not in tensors and sides[0] in tensors:
            names = [sides[0], sides[0]]
        sizes = [size, size]
    else:
        names, sizes = list(sides), [config.get("vocab_size"), config.get("decoder_vocab_size")]
    source, target = (tensors.take(name, size, width) for name, size in zip(names, sizes, strict=True))
    for name, expected in zip(sides, (source, target), strict=True):
        tensors.take_same(name, expected, names[0])
    if config.get("tie_word_embeddings", True):
        tensors.take_same("lm_head.weight", target, names[1])
        return (source, target), target
    return (source, target), tensors.take("lm_head.weight", sizes[1], width)
