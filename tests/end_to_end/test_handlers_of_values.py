"""``except OverflowError`` and ``except ValueError`` around functions of numbers: refused where only a run can tell."""

from __future__ import annotations

import itertools
import math

import pytest
import torch

import dy2static
from dy2static.errors import TraceError
from runtime.ops.scalar import MATH
from tests.oracle import check

VALUES = (0.0, -2.5, 3.0, 1e308, math.inf, math.nan)
FUNCTIONS = {
    "int": int, "round": round, "pow": lambda v: v**3.0, "shift": lambda v: 1 << int(v > 0) - 1,
    **{f"math.{name}": getattr(math, name) for name in MATH},
}  # fmt: skip


def raised_by(function):
    """What eager may raise for a float; None if it takes no single float."""
    found = set()
    for value in VALUES:
        try:
            function(value)
        except (ArithmeticError, ValueError) as error:
            found.add(type(error))
        except TypeError:
            return None
    return found


ALL = {name: raised for name, function in FUNCTIONS.items() if (raised := raised_by(function)) is not None}


@pytest.mark.parametrize("kind", [OverflowError, ValueError, ZeroDivisionError])
def test_every_function_of_numbers(kind):
    refused, equal = [], []
    for name in ALL:
        function = FUNCTIONS[name]

        def guarded(x, function=function):
            try:
                y = function(x.item())
            except kind:
                y = -1
            return x * y

        static = dy2static.to_static(guarded)
        try:
            given = [static(torch.tensor(value)) for value in (3.0, 0.25)]
        except TraceError as error:
            assert error.code == "D2S229", (name, error)
            refused.append(name)
        except (ArithmeticError, ValueError):
            equal.append(name)
        else:
            assert len(given) == 2
            equal.append(name)
    print(f"{kind.__name__}: {len(refused)} refused, {len(equal)} need no handler")
    assert set(refused) >= {name for name, raised in ALL.items() if any(issubclass(one, kind) for one in raised)}


def test_no_handler_in_the_way():
    """Integers raise none of it, and a handler of something else is no reason to refuse."""

    def of_an_integer(x):
        try:
            n = int(x.sum())
        except (OverflowError, ValueError):
            n = -1
        return x * n

    def of_something_else(x):
        try:
            n = int(x.sum())
        except KeyError:
            n = -1
        return x * n

    check(of_an_integer, (torch.tensor([1, 2]),), (torch.tensor([-1, -2]),))
    check(of_something_else, (torch.tensor([1.5, 2]),), (torch.tensor([-1.5, -2]),), (torch.tensor([math.inf]),))


@pytest.mark.parametrize("where", ["branch", "loop", "call"])
@pytest.mark.parametrize("caught, requires_grad", [*itertools.product([OverflowError, ArithmeticError], [True, False])])
def test_wherever_it_stands(where, caught, requires_grad):
    def number(x):
        return int(x.item())

    def f(x):
        n = 0
        try:
            if where == "branch":
                if x > 0:
                    n = int(x.item())
            elif where == "loop":
                while n < x:
                    n = n + int(x.item())
            else:
                n = number(x)
        except caught:
            n = -1
        return x * n

    with pytest.raises(TraceError) as error:
        dy2static.to_static(f)(torch.tensor(2.0, requires_grad=requires_grad))
    assert error.value.code == "D2S229" and error.value.location.file == __file__


def rest(n):
    return n % 2 + n // 5


def of_plain_numbers(x):
    n = int(x.sum())
    try:
        y = x * (n % 2 + n // -3 + n / 4 + sum(divmod(n, 4)) + rest(n))
    except ZeroDivisionError:
        y = x * 7
    return y


def decided_by_a_rest(x):
    n = float(x.sum())
    try:
        y = x * 3 if n % 2.5 == 0 else x / (n // True + 0.5)
    except ArithmeticError:
        y = x * 7
    return y


def by_zero(x):
    n = int(x.sum())
    try:
        y = x * (n % 0)
    except ZeroDivisionError:
        y = x * 7
    return y


@pytest.mark.parametrize("function", [of_plain_numbers, decided_by_a_rest])
def test_a_plain_divisor_is_not_zero(function):
    check(function, [(torch.tensor([a, b]),) for a, b in ((1.0, 2.0), (2.0, 3.0), (0.0, 0.0), (-3.0, -2.5))])


def test_a_plain_zero_is_refused():
    with pytest.raises(TraceError, match="D2S229"):
        dy2static.to_static(by_zero)(torch.ones(2))
