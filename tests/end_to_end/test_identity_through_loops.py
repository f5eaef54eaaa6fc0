"""Which object a name is goes through loops that follow each other inside a loop, in whatever order it is asked for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
import torch

from tests.oracle import check


class Pair(NamedTuple):
    one: Any
    two: Any


def count(x):
    return int(x.abs().sum() > 1) + 1


def one_after_the_other(x, y):
    first = pair = Pair(x, 1)
    for _ in range(count(y)):
        for _ in range(count(x)):
            pair = Pair(x * 2, 1) if x.sum() > 0 else pair
        for _ in range(count(y)):
            pair = pair if y.sum() > 0 else Pair(y, 1)
    return pair is first, first, pair


def three(x, y):
    first = pair = (x, 1)
    for _ in range(count(y)):
        for _ in range(count(x)):
            pair = (x * 2, 1) if x.sum() > 0 else pair
        for _ in range(count(y)):
            pair = pair if y.sum() > 0 else (y, 1)
        for _ in range(count(x)):
            pair = (y, 1) if (x * y).sum() > 0 else pair
    return first, pair


def loop_inside_while(x, y):
    other, pair = (y, 1), (x, 1)
    first, steps = pair, 0
    while steps < 4:
        steps += 1
        if steps > 1 and y.sum() > steps:
            break
        for _ in range(count(x)):
            for _ in range(count(y)):
                pair = (x, 1) if x.sum() > 0 else pair
            other = pair if y.sum() > 0 else other
        else:
            other = (x * 2, 1)
    return first, pair, other, pair is first, other is pair


def each_other(x, y):
    a, b = (x, 1), (y, 1)
    first, second = a, b
    for _ in range(count(x) + count(y)):
        for _ in range(count(x)):
            a, b = (b, a) if x.sum() > 0 else (a, b)
        for _ in range(count(y)):
            a, b = (b, a) if y.sum() > 0 else (a, b)
    return a is first, a is second, b is first, b is second, a is b, (a, b, first, second)


def tensors(x, y):
    a, b = x * 1, y * 1
    first, second = a, b
    for _ in range(count(x) + count(y)):
        for _ in range(count(x)):
            a = b if x.sum() > 0 else a
        for _ in range(count(y)):
            b = b if y.sum() > 0 else a
    return a is first, a is second, b is first, b is second, a is b, a, b


def written_afterwards(x, y):
    a, b = x * 1, y * 1
    first = a
    for _ in range(count(x) + count(y)):
        for _ in range(count(x)):
            a = b if x.sum() > 0 else a
        for _ in range(count(y)):
            b = b if y.sum() > 0 else a
    a.mul_(2)
    b.add_(1)
    return a, b, first


def asked_inside(x, y):
    first = pair = (x, 1)
    seen = 0
    for _ in range(count(y)):
        for _ in range(count(x)):
            pair = (x * 2, 1) if x.sum() > 0 else pair
        seen = seen + (2 if pair is first else 1)
        for _ in range(count(y)):
            pair = first if y.sum() > 0 else pair
        seen = seen * 3 + (2 if pair is first else 1)
    return seen, pair


@pytest.mark.sample(2)
@pytest.mark.parametrize("grad", [False, True])
@pytest.mark.parametrize(
    "function",
    [one_after_the_other, three, loop_inside_while, each_other, tensors, written_afterwards, asked_inside],
    ids=lambda function: function.__name__,
)
def test_who_is_who(function: Callable[..., Any], grad: bool) -> None:
    signs = [torch.tensor([0.2, 0.1]), torch.tensor([0.9, 0.8]), torch.tensor([-0.2, 0.1]), torch.tensor([-0.9, -0.8])]
    calls = [(x.clone().requires_grad_(grad), y.clone()) for x in signs for y in signs]
    check(function, *calls)


def in_another_order(x):
    a, b, c, d = x, x * 1, x * 2, x * 3
    if x[0] > -1:
        a, b, c, d = b, c, d, a
    if x[1] > 0:
        a, b, c, d = b, c, d, a
    if x[2] > 1:
        a, b, c, d = b, c, d, a
    if x[0] > 2:
        a, b, c, d = b, c, d, a
    if x[1] > 3:
        a, b, c, d = b, c, d, a
    if x[2] > 4:
        a, b, c, d = b, c, d, a
    return a, b, c, d, a is d


@pytest.mark.parametrize("grad", [False, True])
def test_branches_that_change_places(grad: bool) -> None:
    """Each asks of each which of four it is: asked anew of every path that led there, that takes minutes."""
    check(in_another_order, *[(torch.full((3,), one, requires_grad=grad),) for one in (1.0, 0.5, -2.0, 5.0)])
