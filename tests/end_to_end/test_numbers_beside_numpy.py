"""A Python number that a tensor decides, beside NumPy's numbers and arrays: NumPy's types and values come out."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from dy2static import to_static
from dy2static.errors import TraceError
from tests.oracle import check, difference

NUMBERS = [np.int64(3), np.int32(-2), np.float64(1.5), np.float32(0.5), np.bool_(True), np.uint8(7), np.float16(2.0),
           np.array([1, -2]), np.array([0.5, 2.0], dtype=np.float32), np.array(3)]  # fmt: skip
OPERATORS = [operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod, operator.pow,
             operator.lt, operator.ge, operator.eq, operator.ne]  # fmt: skip
INPUTS = [torch.tensor([1.0, 2.0, 3.0]), torch.tensor([-1.0, -2.0, -3.0]), torch.tensor([0.5, -0.25, 0.25])]


def outcome(function: Callable[..., Any], x: torch.Tensor) -> Any:
    try:
        return function(x)
    except TraceError:
        raise
    except Exception as error:
        return type(error).__name__


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # divisions by zero
@pytest.mark.parametrize("left", [True, False])
@pytest.mark.parametrize("kind", [int, float])
@pytest.mark.parametrize("number", NUMBERS, ids=lambda one: f"{one.dtype}-{one.ndim}")
@pytest.mark.parametrize("applied", OPERATORS, ids=lambda one: one.__name__)
def test_operators(applied: Callable[..., Any], number: Any, kind: type, left: bool) -> None:
    def function(x: Any) -> Any:
        mine = kind(x.sum())
        result = applied(number, mine) if left else applied(mine, number)
        return result, type(result).__name__

    converted = to_static(function)
    for x in INPUTS:
        expected = outcome(function, x)
        try:
            got = outcome(converted, x)
        except TraceError as error:  # which only the run can say: whether an int fits
            assert error.code == "D2S210" and kind is int and number.dtype in ("int32", "uint8")
            return
        assert not difference(got, expected)


def count(x: Any) -> Any:
    return np.int64(2) * abs(int(x.sum()))


def in_place(x: Any) -> Any:
    total = int(x.sum())
    total *= np.float32(0.5)
    total += 1
    return total


USES: dict[str, Callable[[Any], Any]] = {
    "range": lambda x: list(range(count(x))),
    "sizes": lambda x: (torch.zeros(count(x)), x[: count(x)], x.repeat(count(x) + 1)),
    "numbers": lambda x: (int(count(x)), float(count(x)), count(x) + 1, -count(x), abs(count(x)), max(count(x), 3)),
    "branch": lambda x: 1 if count(x) > 3 else 2,
    "tensor": lambda x: (x * count(x), x * (x.sum().item() + np.float32(1)), np.ones(2) * x.sum().item()),
    "item": lambda x: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13][count(x)],
    "functions": lambda x: (np.sqrt(count(x)), np.maximum(count(x), 3), np.array([1, 2]) * int(x.sum())),
    "in place": in_place,
    "classes": lambda x: (isinstance(count(x), np.integer), isinstance(count(x), int), count(x).ndim),
    "items of x": lambda x: (x.numpy()[0] * int(x.sum()), int(x.sum()) - x.numpy()[0], x.numpy() < int(x.sum())),
}


@pytest.mark.parametrize("name", USES)
def test_uses(name: str) -> None:
    check(USES[name], *[(x,) for x in INPUTS], paths=("program",))
