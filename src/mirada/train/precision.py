"""The precision of training's products: float32, or of inputs that are rounded first.

Weights, the optimiser, softmax, normalisation, losses and scores stay float32, and so do all sums: what is rounded are
the inputs of matrix products, in the forward pass and in the backward. With bf16 a CPU rounds them to bfloat16 and a
GPU to TF32, which has 3 bits more (torch's float32 matmul precision "medium"); a Transformer's layers compute in
bfloat16 on a GPU (autocast), for fused attention is fast there. Recurrent layers do not: autocast would have cuDNN
compute in float16, whose numbers end before a gradient does.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

from mirada.config.options import Config
from mirada.devices import choose_device
from mirada.errors import ConfigError
from mirada.kernels.private import has_bf16, has_exact_medium
from mirada.store import checkpoint

FAST = {True: "is faster with products of bfloat16", False: "gains nothing by products of bfloat16"}


def settled(config: Config, folder: Path) -> tuple[Config, list[str]]:
    """The options with `auto` decided, by a training that stopped in this folder or by the device; and why, in words.

    Raises ConfigError for bf16 where it would not be faster.
    """
    options = config.training
    asked, device = options.precision, choose_device(options.device)
    if asked == "auto" and (folder / checkpoint.CONFIG).exists():
        asked = checkpoint.read_config(folder).training.precision
    able = torch.cuda.is_bf16_supported() if device.type == "cuda" else device.type == "cpu" and has_bf16()
    if asked == "bf16" and not able:
        raise ConfigError(f"precision bf16: the {device.type} here {FAST[False]}; use float32, or auto in a new folder")
    if asked != "auto":
        chosen, why = asked, []
    else:
        chosen = "bf16" if able else "float32"
        why = [f"precision {chosen}: the {device.type} here {FAST[able]} (--precision)"]
    return config.model_copy(update={"training": options.model_copy(update={"precision": chosen})}), why


@contextmanager
def products(precision: str, device: torch.device) -> Iterator[None]:
    """Products on this device in this precision meanwhile; afterwards as before.

    float32 is torch's "medium" too where that rounds nothing and is only another library's, faster product.
    """
    rounds, own = precision != "float32", torch.backends.cudnn.allow_tf32
    exact = device.type == "cpu" and has_exact_medium()
    before = torch.get_float32_matmul_precision()
    # Fused attention on a CPU rounds every block by itself: 18 times as slow as whole products at 16 × 16 positions.
    attention = sdpa_kernel(SDPBackend.MATH) if device.type == "cpu" and (rounds or exact) else nullcontext()
    try:
        torch.set_float32_matmul_precision("medium" if rounds or exact else before)
        torch.backends.cudnn.allow_tf32 = rounds  # torch has a GPU's recurrences rounded unasked
        with attention:
            yield
    finally:
        torch.set_float32_matmul_precision(before)
        torch.backends.cudnn.allow_tf32 = own


def lowered(config: Config, device: torch.device) -> AbstractContextManager[object]:
    """What a forward pass is computed within: torch's autocast to bfloat16, for a Transformer on a GPU."""
    wanted = config.training.precision == "bf16" and config.model.decoder == "transformer" and device.type == "cuda"
    return torch.autocast(device.type, torch.bfloat16) if wanted else nullcontext()
