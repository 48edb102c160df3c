"""Files that are either whole or not there: a new file, flushed to disk, takes the old one's place in one step."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from mirada.errors import MiradaError, TrainingError

LOCK = ".lock"


def write_atomic(path: Path, content: bytes) -> None:
    """Write a file so that a crash at any moment leaves the old content or the new, never a part.

    Raises MiradaError (disk full, no permission, a device in its place); the old file is then intact.
    """
    if path.exists() and not path.is_file():
        raise MiradaError(f"{path}: is no regular file, so it is not written")
    temporary = path.with_name(f".{path.name}.new")
    try:
        temporary.unlink(missing_ok=True)  # what a killed save left; a link in its place is never followed
        with temporary.open("xb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        temporary.replace(path)
        _sync_folder(path.parent)
    except OSError as error:
        with suppress(OSError):
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
    from filelock import FileLock, Timeout

    lock = FileLock(folder / LOCK, timeout=0)  # follows no link: a folder from elsewhere has no file of mine emptied
    try:
        lock.acquire()
    except Timeout:
        raise TrainingError(
            f"{folder}: another training is writing into this folder; wait for it, or choose another --model-dir"
        ) from None
    except OSError as error:
        raise TrainingError(
            f"{folder / LOCK}: cannot be opened ({error.strerror}); may this folder be written?"
        ) from None
    try:
        yield
    finally:
        lock.release()


def remove_unused(folder: Path, made: Sequence[Path]) -> None:
    """Take away folders, the innermost first, that hold nothing but the lock of `folder`."""
    with suppress(OSError):
        if {path.name for path in folder.iterdir()} == {LOCK}:
            (folder / LOCK).unlink()
        for part in made:
            part.rmdir()


def _sync_folder(folder: Path) -> None:
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except PermissionError:  # Windows opens no folders, and keeps their names on disk by itself
        return
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
