"""Trees with pointers to their parents, and other arguments that lead back to where they stand."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import pytest
import torch

from dy2static import to_static
from runtime.errors import TraceError
from tests.oracle import same

X = torch.tensor([1.0, 2.0, 3.0])


@dataclass(eq=False, repr=False)
class Node:
    value: Any
    children: list[Any] = field(default_factory=list)
    parent: Any = None


def tree(scale: float = 1.0) -> Node:
    root = Node(X * scale)
    for factor in (2, 3):
        root.children.append(Node(X * factor * scale, [], root))
    root.children[0].children.append(Node(X * 4 * scale, [], root.children[0]))
    return root


def to_the_parent(root: Node) -> Any:
    return root.children[0].parent.value * 2, root.children[0].children[0].parent.parent is root


def up_from_the_leaf(root: Node) -> Any:
    node, total = root.children[0].children[0], torch.zeros(3)
    while node is not None:
        total = total + node.value if node.value.sum() > 0 else total - node.value
        node = node.parent
    return total


@pytest.mark.parametrize("function", [to_the_parent, up_from_the_leaf])
def test_parents_are_there(function: Any) -> None:
    static = to_static(function)
    for scale in (1.0, -1.0, 2.0):
        same(static(tree(scale)), function(tree(scale)))


class Pair(NamedTuple):
    value: Any
    others: list[Any]


def test_a_tuple_that_holds_itself_is_refused() -> None:
    pair = Pair(X, [])
    pair.others.append(pair)
    with pytest.raises(TraceError, match="D2S228.*holds itself") as raised:
        to_static(lambda pair: pair.others[0].value * 2)(pair)
    assert raised.value.location is not None and raised.value.hint


def zeros(x: Any) -> Any:
    found = set()
    if x.sum() > 0:
        found.add(0.0)
    else:
        found.add(-0.0)
    return found


def test_zeros_of_both_signs_in_a_set() -> None:
    for x in (X, -X):
        (found,), (expected,) = to_static(zeros)(x), zeros(x)
        assert math.copysign(1.0, found) == math.copysign(1.0, expected)


def takes_nothing(x: Any, n: Any) -> Any:
    items, found = deque([], 0), []
    for number in range(int(n)):
        found.append(x * number)
    items.extend(found)
    items.extendleft(found)
    return items, len(items)


def test_a_deque_that_takes_nothing() -> None:
    for count in (0, 3):
        same(to_static(takes_nothing)(X, torch.tensor(count)), takes_nothing(X, torch.tensor(count)))


def far_inside(x: Any) -> Any:
    items = [x, x * 2]
    going = zip(zip(zip(items)))
    if x.sum() > 0:
        items.append(x * 3)
    return len(list(going)) * x


def test_iterators_over_what_a_path_changes_are_refused_however_deep_they_are() -> None:
    with pytest.raises(TraceError, match="D2S266") as raised:
        to_static(far_inside)(X)
    assert raised.value.location is not None and raised.value.location.file == __file__
