"""What the decoder may look at, for other padding of the sources."""

from __future__ import annotations

from torch.nn.functional import pad

from mirada.models.base import Memory
from mirada.trees import map_tensors


def resized(memory: Memory, width: int) -> Memory:
    """The same memory with sources padded to `width`; `final` is left out, for it has been read."""
    more = width - memory.mask.size(1)
    if not more:
        return memory._replace(final=())
    keys = map_tensors(lambda part: pad(part, (0, 0, 0, more)), memory.keys)
    states, mask = pad(memory.states, (0, 0, 0, more)), pad(memory.mask, (0, more))
    return memory._replace(states=states, mask=mask, keys=keys, final=())
