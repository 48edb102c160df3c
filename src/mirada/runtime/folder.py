"""The folder of an exported model: three graphs, the options, two tokenisers, and export.json, which names them all.

export.json   format, opset, precision, names of the decoder's memory and state, how many entries the tokenisers have,
              a hash of the weights and of each file
encode.onnx   source ids and lengths → the memory, and what the first state is made from
start.onnx    that → the decoder's first state
step.onnx     previous tokens, the rows they go on from, state and memory → the likeliest continuations, the new state
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any, NamedTuple

from mirada.config import configfile
from mirada.config.options import Config
from mirada.data.parts import SourceTokenizer, load_source
from mirada.data.tokenizer import Tokenizer
from mirada.errors import ConfigError, ModelFolderError
from mirada.files import read_regular

FORMAT = 1
MANIFEST, CONFIG = "export.json", "config.yaml"
TOKENIZERS = ("source.json", "target.json")
GRAPHS = ("encode", "start", "step")
COPIES = "copies"  # in the memory of a model that copies: the id that each source position would write; no graph's own
FILES = (CONFIG, *TOKENIZERS, *(f"{name}.onnx" for name in GRAPHS))
MOST_BYTES = 1 << 31  # of a graph: what the format (protobuf) can hold
MOST_MANIFEST = 1 << 20


class Names(NamedTuple):
    """What the graphs call what they hand on."""

    memory: tuple[str, ...]  # what the decoder looks at, a row a sentence
    final: tuple[str, ...]  # what its first state is made from
    state: tuple[str, ...]  # what it keeps; the step gives each back as new.NAME


class Exported(NamedTuple):
    """An exported model in memory."""

    config: Config
    source: SourceTokenizer
    target: Tokenizer
    names: Names
    precision: str
    graphs: dict[str, bytes]


def is_exported(folder: Path) -> bool:
    """Whether a folder holds an exported model (a model folder holds weights instead)."""
    return (folder / MANIFEST).is_file()


def digest(content: bytes) -> str:
    """SHA-256, as export.json has it of every file."""
    return hashlib.sha256(content).hexdigest()


def read(folder: Path) -> Exported:
    """Read and check an exported model. Raises ModelFolderError, naming what is wrong with it."""
    try:
        return _read(folder)
    except OSError as error:
        raise ModelFolderError(f"{error.filename or folder}: cannot be read ({error.strerror or error})") from None


def _read(folder: Path) -> Exported:
    manifest = _manifest(folder / MANIFEST)
    contents = {name: _content(folder / name, manifest["files"].get(name)) for name in FILES}
    try:
        config = configfile.load(folder / CONFIG, stored=True)
    except ConfigError as error:
        raise ModelFolderError(str(error)) from None
    source = load_source(folder / TOKENIZERS[0], config.data.source_tokenizer or "")
    target = Tokenizer.load(folder / TOKENIZERS[1], config.data.target_tokenizer or "")
    for name, own, entries in zip(TOKENIZERS, (source, target), manifest["entries"], strict=True):
        if len(own) != entries:
            line = f"{len(own)} entries, but the graphs have {entries!s:.20}; it is of another model"
            raise ModelFolderError(f"{folder / name}: {line}")
    names = Names(*(tuple(manifest[part]) for part in Names._fields))
    graphs = {name: contents[f"{name}.onnx"] for name in GRAPHS}
    return Exported(config, source, target, names, str(manifest["precision"]), graphs)


def _manifest(path: Path) -> dict[str, Any]:
    if not path.is_file():
        raise ModelFolderError(f"{path}: missing; not the folder of an exported model (mirada export --to onnx)")
    if path.stat().st_size > MOST_MANIFEST:
        raise ModelFolderError(f"{path}: {path.stat().st_size:,} bytes, more than any export has")
    try:
        manifest = json.loads(read_regular(path))
    except (ValueError, RecursionError):
        manifest = None
    if not isinstance(manifest, dict):
        raise ModelFolderError(f"{path}: damaged; export the model again")
    if manifest.get("format") != FORMAT:
        raise ModelFolderError(
            f"{path}: format {manifest.get('format', 'unknown')!s:.20}, this mirada reads format {FORMAT}; "
            "export the model again"
        )
    if not _is_whole(manifest):
        raise ModelFolderError(f"{path}: damaged; export the model again")
    return manifest


def _is_whole(manifest: dict[str, Any]) -> bool:
    entries = manifest.get("entries")
    lists = all(_is_names(manifest.get(part)) for part in Names._fields) and isinstance(entries, list)
    others = isinstance(manifest.get("files"), dict) and isinstance(manifest.get("precision"), str)
    return lists and others and len(entries or ()) == len(TOKENIZERS)


def _is_names(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(name, str) for name in value)


def _content(path: Path, known: Any) -> bytes:
    """A file's bytes, if they are those that the export wrote."""
    if not path.is_file():
        raise ModelFolderError(f"{path}: missing; the folder holds no complete exported model")
    if path.stat().st_size > MOST_BYTES:
        raise ModelFolderError(f"{path}: {path.stat().st_size:,} bytes, more than a graph can have")
    content = read_regular(path)
    if digest(content) != known:
        raise ModelFolderError(f"{path}: not the file that {MANIFEST} names; it was altered, or is of another export")
    return content
