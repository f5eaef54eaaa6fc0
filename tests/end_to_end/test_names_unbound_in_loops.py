"""Names that one path of an iteration binds, or none: the read raises Python's error at its place, also where what is
computed of the name is the same in each iteration, and might be computed once, before the loop."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from dy2static import to_static
from tests import oracle


def deleted(x, y):
    total = torch.zeros(3)
    work = torch.ones(3)
    for _ in range(int((x > 0).sum())):
        work[1:] = work.sum()
        gone = y * 2
        if y.sum() > 0:
            del gone
        total = total + (x + gone) * work
    return total, work


def set_on_one_path(x, y):
    total = torch.zeros(3)
    work = torch.ones(3)
    for _ in range(int((x > 0).sum())):
        work[1:] = work.sum()
        if y.sum() < 0:
            found = y * 3
        total = total * 0.5 + torch.relu(found)
    return total, work


def set_before_the_loop(x, y):
    if y.sum() < 0:
        found = y * 3
    total = torch.zeros(3)
    work = torch.ones(3)
    while total.sum() < x.sum():
        work.add_(1)
        total = total + torch.relu(found) + found.neg().abs() + 1
    return total, work


def in_a_nested_loop(x, y):
    total = torch.zeros(3)
    work = torch.ones(3)
    for i in range(int((x > 0).sum())):
        if y.sum() < 0:
            found = y + 1
        for _ in range(i + 1):
            work.mul_(2)
            total = total + found * 2
    return total, work


def a_number(x, y):
    total = torch.zeros(3)
    work = torch.ones(3)
    for _ in range(int((x > 0).sum())):
        work.mul_(2)
        if y.sum() < 0:
            n = int(y.abs().sum())
        total = total + n * 2
    return total, work


@pytest.mark.parametrize("function", [deleted, set_on_one_path, set_before_the_loop, in_a_nested_loop, a_number],
                         ids=lambda one: one.__name__)  # fmt: skip
@pytest.mark.parametrize("backend", ["interpreter", "c"])
@pytest.mark.parametrize("grad", [False, True])
def test_the_read_raises(function: Callable[..., object], backend: str, grad: bool) -> None:
    static = to_static(function, backend=backend)
    for x in (torch.ones(3), -torch.ones(3)):
        for y in (torch.ones(3), -torch.ones(3)):
            with torch.set_grad_enabled(grad):
                given = [x.clone().requires_grad_(grad), y.clone().requires_grad_(grad)]
                oracle.same(_outcome(static, given), _outcome(function, given))


def _outcome(function: Callable[..., object], given: list[torch.Tensor]) -> object:
    try:
        return function(*given)
    except UnboundLocalError as error:
        return str(error)
