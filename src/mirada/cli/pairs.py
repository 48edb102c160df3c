"""Pairs of sentences named by flags, for the commands that need a source and a target side."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from mirada.cli import say
from mirada.cli.flags import add_options
from mirada.config.options import DataConfig
from mirada.data.corpus import Corpus, read_files, required_files
from mirada.errors import ConfigError
from mirada.files import expanded

if TYPE_CHECKING:
    from mirada import runtime
    from mirada.translator import Translator

FILES = ("src", "tgt", "tsv", "jsonl", "dataset")
FORMAT = ("source_column", "target_column", "source_key", "target_key")
# What these are where nothing is trained.
PAIRS = {
    "src": "source side, one sentence a line (.gz, .xz too)",
    "tsv": "pairs as tab-separated columns, instead of --src/--tgt",
    "jsonl": "pairs as JSON lines, instead of --src/--tgt",
    "dataset": "pairs as Parquet (a file or a folder), or a folder that Hugging Face datasets saved; columns by keys",
}


def add_pairs(parser: argparse.ArgumentParser) -> None:
    """Add the flags that name one set of pairs."""
    add_options(parser, "data", only=FILES + FORMAT, meaning=PAIRS)


def read_pairs(options: Mapping[str, Any], model: str | None = None) -> Corpus:
    """Read the pairs that the flags name, columns and keys as the model was trained unless they say otherwise.

    Raises ConfigError if they name none, or DataError.
    """
    refuse_ignored(options)
    data = pair_options(options, model)
    return read_files(required_files(data, "input"), data)


def warn_of_swapped(model: Translator | runtime.Translator, sources: Sequence[str], targets: Sequence[str]) -> None:
    """Say so where pairs read like a model's the other way round."""
    from mirada.data.swapped import SWAPPED, sides_swapped

    if sides_swapped(sources, targets, (model.source_tokenizer, model.target_tokenizer)):
        say(f"warning: {SWAPPED}")


def pair_options(options: Mapping[str, Any], model: str | None = None) -> DataConfig:
    """The options that name pairs; of a model with sources of several parts its columns and keys are the defaults."""
    from mirada.config.configfile import parse
    from mirada.store.folder import read_config

    known = read_config(expanded(model)).data if model else DataConfig()
    own = {name: getattr(known, name) for name in FORMAT} if known.source_parts > 1 else {}
    return parse({"data": {**own, **options}}).data


def refuse_ignored(options: Mapping[str, Any]) -> None:
    """Raise ConfigError for a column without a TSV file, or a key without JSON lines: it would change nothing."""
    kinds = {option.removeprefix("dev_") for option in options}
    for ending, homes, what in (("_column", ("tsv",), "columns"), ("_key", ("jsonl", "dataset"), "keys")):
        for name in options:
            if name.endswith(ending) and not kinds & {*homes, "prepared"}:
                files = " or ".join(f"--{home}" for home in homes)
                raise ConfigError(f"--{name.replace('_', '-')} goes with {files}, whose {what} it names")
