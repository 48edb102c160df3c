"""JoeyNMT 2: a folder with config.yaml, best.ckpt, src_vocab.txt and trg_vocab.txt.

Its recurrent decoder is Luong's in all: both attentions look with the new state. Every layer of it, and for the LSTM
the memory cell too, starts from the top layer of the encoder; W_c has a bias.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from mirada.config.configfile import load_yaml
from mirada.data.vocabulary import SPECIAL_TOKENS
from mirada.errors import ConfigError, ModelFolderError
from mirada.importing import recurrent, transformers
from mirada.importing.files import Tensors, ToolkitOptions, read_bytes
from mirada.importing.pickles import read_pickle
from mirada.importing.recurrent import Shape
from mirada.importing.transformers import Names, Ties, Weights
from mirada.importing.words import Sides, WordList, how_texts_are_cut, read_words, word_tokenizer
from mirada.importing.write import Imported
from mirada.models.embedding import Places

CHECKPOINTS = ("best.ckpt", "latest.ckpt")
MOST_WORDS = 1 << 28  # bytes
NAMES = Names(
    ("src_src_att", "trg_trg_att"),
    "src_trg_att",
    {"q": "q_layer", "k": "k_layer", "v": "v_layer", "o": "output_layer"},
    ("feed_forward.pwff_layer.0", "feed_forward.pwff_layer.3"),
    ("layer_norm", "feed_forward.layer_norm"),
    ("x_layer_norm", "dec_layer_norm", "feed_forward.layer_norm"),
)
PLACES = {
    "encoder": "encoder.layers.",
    "decoder": "decoder.layers.",
    "encoder_norm": "encoder.layer_norm",
    "decoder_norm": "decoder.layer_norm",
}
Found = tuple[dict[str, Any], Weights, str]  # options, weights, and a line about them
EPSILON = 1e-6  # of its layer norms
SYMBOLS = dict(zip(("unk_token", "pad_token", "bos_token", "eos_token"), SPECIAL_TOKENS, strict=True))
ATTENTIONS = {"bahdanau": "additive", "luong": "general"}


def read_joey(folder: Path) -> Imported:
    """Read a folder; raises ModelFolderError, naming what is wrong with it."""
    settings = _settings(folder / "config.yaml")
    data, model = settings.under("data"), settings.under("model")
    sides = _words(folder / "src_vocab.txt", data), _words(folder / "trg_vocab.txt", data)
    tensors = _tensors(folder)
    kinds = {"recurrent": "recurrent", "transformer": "transformer"}
    kind = model.under("encoder").one_of("type", kinds, "recurrent")
    if model.under("decoder").one_of("type", kinds, "transformer") != kind:
        raise ModelFolderError(f"{settings.path}: model.encoder and model.decoder are of different types")
    options, weights, note = (_transformer if kind == "transformer" else _recurrent)(tensors, model, sides)
    tensors.finish()
    tokenizers = word_tokenizer(sides[0]), word_tokenizer(sides[1])
    return Imported("JoeyNMT", options, weights, tokenizers, [note, how_texts_are_cut(sides)])


def _settings(path: Path) -> ToolkitOptions:
    try:
        return ToolkitOptions(path, load_yaml(path))
    except ConfigError as error:
        raise ModelFolderError(str(error)) from None


def _words(path: Path, data: ToolkitOptions) -> WordList:
    """A line an entry, behind the special ones, which JoeyNMT puts first in any case."""
    try:
        text = read_bytes(path, MOST_WORDS).decode("utf-8")
    except UnicodeDecodeError as error:
        raise ModelFolderError(f"{path}: not UTF-8 ({error.reason})") from None
    symbols = data.values.get("special_symbols") or {}
    named = {own: symbols.get(name, own) for name, own in SYMBOLS.items()} if isinstance(symbols, Mapping) else {}
    lines = text.replace("\r\n", "\n").removesuffix("\n").split("\n")
    listed = list(dict.fromkeys([*map(str, named.values()), *lines]))
    return read_words(path, listed, {own: listed.index(str(name)) for own, name in named.items()})


def _tensors(folder: Path) -> Tensors:
    for name in CHECKPOINTS:
        if (folder / name).is_file():
            content = read_pickle(folder / name)
            state = content.get("model_state") if isinstance(content, Mapping) else None
            if state is None:
                raise ModelFolderError(f"{folder / name}: holds no model_state, which JoeyNMT writes")
            return Tensors((folder / name).resolve(), state)
    raise ModelFolderError(f"{folder}: neither {CHECKPOINTS[0]} nor {CHECKPOINTS[1]} is there")


def _embedded(tensors: Tensors, model: ToolkitOptions, sides: Sides) -> tuple[tuple[Tensor, Tensor], list[bool]]:
    """The embeddings of both sides as they are, and whether the model multiplies them by √d."""
    tables, scaled = [], []
    for side, name, words in zip(("encoder", "decoder"), ("src", "trg"), sides, strict=True):
        own = model.under("encoder" if model.flag("tied_embeddings") else side).under("embeddings")
        width = own.whole("embedding_dim", 64)
        tables.append(tensors.take(f"{name}_embed.lut.weight", len(words.listed), width))
        scaled.append(own.flag("scale"))
    return (tables[0], tables[1]), scaled


def _flat(model: ToolkitOptions) -> ToolkitOptions:
    """The options of both sides beside each other, to be compared."""
    sides = {side: model.under(side).values for side in ("encoder", "decoder")}
    values = {f"{side}.{name}": value for side, own in sides.items() for name, value in own.items()}
    return ToolkitOptions(model.path, values, model.prefix)


def _ties(model: ToolkitOptions, tables: tuple[Tensor, Tensor], output: Tensor, sides: Sides) -> Ties:
    embeddings = model.flag("tied_embeddings") and sides[0].listed == sides[1].listed and torch.equal(*tables)
    softmax = model.flag("tied_softmax") and output.shape == tables[1].shape and torch.equal(output, tables[1])
    return Ties(embeddings, softmax)


def _transformer(tensors: Tensors, model: ToolkitOptions, sides: Sides) -> Found:
    encoder, decoder = model.under("encoder"), model.under("decoder")
    encoder.only({"alpha": 1.0})
    decoder.only({"alpha": 1.0})
    both = _flat(model)
    width = both.equal("encoder.hidden_size", "decoder.hidden_size")
    norm = encoder.one_of("layer_norm", {"pre": "pre", "post": "post"})
    decoder.one_of("layer_norm", {norm: norm}, "post")
    activation = encoder.one_of("activation", {"relu": "relu", "gelu": "gelu", "swish": "swish"}, "relu")
    decoder.one_of("activation", {activation: activation}, "relu")
    tables, scaled = _embedded(tensors, model, sides)
    output = tensors.take("decoder.output_layer.weight", len(tables[1]), width)
    ties = _ties(model, tables, output, sides)
    ties = Ties(ties.embeddings, ties.softmax and scaled[1])
    options = {
        "decoder": "transformer",
        "embedding_dim": width,
        "enc_layers": encoder.whole("num_layers", 8),
        "dec_layers": decoder.whole("num_layers", 4),
        "num_heads": both.equal("encoder.num_heads", "decoder.num_heads"),
        "ff_size": both.equal("encoder.ff_size", "decoder.ff_size"),
        "norm": norm,
        "norm_eps": EPSILON,
        "activation": activation,
        "tied_embeddings": ties.embeddings,
        "tied_softmax": ties.softmax,
    }
    source, target = (table * (1 if own else width**-0.5) for table, own in zip(tables, scaled, strict=True))
    found = transformers.looked_up((source, target), output, (sides[0].rows, sides[1].rows), ties)
    found["output.bias"] = torch.zeros(len(sides[1].rows))
    found |= transformers.layers(tensors, NAMES, options, PLACES)
    for side in ("encoder", "decoder"):
        transformers.check_positions(tensors, f"{side}.pe.pe", width, Places(), halves=False)
    papers = "pre-norm and " if norm == "pre" else ""
    return options, found, f"a Transformer as Vaswani et al. 2017 have it, but for {papers}ε {EPSILON:g} of its norms"


def _recurrent(tensors: Tensors, model: ToolkitOptions, sides: Sides) -> Found:
    encoder, decoder = model.under("encoder"), model.under("decoder")
    encoder.only({"bidirectional": True})  # JoeyNMT's own code fails with one direction
    decoder.only({"activation": "tanh"})
    kind = encoder.one_of("rnn_type", {"gru": "gru", "lstm": "lstm"}, "gru")
    decoder.one_of("rnn_type", {kind: kind}, "gru")
    attention = decoder.one_of("attention", {name: name for name in ATTENTIONS}, "bahdanau")
    tables, scaled = _embedded(tensors, model, sides)
    hidden, widths = decoder.whole("hidden_size"), [table.size(1) for table in tables]
    shape = Shape(kind, max(widths), encoder.whole("hidden_size"), True, hidden)
    layers = encoder.whole("num_layers", 1), decoder.whole("num_layers", 1)
    feeding = decoder.flag("input_feeding", True)
    output = tensors.take("decoder.output_layer.weight", len(tables[1]), hidden)
    ties = _ties(model, tables, output, sides)
    softmax = ties.softmax and not scaled[1]
    source, target = (
        table * (math.sqrt(table.size(1)) if own else 1) for table, own in zip(tables, scaled, strict=True)
    )
    found = recurrent.looked_up((source, target), sides, shape, tied=ties.embeddings)
    found |= {} if softmax else {"output.weight": output[sides[1].rows]}
    found["output.bias"] = torch.zeros(len(sides[1].rows))
    found |= recurrent.encoder(tensors, "encoder.rnn.", shape, layers=layers[0], embedding=widths[0])
    cells = [f"decoder.rnn.*_l{layer}" for layer in range(layers[1])]
    found |= recurrent.stack(tensors, cells, shape, embedding=widths[1], feeding=feeding)
    found |= _attention(tensors, attention, shape)
    bridge, maps = _bridge(tensors, decoder, shape)
    found |= recurrent.bridges(maps * (2 if kind == "lstm" else 1), layers[1])
    options = {
        "decoder": "luong",
        "score": ATTENTIONS[attention],
        "rnn_type": kind,
        "embedding_dim": shape.embedding,
        "hidden_size": hidden,
        "encoder_hidden_size": shape.direction,
        "enc_layers": layers[0],
        "dec_layers": layers[1],
        "bidirectional": True,
        "input_feeding": feeding,
        "bridge": bridge,
        "bridge_from": "top",
        "attentional_bias": True,
        "tied_embeddings": ties.embeddings,
        "tied_softmax": softmax,
    }
    return options, found, _named(attention)


def _attention(tensors: Tensors, attention: str, shape: Shape) -> Weights:
    """The score and W_c, which reads [s; c] there."""
    hidden, memory = shape.hidden, shape.memory
    mixed = tensors.take("decoder.att_vector_layer.weight", hidden, hidden + memory)
    found = {
        "w_c.weight": torch.cat((mixed[:, hidden:], mixed[:, :hidden]), 1),
        "w_c.bias": tensors.take("decoder.att_vector_layer.bias", hidden),
    }
    key = tensors.take("decoder.attention.key_layer.weight", hidden, memory)
    if attention == "luong":
        return {**found, "score.w_a.weight": key}
    found["score.u_a.weight"] = key
    found["score.w_a.weight"] = tensors.take("decoder.attention.query_layer.weight", hidden, hidden)
    found["score.v_a"] = tensors.take("decoder.attention.energy_layer.weight", 1, hidden)[0]
    return found


def _bridge(tensors: Tensors, decoder: ToolkitOptions, shape: Shape) -> tuple[str, list[tuple[Tensor, Tensor]]]:
    """How every layer starts from the top layer's [→h_S; ←h_1], in mirada's word and as weights."""
    kinds = {"bridge": "tanh", "last": "last", "zero": "zero", "zeros": "zero"}
    kind, hidden, memory = decoder.one_of("init_hidden", kinds, "bridge"), shape.hidden, shape.memory
    if kind == "tanh":
        names = [("weight", (hidden, memory)), ("bias", (hidden,))]
        weight, bias = (tensors.take(f"decoder.bridge_layer.{name}", *size) for name, size in names)
        return "tanh", [(weight, bias)]
    if kind == "last" and memory == hidden:
        return "copy", []
    if kind == "last" and memory != 2 * hidden:
        raise ModelFolderError(
            f"{decoder.path}: init_hidden last, but the encoder is {memory} wide, the decoder {hidden}"
        )
    first = torch.eye(hidden, memory) if kind == "last" else torch.zeros(hidden, memory)  # →h_S alone, or nothing
    return "linear", [(first, torch.zeros(hidden))]


def _named(attention: str) -> str:
    """What a user of the papers should know."""
    system = "bahdanau attention is not Bahdanau's system: the additive score looks with the new state (Luong's flow)"
    if attention == "luong":
        system = "luong attention is Luong's system with the score general"
    return f"{system}; W_c has a bias, and every decoder layer, cells too, starts from the encoder's top layer"
