"""Flags that say where work is done: in this process, in several on this machine, or on a Ray cluster."""

from __future__ import annotations

import argparse
from typing import Literal

from mirada.cli.flags import positive
from mirada.errors import ConfigError
from mirada.scaling.engine import EngineChoice


def add_engine(parser: argparse.ArgumentParser, what: str, *, workers: str = "") -> None:
    """Add the flags; `what` is given to workers, `workers` what their number means without an engine."""
    text = f"where {what}: in this process, in several processes of this machine, or on a Ray cluster [local]"
    parser.add_argument("--engine", choices=("local", "processes", "ray"), help=text)
    text = "with --engine: how many [one a core, up to 8; one a CPU of a cluster; one a GPU where there are any]"
    parser.add_argument("--workers", type=positive, metavar="N", help=f"{workers}{text}")
    text = "with --engine ray: the cluster to join [RAY_ADDRESS, else one that is started on this machine]"
    parser.add_argument("--ray-address", metavar="ADDRESS", help=text)


def engine_of(values: argparse.Namespace, device: str | None, *, threads: bool = False) -> EngineChoice:
    """What was asked for; raises ConfigError for a flag that would change nothing.

    `device`: where the work computes; auto and cuda give each worker a GPU, where there are any. `threads`: --workers
    means something without an engine too.
    """
    kind: Literal["local", "processes", "ray"] = values.engine or "local"
    if values.ray_address and kind != "ray":
        raise ConfigError("--ray-address goes with --engine ray; leave it out, or add that")
    if values.workers and kind == "local" and not threads:
        raise ConfigError("--workers goes with --engine processes or --engine ray; leave it out, or add one of them")
    return EngineChoice(kind, values.workers, values.ray_address, gpus=(device or "auto") in ("auto", "cuda"))
