"""Widths that a CPU is fast for."""

from __future__ import annotations


def round_up(width: int) -> int:
    """The least width from `width` on that products and the softmax over so many columns are fast for.

    Below 16 columns torch's softmax takes one number at a time: ten times as long for 15 as for 16.
    """
    return max(16, -(-width // 8) * 8)
