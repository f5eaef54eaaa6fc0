"""Fields of dataclasses that a class has a default for, and an instance has not: what a call gives back has no more."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
import torch

from dy2static import to_static


@dataclass
class Counted:
    x: Any
    count: int = field(default=3, init=False)
    name: str = "a"


@dataclass
class Tagged(Counted):
    more: Any = field(default=None, init=False)


def made(x: Any) -> Any:
    return Counted(x)


def inside(x: Any) -> Any:
    return [Tagged(x * 2), {"a": Counted(x)}]


def stored(x: Any) -> Any:
    one = Tagged(x)
    one.count += 1
    return one


def on_a_path(x: Any) -> Any:
    one = Counted(x)
    if x.sum() > 0:
        one.count = 5
    return one


def _shown(value: Any) -> Any:
    if isinstance(value, list):
        return list(map(_shown, value))
    if isinstance(value, dict):
        return {key: _shown(item) for key, item in value.items()}
    return type(value), sorted(vars(value)), value.count, value.name, value.x.tolist()


@pytest.mark.parametrize("function", [made, inside, stored, on_a_path])
def test_as_eager(function: Any) -> None:
    static = to_static(function)
    for x in (torch.ones(2), -torch.ones(2)):
        assert _shown(static(x)) == _shown(function(x))
