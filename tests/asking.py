"""What a GPU would have to be waited for: numbers that Python asks a device for, or sends to it one by one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

ASKING = {"_local_scalar_dense", "nonzero", "nonzero_numpy", "equal", "masked_select", "is_nonzero", "unique"}
SENDING = {"lift_fresh"}  # torch.tensor([…])


class Asking(TorchDispatchMode):
    """Notes operations that wait for a GPU, or that no graph of CUDA's can hold, while it is entered."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def __torch_dispatch__(
        self, operation: Any, types: Sequence[type], args: Any = (), kwargs: Any = None
    ) -> Callable[..., Any]:
        name = operation.overloadpacket.__name__
        chosen = args[1] if name.startswith(("index", "_index")) and len(args) > 1 else ()
        masks = isinstance(chosen, list | tuple) and any(
            isinstance(part, torch.Tensor) and part.dtype == torch.bool for part in chosen
        )
        if name in ASKING | SENDING or masks:
            self.found.append(name)
        return operation(*args, **(kwargs or {}))
