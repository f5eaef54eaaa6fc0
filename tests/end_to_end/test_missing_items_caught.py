"""``try: l.index(v)`` and ``l.remove(v)`` with ``except ValueError``, where only the run knows whether v is there."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

import pytest
import torch

from tests.oracle import check


def a_fixed_list(x: Any) -> Any:
    k = int(x[1].long())
    try:
        return [1, 2, 3].index(k)
    except ValueError as error:
        return str(error)


def numbers_of_the_run(x: Any) -> Any:
    items = x.long().tolist()
    k = items[0]
    found = []
    for v in (2, k, k + 1, 7):
        try:
            found.append(items.index(v))
        except ValueError as error:
            found.append(-1 if v == 7 else error.args)
    return found


def a_list_that_grows(x: Any) -> Any:
    items, k = [], int(x[1].long())
    for i in range(int(x[0].long())):
        items.append(i * 2)
    try:
        place = items.index(k)
    except ValueError:
        place = -1
    else:
        items[place] = 100
    return items, place


def removed(x: Any) -> Any:
    items = x.long().tolist()
    left = 0
    for v in (1, 2, 1):
        try:
            items.remove(v)
        except ValueError as error:
            left += len(str(error))
    return items, left


def removed_twice_in_one(x: Any) -> Any:
    items = [*x.long().tolist(), 5]
    try:
        items.remove(2)
        items[0] = 9
        place = items.index(7)
        items.remove(5)
    except (ValueError, IndexError):
        place = -2
    return items, place


def tuples_and_deques(x: Any) -> Any:
    a, b, c, d = x.long().tolist()
    pair, line = (a, b), deque([c, d])
    try:
        first = pair.index(1)
    except ValueError:
        first = 10
    try:
        second = line.index(a)
        line.remove(a)
    except ValueError:
        second = 20
    return first, second, line


def tensors_by_value(x: Any) -> Any:
    items = [x[0], x[1], x[2]]
    try:
        return items.index(x[3] * 2) + x
    except ValueError:
        return x * -1


def nothing_of_the_run(x: Any) -> Any:
    items = ["a", "b"]
    try:
        place = items.index("c")
    except ValueError:
        place = items.index("b")
    return x * place


CASES = [a_fixed_list, numbers_of_the_run, a_list_that_grows, removed, removed_twice_in_one, tuples_and_deques,
         tensors_by_value, nothing_of_the_run]  # fmt: skip
INPUTS = [[3.0, 1, 2, 1], [1.0, 0, 7, 7], [2.0, 2, 3, 2], [4.0, 6, 2, 7]]


@pytest.mark.parametrize("function", CASES, ids=lambda function: function.__name__)
def test_as_eager(function: Callable[..., Any]) -> None:
    check(function, *((torch.tensor(values, requires_grad=True),) for values in INPUTS))


def goes_over_a_list(x: Any) -> Any:
    items, total = [], 0
    for i in range(int(x[0].long())):
        items.append(i)
    try:
        for item in items:
            total += item
        found = 2 in items
    except (IndexError, KeyError, ValueError):
        found = None
    return total, found


def test_going_over_a_list_raises_nothing() -> None:
    check(goes_over_a_list, *((torch.tensor(values),) for values in INPUTS))
