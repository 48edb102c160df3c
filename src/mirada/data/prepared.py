"""A corpus prepared for training: texts and ids in Arrow files, the tokenisers, and what was made of what.

prepared.json            the options, the fingerprint of the pairs, the files and their sizes: written last
source.json, target.json the tokenisers
dev.json                 the dev pairs
texts-N.arrow, ids-N.arrow   the training pairs (shards.py); ids lack those that are too long
"""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from mirada.config.data import DataConfig
from mirada.config.types import complaint
from mirada.data.encoded import Encoded
from mirada.data.pairs import Corpus
from mirada.data.parts import load_source
from mirada.data.shards import SIDES, MappedIds, MappedTexts, Shards
from mirada.data.tokenizer import Tokenizer
from mirada.errors import DataError
from mirada.files import write_text

MANIFEST, DEV, TOKENIZERS = "prepared.json", "dev.json", ("source.json", "target.json")
AGAIN = "prepare the corpus again (mirada data prepare)"


class ShardSize(BaseModel):
    """One file of texts and the file of ids made of it: pairs in each, and bytes."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    pairs: int
    kept: int
    cut: int  # sources that were cut to max_length
    text_bytes: int
    id_bytes: int


class InputFile(BaseModel):
    """A file that pairs were read from, as it was then."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    path: str
    size: int
    modified: int  # nanoseconds


class Manifest(BaseModel):
    """What stands in prepared.json."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    format: Literal[1] = 1
    fingerprint: str  # of all pairs, as a training's
    given: DataConfig  # the options as they were given
    options: DataConfig  # with what was chosen from the data
    seed: int  # of the dev pairs that were split off
    inputs: list[InputFile]
    name: str
    skipped: list[int]
    first: int
    notes: list[str]
    shards: list[ShardSize]


class PreparedCorpus(NamedTuple):
    """A prepared corpus, opened: nothing of the training pairs is in memory."""

    folder: Path
    manifest: Manifest
    corpora: tuple[Corpus, Corpus]
    tokenizers: tuple[Any, Tokenizer]
    train: Encoded


def texts_path(folder: Path, number: int) -> Path:
    """The file of texts of this number."""
    return folder / f"texts-{number:05}.arrow"


def ids_path(folder: Path, number: int) -> Path:
    """The file of ids of this number."""
    return folder / f"ids-{number:05}.arrow"


def mapped_corpus(folder: Path, pairs: list[int], name: str, skipped: list[int], first: int) -> Corpus:
    """The training pairs in files of texts; their line numbers are those of the pairs."""
    paths = [texts_path(folder, number) for number in range(len(pairs))]
    sources, targets = (MappedTexts(Shards(paths, pairs), side) for side in SIDES)
    return Corpus(sources, targets, range(1, sum(pairs) + 1), skipped, name, [], first)


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Write what makes a folder a prepared corpus."""
    write_text(folder / MANIFEST, manifest.model_dump_json(indent=1))


def write_dev(folder: Path, dev: Corpus) -> None:
    """Write the dev pairs."""
    write_text(folder / DEV, json.dumps(asdict(dev), ensure_ascii=False))


def open_prepared(folder: Path) -> PreparedCorpus:
    """Open a prepared corpus; raises DataError, a line, for anything that is not one or not whole."""
    manifest = read_manifest(folder)
    _check_sizes(folder, manifest)
    try:
        dev = TypeAdapter(Corpus).validate_json((folder / DEV).read_bytes())
    except (OSError, ValueError) as error:
        raise DataError(f"{folder / DEV}: missing or damaged ({type(error).__name__}); {AGAIN}") from None
    options, numbers = manifest.options, range(len(manifest.shards))
    own = [shard.pairs for shard in manifest.shards]
    train = mapped_corpus(folder, own, manifest.name, manifest.skipped, manifest.first)
    ids = Shards([ids_path(folder, number) for number in numbers], [shard.kept for shard in manifest.shards])
    sources, targets = (MappedIds(ids, side) for side in SIDES)
    source = load_source(folder / TOKENIZERS[0], options.source_tokenizer or "")
    target = Tokenizer.load(folder / TOKENIZERS[1], options.target_tokenizer or "")
    return PreparedCorpus(folder, manifest, (train, dev), (source, target), Encoded(sources, targets))


def read_manifest(folder: Path) -> Manifest:
    """What stands in prepared.json; raises DataError."""
    if not folder.is_dir():
        raise DataError(f"{folder}: no such folder; make a prepared corpus with mirada data prepare")
    path = folder / MANIFEST
    if not path.is_file():
        raise DataError(f"{folder}: not a prepared corpus ({MANIFEST} is missing); mirada data prepare makes one")
    try:
        values = json.loads(path.read_bytes())
        return Manifest.model_validate(values, context={"stored": True})
    except ValidationError as error:
        raise DataError(f"{path}: {complaint(error, lambda _: '')}; {AGAIN}") from None
    except (OSError, ValueError, RecursionError) as error:
        raise DataError(f"{path}: damaged ({error}); {AGAIN}") from None


def _check_sizes(folder: Path, manifest: Manifest) -> None:
    """Raise DataError for a file that is not there or not as long as it was."""
    for number, shard in enumerate(manifest.shards):
        for path, size in ((texts_path(folder, number), shard.text_bytes), (ids_path(folder, number), shard.id_bytes)):
            found = path.stat().st_size if path.is_file() else None
            if found != size:
                said = "not there" if found is None else f"{found:,} bytes, expected {size:,}"
                raise DataError(f"{path}: {said}; {AGAIN}")


def read_inputs(paths: tuple[Path, ...]) -> list[InputFile]:
    """Files as they are now; of a folder the files in it."""
    files = [file for path in paths for file in (sorted(path.rglob("*")) if path.is_dir() else [path])]
    found = [(file, file.stat()) for file in files if file.is_file()]
    return [InputFile(path=str(file), size=stat.st_size, modified=stat.st_mtime_ns) for file, stat in found]
