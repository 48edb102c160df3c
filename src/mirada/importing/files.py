"""What toolkits' files hold, read so that nothing in them is executed: bytes, JSON, and tensors by name."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from mirada.errors import ModelFolderError
from mirada.files import open_regular

MOST_JSON = 1 << 28
MOST_WIDTH = 1 << 20
ALONE = "save the weights alone, with the toolkit itself, as tensors by name"
GLOBAL = re.compile(r"GLOBAL ([\w.]+)")


def read_bytes(path: Path, most: int) -> bytes:
    """A file of at most so many bytes; raises ModelFolderError."""
    if not path.is_file():
        raise ModelFolderError(f"{path}: missing")
    size = path.stat().st_size
    if size > most:
        raise ModelFolderError(f"{path}: {size:,} bytes; such a file has at most {most:,}")
    try:
        with open_regular(path) as stream:
            return stream.read()
    except OSError as error:
        raise ModelFolderError(f"{path}: cannot be read ({error.strerror})") from None


def read_json(path: Path) -> dict[str, Any]:
    """A JSON object; raises ModelFolderError."""
    try:
        content = json.loads(read_bytes(path, MOST_JSON).decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise ModelFolderError(f"{path}: not JSON ({str(error).splitlines()[0]})") from None
    if not isinstance(content, dict):
        raise ModelFolderError(f"{path}: not a JSON object")
    return content


def unpickled(path: Path, allowed: Sequence[Any] = (), hints: Mapping[str, str] | None = None) -> Any:
    """A file of torch.save, by torch's own reader of weights, which makes nothing but tensors and plain values.

    `allowed` are classes that it may make besides. Raises ModelFolderError for anything else, naming it and what to do:
    `hints` say that for some modules.
    """
    try:
        stream = open_regular(path)
    except OSError as error:
        raise ModelFolderError(f"{path}: cannot be read ({error.strerror or error})") from None
    try:
        with stream, torch.serialization.safe_globals(list(allowed)):
            return torch.load(stream, map_location="cpu", weights_only=True)
    except Exception as error:  # torch raises what it meets: UnpicklingError, RuntimeError, KeyError, OSError, …
        found = GLOBAL.search(str(error))
        if found:
            advice = (hints or {}).get(found[1].partition(".")[0], ALONE)
            raise ModelFolderError(
                f"{path}: holds the Python object {found[1]}, which is not read, for a pickle can run any program; "
                f"{advice}"
            ) from None
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise ModelFolderError(f"{path}: damaged or not a file of torch.save ({reason:.100})") from None


def read_tensors(path: Path) -> Tensors:
    """Tensors of a safetensors file, or of one of torch.save; raises ModelFolderError."""
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    if path.suffix != ".safetensors":
        return Tensors(path, unpickled(path))
    try:
        open_regular(path).close()
        return Tensors(path, load_file(path))
    except OSError as error:
        raise ModelFolderError(f"{path}: cannot be read ({error.strerror or error})") from None
    except (SafetensorError, ValueError, RuntimeError, LookupError, TypeError, AttributeError) as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise ModelFolderError(f"{path}: damaged or not a safetensors file ({reason:.100})") from None


class ToolkitOptions:
    """What a toolkit's file says of a model, by name; each is asked for with what may stand there."""

    def __init__(self, path: Path, values: Any, prefix: str = ""):
        if not isinstance(values, Mapping):
            raise ModelFolderError(
                f"{path}: {prefix.rstrip('.') or 'its content'} is {values!r:.60}, expected settings"
            )
        self.path, self.values, self.prefix = path, values, prefix

    def under(self, name: str) -> ToolkitOptions:
        """The settings that stand under a name; raises ModelFolderError if there are none."""
        return ToolkitOptions(self.path, self.values.get(name), f"{self.prefix}{name}.")

    def whole(self, name: str, default: int | None = None) -> int:
        """A whole number from 1; raises ModelFolderError for anything else."""
        value = self.values.get(name, default)
        if not isinstance(value, int) or isinstance(value, bool) or not 0 < value <= MOST_WIDTH:
            raise self.wrong(name, value, f"a whole number from 1 to {MOST_WIDTH}")
        return value

    def number(self, name: str, default: float) -> float:
        """A number above 0; raises ModelFolderError for anything else."""
        value = self.values.get(name, default)
        if not isinstance(value, int | float) or isinstance(value, bool) or not 0 < value < float("inf"):
            raise self.wrong(name, value, "a number above 0")
        return float(value)

    def one_of(self, name: str, choices: Mapping[Any, Any], default: Any = None) -> Any:
        """What a value stands for here; raises ModelFolderError for one that is not among the choices."""
        value = self.values.get(name, default)
        if not isinstance(value, str | bool | int | float | None) or value not in choices:
            raise self.wrong(name, value, " or ".join(map(str, choices)))
        return choices[value]

    def flag(self, name: str, default: bool = False) -> bool:
        """Yes or no, as some write it in numbers or words; raises ModelFolderError for anything else."""
        return bool(self.one_of(name, {True: True, False: False, None: False, "True": True, "False": False}, default))

    def only(self, expected: Mapping[str, Any]) -> None:
        """Raise ModelFolderError for what is set otherwise; what is not there counts as expected."""
        for name, value in expected.items():
            if self.values.get(name, value) != value:
                raise ModelFolderError(
                    f"{self.path}: {self.prefix}{name} {self.values[name]!r:.60}; only {value} can be imported"
                )

    def equal(self, *names: str) -> int:
        """The whole number that all these are; raises ModelFolderError if they differ."""
        found = {name: self.whole(name) for name in names}
        if len(set(found.values())) > 1:
            told = " and ".join(f"{self.prefix}{name} {value}" for name, value in found.items())
            raise ModelFolderError(f"{self.path}: {told} must be equal")
        return found[names[0]]

    def wrong(self, name: str, value: Any, expected: str) -> ModelFolderError:
        """The line about a value."""
        return ModelFolderError(f"{self.path}: {self.prefix}{name} is {value!r:.60}, expected {expected}")


class Tensors:
    """Tensors by name, each to be taken once, by its shape; what is left over in the end is a mistake."""

    def __init__(self, path: Path, tensors: Any):
        named = isinstance(tensors, Mapping) and all(
            isinstance(name, str) and isinstance(value, Tensor) for name, value in tensors.items()
        )
        if not named:
            raise ModelFolderError(f"{path}: expected tensors by name, got something else")
        self.path, self._tensors, self._taken = path, dict(tensors), set[str]()

    def __contains__(self, name: str) -> bool:
        """Whether there is such a tensor."""
        return name in self._tensors

    def shape(self, name: str) -> tuple[int, ...]:
        """The shape of a tensor; raises ModelFolderError if it is missing."""
        if name not in self._tensors:
            raise ModelFolderError(f"{self.path}: the tensor {name} is missing")
        return tuple(self._tensors[name].shape)

    def take(self, name: str, *shape: object) -> Tensor:
        """A tensor of this shape, in float32; raises ModelFolderError if it is missing, another, or no numbers."""
        found = self.shape(name)
        if found != shape:
            raise ModelFolderError(f"{self.path}: {name} is {list(found)}, expected {list(shape)}")
        tensor: Tensor = self._tensors[name]
        if tensor.layout != torch.strided or not tensor.is_floating_point():
            raise ModelFolderError(f"{self.path}: {name} is {tensor.dtype}, {tensor.layout}; expected plain floats")
        if tensor.numel() * tensor.element_size() > self.path.stat().st_size:  # one number may stand for many
            raise ModelFolderError(f"{self.path}: {name} is larger than the file that holds it")
        self._taken.add(name)
        tensor = tensor.float()
        if not bool(tensor.isfinite().all()):
            raise ModelFolderError(f"{self.path}: {name} holds values that are no numbers (NaN or infinite)")
        return tensor

    def take_same(self, name: str, expected: Tensor, what: str) -> None:
        """A tensor that must be another one again, where it is there at all."""
        if name in self and not torch.allclose(self.take(name, *expected.shape), expected, atol=1e-5):
            raise ModelFolderError(f"{self.path}: {name} differs from {what}")

    def skip(self, *names: str) -> None:
        """Pass over tensors that say nothing, where they are there."""
        self._taken.update(name for name in names if name in self)

    def finish(self) -> None:
        """Raise ModelFolderError if anything was not taken."""
        left = sorted(set(self._tensors) - self._taken)
        if left:
            more = f" and {len(left) - 3} more" if len(left) > 3 else ""
            names = ", ".join(name[:80] for name in left[:3])
            raise ModelFolderError(f"{self.path}: unknown tensors {names}{more}; a model of this kind has none such")
