"""OpenNMT-py 3: one file of torch.save with weights, options and vocabularies; recurrent systems and the Transformer.

Its recurrent decoders attend with the new state, whatever the score: `mlp` is the additive score in Luong's flow, not
Bahdanau's system. Sources end without </s>.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from mirada.data.vocabulary import SPECIAL_TOKENS
from mirada.errors import ModelFolderError
from mirada.importing import recurrent, transformers
from mirada.importing.files import Tensors, ToolkitOptions
from mirada.importing.recurrent import Shape
from mirada.importing.transformers import Names, Ties, Weights
from mirada.importing.words import Sides, WordList, how_texts_are_cut, read_words, word_tokenizer
from mirada.importing.write import Imported
from mirada.models.embedding import Places

EMBEDDED = "{}.embeddings.make_embedding.emb_luts.0.weight"
POSITIONS = "{}.embeddings.make_embedding.pe.pe"
NAMES = Names(
    ("self_attn", "self_attn"),
    "context_attn",
    {"q": "linear_query", "k": "linear_keys", "v": "linear_values", "o": "final_linear"},
    ("feed_forward.w_1", "feed_forward.w_2"),
    ("layer_norm", "feed_forward.layer_norm"),
    ("layer_norm_1", "layer_norm_2", "feed_forward.layer_norm"),
)
PLACES = {
    "encoder": "encoder.transformer.",
    "decoder": "decoder.transformer_layers.",
    "encoder_norm": "encoder.layer_norm",
    "decoder_norm": "decoder.layer_norm",
}
ONLY = {"model_type": "text", "model_task": "seq2seq", "copy_attn": False, "n_src_feats": 0}
ONLY_RECURRENT = {
    "coverage_attn": False,
    "context_gate": None,
    "global_attention_function": "softmax",
    "position_encoding": False,
}
ONLY_TRANSFORMER = {
    "decoder_type": "transformer",
    "position_encoding": True,
    "layer_norm": "standard",
    "max_relative_positions": 0,
    "parallel_residual": False,
    "num_kv": 0,
    "num_experts": 0,
    "sliding_window": 0,
}
SCORES = {"general": "general", "dot": "dot", "mlp": "additive"}


def read_opennmt(path: Path, content: Mapping[str, Any]) -> Imported:
    """Read a checkpoint from what its file holds; raises ModelFolderError, naming what is wrong with it."""
    settings = _settings(path, content)
    settings.only(ONLY)
    sides = _vocabularies(path, content.get("vocab"))
    tensors = _tensors(path, content)
    if settings.values.get("encoder_type") == "transformer":
        options, weights = _transformer(tensors, settings, sides)
        notes = [
            f"a Transformer as Vaswani et al. 2017 have it, but for pre-norm, ε {options['norm_eps']:g} of its norms"
        ]
    else:
        options, weights = _recurrent(tensors, settings, sides)
        notes = [_named(options, str(settings.values.get("global_attention")))]
    tensors.finish()
    notes[0] += "; its encoder does not read the </s> of sources"
    options["add_source_eos"] = False
    tokenizers = word_tokenizer(sides[0]), word_tokenizer(sides[1])
    return Imported("OpenNMT-py", options, weights, tokenizers, [*notes, how_texts_are_cut(sides)])


def _settings(path: Path, content: Mapping[str, Any]) -> ToolkitOptions:
    """The options of the training, those that stand for several others spread."""
    opt = content.get("opt")
    values = dict(vars(opt)) if isinstance(opt, argparse.Namespace) else opt
    settings = ToolkitOptions(path, values, "opt.")
    for one, both in (
        ("layers", ("enc_layers", "dec_layers")),
        ("word_vec_size", ("src_word_vec_size", "tgt_word_vec_size")),
    ):
        if isinstance(value := settings.values.get(one), int) and value > 0:
            settings = ToolkitOptions(path, {**settings.values, **dict.fromkeys(both, value)}, "opt.")
    if isinstance(value := settings.values.get("hidden_size"), int) and value > 0:
        settings = ToolkitOptions(path, {**settings.values, "enc_hid_size": value, "dec_hid_size": value}, "opt.")
    return settings


def _vocabularies(path: Path, vocab: Any) -> tuple[WordList, WordList]:
    """The words of both sides; the special ones by their names."""
    lists = [vocab.get(side) if isinstance(vocab, Mapping) else None for side in ("src", "tgt")]
    if not all(isinstance(one, list) for one in lists):
        raise ModelFolderError(f"{path}: holds no vocabularies as OpenNMT-py 3 writes them (lists of words)")
    names = ("<unk>", "<blank>", vocab.get("decoder_start_token", "<s>"), "</s>")
    source, target = (
        read_words(path, one, _special(one, names, needed=side)) for side, one in enumerate(lists) if one is not None
    )
    return source, target


def _special(listed: list[Any], names: tuple[str, ...], *, needed: int) -> dict[str, int | None]:
    """Rows of <unk>, <pad>, <s>, </s>; a source's that are not there are never read, so that any will do."""
    rows = {word: row for row, word in enumerate(listed) if isinstance(word, str)}
    other = None if needed else rows.get("<unk>")
    return {own: rows.get(name, other) for own, name in zip(SPECIAL_TOKENS, names, strict=True)}


def _tensors(path: Path, content: Mapping[str, Any]) -> Tensors:
    model, generator = content.get("model"), content.get("generator") or {}
    if not isinstance(model, Mapping) or not isinstance(generator, Mapping):
        raise ModelFolderError(f"{path}: holds no weights; save the model with save_format pytorch")
    return Tensors(path, {**model, **{f"generator.{name}": value for name, value in generator.items()}})


def _embedded(tensors: Tensors, sides: Sides, widths: tuple[int, int]) -> tuple[Any, Any]:
    source, target = (
        tensors.take(EMBEDDED.format(side), len(words.listed), width)
        for side, words, width in zip(("encoder", "decoder"), sides, widths, strict=True)
    )
    return source, target


def _ties(settings: ToolkitOptions, tables: tuple[Any, Any], output: Any, sides: Sides) -> Ties:
    """What is one and the same, as the options say and the numbers are."""
    shared = settings.flag("share_embeddings") and sides[0].listed == sides[1].listed
    softmax = settings.flag("share_decoder_embeddings")
    return Ties(
        shared and torch.equal(*tables), softmax and output.shape == tables[1].shape and torch.equal(output, tables[1])
    )


def _transformer(tensors: Tensors, settings: ToolkitOptions, sides: Sides) -> tuple[dict[str, Any], Weights]:
    settings.only(ONLY_TRANSFORMER)
    width = settings.equal("enc_hid_size", "dec_hid_size", "src_word_vec_size", "tgt_word_vec_size")
    kind = settings.one_of(
        "position_encoding_type",
        {"SinusoidalInterleaved": "sinusoidal", "SinusoidalConcat": "tensor2tensor"},
        "SinusoidalInterleaved",
    )
    settings.one_of("self_attn_type", {"scaled-dot": 1, "scaled-dot-flash": 1}, "scaled-dot")
    tables = _embedded(tensors, sides, (width, width))
    output = tensors.take("generator.weight", len(tables[1]), width)
    ties = _ties(settings, tables, output, sides)
    options = {
        "decoder": "transformer",
        "embedding_dim": width,
        "enc_layers": settings.whole("enc_layers"),
        "dec_layers": settings.whole("dec_layers"),
        "num_heads": settings.whole("heads"),
        "ff_size": settings.whole("transformer_ff"),
        "norm": "pre",
        "norm_eps": settings.number("norm_eps", 1e-6),
        "activation": settings.one_of("pos_ffn_activation_fn", {"relu": "relu", "gelu": "gelu"}, "relu"),
        "position_encoding": kind,
        "tied_embeddings": ties.embeddings,
        "tied_softmax": ties.softmax,
    }
    names = NAMES._replace(
        heads_have_biases=settings.flag("add_qkvbias"),
        ff_has_biases="encoder.transformer.0.feed_forward.w_1.bias" in tensors,
    )
    found = transformers.looked_up(tables, output, (sides[0].rows, sides[1].rows), ties)
    found["output.bias"] = tensors.take("generator.bias", len(output))[sides[1].rows]
    found |= transformers.layers(tensors, names, options, PLACES)
    halves = kind == "tensor2tensor"
    for side in ("encoder", "decoder"):
        transformers.check_positions(tensors, POSITIONS.format(side), width, Places(kind), halves=halves)
    return options, transformers.reordered(found, transformers.from_halves(width)) if halves else found


def _recurrent(tensors: Tensors, settings: ToolkitOptions, sides: Sides) -> tuple[dict[str, Any], Weights]:
    settings.only(ONLY_RECURRENT)
    both = settings.one_of("encoder_type", {"rnn": False, "brnn": True}, "rnn")
    settings.one_of("decoder_type", {"rnn": "rnn", "ifrnn": "rnn"}, "rnn")
    hidden, layers = settings.equal("enc_hid_size", "dec_hid_size"), settings.equal("enc_layers", "dec_layers")
    widths = (settings.whole("src_word_vec_size"), settings.whole("tgt_word_vec_size"))
    kind = settings.one_of("rnn_type", {"LSTM": "lstm", "GRU": "gru"}, "LSTM")
    shape = Shape(kind, max(widths), hidden // (2 if both else 1), both, hidden)
    feeding = bool(settings.one_of("input_feed", {0: False, 1: True}, 1))
    score = settings.one_of("global_attention", {**SCORES, "none": None, None: None}, "general")
    tables = _embedded(tensors, sides, widths)
    output = tensors.take("generator.weight", len(tables[1]), hidden)
    ties = _ties(settings, tables, output, sides)
    found = recurrent.looked_up(tables, sides, shape, tied=ties.embeddings)
    found |= {} if ties.softmax else {"output.weight": output[sides[1].rows]}
    found["output.bias"] = tensors.take("generator.bias", len(output))[sides[1].rows]
    found |= recurrent.encoder(tensors, "encoder.rnn.", shape, layers=layers, embedding=widths[0])
    name = "decoder.rnn.layers.{}.*" if feeding else "decoder.rnn.*_l{}"
    cells = [name.format(layer) for layer in range(layers)]
    found |= recurrent.stack(tensors, cells, shape, embedding=widths[1], feeding=feeding)
    found |= _attention(tensors, score, hidden)
    bridged = settings.flag("bridge")
    found |= _bridge(tensors, shape, layers) if bridged else {}
    options = {
        "decoder": "luong" if score else "classic",
        **({"score": score} if score else {}),
        "rnn_type": kind,
        "embedding_dim": shape.embedding,
        "hidden_size": hidden,
        "encoder_hidden_size": shape.direction,
        "enc_layers": layers,
        "dec_layers": layers,
        "bidirectional": both,
        "input_feeding": feeding,
        "bridge": "relu" if bridged else "copy",
        "tied_embeddings": ties.embeddings,
        "tied_softmax": ties.softmax,
        **({"attention_bias": True, "attentional": "linear", "attentional_bias": True} if score == "additive" else {}),
    }
    return options, found


def _attention(tensors: Tensors, score: str | None, width: int) -> Weights:
    """The score and W_c. `general` is (W s)ᵀ h, so that W_a is W turned; `mlp` has a bias with its query."""
    if score is None:
        return {}
    found = {"w_c.weight": tensors.take("decoder.attn.linear_out.weight", width, 2 * width)}
    if score == "general":
        found["score.w_a.weight"] = tensors.take("decoder.attn.linear_in.weight", width, width).T.contiguous()
    if score == "additive":
        found["w_c.bias"] = tensors.take("decoder.attn.linear_out.bias", width)
        found["score.w_a.weight"] = tensors.take("decoder.attn.linear_query.weight", width, width)
        found["score.u_a.bias"] = tensors.take("decoder.attn.linear_query.bias", width)
        found["score.u_a.weight"] = tensors.take("decoder.attn.linear_context.weight", width, width)
        found["score.v_a"] = tensors.take("decoder.attn.v.weight", 1, width)[0]
    return found


def _bridge(tensors: Tensors, shape: Shape, layers: int) -> Weights:
    """max(0, W h + b) of the numbers of all layers and directions in a row, as many times as there are directions."""
    size = layers * shape.direction
    if shape.hidden % size:
        ways = "two directions" if shape.both else "one direction"
        raise ModelFolderError(
            f"{tensors.path}: opt.bridge with {layers} layers and {ways} mixes the states of different layers; only 1 "
            "layer, or 2 in two directions, can be imported"
        )
    maps = []
    for number in range(2 if shape.kind == "lstm" else 1):
        weight = tensors.take(f"encoder.bridge.{number}.weight", size, size)
        bias = tensors.take(f"encoder.bridge.{number}.bias", size)
        times = shape.hidden // size
        maps.append((torch.block_diag(*[weight] * times), bias.repeat(times)))
    return recurrent.bridges(maps, layers)


def _named(options: Mapping[str, Any], attention: str) -> str:
    """What a user of the papers should know."""
    if options["decoder"] == "classic":
        fed = ", and the top layer's state enters the next step beside the word" if options["input_feeding"] else ""
        return f"the classic encoder-decoder of Sutskever et al. 2014, its source read in its own order{fed}"
    if attention == "mlp":
        return (
            "mlp attention is not Bahdanau's system: the additive score looks with the new state (Luong's flow), has a "
            "bias, and the attentional state is W_c [c; s] + b without tanh"
        )
    return (
        f"Luong's system with the score {attention} as Luong et al. 2015 have it, started from the encoder's last state"
    )
