"""Which comparisons of users' classes Python asks, in which order, and what comes of an order that is not total."""

from __future__ import annotations

import bisect
import heapq
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.oracle import check, check_saved

LOG: list[Any] = []
SETS = [(1, 2), (1,), (2, 3), (2,), (1, 2, 3), (3,), (), (4,), (1, 4)]


class Equal:
    """Equal by its number; with a tensor, where that is positive."""

    def __init__(self, number: Any, x: Any = None) -> None:
        self.number, self.x = number, x

    def __eq__(self, other: Any) -> bool:
        LOG.append(self.number)
        if self.number == "raises":
            raise ValueError("asked")
        return bool(self.x.sum() > 0) if self.x is not None else self.number == other.number

    __hash__ = object.__hash__


class Subset:
    """Ordered as sets are: not any two are."""

    def __init__(self, *items: int) -> None:
        self.items = set(items)

    def __lt__(self, other: Any) -> bool:
        LOG.append((sorted(self.items), sorted(other.items)))
        return self.items < other.items


class Turned:
    def __init__(self, number: int, x: Any = None) -> None:
        self.number, self.x = number, x

    def __lt__(self, other: Any) -> bool:
        if self.x is not None and self.x.sum() > 0:
            return self.number > other.number
        return self.number < other.number


class Raising:
    def __init__(self, number: int) -> None:
        self.number = number

    def __lt__(self, other: Any) -> bool:
        if other.number == 3:
            raise ValueError("three")
        return self.number < other.number


def number_first(x: Any) -> Any:
    LOG.clear()
    return [int(x.sum()), Equal(1)] == [6, Equal(1)], list(LOG)


def all_equal(x: Any) -> Any:
    LOG.clear()
    return [Equal(1, x), Equal(2), Equal(3)] == [Equal(1), Equal(2), Equal(3)], list(LOG)


def not_asked(x: Any) -> Any:
    return [Equal(1, x), Equal("raises")] == [Equal(1), Equal(3)]


def contained(x: Any) -> Any:
    LOG.clear()
    return Equal(1) in [Equal(1, x), Equal(2), Equal(1)], list(LOG)


def with_tensors(x: Any) -> Any:
    return [int(x.sum()), x] == [6, x * 1]


def in_dicts(x: Any) -> Any:
    LOG.clear()
    number = int(x.sum())
    return {"a": number, "b": Equal(1)} == {"a": 6, "b": Equal(1)}, list(LOG)


def nested(x: Any) -> Any:
    LOG.clear()
    number = int(x.sum())
    return (number, (number, Equal(4)), Equal(5)) == (6, (6, Equal(4)), Equal(5)), list(LOG)


def number_in(x: Any) -> Any:
    LOG.clear()
    number = int(x.sum())
    return number in [6, number + 1, 3], [number, 2] != [6, 2], [number, Equal(1)] != [6, Equal(1)], list(LOG)


def grown(x: Any) -> Any:
    held = [Equal(1)]
    if x.sum() > 0:
        held.append(Equal(2))
    return Equal(2) in held


def partial_order(x: Any) -> Any:
    LOG.clear()
    return [one.items for one in sorted(Subset(*each) for each in SETS)], list(LOG), x


def reversed_order(x: Any) -> Any:
    return [one.items for one in sorted((Subset(*each) for each in SETS), reverse=True)]


def sort_in_place(x: Any) -> Any:
    held = [(number, Subset(*each)) for number, each in enumerate(SETS)]
    held.sort(key=lambda pair: pair[1])
    return [number for number, _ in held], max(Subset(*each) for each in SETS).items


def decided(x: Any) -> Any:
    return [one.number for one in sorted([Turned(3, x), Turned(1, x), Turned(2, x)])]


def raises(x: Any) -> Any:
    try:
        return [one.number for one in sorted([Raising(1), Raising(3), Raising(2)])]
    except ValueError as error:
        return str(error)


def heaps(x: Any) -> Any:
    heap = [Subset(*each) for each in SETS]
    heapq.heapify(heap)
    popped = [heapq.heappop(heap).items for _ in range(4)]
    return popped, bisect.bisect([Turned(1, x), Turned(2, x), Turned(4, x)], Turned(3, x))


FUNCTIONS = [
    number_first, all_equal, not_asked, contained, with_tensors, in_dicts, nested, number_in, grown, partial_order,
    reversed_order, sort_in_place, decided, raises, heaps,
]  # fmt: skip
INPUTS = [torch.tensor([1.0, 2.0, 3.0]), torch.tensor([-1.0, -2.0, -3.0]), torch.tensor([0.5, -0.25, 0.1])]


@pytest.mark.filterwarnings("ignore::dy2static.RetraceWarning")  # LOG is another one at each call
@pytest.mark.parametrize("gradient", [False, True])
@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda one: one.__name__)
def test_as_python_asks(function: Callable[..., Any], gradient: bool, tmp_path: Path) -> None:
    calls = [(x.clone().requires_grad_(gradient),) for x in INPUTS]
    static = check(function, *calls)
    if function in (with_tensors, decided, raises):  # nothing is kept outside
        check_saved(function, static, tmp_path / "questions.d2s", *calls)
