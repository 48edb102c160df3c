"""`mirada translate --server URL`: the lines go to a service instead of a model in this process."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from mirada.errors import ConfigError


class Remote(NamedTuple):
    """One output of a service, as far as a line of text shows it."""

    text: str
    score: float


def remote_blocks(
    values: argparse.Namespace, blocks: Iterable[list[str]], search: dict[str, Any]
) -> Iterator[list[list[Remote]]]:
    """Outputs of blocks of lines, in order. Raises ServiceError, and ConfigError for what only a local model gives."""
    from mirada.client import Client

    options = {name: _plain(value) for name, value in search.items()} | {"with_scores": True}
    if values.models:
        options["model"] = values.models[0]
    size = values.batch_size or 64
    with Client(values.server, token=values.token) as client:
        for block in blocks:
            found = client.outputs(block, options=options, batch_size=size)
            yield [[Remote(output["text"], output["score"]) for output in outputs] for outputs in found]


def check(values: argparse.Namespace) -> None:
    """Raise ConfigError for flags that a service does not take."""
    if len(values.models) > 1:
        raise ConfigError("an ensemble needs its models in this process; leave out --server")
    for name in ("alignment", "save_attention", "prefix_file", "ensemble_mode", "engine", "ray_address"):
        if getattr(values, name) is not None:
            flag = f"--{name.replace('_', '-')}"
            raise ConfigError(f"{flag}: it needs the model in this process; leave out --server")


def _plain(value: Any) -> Any:
    """A flag's text as JSON's kinds."""
    if not isinstance(value, str):
        return value
    if value.lower() in ("true", "false"):
        return value.lower() == "true"
    for kind in (int, float):
        try:
            return kind(value)
        except ValueError:
            continue
    return value
