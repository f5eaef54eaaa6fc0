"""Containers of users' classes that count who asks them, or refuse: a trace asks no more than eager does."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable
from typing import Any

import pytest
import torch

from dy2static import to_static

ASKED: list[str] = []
METHODS = ("__len__", "__iter__", "__contains__", "__eq__", "__getitem__", "keys", "values", "items", "get")


def asking(base: Any) -> Any:
    def method(name: str) -> Any:
        def noted(self: Any, *args: Any) -> Any:
            ASKED.append(f"{base.__name__}.{name}")
            return getattr(base, name)(self, *args)

        return noted

    return type(f"Asked{base.__name__}", (base,), {name: method(name) for name in METHODS if hasattr(base, name)})


List, Dict, Ordered, Tuple, Set, Deque = map(asking, (list, dict, OrderedDict, tuple, set, deque))
MAKE: dict[str, Callable[[Any], Any]] = {
    "list": lambda x: List([x, 1]), "dict": lambda x: Dict(k=x), "ordered": lambda x: Ordered(k=x),
    "tuple": lambda x: Tuple((x, 1)), "set": lambda x: Set([1, 2]), "deque": lambda x: Deque([x]),
}  # fmt: skip
KEPT: list[Any] = []
OUTSIDE: dict[str, tuple[Any, Any]] = {name: (make(torch.ones(2)), make(5)) for name, make in MAKE.items()}


def before_a_branch(x: Any, make: Any, old: Any) -> Any:
    value = make(x)
    if x.sum() > 0:
        x = x * 2
    return x, value


def of_two_paths(x: Any, make: Any, old: Any) -> Any:
    if x.sum() > 0:
        value = make(x)
    else:
        value = make(x * 2)
    return value


def of_one_path(x: Any, make: Any, old: Any) -> Any:
    value = make(5)
    return value if x.sum() > 0 else None


def in_a_loop(x: Any, make: Any, old: Any) -> Any:
    value = make(x)
    while x.sum().abs() < 10:
        x = x * 2
        value = make(x)
    return [value, x]


def of_outside(x: Any, make: Any, old: Any) -> Any:
    if x.sum() > 0:
        x = x * 2
    return x, old


def kept(x: Any, make: Any, old: Any) -> Any:
    KEPT.append(make(x))
    return x


@pytest.mark.parametrize("function", [before_a_branch, of_two_paths, of_one_path, in_a_loop, of_outside, kept])
@pytest.mark.parametrize("kind", MAKE)
def test_nobody_is_asked(kind: str, function: Callable[..., Any]) -> None:
    make = MAKE[kind]
    for old in OUTSIDE[kind]:
        converted = to_static(lambda x, old=old: function(x, make, old))
        ASKED.clear()
        for x in (torch.ones(2), -torch.ones(2), torch.ones(2) * 3):
            converted(x)
        assert not ASKED


@pytest.mark.parametrize("kind", MAKE)
def test_arguments_are_not_asked(kind: str) -> None:
    def function(x: Any, value: Any) -> Any:
        if x.sum() > 0:
            x = x * 2
        return x, value

    converted = to_static(function)
    ASKED.clear()
    for x in (torch.ones(2), -torch.ones(2), torch.ones(2)):
        value = MAKE[kind](x)
        converted(x, value)
    assert not ASKED
