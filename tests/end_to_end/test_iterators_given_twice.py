"""An iterator that may be one of several, given to a function twice; what ``next()`` says of a generator's return."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from dy2static import to_static
from runtime.errors import TraceError
from tests.oracle import check

CALLS = [(torch.ones(3),), (-torch.ones(3),)]


def zipped(x: torch.Tensor) -> Any:
    it = iter([1, 2, 3]) if x.sum() > 0 else iter([1, 2, 3, 4])
    return list(zip(it, it)), list(it)


def mapped(x: torch.Tensor) -> Any:
    it = iter([1, 2, 3]) if x.sum() > 0 else iter([1, 2, 3, 4])
    return list(map(lambda a, b: a + b, it, it))


def thrice(x: torch.Tensor) -> Any:
    it = iter(range(7)) if x.sum() > 0 else iter(range(9))
    return list(zip(it, it, it))


def made_a_dict(x: torch.Tensor) -> Any:
    it = iter([1, 2, 3, 6]) if x.sum() > 0 else iter([1, 2, 3, 4])
    return dict(zip(it, it)), list(it)


def two_that_differ(x: torch.Tensor) -> Any:
    if x.sum() > 0:
        a, b = [1, 2], [3, 4]
    else:
        a, b = [1, 2, 3], [3, 4, 5]
    return list(zip(a, b)), list(map(max, a, b))


def returns_before_an_item(x: torch.Tensor) -> Any:
    def items() -> Any:
        return x * 5
        yield 1

    try:
        return next(items())
    except StopIteration as end:
        return end.value, len(end.args)


def returns_nothing(x: torch.Tensor) -> Any:
    def inner() -> Any:
        yield 1
        return 7

    def items() -> Any:
        for one in inner():
            if one > 5:
                yield one

    try:
        return next(items())
    except StopIteration as end:
        return end.args


def returns_and_is_consumed_whole(x: torch.Tensor) -> Any:
    def items(n: int) -> Any:
        for number in range(n):
            if x.sum() > number:
                yield number
        return n * 2

    return next(items(3), 8), sum(items(4)), list(items(2))


@pytest.mark.parametrize("function", [
    zipped, mapped, thrice, made_a_dict, two_that_differ, returns_before_an_item, returns_nothing,
    returns_and_is_consumed_whole,
], ids=lambda function: function.__name__)  # fmt: skip
def test_as_eager(function: Callable[..., Any]) -> None:
    check(function, *CALLS)


def by_two_names(x: torch.Tensor) -> Any:
    if x.sum() > 0:
        a = iter([1, 2, 3])
        b = a
    else:
        a = iter([1, 2, 3, 4])
        b = a
    return list(zip(a, b))


def by_two_names_on_a_path(x: torch.Tensor) -> Any:
    if x.sum() > 0:
        a = iter([1, 2, 3])
        b = iter([5, 6, 7])
    else:
        a = iter([1, 2, 3, 4])
        b = a
    return list(zip(a, b))


def returns_on_a_path(x: torch.Tensor) -> Any:
    def items() -> Any:
        for number in range(3):
            if x.sum() > number:
                yield number
        return 6

    try:
        return next(items())
    except StopIteration as end:
        return end.value


def test_one_by_two_names_on_each_path() -> None:
    check(by_two_names, *CALLS)


@pytest.mark.parametrize("function", [by_two_names_on_a_path, returns_on_a_path], ids=lambda one: one.__name__)
def test_refused(function: Callable[..., Any]) -> None:
    with pytest.raises(TraceError) as caught:
        to_static(function)(*CALLS[0])
    assert caught.value.code == "D2S266" and caught.value.location is not None
