"""Training on a prepared corpus: one that the options name, or one that is made because the text is large."""

from __future__ import annotations

import shutil
import time
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from mirada.config.configfile import changed
from mirada.config.data import DataConfig
from mirada.config.options import Config
from mirada.config.types import written
from mirada.data.corpus import chosen_files, required_files
from mirada.data.prepared import PreparedCorpus, open_prepared, read_inputs, read_manifest
from mirada.data.preparing import Prepared, Tokenizers, encode_dev
from mirada.errors import ConfigError, DataError, TrainingError
from mirada.files import expanded
from mirada.train.progress import Monitor

FOLDER = "prepared"  # in the model's folder
PACKED, DENSITY = (".gz", ".xz", ".parquet", ".arrow"), 4  # bytes of text in a byte of a packed file, about
WITHOUT = {"prepared", "prepare_above"}  # options that say nothing of the pairs
EACH = 10.0  # seconds between lines of progress


class Large(NamedTuple):
    """A prepared corpus to train on, the options with those of its data, and what there is to say."""

    corpus: PreparedCorpus
    config: Config
    notes: list[str]


def find_prepared(config: Config, folder: Path, monitor: Monitor) -> Large | None:
    """The prepared corpus that the options name, or that of large text, made now if need be; None for all others.

    Raises ConfigError for options that contradict it, DataError for a corpus that is not whole.
    """
    data = config.data
    if data.prepared is not None:
        corpus = open_prepared(expanded(data.prepared))
        config = config.model_copy(update={"data": adopt_data(data, corpus)})
        return Large(corpus, config, [])
    size = text_bytes(data)
    if size < data.prepare_above or not size:
        return None
    said = f"{size:,} bytes of text are large (--prepare-above {data.prepare_above:,})"
    if obstacle := _obstacle(config):
        monitor.note(f"{said}, but {obstacle}: they are read into memory")
        return None
    place = folder / FOLDER
    if not _is_of(place, config):
        monitor.note(f"{said}: they are prepared in {place}, then read from there")
        _make(config, place, monitor)
    corpus = open_prepared(place)
    return Large(corpus, config.model_copy(update={"data": _resolved(data, corpus)}), [f"pairs are read from {place}"])


def text_bytes(data: DataConfig) -> int:
    """How many bytes of text the training files hold, about; nothing for what is no regular file."""
    files = read_inputs(required_files(data, "training").paths)
    return sum(file.size * (DENSITY if Path(file.path).suffix.lower() in PACKED else 1) for file in files)


def _obstacle(config: Config) -> str:
    """Why large text cannot be prepared, or an empty string."""
    if config.data.bpe_dropout:
        return "bpe_dropout cuts them anew in every epoch"
    if config.model.copy_attn:
        return "copy_attn needs them whole"
    return "" if find_spec("pyarrow") else "pip install 'mirada[arrow]' is needed to prepare them"


def _is_of(place: Path, config: Config) -> bool:
    """Whether a prepared corpus is of these options and of the files as they are."""
    try:
        manifest = read_manifest(place)
    except DataError:
        return False
    files = [files for dev in (False, True) if (files := chosen_files(config.data, dev=dev))]
    same = manifest.given.model_dump(exclude=WITHOUT) == config.data.model_dump(exclude=WITHOUT)
    inputs = read_inputs(tuple(path for one in files for path in one.paths))
    return same and manifest.seed == config.training.seed and manifest.inputs == inputs


def _make(config: Config, place: Path, monitor: Monitor) -> None:
    from mirada.data.preparation import cores, prepare_corpus

    if place.exists():
        shutil.rmtree(place)
    told = time.monotonic()

    def tell(what: str, done: int, total: int | None) -> None:
        nonlocal told
        if time.monotonic() - told > EACH:
            told = time.monotonic()
            monitor.note(f"{what}: {done:,} pairs{'' if total is None else f' of {total:,}'}")

    prepare_corpus(config.data, place, seed=config.training.seed, workers=cores(), tell=tell)


def adopt_data(data: DataConfig, corpus: PreparedCorpus) -> DataConfig:
    """The options of a prepared corpus's data; raises ConfigError for one that was given and contradicts them."""
    manifest = corpus.manifest
    for name in sorted(data.model_fields_set - WITHOUT):
        value = getattr(data, name)
        known = [getattr(options, name) for options in (manifest.given, manifest.options)]
        if value not in known:
            raise ConfigError(
                f"{name} {written(value)} with prepared {corpus.folder}, which has {written(known[0])}; leave {name} "
                "out, or prepare again"
            )
    return _resolved(data, corpus)


def _resolved(data: DataConfig, corpus: PreparedCorpus) -> DataConfig:
    own = {name: getattr(data, name) for name in WITHOUT}
    return changed(corpus.manifest.options, own)


def check_large(config: Config, corpus: PreparedCorpus, tokenizers: Tokenizers) -> None:
    """Raise ConfigError for what a prepared corpus cannot do, TrainingError if it has other tokenisers than these."""
    if config.model.copy_attn:
        raise ConfigError(
            f"copy_attn true with {corpus.folder}: a prepared corpus has no copies; give copy_attn false, or train "
            "on the files (without --prepared, or with a larger --prepare-above)"
        )
    if config.data.bpe_dropout:
        raise ConfigError("bpe_dropout with a prepared corpus, whose texts are cut already; leave one of them out")
    if [own.content() for own in tokenizers] != [own.content() for own in corpus.tokenizers]:
        raise TrainingError(
            f"{corpus.folder}: prepared with other tokenisers than the model's; prepare with the model's options, or "
            "begin with init_vocab map"
        )


def encoded(config: Config, corpus: PreparedCorpus) -> Prepared:
    """What a training reads: the prepared pairs, and dev as ids."""
    dev = encode_dev(config.data, corpus.corpora[1], corpus.tokenizers)
    notes = [*corpus.manifest.notes, *dev.notes]
    return Prepared(corpus.train, dev.pairs, dev.texts, corpus.corpora[0], corpus.tokenizers, notes)
