"""Containers from before the call, one of which holds another, where the function stores in both: whichever it stores
in first, all stores happen at each call, and a guard is about what stood there before the call."""

from __future__ import annotations

import copy
import gc
import warnings
from typing import Any

import pytest
import torch

from dy2static import to_static
from tests.oracle import same

ITEMS: list[Any] = []
NAMED: dict[str, Any] = {"items": ITEMS}


class Holder:
    items: list[Any] = []
    named: dict[str, Any] = {"items": items}


def store_first(items: list[Any], x: torch.Tensor) -> None:
    items.append(x * 2)


def of_globals(x: torch.Tensor) -> Any:
    store_first(ITEMS, x)
    return later(x)


def later(x: torch.Tensor) -> Any:
    NAMED["n"] = len(ITEMS)
    if x.sum() > 0:
        NAMED["last"] = x
    return len(NAMED)


def of_a_class(x: torch.Tensor) -> Any:
    Holder.items.append(x * 2)
    Holder.named["n"] = 1
    if x.sum() > 0:
        Holder.named["last"] = x
    return len(Holder.named)


class Layer(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.items: list[Any] = []
        self.named: dict[str, Any] = {"items": self.items}
        self.around: list[Any] = [(self.named,)]

    def forward(self, x: torch.Tensor) -> Any:
        self.items.append(x * 2)
        self.named["n"] = 1
        if x.sum() > 0:
            self.around.append(self.named["n"])
        return len(self.around)


class Object:
    def __init__(self) -> None:
        self.items: list[Any] = []
        self.named: dict[str, Any] = {"items": self.items}


def of_an_object(held: list[Object], x: torch.Tensor) -> Any:
    one = held[0]
    one.items.append(x * 2)
    one.named["n"] = 1
    if x.sum() > 0:
        one.named["last"] = x
    return len(one.named)


def states() -> list[Any]:
    return [ITEMS, NAMED, Holder.items, Holder.named]


def emptied() -> None:
    for items, named in ((ITEMS, NAMED), (Holder.items, Holder.named)):
        items.clear()
        named.clear()
        named["items"] = items


INPUTS = [torch.ones(2), -torch.ones(2), torch.ones(2) * 3]


@pytest.mark.parametrize("function", [of_globals, of_a_class])
def test_what_all_share(function):
    static = to_static(function)
    for x in INPUTS:
        emptied()
        expected = function(x), copy.deepcopy(states())
        emptied()
        got = static(x), copy.deepcopy(states())
        same(got, expected)
    assert len(static.programs) == 1  # what stood there before the call was the same each time


def test_what_a_module_or_object_holds():
    for x in INPUTS:
        mine, theirs = Layer(), Layer()
        static = to_static(mine)
        for _ in range(3):
            assert static(x) == theirs(x)
            same([mine.items, mine.named, mine.around], [theirs.items, theirs.named, theirs.around])
    static = to_static(of_an_object)
    for x in INPUTS:
        one, two = Object(), Object()
        assert static([one], x) == of_an_object([two], x)
        same([one.items, one.named], [two.items, two.named])


def test_plain_values_are_guarded_as_they_were():
    count: list[int] = []
    named = {"count": count, "n": 0}

    def function(x: torch.Tensor) -> Any:
        count.append(1)
        return inner(x)

    def inner(x: torch.Tensor) -> Any:
        return x * (named["n"] + len(named["count"]))

    static = to_static(function)
    for _ in range(3):
        count.clear()
        same(static(torch.ones(2)), torch.ones(2))
    assert len(static.programs) == 1


LAST: list[int] = []
BY_NAME: dict[str, Any] = {}


def numbers(x: torch.Tensor) -> Any:
    LAST.clear()
    BY_NAME.clear()
    if x.sum() > 0:
        LAST.append(1)
        BY_NAME["k"] = LAST
    LAST.append(2)
    return len(LAST)


@pytest.mark.parametrize("signs", [(1, -1, 1, -1, -1, 1), (-1, 1, -1, 1), (1, 1, -1, -1)])
def test_numbers_that_change_in_a_list_which_is_stored_as_a_whole(signs, monkeypatch):
    asked: list[Any] = []
    real = gc.get_referrers
    monkeypatch.setattr(gc, "get_referrers", lambda *values: asked.append(values) or real(*values))
    LAST.clear()
    BY_NAME.clear()
    static = to_static(numbers)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        for sign in signs:
            assert static(torch.ones(2) * sign) == (2 if sign > 0 else 1)
            assert LAST == ([1, 2] if sign > 0 else [2])
            assert list(BY_NAME) == (["k"] if sign > 0 else [])
            assert BY_NAME.get("k", LAST) is LAST
    assert not asked  # the trace knows itself what was there before it
    assert not [one for one in said if "at each call" in str(one.message)]
