"""Every private call of torch that mirada makes, each with what is done where a torch has it not.

Products laid out once for oneDNN (float32) and products in 8 bits are plain ones where they are missing; what
TorchScript would compile runs as Python. `missing` says so in one line. All functions from `prepack` on are also
compiled by TorchScript.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from functools import cache

import torch
from torch import Tensor

PREPACKED = ("mkldnn", ("_reorder_linear_weight", "_linear_pointwise"))
INT8 = ("onednn", ("qlinear_prepack", "qlinear_pointwise"))


def has_products(name: str, calls: tuple[str, ...]) -> bool:
    """Whether this torch has these calls among its operations of this name."""
    return all(hasattr(getattr(torch.ops, name, None), call) for call in calls)


def has_vnni() -> bool:
    """Whether the CPU has the 8-bit instructions without which oneDNN may cut sums off at 16 bits."""
    probe = getattr(torch.cpu, "_is_vnni_supported", None)
    return bool(probe is not None and probe())


def has_bf16() -> bool:
    """Whether the CPU has products of bfloat16 that torch takes for float32's under its precision "medium"."""
    return _has_bf16_instructions() and _rounds()


def has_exact_medium() -> bool:
    """Whether "medium" rounds nothing on this CPU, and has oneDNN's float32 products where MKL's were.

    So on AMD's CPUs with AVX512-BF16 and without AMX, where oneDNN's are twice as fast (docs/speed.md).
    """
    return _has_bf16_instructions() and not _rounds()


def _has_bf16_instructions() -> bool:
    probes = (getattr(torch.cpu, name, None) for name in ("_is_amx_tile_supported", "_is_avx512_bf16_supported"))
    return any(probe is not None and probe() for probe in probes)


@cache
def _rounds() -> bool:
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("medium")
    try:  # 1 + 2⁻¹² is no bfloat16; all sums of it here are exact in float32
        return not bool((torch.full((64, 512), 1 + 2**-12) @ torch.ones(512, 512) == 512 + 2**-3).all())
    finally:
        torch.set_float32_matmul_precision(before)


def without_fuser() -> AbstractContextManager[object]:
    """Run compiled functions as they are: torch's optimiser gains nothing here, and takes 40 ms at first."""
    try:
        from torch.jit._fuser import optimized_execution
    except ImportError:
        return nullcontext()
    return optimized_execution(False)  # type: ignore[no-any-return,no-untyped-call,unused-ignore]


def may_fuse() -> bool:
    """Whether this thread would let torch's optimiser change compiled functions."""
    probe = getattr(torch._C, "_get_graph_executor_optimize", None)
    return probe is None or bool(probe())


def missing() -> str:
    """One line about the fast products that this torch should have and has not; empty where all is well."""
    if not torch.backends.mkldnn.is_available() or has_products(*PREPACKED):
        return ""
    return f"torch {torch.__version__} has no products laid out once ({', '.join(PREPACKED[1])}): searching is slower"


def prepack(weight: Tensor, rows: int) -> Tensor:
    """A weight `[O, I]` in oneDNN's own layout, best for so many rows; it suits other numbers of rows as well."""
    return torch.ops.mkldnn._reorder_linear_weight(weight, rows)  # type: ignore[no-any-return]


def linear_prepacked(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """x Wᵀ + b: `[…, I]` → `[…, O]`."""
    return torch.ops.mkldnn._linear_pointwise(x, weight, bias, "none", [], "")  # type: ignore[no-any-return]


def linear_added(x: Tensor, other: Tensor, weight: Tensor) -> Tensor:
    """x Wᵀ + other: `[N, I]`, `[N, O]` → `[N, O]`."""
    return torch.ops.mkldnn._linear_pointwise(x, other, weight, None, "add")  # type: ignore[no-any-return]


def prepack_int8(rounded: Tensor) -> Tensor:
    """A weight of signed bytes `[O, I]` in oneDNN's own layout."""
    return torch.ops.onednn.qlinear_prepack(rounded, None)  # type: ignore[no-any-return]


def linear_int8(x: Tensor, weight: Tensor, scales: Tensor, zeros: Tensor) -> Tensor:
    """x W'ᵀ · scales in float32 of bytes in which 128 stands for 0, the sums exact."""
    return torch.ops.onednn.qlinear_pointwise(  # type: ignore[no-any-return]
        x, 1.0, 128, weight, scales, zeros, None, 1.0, 0, torch.float32, "none", [], ""
    )
