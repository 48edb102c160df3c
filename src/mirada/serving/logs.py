"""The log: one line for each event and each request, as text or as JSON, on standard error."""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime

FIELDS = "fields"  # the attribute of a record that holds what is known of a request


class Lines(logging.Formatter):
    """Records as lines: `time level message name=value …`, or JSON objects."""

    def __init__(self, *, as_json: bool):
        super().__init__()
        self.as_json = as_json

    def format(self, record: logging.LogRecord) -> str:
        """Make one line, whatever is in the message."""
        time = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        fields: dict[str, object] = getattr(record, FIELDS, {})
        message = record.getMessage()
        if record.exc_info:
            fields = {**fields, "traceback": self.formatException(record.exc_info)}
        if self.as_json:
            return json.dumps({"time": time, "level": record.levelname.lower(), "message": message, **fields})
        rest = "".join(f" {name}={json.dumps(value)}" for name, value in fields.items())
        return f"{time} {record.levelname.lower()} {_one_line(message)}{rest}"


class Quiet(logging.StreamHandler):  # type: ignore[type-arg]
    """A full disk behind standard error, or nobody who reads it, is no reason to stop answering."""

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802
        """Go on."""


def set_up(kind: str) -> None:
    """Send the service's records, and uvicorn's warnings, to standard error."""
    handler = Quiet(sys.stderr)
    handler.setFormatter(Lines(as_json=kind == "json"))
    for name, level in (
        ("mirada.serve", logging.INFO),
        ("uvicorn", logging.WARNING),
        ("uvicorn.error", logging.WARNING),
    ):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(level)


def _one_line(text: str) -> str:
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)
