"""Nested named tuples of tensors: what models hand to the search, without the search knowing what is in them.

Every tensor in a tree is batch first, so choosing, repeating or dropping sentences is the same for an LSTM's pair, a
GRU's vector and a Transformer's key/value cache.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

from torch import Tensor
from torch.nn.functional import pad

Tree = TypeVar("Tree")


def map_tensors(function: Callable[[Tensor], Tensor], tree: Tree) -> Tree:
    """Apply `function` to every tensor of a tree of (named) tuples; leaves that are no tensors stay as they are."""
    if isinstance(tree, Tensor):
        return cast(Tree, function(tree))
    if isinstance(tree, tuple):
        branches = [map_tensors(function, branch) for branch in tree]
        named = hasattr(tree, "_fields")
        return cast(Tree, cast(Any, type(tree))(*branches) if named else tuple(branches))
    return tree


def select_rows(tree: Tree, rows: Tensor) -> Tree:
    """Take `rows` (ids `[M]`) of the first axis of every tensor: `[N, …]` → `[M, …]`."""
    return map_tensors(lambda leaf: leaf.index_select(0, rows), tree)


def put_rows(tree: Tree, rows: Tensor, fresh: Tree) -> Tree:
    """Write a tree's rows over `rows` of another, in place; the shorter is filled up with 0, the longer cut."""
    if isinstance(tree, Tensor):
        new = cast(Tensor, fresh)
        missing = [size - own for size, own in zip(tree.shape[1:], new.shape[1:], strict=True)]
        if any(missing):
            new = pad(new, [end for size in reversed(missing) for end in (0, size)])
        tree.index_copy_(0, rows, new)
    elif isinstance(tree, tuple):
        for branch, new_branch in zip(tree, cast(Any, fresh), strict=True):
            put_rows(branch, rows, new_branch)
    return tree
