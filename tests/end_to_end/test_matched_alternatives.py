"""``match`` with alternatives that bind names, of values that are one of several or that only the run knows."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest
import torch

from tests.oracle import check


class Pair(NamedTuple):
    a: Any
    b: Any


def told(v: Any) -> Any:
    match v:
        case [a, *rest]:
            return len(rest) + 1
        case int(n) | float(n):
            return n + 1
        case {"a": n} | {"b": n}:
            return n
        case None:
            return 7
    return 9


def of_grown(x: Any, log: list[Any]) -> Any:
    if x.sum() > 0:
        pass
    else:
        log.append([x.dtype, x.is_leaf])
    log.append(told(log))
    return log


def of_several(x: Any, log: list[Any]) -> Any:
    found: Any = 1.5
    if x.sum() > 0:
        found = {"b": x * 2}
    elif x.sum() < -2:
        found = [x, 2]
    return told(found), told([found]), told({"a": found})


def of_numbers(x: Any, log: list[Any]) -> Any:
    n = int((x > 0).sum())
    match n, len(log):
        case (0 as a, _) | (_, 3 as a):
            return a, "first"
        case (1, a) | (a, 0) if a < 2:
            return a * n, "second"
        case a, b:
            return a + b, "third"


def in_a_loop(x: Any, log: list[Any]) -> Any:
    items: list[Any] = [None, 2, Pair(3, 1), Pair("z", 4)]
    for i in range(int((x > 0).sum())):
        items.append(i)
        match items[i % 4]:
            case Pair(a=int(k)) | Pair(b=int(k)):
                x = x + k
            case int(k) | float(k):
                x = x * k
            case _:
                x = x - 0.5
    return x, len(items)


class Counted:
    def __init__(self, value: int) -> None:
        self.value, self.asked = value, 0

    def __eq__(self, other: object) -> bool:
        self.asked += 1
        return self.value == other

    __hash__ = None  # type: ignore[assignment]


def asks_as_often(x: Any, log: list[Any]) -> Any:
    one = Counted(2)
    found = []
    for given in ([one, 1], (one, 2), [1, one]):
        match given:
            case [1, a] | [2, a, *_]:
                found.append((1, a))
            case [a, 2] | [a, 1]:
                found.append((2, a))
    return x * len(found), one.asked


@pytest.mark.parametrize("function", [of_grown, of_several, of_numbers, in_a_loop, asks_as_often])
def test_as_eager(function: Any) -> None:
    calls = [(torch.tensor(values).requires_grad_(), list(log))
             for values in ([1.0, 2.0], [-1.0, -2.0], [0.5, -1.0], [-0.5, 0.25]) for log in ((), (1, 2, 3))]
    check(function, *calls)
