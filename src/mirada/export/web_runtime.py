"""ONNX Runtime for the Web: its files out of the package that npm has, fetched once, each known by its checksum."""

from __future__ import annotations

import hashlib
import io
import os
import tarfile
import urllib.request
from collections.abc import Callable, Mapping
from importlib.resources import files
from pathlib import Path

from mirada.errors import ConfigError, MiradaError
from mirada.files import read_regular, write_atomic

VERSION = "1.30.0"
NAME = f"onnxruntime-web-{VERSION}"
ADDRESS = f"https://registry.npmjs.org/onnxruntime-web/-/{NAME}.tgz"
FILES = {  # of its folder dist, with the SHA-256 of each
    "ort.wasm.min.mjs": "219e6a1fc8a9938268d18efca3c91d310bd2f4a59bbd13744df5b2b7fc6cee3b",
    "ort-wasm-simd-threaded.mjs": "e13f7f94fc51b4ca72b12faeb1ee95f4ace6dfbc8939bc718aabdc0a27c4299b",
    "ort-wasm-simd-threaded.wasm": "3398c10d07d229bd91b364548e130e0e51a8e5704b88c7c083ebbeb78842dee2",
}
LICENCES = ("LICENSE", "ThirdPartyNotices.txt")  # npm's package has none: those of the same library for Python
MOST_BYTES, SECONDS = 1 << 28, 60
ADVICE = f"where there is a network: npm pack onnxruntime-web@{VERSION}, then --runtime {NAME}.tgz"


def cached() -> Path:
    """The folder where the files are kept: in MIRADA_CACHE, else in XDG_CACHE_HOME/mirada or ~/.cache/mirada."""
    home = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(os.environ.get("MIRADA_CACHE") or Path(home) / "mirada").expanduser() / NAME


def runtime_files(given: Path | None, *, say: Callable[[str], None]) -> Mapping[str, bytes]:
    """The files that a page needs, by name, with the licences.

    They come from `given` (the package as npm has it, packed or as a folder), else from the cache, else they are
    fetched now. Raises ConfigError for other files than this version's, and where they cannot be fetched.
    """
    place = given or cached()
    if given is not None and not given.exists():
        raise ConfigError(f"--runtime {given}: no such file or folder; {ADVICE}")
    found = _in_folder(place) if place.is_dir() else _in_package(_packed(given, say), place)
    for name, checksum in FILES.items():
        if name not in found:
            raise ConfigError(f"{place}: has no {name}; {ADVICE}")
        if hashlib.sha256(found[name]).hexdigest() != checksum:
            raise ConfigError(f"{place}: its {name} is not that of onnxruntime-web {VERSION} on npm; {ADVICE}")
    if given is None and not place.is_dir():
        _keep(place, found)
    return {**found, **{name: files("onnxruntime").joinpath(name).read_bytes() for name in LICENCES}}


def _in_folder(place: Path) -> dict[str, bytes]:
    inner = place / "dist" if (place / "dist").is_dir() else place
    return {name: _read(inner / name) for name in FILES if (inner / name).is_file()}


def _in_package(content: bytes, place: Path) -> dict[str, bytes]:
    """The files out of a package; nothing else of it is looked at, and nothing is unpacked on disk."""
    found: dict[str, bytes] = {}
    try:
        with tarfile.open(fileobj=io.BytesIO(content), mode="r:gz") as package:
            for member in package:
                name = member.name.removeprefix("package/dist/")
                if name in FILES and member.size < MOST_BYTES and (stream := package.extractfile(member)) is not None:
                    found[name] = stream.read()
    except (tarfile.TarError, OSError, EOFError) as error:
        raise ConfigError(f"{place}: no package of npm's ({error}); {ADVICE}") from None
    return found


def _packed(given: Path | None, say: Callable[[str], None]) -> bytes:
    return _fetch(say) if given is None else _read(given)


def _read(place: Path) -> bytes:
    try:
        return read_regular(place)
    except OSError as error:
        raise ConfigError(f"{place}: cannot be read ({error.strerror or error})") from None


def _fetch(say: Callable[[str], None]) -> bytes:
    try:
        with urllib.request.urlopen(ADDRESS, timeout=SECONDS) as answer:
            content: bytes = answer.read(MOST_BYTES)
    except (OSError, ValueError) as error:
        raise ConfigError(f"onnxruntime-web {VERSION} cannot be fetched ({error}); {ADVICE}") from None
    say(f"fetched onnxruntime-web {VERSION} from registry.npmjs.org, kept in {cached()}")
    return content


def _keep(place: Path, found: Mapping[str, bytes]) -> None:
    """In the cache, where that can be written to."""
    try:
        place.mkdir(parents=True, exist_ok=True)
        for name, content in found.items():
            write_atomic(place / name, content)
    except (OSError, MiradaError):
        return
