"""``index``, ``count``, ``remove``, ``sort`` of lists, tuples and deques where tensors decide which items are equal."""

from __future__ import annotations

import collections
from dataclasses import dataclass
from typing import Any

import pytest
import torch

from dy2static import to_static
from runtime.errors import Dy2StaticError
from tests.oracle import check

CALLS = [(torch.tensor(values),) for values in ([1.0, 2.0, 4.0], [4.0, -2.0, 1.0], [2.0, 2.0, 2.0])]


def three(x: Any) -> Any:
    return [x[0], x[1], x[2]]


def index(x: Any) -> Any:
    return three(x).index(x.max()), tuple(three(x)).index(x.min()), collections.deque(three(x)).index(x[1])


def index_of_itself(x: Any) -> Any:
    y = x + 1
    return [x, y].index(y), [x.sum(), y].index(x.sum())


def index_between(x: Any) -> Any:
    return [*three(x), *three(x)].index(x[0], 1), [*three(x), *three(x)].index(x[2], -4, 6)


def index_of_numbers(x: Any) -> Any:
    n = int(x.sum())
    return [7, n, 2].index(n), (n, 7).index(7), [1, 2, x.max().item()].index(4.0) if x.max() == 4 else 0


def count(x: Any) -> Any:
    return three(x).count(x.max()), tuple(three(x)).count(2.0), collections.deque([1, x[0], None]).count(x[0])


def remove(x: Any) -> Any:
    items, rest = three(x), collections.deque(three(x))
    items.remove(x.max())
    rest.remove(x.min())
    return items, len(items), list(rest)


def remove_on_a_path(x: Any) -> Any:
    items = three(x)
    if x[0] > 1:
        items.remove(x[1])
    return items


def sort(x: Any) -> Any:
    items = three(x)
    items.sort()
    turned = three(x)
    turned.sort(reverse=True)
    return items, turned


@dataclass
class Box:
    score: Any
    name: str


def sort_by_key(x: Any) -> Any:
    boxes = [Box(x[0], "a"), Box(x[1], "b"), Box(x[2], "c")]
    boxes.sort(key=lambda box: -box.score)
    pairs = [(x[0], 2), (x[2], 1)]
    pairs.sort(key=lambda pair: pair[1])
    return [box.name for box in boxes], [box.score for box in boxes], pairs


def sort_numbers(x: Any) -> Any:
    items = [3, int(x[0]), int(x[1])]
    items.sort()
    return items


def of_a_list_that_grew(x: Any) -> Any:
    items = []
    for i in range(int(x[0])):
        items.append(x + i)
    items.append(x[0] * 0)
    flat = [x[0] * 0]
    for value in x:
        if value > 1:
            flat.append(value)
    return flat.index(x[0] * 0), flat.count(x.max()), len(items)


def removed_from_a_list_that_grew(x: Any) -> Any:
    flat = [x[0] * 0]
    for value in x:
        if value > 1:
            flat.append(value)
    flat.remove(x.max())
    return flat, len(flat)


FUNCTIONS = [
    index, index_of_itself, index_between, index_of_numbers, count, remove, remove_on_a_path, sort, sort_by_key,
    sort_numbers, of_a_list_that_grew, removed_from_a_list_that_grew,
]  # fmt: skip


@pytest.mark.parametrize("function", FUNCTIONS)
def test_as_eager(function: Any) -> None:
    check(function, *CALLS)


def missing_of_list(x: Any) -> Any:
    return three(x).index(9)


def missing_of_tuple(x: Any) -> Any:
    return tuple(three(x)).index(9.0)


def missing_of_deque(x: Any) -> Any:
    return collections.deque(three(x)).index(x[0] + 9)


def removed_of_list(x: Any) -> Any:
    items = three(x)
    items.remove(x[0] + 9)
    return items


def removed_of_deque(x: Any) -> Any:
    items = collections.deque(three(x))
    items.remove(x[0] + 9)
    return items


@pytest.mark.parametrize(
    "function", [missing_of_list, missing_of_tuple, missing_of_deque, removed_of_list, removed_of_deque])
def test_what_is_not_there(function: Any) -> None:
    check(function, *CALLS)


def test_several_elements_have_no_truth() -> None:
    def f(x: Any) -> Any:
        return [x, x + 1].count(x + 2)

    with pytest.raises(RuntimeError, match="more than one value"):
        f(*CALLS[0])
    with pytest.raises(RuntimeError, match="more than one value"):
        to_static(f)(*CALLS[0])


def test_a_list_that_holds_itself() -> None:
    def f(x: Any) -> Any:
        items: list[Any] = [1, 2]
        items.append(items)
        return x * items.index(2), items.count(1)

    check(f, *CALLS)


def test_a_handler_around_is_asked() -> None:
    def f(x: Any) -> Any:
        try:
            return three(x).index(4.0)
        except ValueError:
            return -1

    check(f, *CALLS)


def test_bounds_that_only_the_run_knows_are_refused() -> None:
    def f(x: Any) -> Any:
        return three(x).index(x[2], int(x[0]))

    with pytest.raises(Dy2StaticError, match="D2S263"):
        to_static(f)(*CALLS[0])
