"""What stands in a job's folder, read back only if it is what was written there: a clear line, never half a result."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import BaseModel, TypeAdapter, ValidationError

from mirada.errors import ModelFolderError
from mirada.evaluation.units import Units
from mirada.files import read_regular, write_text

JOB, TRAINING, TEST, OUTPUTS, FAILED = "job.json", "training.json", "test.json", "outputs.json", "failed.json"


class RunJob(NamedTuple):
    """What to do, as plain values.

    `training` holds all options of a training, or None to test the model that stands in `model`; `test` is a file of
    items (`{"source": …, "references": […]}` a line); `measure` is `search` (outputs and their speed) or `positions`
    (forced decoding, right or wrong at every output position); `tokenizers` names a folder with those the training must
    arrive at; `units` says what the items' gold links count, or is None where they have none.
    """

    training: dict[str, Any] | None
    model: str
    test: str
    search: dict[str, Any]
    batch_size: int
    device: str
    measure: str
    tokenizers: str | None
    quiet: bool
    units: Units | None = None


class TrainingFile(BaseModel):
    """training.json."""

    updates: int
    best_update: int
    dev: dict[str, float]
    tokens: int
    cost: dict[str, float]


class SearchFile(BaseModel):
    """test.json after a search."""

    parameters: int
    vocabularies: tuple[int, int]
    metrics: dict[str, float]
    entropy: float | None
    alignment: dict[str, float] | None = None
    unfinished: int
    cost: dict[str, float]


class PositionsFile(BaseModel):
    """test.json after forced decoding: right (1) or wrong (0) at each output position of each item."""

    hits: list[list[int]]
    parameters: int
    cost: dict[str, float]


class FailureFile(BaseModel):
    """failed.json."""

    error: str


def write_json(path: Path, content: Any) -> None:
    """Write JSON, atomically."""
    write_text(path, json.dumps(content, indent=1, ensure_ascii=False) + "\n")


def plain(content: Any) -> Any:
    """The same as JSON has it: what is returned and what is written are then equal."""
    return json.loads(json.dumps(content))


def read_json(path: Path, kind: Any = Any) -> Any:
    """Read JSON that has this kind's shape; raises ModelFolderError if it is missing, damaged, or no regular file."""
    try:
        content = json.loads(read_regular(path))
        TypeAdapter(kind).validate_python(content)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(map(str, first["loc"]))
        raise _damaged(path, f"{place}: {first['msg']}" if place else first["msg"]) from None
    except OSError as error:
        raise _damaged(path, error.strerror or str(error)) from None
    except (ValueError, RecursionError) as error:
        raise _damaged(path, str(error)) from None
    return content


def _damaged(path: Path, reason: str) -> ModelFolderError:
    return ModelFolderError(f"{path}: missing or damaged ({reason}); remove its folder to do that part anew")


def read_job(folder: Path) -> RunJob:
    """Read what is to be done in a folder."""
    return RunJob(**read_json(folder / JOB, RunJob))


def read_trained(folder: Path) -> dict[str, Any]:
    """Read what a training took."""
    found: dict[str, Any] = read_json(folder / TRAINING, TrainingFile)
    return found


def read_tested(folder: Path) -> dict[str, Any]:
    """Read what was measured of a search."""
    found: dict[str, Any] = read_json(folder / TEST, SearchFile)
    return found


def read_positions(folder: Path) -> dict[str, Any]:
    """Read what was measured position by position."""
    found: dict[str, Any] = read_json(folder / TEST, PositionsFile)
    return found


def read_outputs(folder: Path, count: int) -> list[str]:
    """Read one output an item."""
    found: list[str] = read_json(folder / OUTPUTS, list[str])
    if len(found) != count:
        raise _damaged(folder / OUTPUTS, f"{len(found)} outputs of {count} test items")
    return found


def failure(folder: Path) -> str:
    """Why a job failed, in one line."""
    return str(read_json(folder / FAILED, FailureFile)["error"])
