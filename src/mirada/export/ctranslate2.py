"""`mirada export --to ctranslate2`: a Transformer in CTranslate2's format, with the tokenisers beside it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from mirada.config.options import ModelConfig
from mirada.data.parts import SourceTokenizer
from mirada.data.vocabulary import BOS, PAD, SPECIAL_TOKENS
from mirada.errors import ConfigError
from mirada.export.graph import Precision
from mirada.export.layers import Weights
from mirada.files import new_folder
from mirada.models.embedding import Places
from mirada.store.checkpoint import TOKENIZERS, Loaded

# What CTranslate2's Transformer computes; of any other option of the model only the default.
KNOWN = (
    *("decoder", "score", "rnn_type", "embedding_dim", "hidden_size", "enc_layers", "dec_layers", "num_heads"),
    *("ff_size", "activation", "norm", "norm_eps", "segments", "tied_softmax", "tied_embeddings"),
    *("position_encoding", "first_position", "add_source_eos"),
    *("dropout", "embedding_dropout", "word_dropout"),
)
LONGEST = 2048  # positions: CTranslate2 looks them up
NEVER = -1e9  # the bias of words that no output contains


def export_ctranslate2(
    loaded: Loaded, weights: Weights, out: Path, precision: Precision, *, say: Callable[[str], None]
) -> None:
    """Write a folder that `ctranslate2.Translator` opens. Sources are this tokeniser's tokens, without </s>.

    Raises ConfigError for another system than the Transformer, and where CTranslate2 is not installed.
    """
    options = loaded.config.model
    _refuse_others(options)
    try:
        import ctranslate2
    except ModuleNotFoundError:
        raise ConfigError("--to ctranslate2 needs CTranslate2: pip install 'mirada[ctranslate2]'") from None
    spec = ctranslate2.specs.TransformerSpec.from_config(
        (options.enc_layers, options.dec_layers),
        options.num_heads,
        pre_norm=options.norm == "pre",
        activation=getattr(ctranslate2.specs.Activation, options.activation.upper()),
        alignment_layer=-1,
        alignment_heads=0,  # the mean over the last layer's heads
    )
    _fill(spec, weights, options)
    spec.register_source_vocabulary(_entries(loaded.source))
    spec.register_target_vocabulary(_entries(loaded.target))
    unk, _, bos, eos = SPECIAL_TOKENS
    spec.config.bos_token, spec.config.eos_token, spec.config.unk_token = bos, eos, unk
    spec.config.decoder_start_token, spec.config.add_source_eos = bos, options.add_source_eos
    spec.config.layer_norm_epsilon = options.norm_eps
    spec.validate()
    spec.optimize(quantization="int8" if precision == "int8" else None)
    with new_folder(out) as folder:
        spec.save(str(folder))
        for name, tokenizer in zip(TOKENIZERS, (loaded.source, loaded.target), strict=True):
            tokenizer.save(folder / name)
        size = sum(path.stat().st_size for path in folder.iterdir())
    say(f"{out}: {size / 1e6:.1f} MB for CTranslate2 in {precision}")


def _refuse_others(options: ModelConfig) -> None:
    if options.decoder != "transformer":
        raise ConfigError(
            f"CTranslate2 runs Transformers only; this model's decoder is {options.decoder}: use --to onnx"
        )
    if options.segments:
        raise ConfigError("CTranslate2 has no embeddings of a source's parts (segments); use --to onnx")
    for name, field in type(options).model_fields.items():
        value = getattr(options, name)
        if name not in KNOWN and value != field.default:
            raise ConfigError(f"CTranslate2 has no {name} {str(value).lower()}; use --to onnx")


def _entries(tokenizer: SourceTokenizer) -> list[str]:
    return [tokenizer.token(i) for i in range(len(tokenizer))]


def _fill(spec: Any, weights: Weights, options: ModelConfig) -> None:
    places = Places(options.position_encoding, options.first_position)
    table = places.sinusoids(0, LONGEST, torch.empty(1, options.embedding_dim)).numpy()
    for part, name in ((spec.encoder, "encoder"), (spec.decoder, "decoder")):
        part.position_encodings.encodings = table
        if options.norm == "pre":
            _norm(part.layer_norm, weights, f"{name}_norm")
    spec.encoder.embeddings[0].weight = weights["source_embedding.weight"]
    spec.decoder.embeddings.weight = weights["embedding.weight"]
    bias = weights["output.bias"].copy()
    bias[[PAD, BOS]] = NEVER
    spec.decoder.projection.weight, spec.decoder.projection.bias = weights["output.weight"], bias
    for number, layer in enumerate(spec.encoder.layer):
        _layer(layer, weights, f"encoder.{number}.")
    for number, layer in enumerate(spec.decoder.layer):
        name = f"decoder.{number}."
        _layer(layer, weights, name)
        _linear(layer.attention.linear[0], weights, [f"{name}cross_heads.q"])
        _linear(layer.attention.linear[1], weights, [f"{name}cross_heads.{part}" for part in "kv"])
        _linear(layer.attention.linear[2], weights, [f"{name}cross_heads.o"])
        _norm(layer.attention.layer_norm, weights, f"{name}norms.1")


def _layer(layer: Any, weights: Weights, name: str) -> None:
    """Self-attention and the feed-forward, whose norm is the last."""
    last = 2 if name.startswith("decoder") else 1
    _linear(layer.self_attention.linear[0], weights, [f"{name}self_heads.{part}" for part in "qkv"])
    _linear(layer.self_attention.linear[1], weights, [f"{name}self_heads.o"])
    _norm(layer.self_attention.layer_norm, weights, f"{name}norms.0")
    _linear(layer.ffn.linear_0, weights, [f"{name}ff_in"])
    _linear(layer.ffn.linear_1, weights, [f"{name}ff_out"])
    _norm(layer.ffn.layer_norm, weights, f"{name}norms.{last}")


def _linear(linear: Any, weights: Weights, names: list[str]) -> None:
    """Some products side by side; keys have no bias."""
    parts = [weights[f"{name}.weight"] for name in names]
    biases = [
        weights.get(f"{name}.bias", np.zeros(len(part), np.float32)) for name, part in zip(names, parts, strict=True)
    ]
    linear.weight, linear.bias = np.concatenate(parts), np.concatenate(biases)


def _norm(norm: Any, weights: Weights, name: str) -> None:
    norm.gamma, norm.beta = weights[f"{name}.weight"], weights[f"{name}.bias"]
