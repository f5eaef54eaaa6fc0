"""Methods of constant numbers and text that are called by name, given a number or text that a tensor decides."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
import torch

from dy2static import to_static
from dy2static.errors import TraceError
from tests.oracle import check

INPUTS = [(torch.tensor(values),) for values in ([1.0, 2.0, 3.0], [-1.0, -2.0, 0.5], [-1.0, -1.0, -1.0])]
COMPUTING = ("add", "sub", "mul", "truediv", "floordiv", "mod", "divmod", "pow", "and", "or", "xor", "lshift", "rshift")
NAMES = [f"__{side}{name}__" for name in COMPUTING for side in ("", "r")] + [
    f"__{name}__" for name in ("eq", "ne", "lt", "le", "gt", "ge")]  # fmt: skip


def above(x: torch.Tensor) -> int:
    return int((x > 0).sum())


@pytest.mark.parametrize("owner", [3, 2.5, True, False], ids=repr)
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", [int, float, bool], ids=lambda kind: kind.__name__)
def test_operators(owner: Any, name: str, kind: Callable[[Any], Any]) -> None:
    if not hasattr(owner, name):
        return
    method, of_class = getattr(owner, name), getattr(type(owner), name)

    def bound(x: torch.Tensor) -> Any:
        return method(kind((x > 0).sum()))

    def of_the_class(x: torch.Tensor) -> Any:
        return of_class(owner, kind((x > 0).sum()))

    for function in (bound, of_the_class):
        for call in INPUTS:
            check(function, call, paths=("program",))


class Factor(float):
    def __mul__(self, other: Any) -> Any:
        return float.__mul__(self, other)

    def __add__(self, other: Any) -> Any:
        return super().__add__(other)


class Count(int):
    def __sub__(self, other: Any) -> Any:
        return int.__sub__(self, other)


def counted(x: torch.Tensor) -> list[int]:
    return [i for i in range(above(x))]  # the converter sees a loop


USES: list[Callable[[Any], Any]] = [
    lambda x: x * 2 if (3).__eq__(above(x)) else x,
    lambda x: x * 2 if (1).__lt__(above(x)) and (5).__gt__(above(x)) else x,
    lambda x: list(filter((1).__lt__, counted(x))),
    lambda x: list(map((10).__sub__, counted(x))),
    lambda x: sum(map((2).__mul__, range(above(x)))),
    lambda x: sorted(counted(x), key=(3).__sub__),
    lambda x: functools.reduce(int.__mul__, [2, above(x), 3]),
    lambda x: functools.partial(int.__add__, 1)(above(x)),
    lambda x: list(itertools.starmap(int.__sub__, [(5, above(x)), (above(x), 1)])),
    lambda x: (3).__pow__(above(x), 5),
    lambda x: float.__add__(1.5, x.sum().item()),
    lambda x: int.__add__(above(x), 1),
    lambda x: Factor(2.0) * above(x),
    lambda x: Factor(2.0) + above(x),
    lambda x: Count(2) - above(x),
    lambda x: "3".__eq__(str(above(x))),
    lambda x: "3".__lt__(str(above(x))),
    lambda x: "n=".__add__(str(above(x))),
    lambda x: (1 + 2j).__eq__(above(x)),
    lambda x: (3).__add__("a") is NotImplemented,
    lambda x: (3).__add__(above(x) * 1.5) is NotImplemented,
    lambda x: (3).__add__(2 if x.sum() > 0 else 5),
    lambda x: (3).__add__(2 if x.sum() > 0 else above(x)),
    lambda x: timedelta(1).__eq__(above(x)) is NotImplemented,
    lambda x: [1].__eq__(above(x)) is NotImplemented,
    lambda x: object.__lt__(1, above(x)) is NotImplemented,
]


@pytest.mark.parametrize("number", range(len(USES)))
@pytest.mark.parametrize("grad", [False, True])
def test_uses(number: int, grad: bool) -> None:
    use = USES[number]

    def function(x: torch.Tensor) -> Any:
        return use(x)

    check(function, *((x.clone().requires_grad_(grad),) for (x,) in INPUTS), paths=("program",))


def test_in_a_loop() -> None:
    def function(x: torch.Tensor) -> Any:
        total = 0
        for i in range(above(x)):
            if (1).__le__(i):
                total = total.__add__(1) if isinstance(total, str) else total + (10).__mul__(i)
        return x * total

    check(function, *INPUTS, paths=("program",))


REFUSED: list[Callable[[Any], Any]] = [
    lambda x: object.__eq__(1, above(x)), lambda x: (1 + 2j).__add__(above(x)), lambda x: "a".__mul__(above(x)),
    lambda x: "%d".__mod__(above(x)), lambda x: Fraction(1, 2).__add__(above(x)),
    lambda x: Fraction.__eq__(Fraction(3), above(x)), lambda x: Decimal(3).__eq__(above(x)),
    lambda x: Decimal.__radd__(Decimal(3), above(x)), lambda x: timedelta(1).__mul__(above(x)),
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(REFUSED)))
def test_refused(number: int) -> None:
    use = REFUSED[number]

    def function(x: torch.Tensor) -> Any:
        return use(x)

    with pytest.raises(TraceError, match="D2S2(10|64)"):
        to_static(function)(INPUTS[0][0])
