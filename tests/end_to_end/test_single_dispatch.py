"""Functions of ``functools.singledispatch``: in branches and loops, of values that are several, registered later."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import pytest
import torch

from dy2static import to_static
from tests.oracle import check, same


@functools.singledispatch
def told(value: Any, scale: float = 1.0) -> Any:
    return 0.5


@told.register(int)
@told.register(float)
def _(value: float, scale: float = 1.0) -> Any:
    return value * scale + 1


@told.register
def _(value: torch.Tensor, scale: float = 1.0) -> Any:
    if value.sum() > 0:
        return value.sum() * scale
    return value.sum() - scale


@told.register(list)
def _(value: list[Any], scale: float = 1.0) -> Any:
    return sum(told(one, scale) for one in value)


class Kind:
    @functools.singledispatchmethod
    def of(self, value: Any) -> Any:
        return "other"

    @of.register
    def _(self, value: torch.Tensor) -> Any:
        return "positive" if value.sum() > 0 else "negative"

    @of.register
    def _(self, value: int) -> Any:
        return "number"


def in_a_branch(x: torch.Tensor) -> Any:
    y = x
    if x.sum() > 0:
        y = y * told([x, 1, "text"])
    return y + told(2), told(x, scale=2.0), told(None)


def in_a_loop(x: torch.Tensor) -> Any:
    n, total = 0, x * 0
    while n < 3 and total.sum() < 4:
        n = n + told(0)
        total = total + told(n) * told(x.abs())
    return total, n


def of_one_of_two(x: torch.Tensor) -> Any:
    value = x if x.sum() > 0 else 3
    return told(value), told(int(x.detach().sum())), told(float(x.detach().sum()), 2)


def by_a_method(x: torch.Tensor) -> Any:
    kind = Kind()
    if x.sum() > 1:
        return kind.of(x), kind.of(1), x
    return kind.of(x * 2), kind.of("text"), x


FUNCTIONS: list[Callable[..., Any]] = [in_a_branch, in_a_loop, of_one_of_two, by_a_method]


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_as_eager(function: Callable[..., Any]) -> None:
    calls = [(torch.tensor(one, requires_grad=True),) for one in ([1.0, 2.0], [-1.0, 0.5], [0.5, 0.25])]
    check(function, *calls, paths=("program",))


def test_a_function_that_is_registered_later_is_called() -> None:
    @functools.singledispatch
    def shown(value: Any) -> Any:
        return value * 2

    def f(x: torch.Tensor) -> Any:
        return shown(x) if x.sum() > 0 else x

    static = to_static(f)
    x = torch.ones(2)
    same([static(x), static(x)], [x * 2, x * 2])
    shown.register(torch.Tensor, lambda value: value * 3)
    same(static(x), x * 3)


def test_without_arguments_it_raises_as_in_eager() -> None:
    check(lambda x: told(), (torch.ones(1),))
