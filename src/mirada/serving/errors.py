"""Why a request is refused: a status, one clear line for the client, and nothing of the inside."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mirada.errors import MiradaError, ModelFolderError


class RefusedError(MiradaError):
    """A request that is answered with an error."""

    def __init__(self, status: int, message: str, *, headers: Mapping[str, str] | None = None):
        super().__init__(message)
        self.status, self.message, self.headers = status, message, dict(headers or {})


class RetiredError(Exception):
    """The engine takes no more work: its model was replaced or made room; ask the shelf again."""


def full(waiting: int, size: int) -> RefusedError:
    """The queue of a model is full."""
    return RefusedError(
        503,
        f"the queue is full ({waiting} of {size} texts wait for this model); try again in a second",
        headers={"Retry-After": "1"},
    )


def too_late(seconds: float) -> RefusedError:
    """The request took too long."""
    return RefusedError(504, f"not done within {seconds:g} s; send fewer or shorter texts, or a smaller beam")


def translated(error: Exception) -> RefusedError:
    """What a client is told of an error: a mistake in words, anything else as such."""
    if isinstance(error, RefusedError):
        return error
    if isinstance(error, ModelFolderError):  # its words name files
        return RefusedError(503, "the model cannot be loaded; the service's log says why")
    if isinstance(error, MiradaError):
        return RefusedError(422, str(error))
    return RefusedError(500, "an error inside the service; its log has it under this id")


def complaint(errors: Sequence[Mapping[str, Any]]) -> str:
    """Pydantic's first complaint about a body, as one line: where, what was expected, what came."""
    first = errors[0]
    parts = [str(part) for part in first["loc"]]  # those in brackets are pydantic's own names for kinds
    where = ".".join(part for part in parts if part not in ("body", "str") and "[" not in part)
    message = str(first["msg"]).removeprefix("Value error, ")
    got = repr(first.get("input"))
    shown = f" (got {got[:60]}{'…' if len(got) > 60 else ''})" if first["type"] != "missing" else ""
    if first["type"] == "extra_forbidden":
        message, shown = "unknown key", ""
    return f"{where or 'body'}: {message[:1].lower()}{message[1:]}{shown}"
