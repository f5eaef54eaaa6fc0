"""Calls that go by a class: ``type.__call__(cls, x)`` in a metaclass, ``functools.partial.__call__(p, x)``."""

from __future__ import annotations

import functools
import types
from collections.abc import Callable
from typing import Any

import pytest
import torch

from tests.oracle import check


def decides(x: torch.Tensor, scale: float = 2.0) -> torch.Tensor:
    if x.sum() > 0:
        x = x * scale
    return x.new_zeros(int(x.abs().sum()) % 5).sum() + x


class ByType(type):
    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        return type.__call__(cls, *args, **kwargs)


class BySuper(type):
    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        return super().__call__(*args, **kwargs)


class Made(metaclass=ByType):
    def __init__(self, x: torch.Tensor, scale: float = 2.0) -> None:
        self.value = decides(x, scale)

    def method(self, x: torch.Tensor) -> torch.Tensor:
        return decides(x) + self.value


class MadeBySuper(metaclass=BySuper):
    def __init__(self, x: torch.Tensor, scale: float = 2.0) -> None:
        self.value = decides(x, scale)


class Callable_:
    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        return decides(x)


CALLS: dict[str, Callable[[torch.Tensor], Any]] = {
    "metaclass": lambda x: Made(x).value,
    "metaclass_with_keyword": lambda x: Made(x, scale=3.0).value,
    "metaclass_by_super": lambda x: MadeBySuper(x, scale=3.0).value,
    "type": lambda x: type.__call__(MadeBySuper, x).value,
    "partial": lambda x: functools.partial.__call__(functools.partial(decides, scale=3.0), x),
    "function": lambda x: types.FunctionType.__call__(decides, x, scale=3.0),
    "method": lambda x: types.MethodType.__call__(Made(x).method, x),
    "own_class": lambda x: Callable_.__call__(Callable_(), x),
    "class_of_it": lambda x: type(decides).__call__(decides, x),
    "bound": lambda x: decides.__call__(x),
    "of_the_class": lambda x: type(Made).__call__(Made, x).value,
    "mapped": lambda x: list(map(functools.partial(type.__call__, MadeBySuper), [x, x + 1]))[1].value,
}
INPUTS = (torch.tensor([1.0, 2.0]), torch.tensor([-1.0, -3.5]), torch.tensor([0.25, 0.5]))


@pytest.mark.parametrize("name", CALLS)
def test_as_in_eager(name: str) -> None:
    check(CALLS[name], *((x.clone().requires_grad_(),) for x in INPUTS), *((x,) for x in INPUTS))
