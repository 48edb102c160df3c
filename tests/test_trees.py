"""Trees of tensors, whatever is nested in them."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from mirada.trees import map_tensors, put_rows, select_rows


class Pair(NamedTuple):
    left: Any
    right: Any


def test_every_tensor_is_changed_and_nothing_else():
    tree = Pair((torch.tensor([1.0, 2.0]), None, "name"), Pair(torch.tensor([[3.0], [4.0]]), ()))
    found = map_tensors(lambda leaf: leaf * 10, tree)
    assert isinstance(found, Pair)
    assert isinstance(found.right, Pair)
    assert found.left[0].tolist() == [10, 20]
    assert found.left[1:] == (None, "name")
    assert found.right.left.tolist() == [[30], [40]]
    assert found.right.right == ()
    assert tree.left[0].tolist() == [1, 2]


def test_rows_are_chosen_repeated_and_dropped_in_every_leaf():
    tree = Pair(torch.arange(3), (torch.arange(6).view(3, 2), None))
    found = select_rows(tree, torch.tensor([2, 0, 0, 2]))
    assert found.left.tolist() == [2, 0, 0, 2]
    assert found.right[0].tolist() == [[4, 5], [0, 1], [0, 1], [4, 5]]
    assert found.right[1] is None


def test_a_lone_tensor_is_a_tree():
    assert torch.equal(map_tensors(Tensor.neg, torch.ones(2)), -torch.ones(2))
    assert map_tensors(Tensor.neg, None) is None


def test_rows_are_written_over_in_place_and_filled_up():
    tree = Pair(torch.arange(6.0).view(3, 2), (torch.ones(3, 2, 2), None, "name"))
    kept = tree.left
    fresh = Pair(torch.tensor([[7.0], [8.0]]), (torch.full((2, 1, 2), 9.0), None, "name"))
    assert put_rows(tree, torch.tensor([2, 0]), fresh) is tree
    assert tree.left is kept
    assert kept.tolist() == [[8, 0], [2, 3], [7, 0]]
    assert tree.right[0].tolist() == [[[9, 9], [0, 0]], [[1, 1], [1, 1]], [[9, 9], [0, 0]]]
    put_rows(tree.left, torch.tensor([1]), torch.tensor([[4.0, 5.0, 6.0]]))
    assert kept.tolist() == [[8, 0], [4, 5], [7, 0]]
