"""One folder a model: config.yaml, model.safetensors, source.json, target.json, metrics.json. No pickle, ever.

config.yaml         all options, resolved
model.safetensors   the best weights so far, with a checksum and the metrics of their validation in its header
source.json, target.json   the tokenisers
metrics.json        the metrics of the last validation
resume.safetensors  everything a stopped training needs to go on exactly (weights, optimiser, random state, position)
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor, nn

from mirada.config import configfile
from mirada.config.options import Config
from mirada.data.parts import SourceTokenizer, load_source
from mirada.data.tokenizer import Tokenizer
from mirada.errors import ModelFolderError
from mirada.files import open_regular, write_atomic, write_text
from mirada.models import AnyModel, build_model
from mirada.store.folder import CONFIG, read_config

__all__ = ["CONFIG", "read_config"]  # besides all that is defined here: they live where no torch is needed

FORMAT = "2"
OLD_FORMATS = ("1",)  # read as well: its checksum does not cover the metadata, which names no options
# What changes how a model is trained, and nothing of what it computes afterwards.
FOR_TRAINING = {"dropout", "embedding_dropout", "recurrent_dropout", "word_dropout"}
WEIGHTS, RESUME, METRICS = "model.safetensors", "resume.safetensors", "metrics.json"
TOKENIZERS = ("source.json", "target.json")
HEADER_BYTES = 100_000_000  # what the format allows


class Loaded(NamedTuple):
    """A model folder in memory, ready to run."""

    config: Config
    model: AnyModel
    source: SourceTokenizer
    target: Tokenizer
    metrics: dict[str, Any]


class Archive(NamedTuple):
    """Named tensors and metadata, as one file holds them."""

    tensors: dict[str, Tensor]
    metadata: dict[str, Any]


def weights_of(model: nn.Module) -> dict[str, Tensor]:
    """The model's parameters by name; shared ones once."""
    return {name: parameter.detach() for name, parameter in model.named_parameters()}


def write_archive(path: Path, archive: Archive) -> None:
    """Write tensors and metadata into one safetensors file, atomically, with a checksum over all of it."""
    tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in archive.tensors.items()}
    metadata = json.dumps(archive.metadata)
    header = {"format": FORMAT, "checksum": checksum(tensors, metadata), "note": metadata}
    write_atomic(path, _in_order(save(tensors, metadata=header)))


def _in_order(content: bytes) -> bytes:
    """The same safetensors file with its metadata in order: the library leaves that to chance, and equal is equal."""
    start = 8 + int.from_bytes(content[:8], "little")
    header = json.loads(content[8:start])
    header["__metadata__"] = dict(sorted(header["__metadata__"].items()))
    text = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode()
    text = text.ljust(-(-len(text) // 8) * 8)
    return b"".join((len(text).to_bytes(8, "little"), text, memoryview(content)[start:]))


def write_model(folder: Path, model: nn.Module, metadata: Mapping[str, Any], config: Config) -> None:
    """Write a model's weights; their metadata names the tokenisers beside them, by hashes, and their options."""
    known = {name: _file_hash(folder / name) for name in TOKENIZERS}
    bound = {"tokenizers": known, "model": shaping(config)}
    write_archive(folder / WEIGHTS, Archive(weights_of(model), {**metadata, **bound}))


def shaping(config: Config) -> dict[str, Any]:
    """The options without which weights of the same shapes would be another model."""
    return config.model.model_dump(mode="json", exclude=FOR_TRAINING)


def read_archive(path: Path, *, most: int | None = None) -> Archive:
    """Read a file of `write_archive`, on the CPU wherever it was written.

    Raises ModelFolderError if it is missing, larger than `most` bytes, damaged, altered, or from a newer version.
    """
    if not path.is_file():
        raise ModelFolderError(f"{path}: missing; the folder holds no complete model (has its training validated yet?)")
    size = path.stat().st_size
    if most is not None and size > most:
        raise ModelFolderError(f"{path}: {size:,} bytes, but the options need {most:,} at most; it is of another model")
    try:  # for the system's own words: of what it may not open, the library says that it is not there
        open_regular(path).close()
    except OSError as error:
        raise ModelFolderError(f"{path}: cannot be read ({error.strerror})") from None
    try:
        with safe_open(path, framework="pt", device="cpu") as stream:
            header = stream.metadata() or {}
            names = list(stream.keys())
            tensors = {name: stream.get_tensor(name) for name in names}
    except (SafetensorError, OSError, ValueError, RuntimeError, LookupError, TypeError, AttributeError) as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise ModelFolderError(f"{path}: damaged or not a safetensors file ({reason})") from None
    if header.get("format") not in (FORMAT, *OLD_FORMATS):
        raise ModelFolderError(
            f"{path}: format {header.get('format', 'unknown')}, this mirada reads formats up to {FORMAT}; "
            "use the version that wrote it"
        )
    covered = "" if header["format"] in OLD_FORMATS else header.get("note", "")
    if header.get("checksum") != checksum(tensors, covered):
        raise ModelFolderError(f"{path}: its checksum does not match; the file was altered or damaged")
    try:
        metadata = json.loads(header.get("note", ""))
    except (ValueError, RecursionError):
        metadata = None
    if not isinstance(metadata, dict):
        raise ModelFolderError(f"{path}: the metadata in its header is damaged")
    return Archive(tensors, metadata)


def checksum(tensors: Mapping[str, Tensor], metadata: str = "") -> str:
    """SHA-256 over names, types, shapes and bytes, in order of names, and over the metadata."""
    digest = hashlib.sha256()
    for name in sorted(tensors):
        tensor = tensors[name]
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}\n".encode())
        digest.update(tensor.contiguous().view(-1).view(torch.uint8).numpy().data if tensor.numel() else b"")
    digest.update(metadata.encode())
    return digest.hexdigest()


def write_start(folder: Path, config: Config, source: SourceTokenizer, target: Tokenizer) -> None:
    """Write what a training begins with: tokenisers, then the options, which mark the folder as a model's."""
    for name, tokenizer in zip(TOKENIZERS, (source, target), strict=True):
        tokenizer.save(folder / name)
    write_options(folder, config)


def write_options(folder: Path, config: Config) -> None:
    """Write the options in force; a continuation may have another budget and another search."""
    write_text(folder / CONFIG, configfile.dump(config))


def read_tokenizers(folder: Path, config: Config) -> tuple[SourceTokenizer, Tokenizer]:
    """The two tokenisers of a model folder; raises ModelFolderError if they are to be one vocabulary and cannot be."""
    source = load_source(folder / TOKENIZERS[0], config.data.source_tokenizer or "")
    target = Tokenizer.load(folder / TOKENIZERS[1], config.data.target_tokenizer or "")
    if config.model.tied_embeddings and len(source) != len(target):
        sizes = f"{len(source)} entries, {TOKENIZERS[1]} has {len(target)}"
        raise ModelFolderError(f"{folder / TOKENIZERS[0]}: {sizes}; with tied_embeddings both are one vocabulary")
    return source, target


def load_model(folder: Path, device: torch.device) -> Loaded:
    """Read a model folder onto a device, ready to run. Raises ModelFolderError, naming what is wrong."""
    try:
        return _load_model(folder, device)
    except OSError as error:
        raise ModelFolderError(f"{error.filename or folder}: cannot be read ({error.strerror or error})") from None


def _load_model(folder: Path, device: torch.device) -> Loaded:
    config = read_config(folder)
    source, target = read_tokenizers(folder, config)
    model = sketch(config, (source, target))  # sizes are checked before any memory is taken
    expected = dict(model.named_parameters())
    archive = read_archive(folder / WEIGHTS, most=HEADER_BYTES + 8 * sum(map(torch.numel, expected.values())))
    _check_weights(folder, expected, archive.tensors)
    _check_tokenizers(folder, archive.metadata)
    check_options(folder, archive.metadata, config)
    fill(model, archive.tensors)
    metrics = archive.metadata.get("metrics")
    return Loaded(config, model.to(device).eval(), source, target, metrics if isinstance(metrics, dict) else {})


def sketch(config: Config, tokenizers: tuple[SourceTokenizer, Tokenizer]) -> AnyModel:
    """The model that the options describe, without numbers: shapes only."""
    with torch.device("meta"):
        return build_model(config.model, source_vocab=len(tokenizers[0]), target_vocab=len(tokenizers[1]))


def fill(sketch: nn.Module, tensors: Mapping[str, Tensor]) -> None:
    """Give a model without numbers its own; nothing is drawn first. A weight that is shared stays shared."""
    made = {id(old): nn.Parameter(tensors[name].to(old.dtype, copy=True)) for name, old in sketch.named_parameters()}
    for module in sketch.modules():
        for name, old in module.named_parameters(recurse=False, remove_duplicate=False):
            setattr(module, name, made[id(old)])


def put_weights(model: nn.Module, tensors: Mapping[str, Tensor]) -> None:
    """Copy tensors into the parameters of the same names."""
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.copy_(tensors[name])


def _check_weights(folder: Path, expected: Mapping[str, Tensor], found: Mapping[str, Tensor]) -> None:
    """Raise ModelFolderError unless weights, options and vocabularies belong together."""
    where = folder / WEIGHTS
    missing, extra = sorted(set(expected) - set(found)), sorted(set(found) - set(expected))
    if missing or extra:
        names = ", ".join(name[:80] for name in (missing or extra)[:3])
        fault = f"lacks weights {names}" if missing else f"has the unknown weights {names}"
        raise ModelFolderError(f"{where}: {fault}; it does not belong to this {CONFIG}")
    for name, parameter in expected.items():
        if parameter.shape != found[name].shape:
            raise ModelFolderError(
                f"{where}: weights {name} are {list(found[name].shape)}, options and vocabularies need "
                f"{list(parameter.shape)}; {CONFIG} or a tokeniser is from another model"
            )
        if not found[name].is_floating_point():
            raise ModelFolderError(f"{where}: weights {name} are {found[name].dtype}, expected floating point")
        if not all(bool(edge.isfinite()) for edge in found[name].float().aminmax()):  # NaN would be both edges
            raise ModelFolderError(f"{where}: weights {name} hold values that are no numbers (NaN or infinite)")


def _check_tokenizers(folder: Path, metadata: Mapping[str, Any]) -> None:
    """Raise ModelFolderError if the weights were written beside other tokenisers than those in the folder."""
    known = metadata.get("tokenizers", {})
    for name, digest in known.items() if isinstance(known, dict) else ():
        if name in TOKENIZERS and digest != _file_hash(folder / name):
            raise ModelFolderError(
                f"{folder / name}: not the tokeniser that {WEIGHTS} was trained with; it was altered, or is of "
                "another model"
            )


def check_options(folder: Path, metadata: Mapping[str, Any], config: Config) -> None:
    """Raise ModelFolderError if the options are not those that the weights were made with, as their metadata says."""
    made, now = metadata.get("model", {}), shaping(config)
    for name in sorted(set(made) & set(now)) if isinstance(made, dict) else ():
        if made[name] != now[name]:
            raise ModelFolderError(
                f"{folder / CONFIG}: {name} is {now[name]}, but the weights were made with {name} {made[name]}; "
                "the file was altered, or is of another model"
            )


def _file_hash(path: Path) -> str:
    with open_regular(path) as stream:
        return hashlib.sha256(stream.read()).hexdigest()
