"""Files that are either whole or not there: a new file, flushed to disk, takes the old one's place in one step."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mirada.errors import MiradaError, TrainingError


def write_atomic(path: Path, content: bytes) -> None:
    """Write a file so that a crash at any moment leaves the old content or the new, never a part.

    Raises MiradaError (disk full, no permission); the old file is then intact.
    """
    temporary = path.with_name(f".{path.name}.new")
    try:
        with temporary.open("wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        temporary.replace(path)
        _sync_folder(path.parent)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise MiradaError(
            f"{path}: could not be written ({error.strerror}); what stood there before is intact"
        ) from None


def write_text(path: Path, text: str) -> None:
    """Write UTF-8 text atomically."""
    write_atomic(path, text.encode("utf-8"))


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold a folder for one writer. Raises TrainingError if another process holds it; a crash frees it."""
    import fcntl

    with (folder / ".lock").open("w") as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise TrainingError(
                f"{folder}: another training is writing into this folder; wait for it, or choose another --model-dir"
            ) from None
        yield


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
