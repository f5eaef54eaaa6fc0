"""Attributes that are read without a user's code: what Python keeps is found, and nothing is asked."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import Any

import pytest
import torch

from runtime.tracer.ambient.objects import attributes, slots_of
from runtime.tracer.ambient.unasked import has_unasked, module_name, unasked


class Asked:
    def __init__(self) -> None:
        self.held = 1

    def __getattr__(self, name: str) -> Any:
        raise RuntimeError(name)


class Looked(Asked):
    def __getattribute__(self, name: str) -> Any:
        raise RuntimeError(name)


class Meta(type):
    def __getattr__(cls, name: str) -> Any:
        raise RuntimeError(name)


def of_meta() -> Any:
    return Meta("OfMeta", (), {})


class Slots:
    __slots__ = ("one", "__two")

    def __init__(self) -> None:
        self.__two = 2


class Below(Slots):
    __slots__ = "three"  # a text is a name, too

    def __init__(self) -> None:
        super().__init__()
        self.three = 3


VALUES: list[Callable[[], Any]] = [
    Asked, Looked, of_meta, lambda: of_meta()(), Slots, Below, lambda: torch.nn.Linear(1, 1), lambda: torch.ones(1),
    lambda: len, lambda: [].append, lambda: int, lambda: int.__add__, lambda: functools.partial(len), lambda: torch.add,
    threading.local, lambda: None, lambda: 3, lambda: torch, lambda: test_what_python_keeps,
    lambda: Asked().__init__, property, lambda: super(Looked, Looked()),
]  # fmt: skip
NAMES = ["__name__", "__self__", "__module__", "__dict__", "__qualname__", "__func__", "__code__", "held", "nothing"]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("make", VALUES)
def test_what_python_keeps(make: Callable[[], Any], name: str) -> None:
    value = make()
    found = unasked(value, name, "none")
    try:
        expected = getattr(value, name, "none")
    except RuntimeError:  # a user's code said so
        expected = vars(Asked()).get(name, "none") if isinstance(value, Asked) else "none"
        if isinstance(value, Looked) and name not in ("held", "nothing"):
            expected = getattr(Asked(), name, "none") if name in ("__module__", "__dict__") else "none"
    assert type(found) is type(expected)
    assert found == expected or name == "__dict__" or isinstance(value, super)
    assert has_unasked(value, name) == (found != "none")


def test_slots_are_named_as_python_keeps_them() -> None:
    assert sorted(slots_of(Slots)) == ["_Slots__two", "one"]
    assert slots_of(Below) == ["three"]
    assert slots_of(Asked) == []
    assert attributes(Below()) == {"_Slots__two": 2, "three": 3}


def test_the_module_that_a_class_is_from() -> None:
    assert module_name(Asked) == module_name(Looked) == __name__ == module_name(of_meta())
    assert module_name(int) == "builtins" and module_name(torch.Tensor) == "torch"
    assert module_name(test_slots_are_named_as_python_keeps_them) == __name__
    for other in (None, 3, property(lambda self: "a"), ["a"]):
        assert module_name(type("Own", (), {"__module__": other})) == "", "a user put something else in its place"
    assert module_name(3) == "" == module_name(None)
