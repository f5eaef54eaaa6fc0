"""Arguments that are told apart by what they hold: a call that gives one back, or keeps it, does so with its own."""

from __future__ import annotations

import functools
import types
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from dy2static import to_static
from tests.oracle import difference


class Owner:
    held: Any = None

    def method(self) -> int:
        return 1


OWNER = Owner()
KINDS: dict[str, Callable[[], Any]] = {
    "array": lambda: np.ones(2),
    "array of no dimension": lambda: np.array(1.0),
    "partial": lambda: functools.partial(max, [1], key=abs),
    "method": lambda: OWNER.method,
    "keys": lambda: {"a": 1}.keys(),
    "values": lambda: {"a": 1}.values(),
    "items": lambda: {"a": 1}.items(),
    "proxy": lambda: types.MappingProxyType({"a": [1]}),
    "slice": lambda: slice(1, 3),
    "list": lambda: [1, 2],
    "object": Owner,
    "dict of them": lambda: {"a": [functools.partial(len, [1])]},
}
KEPT: list[Any] = []


def given_back(x: Any, v: Any, o: Any) -> Any:
    return x * 2, v


def in_a_list(x: Any, v: Any, o: Any) -> Any:
    return {"x": x, "v": [v, (v,)]}


def on_a_path(x: Any, v: Any, o: Any) -> Any:
    if x.sum() > 0:
        return v, None
    return [v], 3


def one_of_two(x: Any, v: Any, o: Any) -> Any:
    return (v if x.sum() > 0 else o), x


def in_a_loop(x: Any, v: Any, o: Any) -> Any:
    found = o
    while x.sum() < 3:
        x = x + 1
        found = v
    return found, x


def stored(x: Any, v: Any, o: Any) -> Any:
    o.held = v
    return x


def appended(x: Any, v: Any, o: Any) -> Any:
    KEPT.append(v)
    if x.sum() > 0:
        KEPT.append([v])
    return x, v


def inside(x: Any, v: Any, o: Any) -> Any:
    made = Owner()
    made.held = v
    return made


FUNCTIONS = [given_back, in_a_list, on_a_path, one_of_two, in_a_loop, stored, appended, inside]


def shape(value: Any, v: Any, o: Any) -> Any:
    """What is given back, with the two arguments by name."""
    if value is v or value is o:
        return "v" if value is v else "o"
    if isinstance(value, (list, tuple)):
        return type(value)(shape(one, v, o) for one in value)
    if isinstance(value, dict):
        return {name: shape(one, v, o) for name, one in value.items()}
    return shape(value.held, v, o) if isinstance(value, Owner) else value


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda one: one.__name__)
@pytest.mark.parametrize("kind", KINDS)
def test_each_call_gives_back_its_own(kind: str, function: Callable[..., Any]) -> None:
    converted: Any = to_static(function)
    for number in range(5):
        x = torch.ones(2) if number % 2 else -torch.ones(2)
        outcomes = []
        for called in (function, converted):
            v, o = KINDS[kind](), Owner()
            KEPT.clear()
            result = called(x.clone(), v, o)
            outcomes.append((shape(result, v, o), shape(o.held, v, o), shape(KEPT, v, o)))
        assert not difference(outcomes[1], outcomes[0])
