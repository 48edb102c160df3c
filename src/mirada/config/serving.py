"""Options of `mirada serve`: flags, or the keys of a YAML file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, ValidationError

from mirada.config.configfile import explain, load_yaml
from mirada.config.options import Block
from mirada.config.types import MOST, SomeLength
from mirada.errors import ConfigError

Seconds = Annotated[float, Field(gt=0, le=86_400)]
Some = Annotated[int, Field(ge=1, le=MOST)]


class ServeConfig(Block):
    """What is served, where, to whom, and within which limits."""

    models: tuple[str, ...] = Field((), description="model folders, each FOLDER or NAME=FOLDER")
    languages: tuple[str, ...] = Field(
        (), description="languages of models, each NAME=SOURCE-TARGET (default: by the endings of the training files)"
    )
    host: str = Field("127.0.0.1", description="address to listen on; 0.0.0.0 is every network of this machine")
    port: int = Field(8080, ge=0, le=65_535, description="port; 0 takes a free one and says which")
    workers: int = Field(1, ge=1, le=256, description="processes, which share nothing but the port")
    threads: int = Field(1, ge=1, le=256, description="threads of each process's products")
    device: str = Field("auto", description="auto, cpu, cuda or cuda:N")
    precision: Literal["float32", "int8"] = Field("float32", description="of the large products on a CPU")
    preload: bool = Field(False, description="load every model before the first request")
    memory_limit_mb: int = Field(
        0, ge=0, le=MOST, description="weights held at once; the least recently used model makes room; 0: no limit"
    )
    reload_seconds: float = Field(
        2.0, ge=0, le=86_400, description="how often to look whether a model folder changed; 0: only on SIGHUP"
    )
    token_file: str | None = Field(None, description="file of bearer tokens, one a line; without it nobody is asked")
    cors_origins: tuple[str, ...] = Field((), description="origins whose pages may call this service")
    max_body_bytes: Some = Field(1_000_000, description="largest body of a request")
    max_texts: Some = Field(256, description="most texts a request")
    max_stream_lines: Some = Field(10_000, description="most lines of a streamed document")
    max_tokens: SomeLength = Field(500, description="most source tokens a text, and most of an output")
    max_beam_size: Some = Field(20, description="largest beam, and most samples a text")
    queue_size: Some = Field(1024, description="texts that may wait for a model; beyond, 503")
    batch_size: Some = Field(64, description="most texts that share a step of the search")
    time_limit: Seconds = Field(60.0, description="seconds a request may take")
    read_seconds: Seconds = Field(10.0, description="seconds a client may take to send a request")
    drain_seconds: Seconds = Field(30.0, description="seconds that accepted requests get after SIGTERM")
    log_format: Literal["text", "json"] = Field("text", description="of the log on standard error, one line a request")
    log_texts: bool = Field(False, description="write texts into the log; else they are never in it")


def parse_serving(values: dict[str, object], *, where: str = "options") -> ServeConfig:
    """Check the values of options; raises ConfigError, one line, for an unknown one (with the nearest) or a bad one."""
    try:
        return ServeConfig.model_validate(values, context={})
    except ValidationError as error:
        raise ConfigError(f"{where}: {explain(error, list(ServeConfig.model_fields))}") from None


def load_serving(path: Path) -> dict[str, object]:
    """Read a YAML file of these options; raises ConfigError naming the file."""
    values = load_yaml(path)
    parse_serving(values, where=str(path))
    return values
