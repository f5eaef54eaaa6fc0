"""The text of a tensor that a loop carries names its node, that of what it was before the loop as well."""

from __future__ import annotations

import pytest
import torch

from dy2static import to_static
from tests.oracle import same


def _asserting(x):
    y = x
    while y.sum() < 100:
        assert (y > 0).all(), f"not positive: {y}"
        y = y * 2
    return y


def _printing(x):
    y = x
    while y.sum() < 100:
        print(y)
        y = y * 2
    return y


def _printing_after(x):
    y = x
    while y.sum() < 100:
        y = y * 2
    print(y)
    return y


def _two_loops(x):
    y, total = x, x * 0
    while y.sum() < 100:
        z = y
        while z.sum() < 50:
            print(z)
            z = z + y
        y = y * 2
        total = total + z
    print(y, total)
    return y + total


def _swapped(x):
    a, b = x, x.exp()
    while a.sum() < 100:
        print(a, b)
        a, b = b * 2, a
    return a + b


def _of_a_branch(x):
    y = x * 3 if x.sum() > 4 else x
    while y.sum() < 100:
        print(y)
        y = y * 2
    return y


FUNCTIONS = [_asserting, _printing, _printing_after, _two_loops, _swapped, _of_a_branch]


@pytest.mark.parametrize("history", ["leaf", "made", "none"])
@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__[1:])
def test_the_name_of_what_a_loop_starts_with(function, history, capsys):
    converted = to_static(function)
    for start in (1.0, 2.0, 200.0):
        got = []
        for one in (function, converted):
            x = torch.full((3,), start, dtype=torch.float64, requires_grad=history != "none")
            y = one(x.sigmoid() * start if history == "made" else x)
            if y.requires_grad:
                y.sum().backward()
            got.append((y, x.grad, capsys.readouterr().out))
        same(got[1], got[0])
