"""`mirada export --to onnx`: graphs, options and tokenisers in a folder that needs no torch.

The folder is made beside its place, checked against torch, and then moved there: it is whole or not there.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from mirada.config import configfile
from mirada.config.options import ModelConfig
from mirada.errors import ConfigError
from mirada.export import recurrent, transformer
from mirada.export.attention import memory_names, past_names
from mirada.export.checks import check, pairs_of
from mirada.export.graph import OPSET, Graph, Precision
from mirada.export.layers import Weights
from mirada.files import new_folder
from mirada.models import AnyModel
from mirada.runtime.engine import Engine
from mirada.runtime.folder import CONFIG, FORMAT, MANIFEST, MOST_BYTES, TOKENIZERS, Exported, Names, digest
from mirada.store.checkpoint import Loaded, checksum

# What the graphs say; of any other option of the model only the default is the system that they compute.
KNOWN = (
    *("decoder", "score", "rnn_type", "embedding_dim", "hidden_size", "encoder_hidden_size", "attention_size"),
    *("enc_layers", "dec_layers", "bidirectional", "reverse_source", "feed_context", "input_feeding", "readout"),
    *("attentional", "attentional_bias", "attention_bias", "bridge", "bridge_from", "add_source_eos", "segments"),
    *("num_heads", "ff_size", "activation", "norm", "norm_eps", "position_encoding", "first_position"),
    *("tied_softmax", "tied_embeddings", "attention_window", "window", "coverage", "copy_attn", "copy_head"),
    *("dropout", "embedding_dropout", "recurrent_dropout", "word_dropout"),
)


def export_onnx(loaded: Loaded, out: Path, precision: Precision, *, say: Callable[[str], None]) -> None:
    """Write the folder of an exported model, checked against torch on dev sentences (or drawn ones).

    Raises ConfigError for options that no graph computes and for models too large for the format, MiradaError where the
    folder is there already or the outputs differ.
    """
    with new_folder(out) as folder:
        exported, difference = write_checked(loaded, precision, folder)
        (folder / CONFIG).write_text(configfile.dump(loaded.config), encoding="utf-8")
        manifest = _manifest(loaded, exported.names, precision, folder)
        (folder / MANIFEST).write_text(json.dumps(manifest, indent=1) + "\n", encoding="utf-8")
    size = sum(map(len, exported.graphs.values()))
    say(f"{out}: {size / 1e6:.1f} MB of graphs in {precision}, checked: log-probabilities differ by {difference:.1g}")


def write_checked(loaded: Loaded, precision: Precision, folder: Path) -> tuple[Exported, float]:
    """Write graphs and tokenisers, and say how far log-probabilities are from torch's; raises as `export_onnx`."""
    _refuse_unknown(loaded.config.model)
    contents = _write_graphs(loaded, precision, folder)
    for name, tokenizer in zip(TOKENIZERS, (loaded.source, loaded.target), strict=True):
        tokenizer.save(folder / name)
    names = names_of(loaded.config.model)
    exported = Exported(loaded.config, loaded.source, loaded.target, names, precision, contents)
    return exported, check(loaded, Engine(exported, folder), pairs_of(loaded), precision)


def graphs_of(weights: Weights, options: ModelConfig, precision: Precision) -> dict[str, Graph]:
    """Encode, start and step."""
    if options.decoder == "transformer":
        return transformer.graphs(weights, options, precision)
    return recurrent.graphs(weights, options, precision)


def weights_of(model: AnyModel) -> Weights:
    """The model's weights by name, those that are shared under each of their names."""
    return {name: weights.detach().float().cpu().numpy() for name, weights in model.state_dict().items()}


def names_of(options: ModelConfig) -> Names:
    """What the graphs of a system hand on."""
    if options.decoder == "transformer":
        return Names(tuple(transformer.memory_names(options)), ("mask",), tuple(transformer.state_names(options)))
    final = (*recurrent.final_names(options), *(["mask"] if past_names(options) else []))
    return Names(tuple(memory_names(options)), final, tuple(recurrent.state_names(options)))


def _refuse_unknown(options: ModelConfig) -> None:
    for name, field in type(options).model_fields.items():
        value = getattr(options, name)
        if name not in KNOWN and value != field.default:
            raise ConfigError(f"a model with {name} {str(value).lower()} cannot be exported to ONNX yet")


def _write_graphs(loaded: Loaded, precision: Precision, folder: Path) -> dict[str, bytes]:
    weights = weights_of(loaded.model)
    if (size := sum(part.nbytes for part in weights.values())) >= MOST_BYTES and precision == "float32":
        raise ConfigError(f"weights of {size:,} bytes do not fit into an ONNX file ({MOST_BYTES:,}); use int8")
    contents = {}
    for name, graph in graphs_of(weights, loaded.config.model, precision).items():
        contents[name] = graph.model().SerializeToString(deterministic=True)
        (folder / f"{name}.onnx").write_bytes(contents[name])
    return contents


def _manifest(loaded: Loaded, names: Names, precision: Precision, folder: Path) -> dict[str, Any]:
    files = {path.name: digest(path.read_bytes()) for path in sorted(folder.iterdir())}
    return {
        "format": FORMAT,
        "decoder": loaded.config.model.decoder,
        "precision": precision,
        "opset": OPSET,
        **{part: list(value) for part, value in names._asdict().items()},
        "entries": [len(loaded.source), len(loaded.target)],
        "weights": checksum(dict(loaded.model.named_parameters())),
        "files": files,
    }
