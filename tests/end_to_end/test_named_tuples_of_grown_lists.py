"""``Pair._make(items)`` and ``tuple.__new__(Pair, items)`` of lists whose length only the run knows."""

from __future__ import annotations

import collections
from typing import Any

import pytest
import torch

import dy2static
from tests.oracle import check

One = collections.namedtuple("One", "a")
Three = collections.namedtuple("Three", "a b c")


class Derived(Three):
    pass


class Plain(tuple):  # type: ignore[type-arg]
    pass


def grown(x: Any) -> list[Any]:
    items = []
    for i in range(int(x[0].long())):
        items.append(x * i)
    return items


def several(x: Any) -> list[Any]:
    items = [x]
    if x[1] > 0:
        items.append(x * 2)
        items.append(x * 3)
    return items


INPUTS = ((torch.tensor([3.0, 1.0]),), (torch.tensor([1.0, -1.0]),))


@pytest.mark.parametrize("make", [grown, several])
@pytest.mark.parametrize("cls", [One, Three, Derived])
def test_make(cls: Any, make: Any) -> None:
    def f(x: Any) -> Any:
        return cls._make(make(x))

    def g(x: Any) -> Any:
        return cls._make(iterable=tuple(make(x)))

    check(f, *INPUTS)
    check(g, *INPUTS)


def test_make_of_what_is_known() -> None:
    def f(x: Any) -> Any:
        return Three._make([x, 1, "a"]), One._make({2: x}), Derived._make(i * x for i in range(3)), One._make(x[None])

    check(f, *INPUTS)


@pytest.mark.parametrize("make", [grown, several])
@pytest.mark.parametrize("cls", [Three, Plain])
def test_new(cls: Any, make: Any) -> None:
    """It took the list for one of one item."""

    def f(x: Any) -> Any:
        return len(tuple.__new__(cls, make(x)))

    with pytest.raises(dy2static.Dy2StaticError) as caught:
        dy2static.to_static(f)(*INPUTS[0])
    assert caught.value.code == "D2S253"


def test_new_of_a_known_length() -> None:
    def f(x: Any) -> Any:
        return tuple.__new__(Plain, [x, 1]), tuple.__new__(Three, (x, x, 2)), tuple.__new__(tuple, grown(x))

    check(f, *INPUTS)
