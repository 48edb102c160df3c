"""The precision of training's products: float32, or of inputs that are rounded to bfloat16 first.

Weights, the optimiser, softmax, normalisation, losses and scores stay float32, and so do all sums: what is rounded are
the inputs of matrix products, in the forward pass and in the backward (torch's float32 matmul precision "medium").
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

from mirada.config.options import Config
from mirada.devices import choose_device
from mirada.errors import ConfigError
from mirada.kernels.private import has_bf16
from mirada.store import checkpoint


def settled(config: Config, folder: Path) -> tuple[Config, list[str]]:
    """The options with `auto` decided, by a training that stopped in this folder or by the device; and why, in words.

    Raises ConfigError for bf16 where it would not be faster.
    """
    options = config.training
    asked, device = options.precision, choose_device(options.device)
    if asked == "auto" and (folder / checkpoint.CONFIG).exists():
        asked = checkpoint.read_config(folder).training.precision
    able = torch.cuda.is_bf16_supported() if device.type == "cuda" else device.type == "cpu" and has_bf16()
    what = "bfloat16 in its tensor cores" if device.type == "cuda" else "AMX or AVX512-BF16"
    if asked == "bf16" and not able:
        raise ConfigError(f"precision bf16: the {device.type} here has no {what}; use float32, or auto in a new folder")
    if asked != "auto":
        chosen, why = asked, []
    else:
        chosen = "bf16" if able else "float32"
        why = [f"precision {chosen}: the {device.type} here has {what if able else f'no {what}'} (--precision)"]
    return config.model_copy(update={"training": options.model_copy(update={"precision": chosen})}), why


@contextmanager
def products(precision: str, device: torch.device) -> Iterator[None]:
    """Products on this device in this precision meanwhile; afterwards as before."""
    if precision == "float32":
        yield
        return
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("medium")
    # Fused attention on a CPU rounds every block by itself: 18 times as slow as whole products at 16 × 16 positions.
    attention = sdpa_kernel(SDPBackend.MATH) if device.type == "cpu" else nullcontext()
    try:
        with attention:
            yield
    finally:
        torch.set_float32_matmul_precision(before)
