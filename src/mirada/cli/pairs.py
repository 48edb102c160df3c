"""Pairs of sentences named by flags, for the commands that need a source and a target side."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Any

from mirada.cli.flags import add_options
from mirada.data.corpus import Corpus, read_files, required_files
from mirada.errors import ConfigError

FLAGS = ("src", "tgt", "tsv", "jsonl", "source_column", "target_column", "source_key", "target_key")


def add_pairs(parser: argparse.ArgumentParser) -> None:
    """Add the flags that name one set of pairs."""
    add_options(parser, "data", only=FLAGS)


def read_pairs(options: Mapping[str, Any]) -> Corpus:
    """Read the pairs that the flags name; raises ConfigError if they name none, or DataError."""
    from mirada.config.configfile import parse

    refuse_ignored(options)
    data = parse({"data": dict(options)}).data
    return read_files(required_files(data, "input"), data)


def refuse_ignored(options: Mapping[str, Any]) -> None:
    """Raise ConfigError for a column without a TSV file, or a key without JSON lines: it would change nothing."""
    for ending, kind, what in (("_column", "tsv", "columns"), ("_key", "jsonl", "keys")):
        for name in options:
            if name.endswith(ending) and not any(option.removeprefix("dev_") == kind for option in options):
                raise ConfigError(f"--{name.replace('_', '-')} goes with --{kind}, whose {what} it names")
