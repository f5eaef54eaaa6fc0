"""Slots and properties that are read and stored through their descriptors: ``Cls.name.__get__(obj)``."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from dy2static import to_static
from tests.oracle import check


class Slotted:
    __slots__ = ("a", "b")

    def __init__(self, a: Any) -> None:
        self.a = a


class Measured:
    factor = 2

    def __init__(self, a: Any) -> None:
        self.a = a

    @property
    def twice(self) -> Any:
        return self.a * self.factor

    @twice.setter
    def twice(self, value: Any) -> None:
        self.a = value


ONE: Any = None
READS = {
    "slot": lambda x: x * type(ONE).a.__get__(ONE),
    "slot_with_class": lambda x: x * Slotted.a.__get__(ONE, Slotted),
    "of_the_space": lambda x: x * vars(Slotted)["a"].__get__(ONE),
}


@pytest.mark.parametrize("name", READS)
def test_a_slot_that_changes(name: str) -> None:
    globals()["ONE"] = Slotted(2)
    function = READS[name]
    static = to_static(function)
    call = (torch.ones(2, requires_grad=True),)
    check(function, call, call, static=static)
    ONE.a = 5
    check(function, call, call, static=static)
    del ONE.a
    check(function, call, call, static=static)  # eager raises AttributeError


def test_a_property_that_changes() -> None:
    globals()["ONE"] = Measured(2)
    function = lambda x: x * Measured.twice.__get__(ONE)
    static = to_static(function)
    check(function, (torch.ones(2),), static=static)
    ONE.a = 5
    check(function, (torch.ones(2),), static=static)


def stored_on_a_path(x, one):
    if x.sum() > 0:
        Slotted.a.__set__(one, 3)
    return x * one.a


def deleted_on_a_path(x, one):
    one.b = 1
    if x.sum() > 0:
        Slotted.b.__delete__(one)
    return x * hasattr(one, "b") if x.sum() < 0 else x


def property_stored_on_a_path(x, one):
    if x.sum() > 0:
        Measured.twice.__set__(one, 3)
    return x * one.a


@pytest.mark.parametrize("function", [stored_on_a_path, deleted_on_a_path, property_stored_on_a_path])
def test_stores(function: Any) -> None:
    make = Measured if function is property_stored_on_a_path else Slotted
    check(function, *((torch.ones(2) * sign, make(2)) for sign in (1.0, -1.0, 1.0)))
