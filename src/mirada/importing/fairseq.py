"""fairseq: a checkpoint with dict.xx.txt of both languages beside it, or the folder of both; LSTM and Transformer.

Outputs begin with </s>. Sinusoids are tensor2tensor's, counted from 2, all sines before all cosines.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from mirada.errors import ModelFolderError
from mirada.importing import recurrent, transformers
from mirada.importing.files import Tensors, ToolkitOptions, read_bytes
from mirada.importing.pickles import read_pickle
from mirada.importing.recurrent import Shape
from mirada.importing.transformers import FAIRSEQ, Ties, Weights
from mirada.importing.words import Sides, WordList, how_texts_are_cut, read_words, word_tokenizer
from mirada.importing.write import Imported

CHECKPOINTS = ("checkpoint_best.pt", "checkpoint_last.pt", "checkpoint.pt", "model.pt")
MOST_WORDS = 1 << 28  # bytes
FIRST = ("<s>", "<pad>", "</s>", "<unk>")  # the entries that no file lists
SPECIAL = {"<unk>": 3, "<pad>": 1, "<s>": 2, "</s>": 2, "never read or written": 0}
PLACES = {
    "encoder": "encoder.layers.",
    "decoder": "decoder.layers.",
    "encoder_norm": "encoder.layer_norm",
    "decoder_norm": "decoder.layer_norm",
}
ONLY_TRANSFORMER = {
    "encoder_learned_pos": False,
    "decoder_learned_pos": False,
    "no_token_positional_embeddings": False,
    "layernorm_embedding": False,
    "no_decoder_final_norm": False,
    "no_cross_attention": False,
    "cross_self_attention": False,
    "adaptive_input": False,
}
ACTIVATIONS = {"relu": "relu", "gelu": "gelu", "gelu_accurate": "gelu", "swish": "swish"}
# What says nothing: versions, places on a device, and copies of an encoder layer's weights that loading makes anew.
PASSED_OVER = [
    f"{side}.{name}" for side in ("encoder", "decoder") for name in ("version", "embed_positions._float_tensor")
]
COPIES = [f"{part}_{kind}" for part in ("in_proj", "out_proj", "fc1", "fc2") for kind in ("weight", "bias")]
Found = tuple[dict[str, Any], Weights, str]  # options, weights, and a line about them


def read_fairseq_folder(folder: Path) -> Imported:
    """Read the checkpoint of a folder; raises ModelFolderError if there is none, or several without a usual name."""
    usual = [folder / name for name in CHECKPOINTS if (folder / name).is_file()]
    found = usual[:1] or list(folder.glob("*.pt"))
    if len(found) != 1:
        raise ModelFolderError(f"{folder}: {len(found)} files *.pt and none is called {CHECKPOINTS[0]}; name the one")
    return read_fairseq(found[0], read_pickle(found[0]))


def read_fairseq(path: Path, content: Any) -> Imported:
    """Read a checkpoint from what its file holds; raises ModelFolderError, naming what is wrong with it."""
    settings = _settings(path, content)
    sides = _words(path.parent, settings, "source_lang"), _words(path.parent, settings, "target_lang")
    tensors = Tensors(path, content.get("model"))
    tensors.skip(*PASSED_OVER)
    if "encoder.lstm.weight_ih_l0" in tensors:
        options, weights, note = _lstm(tensors, settings, sides)
    elif "encoder.layers.0.self_attn.q_proj.weight" in tensors:
        options, weights, note = _transformer(tensors, settings, sides)
    else:
        raise ModelFolderError(
            f"{path}: {settings.values.get('arch')!r:.60} is neither fairseq's lstm nor its transformer"
        )
    tensors.finish()
    tokenizers = word_tokenizer(sides[0]), word_tokenizer(sides[1])
    return Imported(
        "fairseq", options, weights, tokenizers, [f"{note}; outputs begin with </s>", how_texts_are_cut(sides)]
    )


def _settings(path: Path, content: Any) -> ToolkitOptions:
    """The options of model and task: of older checkpoints `args`, of newer ones those of `cfg`; nested ones flat."""
    if not isinstance(content, Mapping):
        raise ModelFolderError(f"{path}: not a checkpoint of fairseq")
    config = content.get("cfg") if content.get("args") is None else {"model": content["args"]}
    if not isinstance(config, Mapping):
        raise ModelFolderError(f"{path}: holds no options (neither args nor cfg), as fairseq writes them")
    values: dict[str, Any] = {}
    for part in (config.get("task"), config.get("model")):
        own = dict(vars(part)) if isinstance(part, argparse.Namespace) else part
        values |= own if isinstance(own, Mapping) else {}
    for side in ("encoder", "decoder"):
        if isinstance(nested := values.get(side), Mapping):
            values |= {f"{side}_{name}": value for name, value in nested.items()}
    return ToolkitOptions(path, values)


def _words(folder: Path, settings: ToolkitOptions, name: str) -> WordList:
    """A side's dictionary: a word and its count a line."""
    language = settings.values.get(name)
    if not isinstance(language, str) or not language.isascii() or not language.replace("_", "").isalnum():
        raise settings.wrong(name, language, "a language, such as en, of which dict.en.txt is beside the checkpoint")
    path = folder / f"dict.{language}.txt"
    try:
        text = read_bytes(path, MOST_WORDS).decode("utf-8")
    except UnicodeDecodeError as error:
        raise ModelFolderError(f"{path}: not UTF-8 ({error.reason})") from None
    listed = list(FIRST)
    for number, line in enumerate(text.removesuffix("\n").split("\n"), start=1):
        word, blank, count = line.rstrip().removesuffix(" #fairseq:overwrite").rpartition(" ")
        if not blank or not count.isdecimal():
            raise ModelFolderError(f"{path}:{number}: {line!r:.60}, expected a word, a blank and its count")
        listed.append(word)
    return read_words(path, listed, SPECIAL)


def _embedded(tensors: Tensors, sides: Sides, widths: tuple[int, int]) -> tuple[Tensor, Tensor]:
    source, target = (
        tensors.take(f"{side}.embed_tokens.weight", len(words.listed), width)
        for side, words, width in zip(("encoder", "decoder"), sides, widths, strict=True)
    )
    return source, target


def _shared(settings: ToolkitOptions, tables: tuple[Tensor, Tensor], sides: Sides) -> bool:
    return settings.flag("share_all_embeddings") and sides[0].listed == sides[1].listed and torch.equal(*tables)


def _lstm(tensors: Tensors, settings: ToolkitOptions, sides: Sides) -> Found:
    widths = settings.whole("encoder_embed_dim"), settings.whole("decoder_embed_dim")
    both, hidden = settings.flag("encoder_bidirectional"), settings.whole("decoder_hidden_size")
    shape = Shape("lstm", max(widths), settings.whole("encoder_hidden_size"), both, hidden)
    layers = settings.equal("encoder_layers", "decoder_layers")
    attends = bool(settings.one_of("decoder_attention", TRUTHS, "1"))
    tables = _embedded(tensors, sides, widths)
    tied = _shared(settings, tables, sides)
    found = recurrent.looked_up(tables, sides, shape, tied=tied)
    found |= recurrent.encoder(tensors, "encoder.lstm.", shape, layers=layers, embedding=widths[0])
    cells = [f"decoder.layers.{layer}.*" for layer in range(layers)]
    found |= recurrent.stack(tensors, cells, shape, embedding=widths[1], feeding=True)
    bridged = shape.memory != hidden
    found |= recurrent.bridges(_bridge(tensors, shape), layers) if bridged else {}
    if attends:  # the score is (P s)ᵀ h, so that W_a is P turned
        found["score.w_a.weight"] = tensors.take(
            "decoder.attention.input_proj.weight", shape.memory, hidden
        ).T.contiguous()
        found["w_c.weight"] = tensors.take("decoder.attention.output_proj.weight", hidden, hidden + shape.memory)
    output, bias = _output(tensors, settings, tables[1], hidden)
    softmax = output is tables[1] and shape.embedding == hidden
    found |= {} if softmax else {"output.weight": output[sides[1].rows]}
    options = {
        "decoder": "luong" if attends else "classic",
        **({"score": "general"} if attends else {}),
        "rnn_type": "lstm",
        "embedding_dim": shape.embedding,
        "hidden_size": hidden,
        "encoder_hidden_size": shape.direction,
        "enc_layers": layers,
        "dec_layers": layers,
        "bidirectional": both,
        "input_feeding": True,
        "bridge": "linear" if bridged else "copy",
        "tied_embeddings": tied,
        "tied_softmax": softmax,
    }
    note = "Luong's system with the score general, as Luong et al. 2015 have it"
    if not attends:
        note = "the classic encoder-decoder, the top layer's state entering the next step beside the word"
    return options, {**found, "output.bias": bias[sides[1].rows]}, note


TRUTHS = {"1": True, "0": False, "True": True, "False": False, True: True, False: False}


def _bridge(tensors: Tensors, shape: Shape) -> list[tuple[Tensor, Tensor]]:
    """W h + b and W' c + b', the same for every layer."""
    return [
        (
            tensors.take(f"decoder.encoder_{part}_proj.weight", shape.hidden, shape.memory),
            tensors.take(f"decoder.encoder_{part}_proj.bias", shape.hidden),
        )
        for part in ("hidden", "cell")
    ]


def _output(tensors: Tensors, settings: ToolkitOptions, table: Tensor, hidden: int) -> tuple[Tensor, Tensor]:
    """The output layer; where a layer without activation stands before it, the product of both."""
    width = settings.whole("decoder_out_embed_dim")
    if settings.flag("share_decoder_input_output_embed") or settings.flag("share_all_embeddings"):
        weight, bias = table, torch.zeros(len(table))
        if width != table.size(1):
            raise ModelFolderError(f"{tensors.path}: decoder_out_embed_dim {width} and decoder_embed_dim must be equal")
    else:
        weight = tensors.take("decoder.fc_out.weight", len(table), width)
        bias = tensors.take("decoder.fc_out.bias", len(table))
    if width == hidden:
        return weight, bias
    between = tensors.take("decoder.additional_fc.weight", width, hidden)
    added = tensors.take("decoder.additional_fc.bias", width)
    return weight @ between, weight @ added + bias


def _transformer(tensors: Tensors, settings: ToolkitOptions, sides: Sides) -> Found:
    settings.only(ONLY_TRANSFORMER)
    width = settings.equal("encoder_embed_dim", "decoder_embed_dim")
    if width % 2:
        raise settings.wrong("encoder_embed_dim", width, "an even number")
    before = settings.flag("encoder_normalize_before")
    settings.only({"decoder_normalize_before": before})
    tables = _embedded(tensors, sides, (width, width))
    output = tables[1]
    if "decoder.output_projection.weight" in tensors:
        output = tensors.take("decoder.output_projection.weight", len(output), width)
    scaled = not settings.flag("no_scale_embedding")
    ties = Ties(_shared(settings, tables, sides), scaled and torch.equal(output, tables[1]))
    options = {
        "decoder": "transformer",
        "embedding_dim": width,
        "enc_layers": settings.whole("encoder_layers"),
        "dec_layers": settings.whole("decoder_layers"),
        "num_heads": settings.equal("encoder_attention_heads", "decoder_attention_heads"),
        "ff_size": settings.equal("encoder_ffn_embed_dim", "decoder_ffn_embed_dim"),
        "norm": "pre" if before else "post",
        "activation": settings.one_of("activation_fn", ACTIVATIONS, "relu"),
        "position_encoding": "tensor2tensor",
        "first_position": SPECIAL["<pad>"] + 1,
        "tied_embeddings": ties.embeddings,
        "tied_softmax": ties.softmax,
    }
    source, target = (table * (1 if scaled else width**-0.5) for table in tables)
    found = transformers.looked_up((source, target), output, (sides[0].rows, sides[1].rows), ties)
    found["output.bias"] = torch.zeros(len(sides[1].rows))
    found |= transformers.layers(tensors, FAIRSEQ, options, PLACES)
    for number in range(options["enc_layers"]):
        tensors.skip(*(f"encoder.layers.{number}.{name}" for name in COPIES))
    positions = "tensor2tensor's wavelengths of positions, counted from 2"
    note = f"a Transformer as Vaswani et al. 2017 have it, but for {positions}"
    return options, transformers.reordered(found, transformers.from_halves(width)), note
