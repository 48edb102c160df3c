"""Files that are either whole or not there: a new file, flushed to disk, takes the old one's place in one step."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import BinaryIO, TextIO, cast

from mirada.errors import MiradaError, TrainingError

LOCK = ".lock"
UNWRITTEN = (".bz2", ".zst", ".lz4", ".zip", ".7z", ".tgz", ".tar")


def expanded(path: str | Path) -> Path:
    """A path as it was given, `~` and `~user` replaced; raises MiradaError for a user that is not known."""
    try:
        return Path(path).expanduser()
    except RuntimeError:
        raise MiradaError(f"{path}: no such user's home folder") from None


def open_regular(path: Path) -> BinaryIO:
    """Open a regular file for reading bytes; raises OSError as `Path.open` does, and as `refuse_endless` does."""
    refuse_endless(path)
    return path.open("rb")


def read_regular(path: Path) -> bytes:
    """The bytes of a regular file; raises OSError as `open_regular` does."""
    with open_regular(path) as stream:
        return stream.read()


def refuse_endless(path: Path, *, streams: bool = False) -> None:
    """Raise OSError for what is no regular file: a device may never end, a pipe to which nobody writes never begin.

    With `streams` a pipe, a terminal and the null device may be read too.
    """
    mode = path.stat().st_mode
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if not (stat.S_ISREG(mode) or (streams and _is_stream(path, mode))):
        raise OSError(errno.EINVAL, "is no regular file", str(path))


def _is_stream(path: Path, mode: int) -> bool:
    if stat.S_ISFIFO(mode):
        return True
    with suppress(OSError):  # a device: only those on which an end can come
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0))
        try:
            return os.isatty(descriptor) or os.path.samestat(os.fstat(descriptor), os.stat(os.devnull))
        finally:
            os.close(descriptor)
    return False


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
    """Write UTF-8 text atomically, packed where the name ends in `.gz` or `.xz`."""
    write_atomic(path, packed(path, text.encode("utf-8")))


def packed(path: Path, content: bytes) -> bytes:
    """Content as the name of its file promises: packed for `.gz` and `.xz`; raises as `promise` does."""
    suffix = promise(path)
    if suffix == ".gz":
        import gzip

        return gzip.compress(content, mtime=0)
    if suffix == ".xz":
        import lzma

        return lzma.compress(content)
    return content


def unpacked(path: Path, content: bytes) -> bytes:
    """Content of a file whose name says that it is packed as `.gz` or `.xz`; raises OSError where it is not."""
    suffix = path.suffix.lower()
    if suffix == ".gz":
        import gzip

        return gzip.decompress(content)
    if suffix == ".xz":
        import lzma

        try:
            return lzma.decompress(content)
        except lzma.LZMAError as error:
            raise OSError(str(error)) from None
    return content


def promise(path: Path) -> str:
    """The ending of a file's name; raises MiradaError for one that promises a packing that mirada does not write."""
    suffix = path.suffix.lower()
    if suffix in UNWRITTEN:
        raise MiradaError(f"{path}: mirada packs as .gz or .xz, not as {suffix}; choose another name")
    return suffix


def text_stream(path: Path) -> TextIO:
    """Open a file for UTF-8 text with bare newlines, packed for `.gz` and `.xz`; raises MiradaError."""
    suffix = promise(path)
    try:
        if suffix == ".gz":
            import gzip

            return cast(TextIO, gzip.open(path, "wt", encoding="utf-8", newline="\n"))
        if suffix == ".xz":
            import lzma

            return cast(TextIO, lzma.open(path, "wt", encoding="utf-8", newline="\n"))
        return path.open("w", encoding="utf-8", newline="\n")
    except OSError as error:
        raise unwritable(path, error) from None


def unwritable(path: str | Path, error: OSError) -> MiradaError:
    """The error for a file that cannot be written."""
    return MiradaError(f"{path}: cannot be written ({error.strerror or error})")


@contextmanager
def locked(folder: Path, *, option: str = "--model-dir") -> Iterator[None]:
    """Hold a folder, which `option` names, for one writer; a crash frees it.

    Raises TrainingError if another process holds it.
    """
    from filelock import FileLock, Timeout

    lock = FileLock(folder / LOCK, timeout=0)  # follows no link: a folder from elsewhere has no file of mine emptied
    try:
        lock.acquire()
    except Timeout:
        raise TrainingError(
            f"{folder}: another process is writing into this folder; wait for it, or choose another {option}"
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


@contextmanager
def new_folder(path: Path) -> Iterator[Path]:
    """A folder to fill, moved to its place when all went well: it is whole or not there.

    Raises MiradaError where something stands there already (an empty folder may) or cannot be written.
    """
    if path.is_symlink() or (path.exists() and not (path.is_dir() and not any(path.iterdir()))):
        raise MiradaError(f"{path}: is there already; choose another --out, or remove it")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(dir=path.parent, prefix=f".{path.name}.", ignore_cleanup_errors=True) as made:
            folder = Path(made) / "new"
            folder.mkdir()
            yield folder
            for file in filter(Path.is_file, folder.rglob("*")):
                with file.open("rb") as stream:
                    os.fsync(stream.fileno())
            folder.replace(path)  # an empty folder in its place is replaced
            _sync_folder(path.parent)
    except OSError as error:
        raise MiradaError(f"{path}: could not be written ({error.strerror}); nothing was left there") from None


def _sync_folder(folder: Path) -> None:
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except PermissionError:  # Windows opens no folders, and keeps their names on disk by itself
        return
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
