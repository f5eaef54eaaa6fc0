"""Loops in which each iteration takes a view of the view that the iteration before left: ``while ...: x = x.t()``.

Which view of the first tensor the last is, a Program does not know: reading it is right all the same, and a write to it
or to the first one is refused.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from dy2static import to_static
from runtime.errors import TraceError
from tests.oracle import check

VIEWS = {
    "view": lambda x: x.view(3, 3), "view_as": lambda x: x.view_as(x), "reshape": lambda x: x.reshape(3, 3),
    "t": lambda x: x.t(), "mT": lambda x: x.mT, "permute": lambda x: x.permute(1, 0),
    "expand": lambda x: x.expand(3, 3), "squeeze": lambda x: x.squeeze(), "slice": lambda x: x[:],
    "narrow": lambda x: x.narrow(0, 0, 3), "chunk": lambda x: x.chunk(1)[0], "to and fro": lambda x: x[None][0],
    "flatten": lambda x: x.flatten(), "detach": lambda x: x.detach(),
    "the same": lambda x: x.to(x.dtype), "contiguous": lambda x: x.contiguous(),
    "atleast_1d": lambda x: torch.atleast_1d(x),
    "dropout without": lambda x: torch.nn.functional.dropout(x, 0.5, training=False),
}  # fmt: skip
"""Operators that give a view, or the very tensor."""
COUNTS = [torch.tensor(count) for count in range(4)]


def of_an_argument(view):
    def function(x, n):
        while n > 0:
            x = view(x)
            n = n - 1
        return x

    return function


def of_a_value(view):
    def function(x, n):
        h = x * 2
        y = h + 1
        while n > 0:
            h = view(h)
            y = y + h.sum()
            n = n - 1
        return y, h

    return function


def in_a_branch_of_the_loop(view):
    def function(x, n):
        while n > 0:
            if n > 1:
                x = view(x)
            n = n - 1
        return x

    return function


@pytest.mark.sample(3)
@pytest.mark.parametrize("make", [of_an_argument, of_a_value, in_a_branch_of_the_loop])
@pytest.mark.parametrize("name", VIEWS)
def test_views(name: str, make: Callable[..., Callable[..., object]]) -> None:
    for leaf in (torch.randn(3, 3), torch.randn(3, 3, requires_grad=True)):
        check(make(VIEWS[name]), *([leaf, count] for count in COUNTS), tolerance=1e-6)


def two_in_exchange(x, n):
    a, b = x, x * 2
    while n > 0:
        a, b = b.t(), a.t()
        n = n - 1
    return a, b


def of_another_variable(x, n):
    a = x * 2
    b = a
    while n > 0:
        b = b.t()
        a = a + 1
        n = n - 1
    return a, b


def read_after_the_loop(x, n):
    h = x * 2
    while n > 0:
        h = h.t()
        n = n - 1
    return h @ h.t() + h[0]


@pytest.mark.parametrize("function", [two_in_exchange, of_another_variable, read_after_the_loop])
def test_several(function: Callable[..., object]) -> None:
    check(function, *([torch.randn(3, 3, requires_grad=True), count] for count in COUNTS), tolerance=1e-6)


def written_in_turn(x, n):
    h = x * 2
    while n > 0:
        h = h.t()
        h += torch.arange(9.0).view(3, 3)
        n = n - 1
    return h


def written_afterwards(x, n):
    h = x * 2
    while n > 0:
        h = h.t()
        n = n - 1
    h.add_(torch.arange(3.0))
    return h * 2


def both_seen(x, n):
    h = x * 2
    first = h
    while n > 0:
        h = h.t()
        h += torch.arange(9.0).view(3, 3)
        n = n - 1
    return first, h


def base_written(x, n):
    h = x * 2
    v = h
    while n > 0:
        v = v.t()
        n = n - 1
    h.add_(torch.arange(3.0))
    return v


def argument_written(x, n):
    while n > 0:
        x = x.t()
        n = n - 1
    x.add_(torch.arange(3.0))
    return x


def written_by_the_next(x, n):
    h = x * 2
    v = h
    while n > 0:
        v = v.t()
        h += torch.arange(3.0)
        n = n - 1
    return h, v


@pytest.mark.parametrize(
    "function", [written_in_turn, written_afterwards, both_seen, base_written, argument_written, written_by_the_next]
)
def test_written(function: Callable[..., object]) -> None:
    with pytest.raises(TraceError) as caught:
        to_static(function)(torch.randn(3, 3), torch.tensor(2))
    assert caught.value.code == "D2S222"
