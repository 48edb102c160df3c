"""What a decoder may attend to, kept for a long search: other padding of the sources, other sentences in its rows."""

from __future__ import annotations

from typing import Any

from torch import Tensor
from torch.nn.functional import pad

from mirada.kernels.widths import round_up
from mirada.trees import map_tensors, put_rows


def widened(memory: Any) -> Any:
    """The same memory padded to a width that products are fast for; `final`, which was read, is left out."""
    if not hasattr(memory, "mask"):  # of several models
        return tuple(widened(part) for part in memory)
    return padded(memory, round_up(memory.mask.size(1)))


def put(memory: Any, rows: Tensor, fresh: Any) -> Any:
    """Let other sentences take `rows`, in place where the padding stays: it is what the longest source needs."""
    if not hasattr(memory, "mask"):
        return tuple(put(part, rows, fresh_part) for part, fresh_part in zip(memory, fresh, strict=True))
    width = round_up(max(int(part.mask.any(0).sum()) for part in (memory, fresh)))
    return put_rows(memory if width == memory.mask.size(1) else padded(memory, width), rows, fresh)


def padded(memory: Any, width: int) -> Any:
    """The same memory with sources padded to `width`; `final` is left out, for it has been read."""
    more = width - memory.mask.size(1)
    if not more:
        return memory._replace(final=())
    keys = map_tensors(lambda part: pad(part, (0, 0, 0, more)), memory.keys)
    states, mask = pad(memory.states, (0, 0, 0, more)), pad(memory.mask, (0, more))
    if getattr(memory, "copies", None) is not None:  # of a model that copies
        memory = memory._replace(copies=pad(memory.copies, (0, more)))
    return memory._replace(states=states, mask=mask, keys=keys, final=())
